"""The engine's services for compiled methods of a keyed process: timers, the time, and whether the input has ended.

Each is a call of the engine with the context of the thread's call (process.hpp: TimerCommand).
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError

from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.declare import primitive
from rayelastic.compile.reasons import Code, packed

I32, I64, F64 = ir.IntType(32), ir.IntType(64), ir.DoubleType()
_POINTER = ir.IntType(8).as_pointer()
_AT, _AFTER, _CANCEL, _FORGET = range(4)  # TimerCommand::What
_COMMAND = ir.LiteralStructType([I64, I64, F64])
_TIMER_PORT = I32(1)  # kTimerPort


@primitive
def timer_at(typingctx: Any, ticks: Any) -> Any:
    """Set a timer."""
    return _of_ticks(_AT, ticks)


@primitive
def timer_cancel(typingctx: Any, ticks: Any) -> Any:
    """Cancel a timer."""
    return _of_ticks(_CANCEL, ticks)


@primitive
def timer_after(typingctx: Any, seconds: Any) -> Any:
    """Set a timer so many seconds after the current time."""
    if not isinstance(seconds, types.Integer | types.Float):
        raise TypingError(
            packed(Code.WRITE_INSTEAD, what=f"out.after({seconds})", instead="seconds, an int or a float")
        )

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        length = context.cast(builder, args[0], sig.args[0], types.float64)
        _command(builder, _AFTER, I64(0), length)
        return context.get_dummy_value()

    return types.none(seconds), codegen


@primitive
def timer_forget(typingctx: Any) -> Any:
    """Cancel all timers of the key; after this call its state is the initial one."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _command(builder, _FORGET, I64(0), F64(0))
        return context.get_dummy_value()

    return types.none(), codegen


@primitive
def timer_now(typingctx: Any) -> Any:
    """Return the ticks of the tuple, or of the timer."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(I64, [_POINTER])
        service = cgutils.get_or_insert_function(builder.module, kind, "rel_watermark")
        return builder.call(service, [engine.current_context(builder)])

    return types.int64(), codegen


@primitive
def timer_ended(typingctx: Any) -> Any:
    """Return whether the input has ended."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(I32, [_POINTER])
        service = cgutils.get_or_insert_function(builder.module, kind, "rel_port")
        ended = builder.call(service, [engine.current_context(builder)])
        return builder.icmp_unsigned("!=", ended, I32(0))

    return types.boolean(), codegen


def _of_ticks(what: int, ticks: Any) -> Any:
    if not isinstance(ticks, types.Integer):
        raise TypingError(packed(Code.WRITE_INSTEAD, what=f"a timer at {ticks}", instead="an int"))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        at = context.cast(builder, args[0], sig.args[0], types.int64)
        _command(builder, what, at, F64(0))
        return context.get_dummy_value()

    return types.none(ticks), codegen


def _command(builder: Any, what: int, ticks: Any, seconds: Any) -> None:
    """Issue a command; a rejected one fails the call once it has returned."""
    command = cgutils.alloca_once(builder, _COMMAND)
    for at, part in enumerate((I64(what), ticks, seconds)):
        builder.store(part, builder.gep(command, [I32(0), I32(at)]))
    kind = ir.FunctionType(I32, [_POINTER, I32, _POINTER, I64])
    service = cgutils.get_or_insert_function(builder.module, kind, "rel_emit")
    arguments = [engine.current_context(builder), _TIMER_PORT, builder.bitcast(command, _POINTER), I64(1)]
    builder.call(service, arguments)
