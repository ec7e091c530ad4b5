"""Flags for names that may be unassigned: CPython raises UnboundLocalError, compiled code would read zeros.

Each name that flow.py finds gets a flag, and its readers check the flag first. A tuple for which it isn't set is
rejected, and Python raises the error. Functions without such names, almost all, stay unchanged. Knows no Numba.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rayelastic.compile.reading.callables import NotRewrittenError, assigned, called, load, placed
from rayelastic.compile.reading.recursion import HOLDS
from rayelastic.compile.reading.unassigned.flow import Comprehension, Flow, bound, captured
from rayelastic.reasons import Code


def with_flags(node: ast.FunctionDef, path: str) -> ast.FunctionDef:
    """Add flags for the names of a function, and of inner ones, that are read while they may be unassigned.

    Args:
        node: The user's function; it is changed.
        path: The file, for errors.

    Raises:
        NotRewrittenError: A name may be unassigned where a flag can't follow it.
    """
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef) and inner is not node:
            with_flags(inner, path)
    flow = Flow(node, path)
    flow.run()
    if flow.suspects:
        names = sorted(flow.suspects)
        before: list[ast.stmt] = [assigned(_flag(name), ast.Constant(False)) for name in names]
        marked = _Marked(flow, path)
        node.body = [*before, *marked.block(node.body)]
        for one in before:
            placed(one, node)
    return node


def _flag(name: str) -> str:
    return f"rel_has_{name}"


class _Marked:
    """Sets flags after assignments, and checks them before reads."""

    def __init__(self, flow: Flow, path: str) -> None:
        self._suspects, self._reads, self._path = flow.suspects, flow.reads, path

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return statements with flags."""
        return [made for one in body for made in self._statement(one)]

    def _set(self, names: Iterable[str], node: ast.AST, value: bool = True) -> list[ast.stmt]:
        wanted = sorted(set(names) & self._suspects)
        return [placed(assigned(_flag(name), ast.Constant(value)), node) for name in wanted]

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef):
            return [node, *self._set([node.name], node)]
        own = [
            one
            for field, value in ast.iter_fields(node)
            if field not in ("body", "orelse", "finalbody", "handlers", "cases")
            for one in (value if isinstance(value, list) else [value])
            if isinstance(one, ast.AST)
        ]
        before = self._checks(node, own)
        changed = _Guarded(self._reads, self._suspects, self._path)
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, field, changed.visit(value))
            elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                setattr(node, field, [changed.visit(one) for one in value])
        given = {name for one in own for name in bound(one)} - changed.inside
        for field in ("body", "orelse", "finalbody"):
            if hasattr(node, field):
                setattr(node, field, self.block(getattr(node, field)))
        if isinstance(node, ast.For | ast.With):
            node.body = [*self._set(given, node), *node.body]
            given = set()
        for handler in getattr(node, "handlers", []):
            names = [handler.name] if handler.name else []
            handler.body = [*self._set(names, handler), *self.block(handler.body), *self._set(names, handler, False)]
        for case in getattr(node, "cases", []):
            if case.guard is not None:
                case.guard = changed.visit(case.guard)
                for name in sorted(captured(case.pattern) & self._suspects):  # it is assigned even if the guard fails
                    raise NotRewrittenError(Code.UNASSIGNED, self._path, case.pattern.lineno, name=name)
            case.body = [*self._set(captured(case.pattern), case.body[0]), *self.block(case.body)]
        if isinstance(node, ast.Delete):
            lost = [one.id for one in node.targets if isinstance(one, ast.Name)]
            return [*before, node, *self._set(lost, node, False)]
        return [*before, node, *self._set(given, node)]

    def _checks(self, node: ast.stmt, own: list[ast.AST]) -> list[ast.stmt]:
        """Check flags before a statement, for the names that it reads in any case."""
        found: list[ast.stmt] = []
        for one in [] if isinstance(node, ast.While) else own:
            for name in self._sure(one):
                if id(name) in self._reads:
                    self._reads.discard(id(name))
                    found.append(placed(ast.Expr(called(load(HOLDS), load(_flag(name.id)))), node))
        return found

    def _sure(self, node: ast.AST) -> list[ast.Name]:
        """Return the names that evaluating an expression always reads."""
        if isinstance(node, ast.Name):
            return [node]
        if isinstance(node, ast.BoolOp):
            return self._sure(node.values[0])
        if isinstance(node, ast.IfExp):
            return self._sure(node.test)
        if isinstance(node, ast.Compare):
            return [*self._sure(node.left), *self._sure(node.comparators[0])]
        if isinstance(node, Comprehension):
            return self._sure(node.generators[0].iter)
        if isinstance(node, ast.Lambda | ast.NamedExpr):
            return []
        return [name for one in ast.iter_child_nodes(node) for name in self._sure(one)]


class _Guarded(ast.NodeTransformer):
    """Rewrites `name` as `name if rel_holds(rel_has_name) else name` where it is read only on some paths.

    Attributes:
        inside: Names that expressions assign.
    """

    def __init__(self, reads: set[int], suspects: set[str], path: str) -> None:
        self._reads, self._suspects, self._path = reads, suspects, path
        self.inside: set[str] = set()

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if id(node) not in self._reads:
            return node
        look = called(load(HOLDS), load(_flag(node.id)))
        return placed(ast.IfExp(look, load(node.id), load(node.id)), node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        self.generic_visit(node)
        self.inside.add(node.target.id)
        if node.target.id not in self._suspects:
            return node
        raise NotRewrittenError(Code.UNASSIGNED, self._path, node.lineno, name=node.target.id)
