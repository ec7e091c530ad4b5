"""The parts of values in compiled code: items of lists, fields of named tuples and dataclasses.

Their layout in bytes is in native_sched/include/rayelastic/record/value_form.hpp. Bytes from outside may be anything:
an index is checked against them, and a tuple with too few bytes is left to Python.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG002 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import lower_builtin, lower_getattr_generic
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer, infer_getattr, signature

from rayelastic.compile.lowering.base.declare import overloads
from rayelastic.compile.lowering.base.refusal import refuse
from rayelastic.compile.lowering.base.rows import count, item, reads
from rayelastic.compile.lowering.base.views import make_view
from rayelastic.compile.lowering.records import fields
from rayelastic.compile.lowering.records.json_values import is_present
from rayelastic.compile.lowering.records.values import SequenceType, StructType, part_field
from rayelastic.compile.reasons import packed
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.schema import Field

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
NUMBER = 4  # bytes of a count, and of an end


def _number(builder: Any, data: Any, at: Any) -> Any:
    place = builder.bitcast(builder.gep(data, [at]), I32.as_pointer())
    return builder.zext(builder.load(place, align=1), I64)


def _width(kind: DataType) -> int:
    return NUMBER if kind.is_variable else kind.size


def _least(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_unsigned("<", a, b), a, b)


def _part(context: Any, builder: Any, field: Field, data: Any, at: Any, begin: Any, size: Any, start: Any) -> Any:
    """Return a part whose bytes, or end, are at `at`; texts begin at `begin`, this one after `start` bytes."""
    plain = fields.plain_type(field)
    if field.type.is_variable:
        most = builder.sub(size, begin)
        end = _least(builder, _number(builder, data, at), most)
        start = _least(builder, start, end)
        place = builder.gep(data, [builder.add(begin, start)])
        return make_view(context, builder, plain, place, builder.sub(end, start))
    width = field.type.size
    slot = cgutils.alloca_once(builder, ir.ArrayType(I64, -(-width // 8)))  # aligned, as a record is
    slot = builder.bitcast(slot, I8.as_pointer())
    cgutils.raw_memcpy(builder, slot, builder.gep(data, [at]), I64(width), 1)
    return fields.load_plain(context, builder, field, slot)


def _optional(context: Any, builder: Any, field: Field, value: Any, data: Any, byte: Any, bit: Any) -> Any:
    if not field.nullable:
        return value
    helper = context.make_helper(builder, fields.loaded_type(field))
    bits = builder.zext(builder.load(builder.gep(data, [byte])), I64)
    helper.valid = builder.trunc(builder.lshr(bits, bit), ir.IntType(1))
    if field.type is DataType.JSON:
        helper.valid = builder.and_(helper.valid, is_present(context, builder, value))
    helper.data = value
    return helper._getvalue()


# --- lists ------------------------------------------------------------------------------------------------------------


def _begin(builder: Any, item: Field, count: Any) -> Any:
    """Return where the items of a list, or their ends, begin."""
    if not item.nullable:
        return I64(NUMBER)
    return builder.add(builder.lshr(builder.add(count, I64(7)), I64(3)), I64(NUMBER))


def _count_of(context: Any, builder: Any, typ: SequenceType, value: Any) -> Any:
    proxy = cgutils.create_struct_proxy(typ)(context, builder, value=value)
    item = part_field(typ.form.parts[0])
    count = _number(builder, proxy.data, I64(0))
    room = builder.sub(proxy.size, _begin(builder, item, count))
    needs = builder.mul(count, I64(_width(item.type)))
    with builder.if_then(builder.icmp_signed(">", needs, room), likely=False):
        refuse(builder)
    return count


def _item_of(context: Any, builder: Any, typ: SequenceType, value: Any, count: Any, index: Any) -> Any:
    proxy = cgutils.create_struct_proxy(typ)(context, builder, value=value)
    item = part_field(typ.form.parts[0])
    begin, width = _begin(builder, item, count), I64(_width(item.type))
    at = builder.add(begin, builder.mul(index, width))
    data = builder.add(begin, builder.mul(count, width))
    start = I64(0)
    if item.type.is_variable:  # the previous item's end; the first one's own end is read, but unused
        first = builder.icmp_signed("==", index, I64(0))
        before = builder.select(first, at, builder.sub(at, I64(NUMBER)))
        start = builder.select(first, I64(0), _number(builder, proxy.data, before))
    made = _part(context, builder, item, proxy.data, at, data, proxy.size, start)
    byte = builder.add(I64(NUMBER), builder.lshr(index, I64(3)))
    return _optional(context, builder, item, made, proxy.data, byte, builder.and_(index, I64(7)))


reads(SequenceType, _count_of, _item_of)


@overloads(operator.getitem)
def _getitem(sequence: Any, index: Any) -> Any:
    if not isinstance(sequence, SequenceType) or not isinstance(index, types.Integer):
        return None
    message = f"{'tuple' if sequence.form.of is tuple else 'list'} index out of range"

    def chosen(sequence: Any, index: Any) -> Any:
        total = count(sequence)
        at = index + total if index < 0 else index
        if at < 0 or at >= total:
            raise IndexError(message)
        return item(sequence, at)

    return chosen


# --- named tuples and dataclasses -------------------------------------------------------------------------------------


@infer_getattr
class StructAttributes(AttributeTemplate):
    """Implements t.at.x."""

    key = StructType

    def generic_resolve(self, typ: StructType, name: str) -> Any:  # type: ignore[override]
        """Return the type of a field."""
        for field in typ.fields:
            if field.name == name:
                return fields.loaded_type(field)
        raise TypingError(packed(what=f"'{name}' of {typ.form.shown}"))


@infer
class StructItem(AbstractTemplate):
    """Implements t.at[0]."""

    key = "static_getitem"

    def generic(self, args: Any, kws: Any) -> Any:
        """Return the type of the field at a constant index."""
        if len(args) == 2 and isinstance(args[0], StructType) and isinstance(args[1], int):
            parts, cls = args[0].fields, args[0].form.cls
            if (cls is not None and not issubclass(cls, tuple)) or not -len(parts) <= args[1] < len(parts):
                raise TypingError(packed(what=f"[{args[1]}] of {args[0].form.shown}"))
            return signature(fields.loaded_type(parts[args[1]]), *args)
        return None


@lower_getattr_generic(StructType)
def _getattr(context: Any, builder: Any, typ: StructType, value: Any, name: str) -> Any:
    index = next(i for i, field in enumerate(typ.fields) if field.name == name)
    return _field_of(context, builder, typ, value, index)


@lower_builtin("static_getitem", StructType, types.Literal)
def _static_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _field_of(context, builder, sig.args[0], args[0], sig.args[1].literal_value)


def _field_of(context: Any, builder: Any, typ: StructType, value: Any, index: int) -> Any:
    parts = typ.fields
    index %= len(parts)
    proxy = cgutils.create_struct_proxy(typ)(context, builder, value=value)
    bits = sum(field.nullable for field in parts)
    at = (bits + 7) // 8 + sum(_width(field.type) for field in parts[:index])
    end = (bits + 7) // 8 + sum(_width(field.type) for field in parts)
    with builder.if_then(builder.icmp_signed("<", proxy.size, I64(end)), likely=False):
        refuse(builder)
    before = [i for i in range(index) if parts[i].type.is_variable]
    start = I64(0)
    if before:
        of_last = (bits + 7) // 8 + sum(_width(field.type) for field in parts[: before[-1]])
        start = _number(builder, proxy.data, I64(of_last))
    field = parts[index]
    made = _part(context, builder, field, proxy.data, I64(at), I64(end), proxy.size, start)
    bit = sum(part.nullable for part in parts[:index])
    return _optional(context, builder, field, made, proxy.data, I64(bit // 8), I64(bit % 8))
