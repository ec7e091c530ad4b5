"""Functions that call themselves count how deep they are: at Python's limit the tuple is refused, and Python raises.

Without it a recursion without end would end the process, or, made a loop by the compiler, never end. Each function of a
circle gets one more parameter, and its calls inside the circle one more argument. Knows no Numba.
"""

from __future__ import annotations

import ast
import dis
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rayelastic.compile.reading.callables import NotRewrittenError, called, load, placed
from rayelastic.compile.reading.identity import global_names

__all__ = ["DEPTH", "HOLDS", "counted", "in_circle"]

DEPTH = "rel_depth"  # the parameter
HOLDS = "rel_holds"  # the name by which new functions know what refuses a tuple
LIMIT = 900  # calls in each other; CPython's own limit is 1,000, of which a runtime takes some

ValueOf = Callable[[Any, str], Any]


def in_circle(
    function: types.FunctionType, value_of: ValueOf, bound: Mapping[str, Any] | None = None
) -> list[types.FunctionType]:
    """The functions that a function calls by name and that call it in turn, itself among them; none: no recursion.

    Args:
        function: a user's function.
        value_of: what a name that isn't local stands for in a function.
        bound: parameters whose values are known, as `self` of a method.
    """
    owners = {type(value) for value in (bound or {}).values()}
    called_by: dict[Any, list[types.FunctionType]] = {}
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if one not in called_by:
            called_by[one] = list(_callees(one, value_of, owners))
            waiting += called_by[one]
    reaching = {function} if function in called_by[function] else set()
    before = -1
    while before != len(reaching):
        before = len(reaching)
        reaching |= {one for one, to in called_by.items() if function in to or reaching & set(to)}
    return [one for one in called_by if one in reaching] if function in reaching else []


def _callees(function: types.FunctionType, value_of: ValueOf, owners: set[type]) -> Iterator[types.FunctionType]:
    """What it may call: functions by name, and methods of objects that it may know."""
    code = function.__code__
    values = [value_of(function, name) for name in sorted(global_names(code)) + list(code.co_freevars)]
    yield from (one for one in values if isinstance(one, types.FunctionType))
    owners |= {type(one) for one in values if not isinstance(one, types.FunctionType | type | types.ModuleType)}
    for name in sorted(_method_names(code)):
        found = (inspect.getattr_static(owner, name, None) for owner in owners if owner.__module__ != "builtins")
        yield from (one for one in found if isinstance(one, types.FunctionType))


def _method_names(code: types.CodeType) -> set[str]:
    """Name of attributes that code calls; not of those that it reads."""
    calls = {"LOAD_METHOD"} if sys.version_info < (3, 12) else {"LOAD_ATTR"}
    found = (one for one in dis.get_instructions(code) if one.opname in calls)
    return {one.argval for one in found if one.opname == "LOAD_METHOD" or (one.arg or 0) & 1}


def counted(node: ast.FunctionDef, circle: list[types.FunctionType], values: dict[str, Any], path: str) -> None:
    """Has a function of a circle count, in place.

    Args:
        node: its definition.
        circle: what `in_circle` gives, of at least one function.
        values: what names outside the function stand for.
        path: of the file, for errors.

    Raises:
        NotRewrittenError: it can't get another parameter.
    """
    if node.args.vararg or node.args.kwarg:
        raise NotRewrittenError("it calls itself and has * or ** parameters", path, node.lineno)
    _Calls(circle, values).visit(node)
    node.args.args.append(ast.arg(DEPTH))
    node.args.defaults.append(ast.Constant(0))
    below = ast.Compare(load(DEPTH), [ast.Lt()], [ast.Constant(LIMIT)])
    node.body.insert(0, placed(ast.Expr(called(load(HOLDS), below)), node))


class _Calls(ast.NodeTransformer):
    """Calls in the circle."""

    def __init__(self, circle: list[types.FunctionType], values: dict[str, Any]) -> None:
        self._circle, self._values = circle, values

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`f(n - 1)` is one deeper."""
        self.generic_visit(node)
        if self._called(node.func) in self._circle:
            deeper = ast.BinOp(load(DEPTH), ast.Add(), ast.Constant(1))
            node.keywords.append(placed(ast.keyword(DEPTH, deeper), node))
        return node

    def _called(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return inspect.getattr_static(type(self._values.get(node.value.id)), node.attr, None)
        return self._values.get(node.id) if isinstance(node, ast.Name) else None
