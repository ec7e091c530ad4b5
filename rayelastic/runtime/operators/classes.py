"""Operator classes become native operators with ports; objects that are used as functions are set up."""

from __future__ import annotations

import copy
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.compile import Flags, OperatorCode, PortsCode, PortsFunction
from rayelastic.compile.code.operator_code import SET_UP
from rayelastic.errors import JobFailedError
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from rayelastic.graph.spec.operator_spec import OperatorSpec


def set_up(spec: OperatorSpec, job: str) -> OperatorSpec:
    """Initializes an object that is used as a function: a copy of its own, where it has `initialize`.

    Args:
        spec: of an operator of a user's function.
        job: the name of the job, for messages.

    Raises:
        JobFailedError: it raised.
    """
    code = spec.body
    assert isinstance(code, OperatorCode)
    if not hasattr(code.function, SET_UP):
        return spec
    own: Any = copy.copy(code.function)
    _initialize(own.initialize, spec, job)
    return replace(spec, body=replace(code, function=own))


def _initialize(initialize: Callable[[], object], spec: OperatorSpec, job: str) -> None:
    try:
        initialize()
    except Exception as error:
        reason = "".join(traceback.format_exception_only(error)).strip()
        shown = "".join(traceback.format_exception(error))
        raise JobFailedError(reason, job=job, operator=spec.name, traceback_text=shown) from error


def class_operator(spec: OperatorSpec, function: PortsFunction, job: str) -> _native.Operator:
    """Makes the operator of a user's class, and initializes its instance.

    Args:
        spec: of the operator.
        function: made of its code.
        job: the name of the job, for messages.

    Raises:
        JobFailedError: the user's `initialize` raised.
    """
    code = spec.body
    assert isinstance(code, PortsCode)
    inputs = [native_schema(port.schema) for port in code.inputs]
    keyed = None
    if code.state is not None:
        keyed = _native.KeyedState.objects(inputs[0], list(code.inputs[0].keys), code.state)
    _initialize(function.initialize, spec, job)
    outputs = [native_schema(port.schema) for port in spec.outputs]
    function.checks = [_native.RecordCheck(spec.name, native_schema(port.schema)) for port in code.outputs]
    return _native.Operator.python_ports(
        spec.name,
        function.call,
        inputs,
        outputs,
        [port.schema.tuple_type for port in code.inputs],
        view=code.view.value,
        flags=Flags.ON_FINISH if code.ends else Flags(0),
        demands=[(port.demand.kind.value, port.demand.count) for port in code.inputs if port.demand is not None],
        keyed=keyed,
        keys=[list(port.keys) for port in code.inputs[1:]] if keyed is not None else [],
        letters=code.on_error is OnError.DIVERT,
    )
