"""Classes with timers of keys become native operators."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.compile.code.operator_code import Flags
from rayelastic.compile.lanes.process_lane import ProcessFunction
from rayelastic.graph.operators.processes import KeyedProcess
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["process_operator"]


def process_operator(spec: OperatorSpec) -> _native.Operator:
    """Makes the operator of a user's class, with a copy of the instance."""
    body = spec.body
    assert isinstance(body, KeyedProcess)
    source = native_schema(body.input_schema)
    function = ProcessFunction(replace(body, instance=copy.deepcopy(body.instance)), time.time)
    function.keys = keys = _native.KeyedState.objects(source, list(body.keys), function.new)
    flags = Flags.ON_FINISH if body.time is None else Flags.ON_FINISH | Flags.ON_WATERMARK
    return _native.Operator.python_ports(
        spec.name,
        function.call,
        [source],
        [native_schema(port.schema) for port in spec.outputs],
        [body.input_schema.tuple_type],
        flags=flags,
        keyed=keys,
        keys=[],
        poked=body.time is None,
    )
