"""Text and bytes in compiled code: a pointer and a length, never owning (string_view.hpp, architecture section 3).

This module has the types and the few primitives that touch memory. The methods of str and bytes are written with these
in Python (text_*.py). A view points into the input record, a chunk that the run carries, memory from rel_allocate, or a
literal in the compiled code. All of them outlive the call.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_constant
from numba.core.types.common import SimpleIteratorType
from numba.extending import box, typeof_impl

from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.declare import MUTABLE, primitive, structure

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = I8.as_pointer()

INLINE_BYTES = 12  # StringView::kInlineBytes


class ViewType(types.IterableType, types.Hashable):
    """str or bytes in compiled code."""

    def __init__(self, name: str, literal: type) -> None:
        super().__init__(name=name)
        self.literal = literal

    @property
    def iterator_type(self) -> ViewIterator:
        """The type of iter()."""
        return ViewIterator(self)


class ViewIterator(SimpleIteratorType):
    """A position in a str (characters) or bytes (integers)."""

    def __init__(self, view: ViewType) -> None:
        self.view = view
        super().__init__(name=f"iter({view})", yield_type=view if view.literal is TextLiteral else types.int64)


class TextLiteral(str):
    """A str constant of the user's code that becomes a view."""

    __slots__ = ()


class BytesLiteral(bytes):
    """A bytes constant of the user's code that becomes a view."""

    __slots__ = ()


TEXT = ViewType("str", TextLiteral)
BYTES = ViewType("bytes", BytesLiteral)


# Data and size in bytes.
structure(ViewType, lambda _: [("data", types.voidptr), ("size", types.int64)])

# The view and the offset of the next character.
structure(ViewIterator, lambda kind: [("view", kind.view), ("at", MUTABLE)])


@typeof_impl.register(TextLiteral)
def _typeof_text(value: TextLiteral, context: Any) -> ViewType:
    return TEXT


@typeof_impl.register(BytesLiteral)
def _typeof_bytes(value: BytesLiteral, context: Any) -> ViewType:
    return BYTES


@box(ViewType)
def _boxed(typ: ViewType, value: Any, native: Any) -> Any:
    """Exist for exceptions that carry a view: Numba prepares boxing, but never calls it."""
    data, size = parts(native.context, native.builder, typ, value)
    if typ == TEXT:
        return native.pyapi.string_from_kind_and_data(I32(1), data, size)
    return native.pyapi.bytes_from_string_and_size(data, size)


@lower_constant(ViewType)
def _constant(context: Any, builder: Any, typ: ViewType, value: str | bytes) -> Any:
    raw = value.encode() if isinstance(value, str) else bytes(value)
    return make_view(context, builder, typ, literal_data(builder.module, raw), I64(len(raw)))


def literal_data(module: Any, raw: bytes) -> Any:
    """Return a pointer to constant bytes in `module`, followed by zeroes so that a word may be read at its end."""
    padded = raw + bytes(8)
    data = cgutils.add_global_variable(module, ir.ArrayType(I8, len(padded)), module.get_unique_name("literal"))
    data.linkage = "internal"
    data.global_constant = True
    data.align = 8  # tables are read in words
    data.initializer = ir.Constant(data.type.pointee, bytearray(padded))
    return data.bitcast(POINTER)


def make_view(context: Any, builder: Any, typ: ViewType, data: Any, size: Any) -> Any:
    """Make the LLVM value of a view."""
    view = cgutils.create_struct_proxy(typ)(context, builder)
    view.data, view.size = data, size
    return view._getvalue()


def parts(context: Any, builder: Any, typ: ViewType, value: Any) -> tuple[Any, Any]:
    """Return data and size of a view."""
    view = cgutils.create_struct_proxy(typ)(context, builder, value=value)
    return view.data, view.size


def load_view(context: Any, builder: Any, typ: ViewType, field: Any) -> Any:
    """Return the view of a 16-byte string view at `field`; it points into the record if it is inline."""
    size = builder.zext(builder.load(builder.bitcast(field, I32.as_pointer())), I64)
    inline = builder.gep(field, [I64(4)])
    far = builder.load(builder.bitcast(builder.gep(field, [I64(8)]), POINTER.as_pointer()))
    data = builder.select(builder.icmp_unsigned("<=", size, I64(INLINE_BYTES)), inline, far)
    return make_view(context, builder, typ, data, size)


def store_view(context: Any, builder: Any, typ: ViewType, value: Any, field: Any) -> None:
    """Store a view as a 16-byte string view at `field`: inline up to 12 bytes, unused bytes zero."""
    data, size = parts(context, builder, typ, value)

    def word(kind: Any, at: Any) -> Any:
        loaded = builder.load(builder.bitcast(builder.gep(data, [at]), kind.as_pointer()), align=1)
        return builder.zext(loaded, I64) if kind is not I64 else loaded

    def put(kind: Any, at: int, what: Any) -> None:
        what = builder.trunc(what, kind) if kind is not I64 and what.type is I64 else what
        builder.store(what, builder.bitcast(builder.gep(field, [I64(at)]), what.type.as_pointer()), align=4)

    put(I32, 0, size)
    done = builder.append_basic_block("view.done")
    blocks = {
        name: builder.append_basic_block("view." + name)
        for name in ("far", "near", "big", "small", "mid", "few", "one")
    }
    builder.cbranch(builder.icmp_unsigned(">", size, I64(INLINE_BYTES)), blocks["far"], blocks["near"])
    with builder.goto_block(blocks["far"]):
        put(I32, 4, word(I32, I64(0)))
        put(I64, 8, data)
        builder.branch(done)
    builder.position_at_end(blocks["near"])
    builder.cbranch(builder.icmp_unsigned(">=", size, I64(8)), blocks["big"], blocks["small"])
    with builder.goto_block(blocks["big"]):  # 8..12: the last four bytes, shifted over the overlap
        put(I64, 4, word(I64, I64(0)))
        shift = builder.mul(builder.sub(I64(12), size), I64(8))
        put(I32, 12, builder.lshr(word(I32, builder.sub(size, I64(4))), shift))
        builder.branch(done)
    builder.position_at_end(blocks["small"])
    put(I32, 12, I64(0))
    builder.cbranch(builder.icmp_unsigned(">=", size, I64(4)), blocks["mid"], blocks["few"])
    with builder.goto_block(blocks["mid"]):  # 4..7
        shift = builder.mul(builder.sub(I64(8), size), I64(8))
        high = builder.shl(builder.lshr(word(I32, builder.sub(size, I64(4))), shift), I64(32))
        put(I64, 4, builder.or_(word(I32, I64(0)), high))
        builder.branch(done)
    builder.position_at_end(blocks["few"])
    put(I64, 4, I64(0))
    builder.cbranch(builder.icmp_unsigned("==", size, I64(0)), done, blocks["one"])
    with builder.goto_block(blocks["one"]):  # 1..3: first, middle and last byte, which may be the same one
        middle, last = builder.lshr(size, I64(1)), builder.sub(size, I64(1))
        low = word(I8, I64(0))
        for at in (middle, last):
            low = builder.or_(low, builder.shl(word(I8, at), builder.mul(at, I64(8))))
        put(I64, 4, low)
        builder.branch(done)
    builder.position_at_end(done)


# --- primitives for text_*.py; offsets and sizes are in bytes, nothing is checked -----------------------------------


@primitive
def size_of(typingctx: Any, view: ViewType) -> Any:
    """Return the bytes of a view."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return parts(context, builder, sig.args[0], args[0])[1]

    return types.int64(view), codegen


@primitive
def byte_at(typingctx: Any, view: ViewType, at: types.Integer) -> Any:
    """Return the byte at offset `at`, 0..255."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data, _ = parts(context, builder, sig.args[0], args[0])
        return builder.zext(builder.load(builder.gep(data, [args[1]])), I64)

    return types.int64(view, types.int64), codegen


@primitive
def word_at(typingctx: Any, view: ViewType, at: types.Integer) -> Any:
    """Return eight bytes from offset `at`, little-endian."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data, _ = parts(context, builder, sig.args[0], args[0])
        return builder.load(builder.bitcast(builder.gep(data, [args[1]]), I64.as_pointer()), align=1)

    return types.uint64(view, types.int64), codegen


@primitive
def trailing_zeros(typingctx: Any, value: types.Integer) -> Any:
    """Count the zero bits below the lowest set bit; `value` must not be 0."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], I1(1))

    return types.int64(types.uint64), codegen


@primitive
def cut(typingctx: Any, view: ViewType, start: types.Integer, stop: types.Integer) -> Any:
    """Return the view of bytes start..stop."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data, _ = parts(context, builder, sig.args[0], args[0])
        return make_view(context, builder, sig.return_type, builder.gep(data, [args[1]]), builder.sub(args[2], args[1]))

    return view(view, types.int64, types.int64), codegen


@primitive
def compare_bytes(typingctx: Any, left: ViewType, right: ViewType, size: types.Integer) -> Any:
    """Return memcmp of the first `size` bytes."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, _ = parts(context, builder, sig.args[0], args[0])
        b, _ = parts(context, builder, sig.args[1], args[1])
        memcmp = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(I32, [POINTER, POINTER, I64]), engine.MEMCMP
        )
        return builder.sext(builder.call(memcmp, [a, b, args[2]]), I64)

    return types.int64(left, right, types.int64), codegen


@primitive
def search(typingctx: Any, view: ViewType, wanted: ViewType, start: types.Integer, stop: types.Integer) -> Any:
    """Return the lowest offset in start..stop at which `wanted` lies completely, or -1."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data, _ = parts(context, builder, sig.args[0], args[0])
        needle, size = parts(context, builder, sig.args[1], args[1])
        memmem = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(POINTER, [POINTER, I64, POINTER, I64]), engine.MEMMEM
        )
        begin = builder.gep(data, [args[2]])
        address = builder.call(memmem, [begin, builder.sub(args[3], args[2]), needle, size])
        distance = builder.sub(builder.ptrtoint(address, I64), builder.ptrtoint(data, I64))
        return builder.select(cgutils.is_null(builder, address), I64(-1), distance)

    return types.int64(view, wanted, types.int64, types.int64), codegen


@primitive
def new_view(typingctx: Any, like: ViewType, size: types.Integer) -> Any:
    """Return a view of fresh memory that lives as long as any run of this call; null data if there is none."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = engine.allocate(builder, engine.current_context(builder), args[1])
        with builder.if_then(cgutils.is_null(builder, data), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ())
        return make_view(context, builder, sig.return_type, data, args[1])

    return like(like, types.int64), codegen


@primitive
def put_byte(typingctx: Any, view: ViewType, at: types.Integer, value: types.Integer) -> Any:
    """Write a byte into a view from `new_view`."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data, _ = parts(context, builder, sig.args[0], args[0])
        builder.store(builder.trunc(args[2], I8), builder.gep(data, [args[1]]))
        return context.get_dummy_value()

    return types.void(view, types.int64, types.int64), codegen


@primitive
def put_view(typingctx: Any, view: ViewType, at: types.Integer, source: ViewType) -> Any:
    """Copy `source` into a view from `new_view`."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data, _ = parts(context, builder, sig.args[0], args[0])
        source_data, size = parts(context, builder, sig.args[2], args[2])
        cgutils.raw_memcpy(builder, builder.gep(data, [args[1]]), source_data, size, 1)
        return context.get_dummy_value()

    return types.void(view, types.int64, source), codegen
