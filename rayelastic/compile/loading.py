"""Makes a shipped operator function runnable in this process."""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass

from rayelastic.compile.cache.loader import engine_symbols, host_target, load_image, register_symbols
from rayelastic.compile.code.aggregate_code import AggregateCode
from rayelastic.compile.code.loaded_function import LoadedFunction
from rayelastic.compile.code.operator_code import MachineCode, OperatorCode
from rayelastic.compile.code.process_code import ProcessCode
from rayelastic.compile.compiler import Compiler, machine_code, user_cache
from rayelastic.compile.lanes.python_lane import per_run, vectorised
from rayelastic.compile.reading.signatures import annotated_library
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.requests import FunctionRequest

_log = logging.getLogger(__name__)


def load(code: OperatorCode) -> LoadedFunction:
    """Link the machine code into this process, or build the per-run callable.

    Code for another processor is compiled again (or loaded from this node's cache).

    Args:
        code: The result of `Compiler.compile`, here or elsewhere.

    Raises:
        LookupError: The code needs a symbol that this process lacks.

    >>> from rayelastic.compile import Compiler
    >>> from rayelastic.graph.spec.requests import FunctionKind
    >>> from rayelastic.graph.records.schema import Schema
    >>> request = FunctionRequest("double", FunctionKind.MAP, lambda t: 2 * t.value, Schema.of(int))
    >>> load(Compiler().compile(request)).address != 0
    True
    """
    if code.lane is Lane.COMPILED:
        register_symbols(engine_symbols())
        owner, address = load_image(_machine_for_here(code))
        return LoadedFunction(code, address, None, int(code.flags), code.state_initial, owner)
    if code.lane is Lane.VECTORISED:
        function = vectorised(code.function, annotated_library(code.function), code.output_schema)
    else:
        function = per_run(code.function, code.kind, keyed=code.state is not None)
    return LoadedFunction(code, 0, function, int(code.flags), b"", code)


@dataclass(frozen=True, slots=True)
class LoadedMethods:
    """The compiled methods of a class in this process.

    Args:
        addresses: Those of on_tuple, on_time and on_end, or of add, merge and result; 0 for a missing one.
        owner: Keep it as long as these are in use.
    """

    addresses: tuple[int, int, int]
    owner: object


def load_process(code: ProcessCode) -> LoadedMethods:
    """Link the methods into this process; errors as of `load`."""
    if any(one is not None and one.target != host_target() for one in code.methods):
        _tell_of_another_processor(code.request.operator)
        code = Compiler().compile_process(code.request)
    return _linked(code.methods)


def load_aggregate(code: AggregateCode) -> LoadedMethods:
    """Link the methods of a user's aggregate into this process; errors as of `load`."""
    if any(one is not None and one.target != host_target() for one in code.methods):
        _tell_of_another_processor(code.request.operator)
        code = Compiler().compile_aggregate(code.request)
    return _linked(code.methods)


def _linked(methods: tuple[MachineCode | None, ...]) -> LoadedMethods:
    register_symbols(engine_symbols())
    loaded = [(None, 0) if one is None else load_image(one) for one in methods]
    one, two, three = (address for _, address in loaded)
    return LoadedMethods((one, two, three), [owner for owner, _ in loaded])


def _machine_for_here(code: OperatorCode) -> MachineCode:
    assert code.machine is not None
    if code.machine.target == host_target():
        return code.machine
    _tell_of_another_processor(code.operator)
    request = FunctionRequest(
        code.operator,
        code.kind,
        code.function,
        code.input_schema,
        code.output_schema,
        code.keys,
        location=code.location,
    )
    return machine_code(request, code.state_schema, user_cache())[0]


def _tell_of_another_processor(operator: str) -> None:
    _log.info(
        "'%s' was compiled for another processor than that of %s: it is compiled again, or taken from the cache here",
        operator,
        socket.gethostname(),
    )
