"""Chooses the execution mode of an operator class (J01).

Compiled: an `invoke` that is a static method of one port in and one out, compiled like the function of a flat_map.
Vectorised: an `invoke` annotated with arrays, batches or frames. Otherwise Python, with the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.compile.code.operator_code import OperatorCode, View
from rayelastic.compile.code.ports_code import PortsCode
from rayelastic.compile.code.state import state_factory
from rayelastic.compile.reading.signatures import annotated_library
from rayelastic.compile.reasons import Code, Reason, not_compiled, text_of
from rayelastic.errors import ErrorCode, LaneError
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest, OperatorRequest

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import CompiledFunction

_VIEWS = {"numpy": View.NUMPY, "pyarrow": View.ARROW, "pandas": View.ARROW, "polars": View.ARROW}


def compile_operator(
    request: OperatorRequest, compile_function: Callable[[FunctionRequest], CompiledFunction]
) -> OperatorCode | PortsCode:
    """Choose the execution mode of an operator class and prepare it.

    Args:
        request: The operator class's instance.
        compile_function: Compiles the function of a flat_map.

    Raises:
        LaneError: The requested execution mode is unsupported.
        SchemaError: A compiled `invoke` uses an unknown field.
    """
    library = _library(request)
    if request.lane is Lane.VECTORISED or (request.lane == "auto" and library):
        return _vectorised(request, library)
    if request.lane is Lane.PYTHON:
        return _python(request, "asked for")
    refusal = _refusal(request, library)
    if refusal is None:
        made = _compiled(request, compile_function)
        if made.lane is Lane.COMPILED:
            return made
        assert made.refusal is not None
        refusal = Reason.from_dict(made.refusal)
    if request.lane is Lane.COMPILED:
        raise not_compiled(refusal)
    return replace(_python(request, f"not compiled: {text_of(refusal)}"), refusal=refusal.as_dict())


def _refusal(request: OperatorRequest, library: str) -> Reason | None:
    """Return why it can't be compiled; None if no reason is known."""
    kind = type(request.instance)
    methods = [name for name in ("initialize", "shutdown", "drain") if hasattr(kind, name)]
    if library:
        return Code.ANNOTATED(library=library)
    if methods:
        return Code.IN_EACH_PROCESS(method=methods[0])
    if len(request.inputs) > 1 or len(request.outputs) != 1:
        return Code.SEVERAL_PORTS()
    if request.inputs[0].demand is not None:
        return Code.WAITS_FOR_TUPLES()
    if not isinstance(inspect.getattr_static(kind, "invoke"), staticmethod):
        return Code.HAS_SELF()
    return None


def _compiled(
    request: OperatorRequest, compile_function: Callable[[FunctionRequest], CompiledFunction]
) -> OperatorCode:
    port = request.inputs[0]
    asked = FunctionRequest(
        request.operator,
        FunctionKind.FLAT_MAP,
        request.instance.invoke,
        port.schema,
        request.outputs[0].schema,
        port.keys,
        request.state,
        request.lane,
        request.location,
    )
    made = compile_function(asked)
    assert isinstance(made, OperatorCode)
    return made


def _python(request: OperatorRequest, reason: str) -> PortsCode:
    return PortsCode(
        request.operator,
        request.instance,
        request.inputs,
        request.outputs,
        Lane.PYTHON,
        reason,
        state=state_factory(request.state),
        on_error=request.on_error,
    )


def _vectorised(request: OperatorRequest, library: str) -> PortsCode:
    if not library:
        raise LaneError(
            "it can't be vectorised: the parameters of invoke have no annotation of a library",
            hint="Annotate them with numpy.ndarray, pyarrow.RecordBatch, pandas.DataFrame or polars.DataFrame",
            code=ErrorCode.NOT_VECTORISED,
        )
    if request.on_error is not OnError.FAIL:
        raise LaneError(
            f"on_error='{request.on_error.value}' of a class needs invoke to take one tuple",
            hint="Use lane='python'",
            code=ErrorCode.CONFLICTING_ARGUMENTS,
        )
    if request.state is not None:
        raise LaneError(
            "state of keys can't be vectorised",
            hint="Write it for one tuple and the state of its key",
            code=ErrorCode.NOT_VECTORISED,
        )
    if library == "numpy" and any(port.schema.has_text for port in request.outputs) and len(request.inputs) > 1:
        raise LaneError(
            "NumPy arrays of several ports can't return text",
            hint="Annotate invoke with pyarrow.RecordBatch",
            code=ErrorCode.NOT_VECTORISED,
        )
    return PortsCode(
        request.operator,
        request.instance,
        request.inputs,
        request.outputs,
        Lane.VECTORISED,
        f"invoke is annotated with {library}",
        view=_VIEWS[library],
        library=library,
    )


def _library(request: OperatorRequest) -> str:
    """Return the library that annotates all tuple parameters of invoke."""
    function = request.instance.invoke
    names = list(inspect.signature(function).parameters)
    conjunctive = request.inputs[0].demand is not None
    given = names[: len(request.inputs)] if conjunctive else names[1:2] if len(request.inputs) > 1 else names[:1]
    found = {annotated_library(function, name) for name in given}
    if len(found) > 1:
        raise LaneError(
            f"the parameters of {type(request.instance).__name__}.invoke are annotated with different libraries",
            hint="Annotate all with the same, or none",
            code=ErrorCode.BAD_ANNOTATION,
        )
    return next(iter(found), "")
