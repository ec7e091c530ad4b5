"""What an entry of the cache is called: all that its machine code, or the reason that there is none, depends on."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rayelastic.compile.cache.environment import environment, layout
from rayelastic.compile.reading.identity import Identity
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import FunctionRequest

__all__ = ["code_key", "refusal_key"]


def code_key(request: FunctionRequest, state_schema: Schema | None, identity: Identity) -> str:
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
        identity.digest,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def refusal_key(key: str, request: FunctionRequest) -> str:
    """Of the reason why a function can't be compiled, which names its lines.

    Args:
        key: that its machine code would have.
        request: the function.
    """
    code = getattr(request.function, "__code__", None)
    place = (Path(code.co_filename).name, code.co_firstlineno) if code is not None else ()
    return hashlib.sha256(repr((key, place)).encode()).hexdigest()
