"""A function that returns a value or None as one that yields the value, or nothing. Knows no Numba.

`return x // 2 if x % 2 == 0 else None` becomes `if x % 2 == 0: yield x // 2`. The syntax alone decides, so that each
execution mode runs the same function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import GenericAlias
from typing import Any

from rayelastic.compile.reading.bound import taken_apart
from rayelastic.compile.reading.results.bindings import SCOPES, is_changed, own_nodes
from rayelastic.compile.reading.signatures import annotated_library, annotated_result
from rayelastic.compile.reading.syntax import compiled_definition, definition
from rayelastic.errors import ErrorCode, LaneError
from rayelastic.graph.spec.concurrency import is_async

_RESULT = "rel_result"
_NEVER_NONE = ast.Dict | ast.Tuple | ast.List | ast.ListComp | ast.JoinedStr | ast.Compare | ast.BinOp


def yielding(function: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for flat_map that leaves out the None of another.

    Args:
        function: Of one record.
        original: As the user wrote it, with its annotations.

    Raises:
        LaneError: It is a function of batches.

    >>> def half(t) -> int | None:
    ...     return t // 2 if t % 2 == 0 else None
    >>> list(yielding(half, half)(4)), list(yielding(half, half)(5))
    ([2], [])
    """
    if annotated_library(original):
        hint = "Return a shorter batch from flat_map"
        raise LaneError("filter_map isn't vectorised", hint=hint, code=ErrorCode.NOT_VECTORISED)
    found = taken_apart(function, 1)
    node = None if found is None or found.values else definition(found.function)
    made = None if found is None or node is None else compiled_definition(_written(node, found.tuple_name), function)
    made = _wrapped(function) if made is None else made
    if (result := annotated_result(original)) is not None:
        made.__annotations__ = {"return": GenericAlias(list, (result,))}
    flat: Callable[..., Any] = made
    return flat


def _written(node: Any, record: str) -> ast.FunctionDef:
    node = _Returns("" if is_changed(node, record) else record).generic_visit(node)
    if not any(isinstance(each, ast.Yield) for each in own_nodes(node)):
        never = ast.If(ast.Constant(False), [ast.Expr(ast.Yield(ast.Constant(None)))], [])
        node.body.append(ast.fix_missing_locations(ast.copy_location(never, node.body[-1])))
    written: ast.FunctionDef = node
    return written


def _wrapped(function: Callable[..., Any]) -> Any:
    async def awaited(t: Any) -> list[Any]:
        made = await function(t)
        return [] if made is None else [made]

    def called(t: Any) -> Any:
        made = function(t)
        if made is not None:
            yield made

    return awaited if is_async(function) else called


class _Returns(ast.NodeTransformer):
    """Makes a function yield what it returns, unless that is None.

    Args:
        record: The parameter that is a tuple; empty if it is assigned.
    """

    def __init__(self, record: str) -> None:
        self._record = record

    def visit(self, node: ast.AST) -> Any:
        """Leave inner functions and classes unchanged."""
        return node if isinstance(node, SCOPES) else super().visit(node)

    def visit_Return(self, node: ast.Return) -> Any:
        end = ast.copy_location(ast.Return(None), node)
        return [*self._emitted(node.value, node), end]

    def _emitted(self, value: ast.expr | None, place: ast.AST) -> list[ast.stmt]:
        """Return statements that yield a value unless it is None."""
        made: list[ast.stmt]
        match value:
            case None | ast.Constant(value=None):
                return []
            case ast.IfExp():
                body = self._emitted(value.body, place) or [ast.Pass()]
                made = [ast.If(value.test, body, self._emitted(value.orelse, place))]
            case _ if isinstance(value, _NEVER_NONE | ast.Constant) or self._is_record(value):
                made = [ast.Expr(ast.Yield(value))]
            case _:
                is_there = ast.Compare(ast.Name(_RESULT, ast.Load()), [ast.IsNot()], [ast.Constant(None)])
                made = [
                    ast.Assign([ast.Name(_RESULT, ast.Store())], value),
                    ast.If(is_there, [ast.Expr(ast.Yield(ast.Name(_RESULT, ast.Load())))], []),
                ]
        return [ast.fix_missing_locations(ast.copy_location(each, place)) for each in made]

    def _is_record(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Name) and value.id == self._record
