"""How compiled code calls the text services of the engine (text.h): arguments, status, result.

A text goes in by the address of its data and size, a number as it is; the last argument says where the result goes. A
service's status becomes the exception that CPython raises, or a refusal.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from rayelastic.compile.lowering.refusal import refuse
from rayelastic.compile.lowering.views import BYTES, ViewType

I32, I64 = ir.IntType(32), ir.IntType(64)

_REFUSED = 1  # REL_TEXT_REFUSED
_STATUS: dict[type[Exception], int] = {MemoryError: 2, ValueError: 3}  # rel_text_status

Codegen = Callable[[Any, Any, Any, Any], Any]


def service(name: str, signature: Any, *constants: int, raises: Sequence[type[Exception]] = ()) -> tuple[Any, Codegen]:
    """What an intrinsic returns that is a call of a service.

    Args:
        name: of the service, which returns a rel_text_status.
        signature: Numba's, of the intrinsic; the arguments are texts, ints and floats.
        constants: further arguments behind these.
        raises: exceptions that CPython may raise here.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        given = [_argument(builder, kind, value) for kind, value in zip(sig.args, args, strict=True)]
        given += [I64(constant) for constant in constants]
        made = cgutils.alloca_once(builder, context.get_value_type(sig.return_type))
        given.append(made)
        kind = ir.FunctionType(I32, [value.type for value in given])
        status = builder.call(cgutils.get_or_insert_function(builder.module, kind, name), given)
        with builder.if_then(builder.icmp_unsigned("!=", status, I32(0)), likely=False):
            for error in raises:
                with builder.if_then(builder.icmp_unsigned("==", status, I32(_STATUS[error])), likely=False):
                    context.call_conv.return_user_exc(builder, error, ())
            refuse(builder)
        return builder.load(made)

    return signature, codegen


def is_bytes(view: ViewType) -> int:
    """The constant by which a service is told that a text is bytes."""
    return int(view == BYTES)


def _argument(builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, ViewType):
        return cgutils.alloca_once_value(builder, value)
    if isinstance(kind, types.Boolean):
        return builder.zext(value, I64)
    return value
