"""Reading a name that may have no value yet: compiled code would read zeros there, CPython raises UnboundLocalError.

A flow analysis of the user's source finds names that are read where not every way there gives them a value. Each such
name gets a flag beside it, and its readers look at the flag first: a tuple for which it isn't set is refused, and
Python, which then has the answer, raises. Functions without such names, almost all, stay as they are. Knows no Numba.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NoReturn

from rayelastic.compile.reading.callables import NotRewrittenError, assigned, called, load, placed
from rayelastic.compile.reading.recursion import HOLDS

__all__ = ["with_flags"]

Names = frozenset[str]
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def with_flags(node: ast.FunctionDef, path: str) -> ast.FunctionDef:
    """Gives names of a function, and of those inside it, flags where they are read and may have no value.

    Args:
        node: the function as the user wrote it; it is changed.
        path: of the file, for errors.

    Raises:
        NotRewrittenError: a name may have no value where no flag can follow it.
    """
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef) and inner is not node:
            with_flags(inner, path)
    flow = _Flow(node, path)
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


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _bound(target: ast.AST | None) -> Names:
    """Names that a target gives values to."""
    if target is None:
        return frozenset()
    return frozenset(n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _captured(pattern: ast.pattern) -> Names:
    """Names that a pattern gives values to."""
    found = (getattr(one, "name", None) or getattr(one, "rest", None) for one in ast.walk(pattern))
    return frozenset(name for name in found if name)


def _locals(node: ast.FunctionDef) -> set[str]:
    """Names of a function that aren't parameters."""
    parameters = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
    found: set[str] = set()
    rest: list[ast.AST] = list(node.body)
    while rest:
        one = rest.pop()
        if isinstance(one, ast.FunctionDef):
            found.add(one.name)
        elif isinstance(one, ast.Lambda):
            continue
        else:
            if isinstance(one, ast.Global | ast.Nonlocal):
                parameters |= set(one.names)
            elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                found.add(one.id)
            elif isinstance(one, ast.ExceptHandler) and one.name:
                found.add(one.name)
            elif isinstance(one, ast.pattern):
                found |= _captured(one)
            inside = isinstance(one, Comprehension)
            rest += (n for n in ast.walk(one) if isinstance(n, ast.NamedExpr)) if inside else ast.iter_child_nodes(one)
    return found - parameters


class _Flow:
    """Which names surely have values, statement by statement. A set that is None is that of a place never reached.

    Attributes:
        suspects: names that are read where they may have no value.
        reads: those reads, by `id` of the node.
    """

    def __init__(self, node: ast.FunctionDef, path: str) -> None:
        self._node, self._path = node, path
        self.names = _locals(node)
        self.suspects: set[str] = set()
        self.reads: set[int] = set()
        self._within: ast.AST | None = None  # the comprehension that is looked at
        self._leaves: list[list[Names | None]] = []  # states where `break` leaves each loop

    def run(self) -> None:
        """Looks at the whole function."""
        self._block(self._node.body, frozenset())

    def _block(self, body: Iterable[ast.stmt], state: Names | None) -> Names | None:
        for one in body:
            if state is None:  # never run
                return None
            state = self._statement(one, state)
        return state

    def _statement(self, node: ast.stmt, state: Names) -> Names | None:
        special = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if special is not None:
            found: Names | None = special(node, state)
            return found
        for field, value in ast.iter_fields(node):  # values before targets
            if field not in ("targets", "target"):
                for one in value if isinstance(value, list) else [value]:
                    state = self._reads(one, state) if isinstance(one, ast.expr) else state
        targets = getattr(node, "targets", None) or [one for one in [getattr(node, "target", None)] if one is not None]
        for one in targets:
            state = self._reads(one, state)
            state |= _bound(one)
        return state

    # --- statements ---

    def _of_augassign(self, node: ast.AugAssign, state: Names) -> Names:
        state = self._reads(node.value, state)
        if isinstance(node.target, ast.Name):
            self._read(node.target, state)
            return state | {node.target.id}
        return self._reads(node.target, state)

    def _of_annassign(self, node: ast.AnnAssign, state: Names) -> Names:
        return self._reads(node.value, state) | _bound(node.target) if node.value is not None else state

    def _of_delete(self, node: ast.Delete, state: Names) -> Names:
        for one in node.targets:
            state = self._reads(one, state)
            if isinstance(one, ast.Name):
                self._read(one, state)
                state -= {one.id}
        return state

    def _of_return(self, node: ast.Return, state: Names) -> None:
        self._reads(node.value, state)

    def _of_raise(self, node: ast.Raise, state: Names) -> None:
        self._reads(node.exc, state)
        self._reads(node.cause, state)

    def _of_break(self, _: ast.Break, state: Names) -> None:
        if self._leaves:
            self._leaves[-1].append(state)

    def _of_continue(self, *_: object) -> None:
        return None

    def _of_functiondef(self, node: ast.FunctionDef, state: Names) -> Names:
        for one in [*node.args.defaults, *(one for one in node.args.kw_defaults if one)]:
            state = self._reads(one, state)
        state |= {node.name}
        self._closure(node, _free(node), state)
        return state

    def _of_if(self, node: ast.If, state: Names) -> Names | None:
        true, false = self._test(node.test, state)
        return _met(self._block(node.body, true), self._block(node.orelse, false))

    def _of_while(self, node: ast.While, state: Names) -> Names | None:
        state -= _deleted(node.body)
        true, false = self._test(node.test, state)
        self._leaves.append([])
        self._block(node.body, true)
        left = self._leaves.pop()
        end = None if _is_true(node.test) else self._block(node.orelse, false)
        return _met(end, *left)

    def _of_for(self, node: ast.For, state: Names) -> Names | None:
        state = self._reads(node.iter, state) - _deleted(node.body)
        self._leaves.append([])
        self._block(node.body, self._reads(node.target, state) | _bound(node.target))
        left = self._leaves.pop()
        return _met(self._block(node.orelse, state), *left)

    def _of_with(self, node: ast.With, state: Names) -> Names | None:
        for one in node.items:
            state = self._reads(one.context_expr, state) | _bound(one.optional_vars)
        return self._block(node.body, state)

    def _of_try(self, node: ast.Try, state: Names) -> Names | None:
        before = state - _deleted(node.body)
        ends = [self._block([*node.body, *node.orelse], state)]
        for one in node.handlers:
            inside = self._block(one.body, before | ({one.name} if one.name else set()))
            ends.append(inside - {one.name} if inside is not None and one.name else inside)
        parts = [*node.body, *node.orelse, *(s for one in node.handlers for s in one.body)]
        self._block(node.finalbody, state - _deleted(parts))
        end = _met(*ends)
        return self._block(node.finalbody, end)

    def _of_match(self, node: ast.Match, state: Names) -> Names | None:
        state = self._reads(node.subject, state)
        ends: list[Names | None] = []
        for case in node.cases:
            inside = state | _captured(case.pattern)
            self._pattern(case.pattern, state)
            true, false = self._test(case.guard, inside) if case.guard is not None else (inside, None)
            ends.append(self._block(case.body, true))
            if false is None and _catches_all(case.pattern):
                return _met(*ends)
        return _met(state, *ends)

    def _pattern(self, pattern: ast.pattern, state: Names) -> None:
        for one in ast.walk(pattern):
            if isinstance(one, ast.MatchValue):
                self._reads(one.value, state)
            elif isinstance(one, ast.MatchClass):
                self._reads(one.cls, state)

    # --- expressions ---

    def _read(self, node: ast.Name, state: Names) -> None:
        if node.id in self.names and node.id not in state:
            if self._within is not None:
                self._refuse(node.id, node)
            self.suspects.add(node.id)
            self.reads.add(id(node))

    def _test(self, node: ast.expr, state: Names) -> tuple[Names, Names]:
        """States where an expression is true, and where it is false."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            true, false = self._test(node.operand, state)
            return false, true
        if not isinstance(node, ast.BoolOp):
            state = self._reads(node, state)
            return state, state
        is_and = isinstance(node.op, ast.And)
        leaving: list[Names] = []
        for one in node.values:
            true, false = self._test(one, state)
            state, left = (true, false) if is_and else (false, true)
            leaving.append(left)
        end = frozenset.intersection(*leaving)
        return (state, end) if is_and else (end, state)

    def _reads(self, node: ast.AST | None, state: Names) -> Names:
        """The state behind an expression, whose reads are looked at."""
        if node is None:
            return state
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self._read(node, state)
            return state
        if isinstance(node, ast.NamedExpr):
            return self._reads(node.value, state) | {node.target.id}
        if isinstance(node, ast.BoolOp):
            return frozenset.intersection(*self._test(node, state))
        if isinstance(node, ast.IfExp):
            true, false = self._test(node.test, state)
            return self._reads(node.body, true) & self._reads(node.orelse, false)
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            state = self._reads(node.comparators[0], self._reads(node.left, state))
            inner = state
            for one in node.comparators[1:]:
                inner = self._reads(one, inner)
            return state
        if isinstance(node, ast.Lambda):
            self._closure(node, _free(node), state)
            return state
        if isinstance(node, Comprehension):
            return self._comprehension(node, state)
        for part in ast.iter_child_nodes(node):
            state = self._reads(part, state)
        return state

    def _comprehension(self, node: Comprehension, state: Names) -> Names:
        state = inner = self._reads(node.generators[0].iter, state)
        outside, self._within = self._within, node
        for at, one in enumerate(node.generators):
            inner = (self._reads(one.iter, inner) if at else inner) | _bound(one.target)
            for test in one.ifs:
                inner, _ = self._test(test, inner)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            inner = self._reads(part, inner)
        self._within = outside
        return state

    def _closure(self, node: ast.AST, free: Names, state: Names) -> None:
        """A function inside the function: no flag goes in there."""
        if missing := sorted((free & self.names) - state):
            self._refuse(missing[0], node)

    def _refuse(self, name: str, node: ast.AST) -> NoReturn:
        problem = f"'{name}' may have no value where an expression or function inside the function reads it"
        raise NotRewrittenError(problem, self._path, getattr(node, "lineno", self._node.lineno))


def _met(*states: Names | None) -> Names | None:
    reached = [one for one in states if one is not None]
    return frozenset.intersection(*reached) if reached else None


def _deleted(body: Iterable[ast.AST]) -> Names:
    """Names that lose their values somewhere in these statements."""
    found: set[str] = set()
    for one in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(one, ast.Delete):
            found |= {target.id for target in one.targets if isinstance(target, ast.Name)}
        elif isinstance(one, ast.ExceptHandler) and one.name:
            found.add(one.name)
    return frozenset(found)


def _catches_all(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return any(map(_catches_all, pattern.patterns))
    return isinstance(pattern, ast.MatchAs) and (pattern.pattern is None or _catches_all(pattern.pattern))


def _free(node: ast.AST) -> Names:
    """Names that a function reads of the one around it, near enough: no name is forgotten."""
    read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    given = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    if isinstance(node, ast.FunctionDef):
        given |= _locals(node)
    for one in ast.walk(node):
        if isinstance(one, ast.comprehension):
            given |= _bound(one.target)
    return frozenset(read - given)


# --- the rewrite ------------------------------------------------------------------------------------------------------


class _Marked:
    """Sets flags behind what gives values, and looks at them before what reads."""

    def __init__(self, flow: _Flow, path: str) -> None:
        self._suspects, self._reads, self._path = flow.suspects, flow.reads, path

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements with flags."""
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
        given = {name for one in own for name in _bound(one)} - changed.inside
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
            case.body = [*self._set(_captured(case.pattern), case.body[0]), *self.block(case.body)]
        if isinstance(node, ast.Delete):
            lost = [one.id for one in node.targets if isinstance(one, ast.Name)]
            return [*before, node, *self._set(lost, node, False)]
        return [*before, node, *self._set(given, node)]

    def _checks(self, node: ast.stmt, own: list[ast.AST]) -> list[ast.stmt]:
        """Looks at flags before a statement, for what it reads in any case."""
        found: list[ast.stmt] = []
        for one in [] if isinstance(node, ast.While) else own:
            for name in self._sure(one):
                if id(name) in self._reads:
                    self._reads.discard(id(name))
                    found.append(placed(ast.Expr(called(load(HOLDS), load(_flag(name.id)))), node))
        return found

    def _sure(self, node: ast.AST) -> list[ast.Name]:
        """Names that evaluating an expression reads whatever their values are."""
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
    """`name` becomes `name if rel_holds(rel_has_name) else name` where it is read on some ways only.

    Attributes:
        inside: names that expressions give values to.
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
        problem = f"'{node.target.id}', which an expression gives its value, may have none where it is read"
        raise NotRewrittenError(problem, self._path, node.lineno)
