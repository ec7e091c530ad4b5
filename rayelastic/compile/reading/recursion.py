"""Recursive functions count their depth: at Python's limit the tuple is rejected, and Python raises its error.

Otherwise an endless recursion would crash the process or, compiled to a loop, never end. Each function of a cycle gets
one more parameter, and its calls inside the cycle one more argument. Knows no Numba.
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
from rayelastic.reasons import Code

DEPTH = "rel_depth"  # the parameter
HOLDS = "rel_holds"  # the name in new functions of the function that rejects a tuple
LIMIT = 900  # nested calls; CPython's own limit is 1,000, of which a runtime uses some

ValueOf = Callable[[Any, str], Any]


def in_circle(
    function: types.FunctionType, value_of: ValueOf, bound: Mapping[str, Any] | None = None
) -> list[types.FunctionType]:
    """Return the functions of the call cycles through a function, including itself; none if it isn't recursive.

    Args:
        function: A user's function.
        value_of: Returns the value of a name that isn't local to a function.
        bound: Parameters with known values, such as `self` of a method.
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
    """Yield the possible callees: functions by name, and methods of known objects."""
    code = function.__code__
    values = [value_of(function, name) for name in sorted(global_names(code)) + list(code.co_freevars)]
    yield from (one for one in values if isinstance(one, types.FunctionType))
    owners |= {type(one) for one in values if not isinstance(one, types.FunctionType | type | types.ModuleType)}
    for name in sorted(_method_names(code)):
        found = (inspect.getattr_static(owner, name, None) for owner in owners if owner.__module__ != "builtins")
        yield from (one for one in found if isinstance(one, types.FunctionType))


def _method_names(code: types.CodeType) -> set[str]:
    """Return the names of attributes that code calls, not of those that it reads."""
    calls = {"LOAD_METHOD"} if sys.version_info < (3, 12) else {"LOAD_ATTR"}
    found = (one for one in dis.get_instructions(code) if one.opname in calls)
    return {one.argval for one in found if one.opname == "LOAD_METHOD" or (one.arg or 0) & 1}


def counted(node: ast.FunctionDef, circle: list[types.FunctionType], values: dict[str, Any], path: str) -> None:
    """Add the depth count to a function of a cycle, in place.

    Args:
        node: Its definition.
        circle: The result of `in_circle`, at least one function.
        values: The values of names outside the function.
        path: The file, for errors.

    Raises:
        NotRewrittenError: It can't have another parameter.
    """
    if node.args.vararg or node.args.kwarg:
        raise NotRewrittenError(Code.UNSUPPORTED, path, node.lineno, what="a function with * or ** that calls itself")
    _Calls(circle, values).visit(node)
    node.args.args.append(ast.arg(DEPTH))
    node.args.defaults.append(ast.Constant(0))
    below = ast.Compare(load(DEPTH), [ast.Lt()], [ast.Constant(LIMIT)])
    node.body.insert(0, placed(ast.Expr(called(load(HOLDS), below)), node))


class _Calls(ast.NodeTransformer):
    """Rewrites the calls in the cycle."""

    def __init__(self, circle: list[types.FunctionType], values: dict[str, Any]) -> None:
        self._circle, self._values = circle, values

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite `f(n - 1)` with a depth of one more."""
        self.generic_visit(node)
        if self._called(node.func) in self._circle:
            deeper = ast.BinOp(load(DEPTH), ast.Add(), ast.Constant(1))
            node.keywords.append(placed(ast.keyword(DEPTH, deeper), node))
        return node

    def _called(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return inspect.getattr_static(type(self._values.get(node.value.id)), node.attr, None)
        return self._values.get(node.id) if isinstance(node, ast.Name) else None
