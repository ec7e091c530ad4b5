"""Results that nobody means: a filter whose result is always true, a function that returns nothing. Knows no Numba."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from rayelastic.compile.reading.bound import taken_apart
from rayelastic.compile.reading.syntax import definition
from rayelastic.errors import ErrorCode, LaneError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionKind


def check_results(function: Callable[..., Any], kind: FunctionKind, schema: Schema) -> None:
    """Check what a function returns, as far as its source shows it.

    Args:
        function: Of the user.
        kind: Of its operator.
        schema: Of the tuples that it receives.

    Raises:
        LaneError: It yields and isn't of a flat_map, it returns nothing, a filter's result is always true, or a
            flat_map returns one dict.

    >>> check_results(lambda t: t.n > 1, FunctionKind.FILTER, Schema.of({"n": int}))
    """
    found = taken_apart(function)
    if found is not None and kind is not FunctionKind.FLAT_MAP and inspect.isgeneratorfunction(found.function):
        problem = f"the function of a {kind.value} must return, not yield"
        raise LaneError(problem, hint="Use flat_map", code=ErrorCode.MUST_RETURN)
    if kind not in (FunctionKind.FILTER, FunctionKind.FLAT_MAP):
        return
    node = None if found is None else definition(found.function)
    if found is None or node is None:
        return
    nodes = list(_own(node))
    returned = [each.value for each in nodes if isinstance(each, ast.Return) and each.value is not None]
    if not returned and not any(isinstance(each, ast.Yield | ast.YieldFrom | ast.Raise) for each in nodes):
        hint = "Write return; or use for_each or inspect, if it is only to be called"
        raise LaneError("its function returns nothing", hint=hint, code=ErrorCode.USELESS_RESULT)
    for result in returned:
        match result:
            case ast.Dict() if kind is FunctionKind.FLAT_MAP:
                hint = "Return a list of dicts, or yield each"
                raise LaneError(
                    "flat_map returns one dict, whose keys it would emit", hint=hint, code=ErrorCode.USELESS_RESULT
                )
            case ast.Tuple(elts=[_, *_]) if kind is FunctionKind.FILTER:
                hint = "Join conditions by and"
                raise LaneError(
                    "filter returns a tuple, which is always true", hint=hint, code=ErrorCode.USELESS_RESULT
                )
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr=field), attr=attribute) if (
                kind is FunctionKind.FILTER and name == found.tuple_name and field in schema.names
            ):
                of = schema.fields[schema.names.index(field)].type.python_type
                if callable(getattr(of, attribute, None)):
                    hint = f"Call it: {attribute}()"
                    raise LaneError(
                        f"filter returns the method {attribute}, which is always true",
                        hint=hint,
                        code=ErrorCode.USELESS_RESULT,
                    )


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of inner functions."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _own(child)
