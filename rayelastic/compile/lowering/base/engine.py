"""The named symbols that compiled code may call: services of abi.h, and libc. Never addresses (findings section 4).

A function that makes text (concatenation, lower) needs the engine's memory, but not all of them receive the engine's
context. The loop over the run keeps it in a thread-specific slot, only for functions that allocate.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

I32, I64, F64 = ir.IntType(32), ir.IntType(64), ir.DoubleType()
POINTER = ir.IntType(8).as_pointer()

MEMCMP, MEMMEM = "memcmp", "memmem"
SERVICES = (
    "rel_emit", "rel_port", "rel_watermark",
    "rel_flush", "rel_kept", "rel_allocate", "rel_keep_text", "rel_text_of_float", "rel_rounded", "rel_pattern",
    "rel_pattern_find", "rel_pattern_sub", "rel_span_times", "rel_span_over", "rel_span_shared",
    "rel_text_to_int", "rel_text_to_float", "rel_text_of_int", "rel_text_of_point", "rel_text_bytes_to_int",
    "rel_text_change_case", "rel_text_translate", "rel_text_is_of", "rel_text_is_cased",
    "rel_text_find", "rel_text_last", "rel_text_count", "rel_text_starts",
    "rel_text_slice", "rel_text_replace", "rel_text_pad", "rel_text_zfill", "rel_text_expand_tabs",
    "rel_text_rsplit_space", "rel_text_rsplit", "rel_text_lines",
    "rel_text_decode", "rel_text_encode", "rel_text_hex",
    "rel_json_is_null", "rel_json_member", "rel_json_element", "rel_json_contains", "rel_json_length",
    "rel_json_is_true", "rel_json_to_int", "rel_json_to_float", "rel_json_to_same_float", "rel_json_to_bool",
    "rel_json_to_text", "rel_json_is_text", "rel_json_order_int", "rel_json_order_float",
)  # fmt: skip
CONTEXT_KEY = "rel_context_key"  # a pthread_key_t, made by loader.py in each process
POW = "rel_libm_pow"  # libm's pow by a name that LLVM doesn't know, see loader.py


def allocate(builder: Any, context: Any, size: Any) -> Any:
    """Call rel_allocate: memory that lives as long as any run of this call, or null."""
    return builder.call(allocator(builder), [context, size])


def allocator(builder: Any) -> Any:
    """Return rel_allocate itself, for services that make texts."""
    return _service(builder, "rel_allocate", POINTER, [POINTER, I64])


def flush(builder: Any, context: Any, count: Any) -> Any:
    """Call rel_flush: non-zero if the operator has to stop."""
    return builder.call(_service(builder, "rel_flush", I32, [POINTER, I64]), [context, count])


def kept(builder: Any, context: Any, count: Any) -> None:
    """Call rel_kept."""
    builder.call(_service(builder, "rel_kept", ir.VoidType(), [POINTER, I64]), [context, count])


def keep_text(builder: Any, context: Any, field: Any, data: Any, size: Any) -> Any:
    """Call rel_keep_text: non-zero if there is no memory."""
    return builder.call(
        _service(builder, "rel_keep_text", I32, [POINTER, POINTER, POINTER, I64]), [context, field, data, size]
    )


def text_of_float(builder: Any, value: Any, kind: Any, precision: Any, out: Any) -> Any:
    """Call rel_text_of_float: the number of bytes."""
    return builder.call(
        _service(builder, "rel_text_of_float", I64, [F64, I32, I64, POINTER]), [value, kind, precision, out]
    )


def rounded(builder: Any, value: Any, digits: Any) -> Any:
    """Call rel_rounded."""
    return builder.call(_service(builder, "rel_rounded", F64, [F64, I64]), [value, digits])


def pattern(builder: Any, text: Any, size: Any) -> Any:
    """Call rel_pattern: a handle, or null."""
    return builder.call(_service(builder, "rel_pattern", POINTER, [POINTER, I64]), [text, size])


def pattern_find(builder: Any, *arguments: Any) -> Any:
    """Call rel_pattern_find: 1, 0 or -1."""
    kinds = [POINTER, POINTER, I64, I64, I32, I64, I64.as_pointer()]
    return builder.call(_service(builder, "rel_pattern_find", I64, kinds), list(arguments))


def span_by(builder: Any, name: str, span: Any, number: Any, result: Any) -> Any:
    """Call rel_span_times, rel_span_over or rel_span_shared: 0 if there is no result."""
    kinds = [I64, number.type, I64.as_pointer()]
    return builder.call(_service(builder, name, I64, kinds), [span, number, result])


def pattern_sub(builder: Any, *arguments: Any) -> Any:
    """Call rel_pattern_sub: the number of bytes, or -1."""
    kinds = [POINTER, POINTER, I64, POINTER, I64, I64, POINTER.as_pointer()]
    return builder.call(_service(builder, "rel_pattern_sub", I64, kinds), list(arguments))


def current_context(builder: Any) -> Any:
    """Return the engine's context of the current thread's call."""
    return builder.call(_service(builder, "pthread_getspecific", POINTER, [I32]), [_key(builder)])


def set_current_context(builder: Any, context: Any) -> None:
    """Set the current thread's context."""
    builder.call(_service(builder, "pthread_setspecific", I32, [I32, POINTER]), [_key(builder), context])


def _service(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def _key(builder: Any) -> Any:
    if CONTEXT_KEY in builder.module.globals:
        slot = builder.module.globals[CONTEXT_KEY]
    else:
        slot = ir.GlobalVariable(builder.module, I32, CONTEXT_KEY)
    return builder.load(slot)
