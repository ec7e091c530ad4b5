"""Makes a shipped operator function runnable in this process."""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.compile.cache.loader import engine_symbols, host_target, load_image, register_symbols
from rayelastic.compile.code.loaded_function import LoadedFunction
from rayelastic.compile.code.operator_code import MachineCode, OperatorCode
from rayelastic.compile.code.process_code import ProcessCode
from rayelastic.compile.compiler import Compiler, machine_code, user_cache
from rayelastic.compile.lanes.python_lane import per_run, vectorised
from rayelastic.compile.reading.signatures import annotated_library
from rayelastic.graph.spec.operator_spec import FunctionRequest, Lane

__all__ = ["LoadedProcess", "load", "load_process"]


def load(code: OperatorCode) -> LoadedFunction:
    """Links the machine code into this process, or builds the per-run callable.

    Code that was compiled for another processor is compiled again (or taken from this node's cache).

    Args:
        code: what `Compiler.compile` made, here or elsewhere.

    Raises:
        LookupError: the code needs a symbol that nothing in this process has.

    >>> from rayelastic.compile import Compiler
    >>> from rayelastic.graph.spec.operator_spec import OperatorKind
    >>> from rayelastic.graph.records.schema import Schema
    >>> request = FunctionRequest("double", OperatorKind.MAP, lambda t: 2 * t.value, Schema.of(int))
    >>> load(Compiler().compile(request)).address != 0
    True
    """
    if code.lane is Lane.COMPILED:
        register_symbols(engine_symbols())
        owner, address = load_image(_machine_for_here(code))
        size = code.state_schema.record_size if code.state_schema else 0
        return LoadedFunction(code, address, None, int(code.flags), size, code.state_initial, owner)
    if code.lane is Lane.VECTORISED:
        function = vectorised(code.function, annotated_library(code.function), code.output_schema)
    else:
        function = per_run(code.function, code.kind, keyed=code.state is not None)
    return LoadedFunction(code, 0, function, int(code.flags), 0, b"", code)


@dataclass(frozen=True, slots=True)
class LoadedProcess:
    """The compiled methods of a class with timers in this process.

    Args:
        addresses: of on_tuple, on_time and on_end; 0 where the class has none.
        owner: keep it as long as these are in use.
    """

    addresses: tuple[int, int, int]
    owner: object


def load_process(code: ProcessCode) -> LoadedProcess:
    """Links the methods into this process; errors as of `load`."""
    if any(one is not None and one.target != host_target() for one in code.methods):
        again = Compiler().compile_process(code.request)
        assert isinstance(again, ProcessCode), again
        code = again
    register_symbols(engine_symbols())
    loaded = [(None, 0) if one is None else load_image(one) for one in code.methods]
    on_tuple, on_time, on_end = (address for _, address in loaded)
    return LoadedProcess((on_tuple, on_time, on_end), [owner for owner, _ in loaded])


def _machine_for_here(code: OperatorCode) -> MachineCode:
    assert code.machine is not None
    if code.machine.target == host_target():
        return code.machine
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
