"""Rewrites `if (n := len(w)) > 3` as `n = len(w)` and `if n > 3`, because Numba loses values that are used at once.

Numba does so except in a function's first lines. If the assignment happens only on some paths, as after `and`, the
statement is split. If that isn't possible, the expression stays and Numba may reject it. Knows no Numba.
"""

from __future__ import annotations

import ast
import copy
import itertools
from typing import Any

from rayelastic.compile.reading.callables import assigned, load, placed

_FIRST = {
    ast.Compare: "left",
    ast.BinOp: "left",
    ast.UnaryOp: "operand",
    ast.Attribute: "value",
    ast.Subscript: "value",
}


class AssignmentExpressions(ast.NodeTransformer):
    """The rewrite of one function."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def begin(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrite a function in place."""
        self.generic_visit(node)
        return node

    def visit_While(self, node: ast.While) -> Any:
        """Rewrite `while (k := ..) > 0`."""
        self.generic_visit(node)
        if node.orelse or not _has_one(node.test):
            return node
        leave = self._asked(ast.If(node.test, [ast.Pass()], [ast.Break()]))
        return placed(ast.While(ast.Constant(True), [*leave, *node.body], []), node)

    def visit_If(self, node: ast.If) -> Any:
        """Rewrite `if (n := ..) > 3`."""
        self.generic_visit(node)
        if not _has_one(node.test):
            return node
        return [placed(one, node) for one in self._asked(node)]

    def _asked(self, node: ast.If) -> list[ast.stmt]:
        """Return the same, with assignments before it if they happen first."""
        if (
            isinstance(node.test, ast.BoolOp)
            and isinstance(node.test.op, ast.And)
            and any(map(_has_one, node.test.values[1:]))
        ):
            first, *rest = node.test.values
            inner = ast.If(rest[0] if len(rest) == 1 else ast.BoolOp(ast.And(), rest), node.body, [])
            if not node.orelse or _is_short(node.orelse):
                inner.orelse = copy.deepcopy(node.orelse)
                return self._asked(ast.If(first, self._asked(inner), node.orelse))
            if _ends(node.body):
                return [*self._asked(ast.If(first, self._asked(inner), [])), *node.orelse]
            flag = f"rel_asked_{next(self._numbers)}"
            inner.body, node.test = [assigned(flag, ast.Constant(True))], load(flag)
            return [assigned(flag, ast.Constant(False)), *self._asked(ast.If(first, self._asked(inner), [])), node]
        before, node.test = _hoisted(node.test)
        return [*before, node]

    def _value(self, node: Any) -> Any:
        self.generic_visit(node)
        if node.value is None or not _has_one(node.value):
            return node
        before, node.value = _hoisted(node.value)
        return [placed(one, node) for one in [*before, node]]

    def visit_Return(self, node: ast.Return) -> Any:
        """Rewrite `return (n := ..)`."""
        return self._value(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Rewrite `k = (n := ..) + 1`."""
        return self._value(node)


def _has_one(node: ast.AST) -> bool:
    return any(isinstance(one, ast.NamedExpr) for one in ast.walk(node))


def _is_short(body: list[ast.stmt]) -> bool:
    return len(body) == 1 and isinstance(body[0], ast.Pass | ast.Break | ast.Continue)


def _ends(body: list[ast.stmt]) -> bool:
    """Return whether no statement runs after these."""
    return isinstance(body[-1], ast.Return | ast.Raise | ast.Break | ast.Continue)


def _hoisted(node: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
    """Return the assignments that an expression makes first, as statements, and its rest."""
    if isinstance(node, ast.NamedExpr):
        before, value = _hoisted(node.value)
        return [*before, assigned(node.target.id, value)], load(node.target.id)
    if isinstance(node, ast.BoolOp):
        before, node.values[0] = _hoisted(node.values[0])
        return before, node
    if isinstance(node, ast.Tuple | ast.List) and node.elts and isinstance(node.ctx, ast.Load):
        before, node.elts[0] = _hoisted(node.elts[0])
        return before, node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        before, node.func.value = _hoisted(node.func.value)
        return before, node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        before, node.args[0] = _hoisted(node.args[0])
        return before, node
    if (field := _FIRST.get(type(node))) is not None:
        before, value = _hoisted(getattr(node, field))
        setattr(node, field, value)
        return before, node
    return [], node
