"""Makes native operators of classes with timers of keys: of machine code, or of calls into Python."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.compile.code.operator_code import Flags
from rayelastic.compile.code.process_code import ProcessCode
from rayelastic.compile.lanes.process_lane import ProcessFunction, why_moment, why_tuple
from rayelastic.compile.loading import load_process
from rayelastic.graph.operators.processes import KeyedProcess
from rayelastic.graph.records.data_type import DataType
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["process_operator"]


def process_operator(spec: OperatorSpec) -> _native.Operator:
    """Make the operator of a user's class."""
    body = spec.body
    assert isinstance(body, KeyedProcess)
    if body.code is not None:
        return _compiled(spec, body)
    source = native_schema(body.input_schema)
    function = ProcessFunction(body, time.time)
    function.keys = keys = _native.KeyedState.objects(source, list(body.keys), function.new, told=True)
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


def _compiled(spec: OperatorSpec, body: KeyedProcess) -> _native.Operator:
    code = body.code
    assert isinstance(code, ProcessCode)
    loaded = load_process(code)
    texts = [field.offset for field in code.state_schema.fields if field.type.is_variable]
    binary = [field.offset for field in code.state_schema.fields if field.type.native == DataType.BINARY.value]
    assert spec.output_schema is not None
    return _native.Operator.process(
        spec.name,
        native_schema(body.input_schema),
        native_schema(spec.output_schema),
        native_schema(code.moment),
        list(body.keys),
        loaded.addresses,
        (code.state_initial, texts, binary),
        None if body.time is None else (body.time.field, body.time.shift),
        body.times.ticks_per_second,
        (partial(why_tuple, body), partial(why_moment, body)),
        loaded.owner,
        (body.ttl_ticks, body.ttl is not None and body.ttl.since == "first"),
    )
