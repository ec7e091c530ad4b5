"""Numba's calling convention with two things more: refusals pass every handler, and handlers tell exceptions apart."""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.cpu import CPUContext

from rayelastic.compile.lowering.base.raised import RaisingConvention
from rayelastic.compile.lowering.base.refusal import REFUSED, refuse


class _CallConvention(RaisingConvention):
    """Numba's own, but for refusals passing handlers, and classes of exceptions."""

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        """Called where a callee failed."""
        with builder.if_then(builder.icmp_signed("==", status.code, REFUSED), likely=False):
            refuse(builder)
        super().return_status_propagate(builder, status)


class _Context(CPUContext):
    @property
    def call_conv(self) -> Any:
        """Asked for by all that is compiled."""
        return _CallConvention(self)


@contextmanager
def refusals_pass(context: Any) -> Iterator[None]:
    """While compiling: callers pass refusals on. What is compiled so can be called by any other code of Numba's."""
    usual = type(context)
    context.__class__ = _Context
    try:
        yield
    finally:
        context.__class__ = usual
