"""float16 fields: converted to 64-bit floats and back without instructions or library calls.

Written on bits, rounding to nearest even once; a detour over float32 would round twice.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature

I64, F64 = ir.IntType(64), ir.DoubleType()


def _to_bits64(half: int) -> int:
    """Return the bits of the float64 that equals the float16 with these bits."""
    sign = (half & 0x8000) << 48
    exponent = (half >> 10) & 31
    fraction = half & 1023
    if exponent == 31:
        return sign | (2047 << 52) | (fraction << 42)
    if exponent == 0:
        if fraction == 0:
            return sign
        exponent = 1
        while fraction < 1024:  # a subnormal half is a normal double
            fraction = fraction << 1
            exponent -= 1
        fraction = fraction & 1023
    return sign | ((exponent + 1008) << 52) | (fraction << 42)


def _to_bits16(double: int) -> int:
    """Return the bits of the float16 nearest to the float64 with these bits."""
    sign = (double >> 48) & 0x8000
    exponent = ((double >> 52) & 2047) - 1008
    fraction = double & ((1 << 52) - 1)
    if exponent == 1039:
        return sign | 0x7C00 | (512 if fraction != 0 else 0)
    if exponent >= 31:
        return sign | 0x7C00
    if exponent <= 0:
        if exponent < -10:
            return sign
        fraction = fraction | (1 << 52)
        shift = 43 - exponent
        base = 0
    else:
        shift = 42
        base = exponent << 10
    kept = fraction >> shift
    rest = fraction & ((1 << shift) - 1)
    middle = 1 << (shift - 1)
    if rest > middle or (rest == middle and (kept & 1) == 1):
        kept += 1  # may correctly carry into the exponent, up to infinity
    return sign | (base + kept)


def load(context: Any, builder: Any, half: Any) -> Any:
    """Return the float64 of 16 bits in an i64."""
    bits = context.compile_internal(builder, _to_bits64, signature(types.int64, types.int64), [half])
    return builder.bitcast(bits, F64)


def store(context: Any, builder: Any, value: Any) -> Any:
    """Return 16 bits, in an i64, of a float64."""
    bits = builder.bitcast(value, I64)
    return context.compile_internal(builder, _to_bits16, signature(types.int64, types.int64), [bits])
