"""Compiles a user's aggregate: each method becomes a function of a record and a state.

`add` receives tuples, `merge` other states, and `result` makes a record of a state; the last two may be missing.
Native windows and tables call them (native_sched/include/rayelastic/operators/aggregate/own_aggregate.hpp).
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

from rayelastic.compile.code.aggregate_code import AggregateCode
from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.compile.reading.callables import NotRewrittenError
from rayelastic.compile.reading.methods.plain import as_filter
from rayelastic.compile.reasons import Code, not_compiled, reason_in_method
from rayelastic.errors import LaneError, SchemaError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.requests import AggregateRequest, FunctionKind, FunctionRequest


def compile_aggregate(
    request: AggregateRequest, compile_function: Callable[[FunctionRequest], OperatorCode]
) -> AggregateCode:
    """Compile the methods.

    Args:
        request: The aggregate.
        compile_function: Makes machine code of a function, or raises LaneError.

    Raises:
        LaneError: A method doesn't compile.
        SchemaError: A method uses an unknown field.
    """
    first = request.first
    if not (isinstance(first, tuple) and hasattr(first, "_fields")):
        raise not_compiled(Code.STATE_CLASS())
    try:
        state = Schema.of(type(first))
    except SchemaError as error:
        raise not_compiled(Code.STATE_LAYOUT(error=error.problem)) from None
    made: dict[str, OperatorCode] = {}
    for called, kind, takes, gives in (
        ("add", FunctionKind.FILTER, request.input_schema, None),
        ("merge", FunctionKind.FILTER, state, None),
        ("result", FunctionKind.MAP, state, request.output),
    ):
        method = getattr(request.instance, called, None)
        if method is None:
            continue
        of_state = kind is FunctionKind.FILTER
        try:
            function = as_filter(method) if of_state else method
            made[called] = compile_function(
                FunctionRequest(
                    request.operator,
                    kind,
                    function,
                    takes,
                    gives,
                    state=_class_with_defaults(first) if of_state else None,
                    lane=Lane.COMPILED,
                    location=request.location,
                )
            )
        except (NotRewrittenError, LaneError) as error:
            raise not_compiled(reason_in_method(error, request.called(called), method)) from None
    add, results = made["add"], made["result"].output_schema if "result" in made else request.output
    assert add.state_schema is not None
    assert results is not None
    methods = tuple(made[called].machine if called in made else None for called in ("add", "merge", "result"))
    return AggregateCode(request, methods, add.state_schema, add.state_initial, results)


def _class_with_defaults(first: Any) -> Any:
    """Return a NamedTuple class whose defaults are the values of a tuple: its own, if they are the same."""
    cls: Any = type(first)
    if cls._field_defaults == first._asdict():
        return cls
    types = list(typing.get_type_hints(cls, include_extras=True).items())
    class_with_defaults: Any = typing.NamedTuple(cls.__name__, types)  # type: ignore[misc]
    class_with_defaults.__new__.__defaults__ = tuple(first)
    class_with_defaults._field_defaults = first._asdict()
    return class_with_defaults
