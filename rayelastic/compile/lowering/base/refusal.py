"""Rejections: an operator function ends because compiled code can't return CPython's answer, as beyond 64 bits.

A rejection isn't an exception of the user's. If an `except` could catch it, a compiled function would silently branch
differently from CPython. So it has its own return code, which every caller propagates.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.callconv import FIRST_USEREXC

from rayelastic.compile.lowering.base.declare import primitive

REFUSED = ir.Constant(ir.IntType(32), FIRST_USEREXC + 70)  # Numba uses none above FIRST_USEREXC


def refuse(builder: Any) -> None:
    """End the function that is being built."""
    builder.ret(REFUSED)


@primitive
def refuse_if(typingctx: Any, condition: Any) -> Any:
    """Reject if the condition holds; for functions written in Python."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        with builder.if_then(args[0], likely=False):
            refuse(builder)
        return context.get_dummy_value()

    return types.void(types.boolean), codegen


@primitive
def holds(typingctx: Any, condition: Any) -> Any:
    """Return True, or reject if a condition doesn't hold (reading/)."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        with builder.if_then(builder.not_(args[0]), likely=False):
            refuse(builder)
        return ir.Constant(ir.IntType(1), 1)

    return types.boolean(types.boolean), codegen
