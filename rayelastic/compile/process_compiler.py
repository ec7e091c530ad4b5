"""Compiles classes with timers of keys: each method becomes a function of a record and the state of its key.

on_tuple is called with tuples, the others with moments: the key and a time. The native operator manages timers and the
order of calls (native_sched/include/rayelastic/operators/time/process.hpp).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rayelastic.compile.code.operator_code import MachineCode, OperatorCode
from rayelastic.compile.code.process_code import ProcessCode
from rayelastic.compile.code.state import is_record_class
from rayelastic.compile.reading.callables import NotRewrittenError
from rayelastic.compile.reading.methods.timer_calls import TIME, as_function
from rayelastic.compile.reasons import Code, not_compiled, reason_in_method
from rayelastic.errors import LaneError
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.time_values import TimeValues
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest, ProcessRequest
from rayelastic.graph.spec.user_objects import LIFE, has_method

_METHODS = ("on_tuple", "on_time", "on_end")


def compile_process(request: ProcessRequest, compile_function: Callable[[FunctionRequest], Any]) -> ProcessCode:
    """Compile the methods.

    Args:
        request: The class.
        compile_function: Makes machine code of a function, or raises LaneError.

    Raises:
        LaneError: A method doesn't compile.
        SchemaError: A method uses an unknown field.
    """
    if lives := next((name for name in LIFE if has_method(request.instance, name)), None):
        raise not_compiled(Code.IN_EACH_PROCESS(method=lives))
    if not is_record_class(request.state):
        raise not_compiled(Code.STATE_CLASS())
    moment = _moment(request)
    made: dict[str, OperatorCode] = {}
    for called in _METHODS:
        method = getattr(request.instance, called, None)
        if method is None:
            continue
        try:
            made[called] = _compiled(request, called, method, moment, compile_function)
        except (NotRewrittenError, LaneError) as error:
            raise not_compiled(reason_in_method(error, called, method)) from None
    on_tuple = made["on_tuple"]
    assert on_tuple.state_schema is not None
    methods = tuple(_machine(made.get(called)) for called in _METHODS)
    return ProcessCode(request, methods, moment, on_tuple.state_schema, on_tuple.state_initial)


def _compiled(
    request: ProcessRequest,
    called: str,
    method: Any,
    moment: Schema,
    compile_function: Callable[[FunctionRequest], Any],
) -> OperatorCode:
    times = TimeValues.of(request.time, request.input_schema)
    field = "" if request.time is None else request.time.field
    written = as_function(method, called, request.keys, times, field)
    if written.sets and not hasattr(request.instance, "on_time"):
        raise not_compiled(Code.NO_ON_TIME())
    code: OperatorCode = compile_function(
        FunctionRequest(
            request.operator,
            FunctionKind.FLAT_MAP if written.emits else FunctionKind.FILTER,
            written.function,
            request.input_schema if called == "on_tuple" else moment,
            request.output if written.emits else None,
            request.keys,
            request.state,
            Lane.COMPILED,
            request.location,
        )
    )
    return code


def _machine(code: OperatorCode | None) -> MachineCode | None:
    return None if code is None else code.machine


def _moment(request: ProcessRequest) -> Schema:
    keys = [request.input_schema.field(key) for key in request.keys]
    times = TimeValues.of(request.time, request.input_schema)
    form = {int: "l", float: "g"}.get(times.kind)
    if form is None:
        assert request.time is not None
        form = request.input_schema.field(request.time.field).format
    columns = [(key.name, key.format, key.nullable) for key in keys]
    return laid_out("Moment", [*columns, (TIME, form, False)])
