"""Calls from compiled code to the text services of the engine (text.h): arguments, status, result.

A text is passed as the address of its data and its size, a number by value; the last argument is the result's address.
Services that make texts receive their memory first. A service's status becomes CPython's exception, or a rejection.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.declare import primitive
from rayelastic.compile.lowering.base.refusal import refuse
from rayelastic.compile.lowering.base.views import BYTES, ViewType, literal_data

I32, I64 = ir.IntType(32), ir.IntType(64)
POINTER = ir.IntType(8).as_pointer()

_STATUS: dict[type[Exception], int] = {  # rel_text_status; 1 is REL_TEXT_REFUSED
    MemoryError: 2,
    ValueError: 3,
    TypeError: 4,
    UnicodeDecodeError: 5,
    UnicodeEncodeError: 6,
    OverflowError: 7,
}

Codegen = Callable[[Any, Any, Any, Any], Any]


def service(
    name: str, signature: Any, *constants: int | bytes, raises: Sequence[type[Exception]] = ()
) -> tuple[Any, Codegen]:
    """Return the signature and code of an intrinsic that calls a service.

    Args:
        name: The service, which returns a rel_text_status.
        signature: Numba's signature of the intrinsic; the arguments are texts, tuples of texts, ints and floats.
        constants: Further arguments behind these; bytes for tables, passed as texts.
        raises: Exceptions that CPython may raise here.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return call(context, builder, name, sig, args, constants, raises)

    return signature, codegen


def fixed(name: str, signature: Any) -> Any:
    """Return an intrinsic that calls a service with arguments of these types alone; see `service`."""

    def typing(typingctx: Any, *arguments: Any) -> Any:  # noqa: ARG001
        return service(name, signature)

    names = ["typingctx", *(f"argument{at}" for at in range(len(signature.args)))]
    parameters = [inspect.Parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD) for each in names]
    typing.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Numba folds arguments by it
    return primitive(typing)


def call(
    context: Any,
    builder: Any,
    name: str,
    sig: Any,
    args: Sequence[Any],
    constants: Sequence[int | bytes],
    raises: Sequence[type[Exception]],
) -> Any:
    """Return the result of a service; see `service`."""
    result = sig.return_type
    makes_text = not isinstance(result, types.Boolean | types.Integer | types.Float)
    arguments = [_room(builder)] if makes_text else []
    for kind, value in zip(sig.args, args, strict=True):
        arguments += _argument(context, builder, kind, value)
    arguments += [_constant(builder, value) for value in constants]
    slot = cgutils.alloca_once(builder, I64 if isinstance(result, types.Boolean) else context.get_value_type(result))
    arguments.append(slot)
    kind = ir.FunctionType(I32, [value.type for value in arguments])
    status = builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)
    with builder.if_then(builder.icmp_unsigned("!=", status, I32(0)), likely=False):
        for error in (*raises, MemoryError) if makes_text else raises:
            with builder.if_then(builder.icmp_unsigned("==", status, I32(_STATUS[error])), likely=False):
                context.call_conv.return_user_exc(builder, error, ())
        refuse(builder)
    loaded = builder.load(slot)
    return builder.icmp_unsigned("!=", loaded, I64(0)) if isinstance(result, types.Boolean) else loaded


def is_bytes(view: ViewType) -> int:
    """Return the constant that marks a text as bytes for a service."""
    return int(view == BYTES)


def _argument(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    if isinstance(kind, ViewType):
        return [cgutils.alloca_once_value(builder, value)]
    if isinstance(kind, types.UniTuple):
        texts = cgutils.alloca_once_value(builder, value)
        return [builder.bitcast(texts, context.get_value_type(kind.dtype).as_pointer()), I64(kind.count)]
    if isinstance(kind, types.Boolean):
        return [builder.zext(value, I64)]
    return [value]


def _constant(builder: Any, value: int | bytes) -> Any:
    if isinstance(value, int):
        return I64(value)
    text = cgutils.alloca_once(builder, ir.LiteralStructType([POINTER, I64]))
    for at, part in enumerate((literal_data(builder.module, value), I64(len(value)))):
        builder.store(part, builder.gep(text, [I32(0), I32(at)]))
    return text


def _room(builder: Any) -> Any:
    """Return the rel_text_room of this call."""
    allocate = engine.allocator(builder)
    room = cgutils.alloca_once(builder, ir.LiteralStructType([POINTER, POINTER]))
    for at, part in enumerate((builder.bitcast(allocate, POINTER), engine.current_context(builder))):
        builder.store(part, builder.gep(room, [I32(0), I32(at)]))
    return room
