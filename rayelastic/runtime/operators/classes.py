"""Makes native operators with ports of operator classes."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.compile import Flags, PortsCode, PortsFunction
from rayelastic.compile.lanes.python_lane import error_text
from rayelastic.errors import ErrorCode, JobFailedError
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import StateKind
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.operators.tolerant import ttl_of

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec


def class_operator(spec: OperatorSpec, function: PortsFunction, job: str) -> _native.Operator:
    """Make the operator of a user's class, and initialize its instance.

    Args:
        spec: The operator.
        function: Made of its code.
        job: The name of the job, for messages.

    Raises:
        JobFailedError: The user's `initialize` raised.
    """
    code = spec.body
    assert isinstance(code, PortsCode)
    inputs = [native_schema(port.schema) for port in code.inputs]
    keyed = None
    if code.state is not None:
        keyed = _native.KeyedState.objects(inputs[0], list(code.inputs[0].keys), code.state, ttl_of(spec))
    try:
        function.initialize()
    except Exception as error:
        shown = "".join(traceback.format_exception(error))
        raise JobFailedError(
            error_text(error), job=job, operator=spec.name, traceback_text=shown, code=ErrorCode.FUNCTION_RAISED
        ) from error
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
        times=[(time.field, time.shift) for time in spec.ttl.further] if spec.ttl is not None else [],
        letters=code.on_error is OnError.DIVERT,
        own=(function.kept.snapshot, function.kept.restore) if spec.state_kind is StateKind.STATEFUL else None,
    )
