"""What an entry of the cache is called by: all that its machine code, or the reason for none, depends on."""

from __future__ import annotations

from pathlib import Path

from rayelastic.compile.cache.environment import environment, layout
from rayelastic.compile.reading.identity import Identity
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import FunctionRequest

__all__ = ["code_inputs", "refusal_inputs"]


def code_inputs(request: FunctionRequest, state_schema: Schema | None, identity: Identity) -> bytes:
    """Of the machine code of a function.

    Args:
        request: the function, and what it is for.
        state_schema: of the state that it gets.
        identity: of the function.
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
    """Of the reason why a function can't be compiled, which names its lines.

    Args:
        inputs: that its machine code would have.
        request: the function.
    """
    code = getattr(request.function, "__code__", None)
    place = (Path(code.co_filename).name, code.co_firstlineno) if code is not None else ()
    return inputs + b"\n" + repr(("refused", place)).encode()
