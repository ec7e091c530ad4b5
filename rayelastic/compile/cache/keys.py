"""The keys of the cache: all inputs of machine code, or of the reason why there is none."""

from __future__ import annotations

from pathlib import Path

from rayelastic.compile.cache.environment import environment, layout
from rayelastic.compile.reading.identity import Identity
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionRequest


def code_inputs(request: FunctionRequest, state_schema: Schema | None, identity: Identity) -> bytes:
    """Return the inputs of a function's machine code.

    Args:
        request: The function and its use.
        state_schema: The schema of its state.
        identity: The function's identity.
    """
    parts = (
        environment(),
        request.kind.value,
        layout(request.input_schema),
        layout(request.output),
        layout(state_schema),
    )
    return repr(parts).encode() + b"\n" + identity.inputs


def refusal_inputs(inputs: bytes, request: FunctionRequest) -> bytes:
    """Return the inputs of the reason why a function can't be compiled, which names its lines.

    Args:
        inputs: The inputs of its machine code.
        request: The function.
    """
    code = getattr(request.function, "__code__", None)
    place = (Path(code.co_filename).name, code.co_firstlineno) if code is not None else ()
    return inputs + b"\n" + repr(("refused", place)).encode()
