"""Values that may be None: their truth, and unwrapping them where they can't be None."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.imputils import lower_cast

from rayelastic.compile.lowering.base.declare import primitive, truth
from rayelastic.compile.lowering.base.views import ViewType


@primitive
def present(typingctx: Any, value: Any) -> Any:
    """Return the value of an Optional that isn't None; any other value unchanged."""
    inner = value.type if isinstance(value, types.Optional) else value

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if not isinstance(sig.args[0], types.Optional):
            return args[0]
        return context.make_helper(builder, sig.args[0], value=args[0]).data

    return inner(value), codegen


truth(
    types.Optional,
    lambda value: value is not None and bool(present(value)),
    lambda value: value is None or not bool(present(value)),
)


@lower_cast(types.Optional, types.boolean)
def _truth(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    if isinstance(source.type, ViewType):
        inner = builder.icmp_unsigned("!=", builder.extract_value(builder.extract_value(value, 0), 1), _zero(64))
    else:
        inner = context.is_true(builder, source.type, context.make_helper(builder, source, value=value).data)
    return builder.and_(context.make_helper(builder, source, value=value).valid, inner)


def _zero(bits: int) -> Any:
    from llvmlite import ir

    return ir.IntType(bits)(0)


def same(a: Any, b: Any) -> Any:
    """Compare a == b if one side, or both, may be None; exact.py inserts it."""
    if a is None or b is None:
        return (a is None) == (b is None)
    return present(a) == present(b)


def other(a: Any, b: Any) -> Any:
    """Compare a != b."""
    if a is None or b is None:
        return (a is None) != (b is None)
    return present(a) != present(b)


def empty(a: Any) -> Any:
    """Return not a."""
    if a is None:
        return True
    return not present(a)
