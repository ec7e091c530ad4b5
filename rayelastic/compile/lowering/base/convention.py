"""Numba's calling convention with two additions: rejections pass every handler, and exceptions have classes."""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.cpu import CPUContext

from rayelastic.compile.lowering.base.raised import RaisingConvention
from rayelastic.compile.lowering.base.refusal import REFUSED, refuse


class _CallConvention(RaisingConvention):
    """Numba's own, except that rejections pass handlers and exceptions have classes."""

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        """Handle the failure of a callee."""
        with builder.if_then(builder.icmp_signed("==", status.code, REFUSED), likely=False):
            refuse(builder)
        super().return_status_propagate(builder, status)


class _Context(CPUContext):
    @property
    def call_conv(self) -> Any:
        """The convention of all functions that are compiled here."""
        return _CallConvention(self)


@contextmanager
def refusals_pass(context: Any) -> Iterator[None]:
    """Propagate rejections in callers while compiling. Any other code of Numba can still call the result."""
    usual = type(context)
    context.__class__ = _Context
    try:
        yield
    finally:
        context.__class__ = usual
