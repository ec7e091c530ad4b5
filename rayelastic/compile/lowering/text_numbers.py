"""int() and float() of text, which the engine reads as CPython does (text.h)."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from typing import Any

from numba.core import types

from rayelastic.compile.lowering.declare import overloads, primitive
from rayelastic.compile.lowering.services import is_bytes, service
from rayelastic.compile.lowering.views import ViewType


@primitive
def int_of_text(typingctx: Any, text: Any) -> Any:
    """int(text); beyond 64 bits it is refused."""
    return service("rel_text_to_int", types.int64(text), is_bytes(text), raises=(ValueError,))


@primitive
def float_of_text(typingctx: Any, text: Any) -> Any:
    """float(text)."""
    return service("rel_text_to_float", types.float64(text), is_bytes(text), raises=(ValueError,))


@overloads(float)
def _float(text: Any) -> Any:
    return (lambda text: float_of_text(text)) if isinstance(text, ViewType) else None
