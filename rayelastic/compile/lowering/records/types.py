"""Tuples and state records in compiled code: a pointer into the run, fields by name, index or unpacking.

They have their own Numba type, because a misspelt field of Numba's Record is a bare KeyError (findings section 4).
Integers are loaded as 64-bit signed and floats as 64-bit, as in Python. A uint64 above 2**63 fails the tuple instead of
turning negative. Layout: native_sched/include/rayelastic/record/schema.hpp.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG002, ARG005 -- parameters as Numba gives them, loops as it compiles them

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import lower_builtin, lower_getattr_generic
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer, infer_getattr, signature

from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.declare import overloads, primitive, structure
from rayelastic.compile.lowering.base.plan import Plan
from rayelastic.compile.lowering.base.refusal import refuse
from rayelastic.compile.lowering.base.views import ViewType, parts
from rayelastic.compile.lowering.records import fields
from rayelastic.compile.lowering.records.instances import InstanceType
from rayelastic.compile.lowering.records.values import JsonType
from rayelastic.compile.reasons import Code, packed
from rayelastic.graph.records.schema import DataType, Field, Schema, is_generated
from rayelastic.graph.spec.requests import FunctionKind

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = I8.as_pointer()

# The frame of one call of an operator function: output buffer, number of records in it, room, engine context, whether
# to stop, whether integers are checked one by one, and a number that isn't 0 if one may have overflowed (exact.py).
FRAME = ir.LiteralStructType([POINTER, I64, I64, POINTER, I32, I64, I64])
FRAME_OUT, FRAME_USED, FRAME_CAPACITY, FRAME_CONTEXT, FRAME_STOPPED, FRAME_CAREFUL, FRAME_SUSPICION = range(7)

Cell = tuple[Any, Callable[[Any, Any, Any], Any]]  # type, and a function that extracts its value from an item

_serial = itertools.count()


class RecordType(types.Type):
    """One record of a run, or the state record of a key. Each compilation has its own type, with its plan."""

    def __init__(self, schema: Schema, plan: Plan, *, is_state: bool) -> None:
        self.schema, self.plan, self.is_state = schema, plan, is_state
        super().__init__(name=f"{schema.name}{'.state' if is_state else ''}#{next(_serial)}")

    def field(self, name: str) -> Field:
        """Return the field of that name; record a misspelt one in the plan."""
        field = self.schema.find(name)
        if field is None:
            raise TypingError(self.plan.missing_field(self.schema, name, is_state=self.is_state))
        return field

    def has_item(self, index: Any) -> bool:
        """Return whether items of this kind can be read: by place, or by name as of a generated class."""
        by_name = isinstance(index, str) and not self.is_state and is_generated(self.schema.tuple_type)
        return by_name or isinstance(index, int)

    def field_at(self, index: int | str) -> Field:
        """Return the field of a name, or at an index, from the end if negative."""
        if isinstance(index, str):
            return self.field(index)
        count = len(self.schema.fields)
        if not -count <= index < count:
            what = f"index {index} of {self.schema.name}"
            raise TypingError(packed(Code.INVALID, what=what, error=f"it has {count} fields"))
        return self.schema.fields[index]


# The record and the frame of the call.
structure(RecordType, lambda _: [("record", types.voidptr), ("frame", types.voidptr)])


def make_record(context: Any, builder: Any, typ: RecordType, record: Any, frame: Any) -> Any:
    """Make the LLVM value of a record."""
    proxy = cgutils.create_struct_proxy(typ)(context, builder)
    proxy.record, proxy.frame = record, builder.bitcast(frame, POINTER)
    return proxy._getvalue()


def record_parts(context: Any, builder: Any, typ: RecordType, value: Any) -> tuple[Any, Any]:
    """Return pointers to the record and to the frame."""
    proxy = cgutils.create_struct_proxy(typ)(context, builder, value=value)
    return proxy.record, builder.bitcast(proxy.frame, FRAME.as_pointer())


def frame_slot(builder: Any, frame: Any, slot: int) -> Any:
    """Return a pointer to a member of the frame."""
    return builder.gep(frame, [I32(0), I32(slot)])


@infer_getattr
class RecordAttributes(AttributeTemplate):
    """Implements t.price."""

    key = RecordType

    def generic_resolve(self, typ: RecordType, name: str) -> Any:  # type: ignore[override]
        """Return the type of a field; None for a member of the user's class (members.py)."""
        if typ.schema.find(name) is None and typ.plan.is_member(typ.schema, name):
            return None
        return fields.loaded_type(typ.field(name))


@infer
class RecordItem(AbstractTemplate):
    """Implements t[0], t["price"], and a, b = t."""

    key = "static_getitem"

    def generic(self, args: Any, kws: Any) -> Any:
        """Return the type of the field at a constant index."""
        if len(args) == 2 and isinstance(args[0], RecordType) and args[0].has_item(args[1]):
            return signature(fields.loaded_type(args[0].field_at(args[1])), *args)
        return None


@lower_getattr_generic(RecordType)
def _getattr(context: Any, builder: Any, typ: RecordType, value: Any, name: str) -> Any:
    return _load(context, builder, typ, value, typ.field(name))


@lower_builtin("static_getitem", RecordType, types.Any)
def _getitem(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _load(context, builder, sig.args[0], args[0], sig.args[0].field_at(args[1]))


@overloads(len)
def _len(record: Any) -> Any:
    if isinstance(record, RecordType):
        count = len(record.schema.fields)
        return lambda record: count
    return None


def _load(context: Any, builder: Any, typ: RecordType, value: Any, field: Field) -> Any:
    record, frame = record_parts(context, builder, typ, value)
    loaded = fields.load(context, builder, typ.schema, field, record)
    if typ.is_state and field.type.is_variable:  # the state owns its text and may replace it, so a copy leaves it
        return _copied_text(context, builder, field, loaded, frame)
    return loaded


def _copied_text(context: Any, builder: Any, field: Field, loaded: Any, frame: Any) -> Any:
    loaded_type = fields.loaded_type(field)
    slot = cgutils.alloca_once_value(builder, loaded)
    inner = slot
    if isinstance(loaded_type, types.Optional):
        inner = context.make_helper(builder, loaded_type, ref=slot)._get_ptr_by_name("data")
        loaded_type = loaded_type.type
    data, size = parts(context, builder, loaded_type, builder.load(inner))
    with builder.if_then(builder.icmp_unsigned("!=", size, I64(0))):
        memory = engine.allocate(builder, builder.load(frame_slot(builder, frame, FRAME_CONTEXT)), size)
        with builder.if_then(cgutils.is_null(builder, memory), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ())
        cgutils.raw_memcpy(builder, memory, data, size, 1)
        builder.store(memory, builder.gep(inner, [I32(0), I32(0)]))
    return builder.load(slot)


# --- functions that the rewritten user code calls (rewrite.py) ------------------------------------------------------


def _set_field(typingctx: Any, record: Any, name: Any, value: Any) -> Any:
    """Set s.total = value."""
    if not isinstance(record, RecordType):
        raise TypingError(packed(what=f"setting attributes of {record}"))
    plan, attribute = record.plan, name.literal_value
    if not record.is_state:
        raise TypingError(plan.refuse(Code.IMMUTABLE, field=attribute))
    field = record.field(attribute)
    value = types.unliteral(value)
    fields.check_storing(plan, record.schema, field, value)
    if isinstance(value, types.Boolean) and field.type.is_integer:
        what = f"a bool in the int '{attribute}' of {record.schema.name}"
        raise TypingError(plan.refuse(Code.WRITE_INSTEAD, what=what, instead="int(..)"))
    if isinstance(value.type if isinstance(value, types.Optional) else value, JsonType):
        what = f"a JSON value in '{attribute}' of {record.schema.name}"
        raise TypingError(plan.refuse(Code.WRITE_INSTEAD, what=what, instead="str(..), int(..) or float(..)"))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        state, frame = record_parts(context, builder, sig.args[0], args[0])

        if field.type.is_variable:
            engine_context = builder.load(frame_slot(builder, frame, FRAME_CONTEXT))
            fields.keep_text(
                context, builder, record.schema, field, state, sig.args[2], args[2], engine_context, refuse
            )
        else:
            fields.store(context, builder, record.schema, field, state, sig.args[2], args[2], refuse)
        return context.get_dummy_value()

    return types.void(record, name, value), codegen


set_field = primitive(_set_field, prefer_literal=True)


@primitive
def deliver(typingctx: Any, record: Any, value: Any) -> Any:
    """Replace `return value` and `yield value` of the user's function (rewrite.py)."""
    value = types.unliteral(value)
    kind = record.plan.kind

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source, frame = record_parts(context, builder, sig.args[0], args[0])
        if kind is FunctionKind.MAP:  # the loop over the run sets where each output record is
            place = builder.load(frame_slot(builder, frame, FRAME_OUT))
            _store_item(context, builder, record, place, sig.args[1], args[1])
        elif kind is FunctionKind.FILTER:
            with builder.if_then(_is_true(context, builder, sig.args[1], args[1])):
                cgutils.raw_memcpy(
                    builder, _next_place(builder, frame, record.schema), source, I64(record.schema.record_size), 1
                )
        else:
            _make_room(context, builder, frame)
            place = _next_place(builder, frame, record.plan.output)
            _store_item(context, builder, record, place, sig.args[1], args[1])
        return context.get_dummy_value()

    return types.void(record, value), codegen


def _make_room(context: Any, builder: Any, frame: Any) -> None:
    used_slot = frame_slot(builder, frame, FRAME_USED)
    full = builder.icmp_signed(">=", builder.load(used_slot), builder.load(frame_slot(builder, frame, FRAME_CAPACITY)))
    with builder.if_then(full, likely=False):
        engine_context = builder.load(frame_slot(builder, frame, FRAME_CONTEXT))
        stop = engine.flush(builder, engine_context, builder.load(used_slot))
        builder.store(I64(0), used_slot)
        with builder.if_then(builder.icmp_unsigned("!=", stop, I32(0)), likely=False):
            builder.store(I32(1), frame_slot(builder, frame, FRAME_STOPPED))
            refuse(builder)


def _next_place(builder: Any, frame: Any, schema: Schema) -> Any:
    used_slot = frame_slot(builder, frame, FRAME_USED)
    used = builder.load(used_slot)
    builder.store(builder.add(used, I64(1)), used_slot)
    return builder.gep(
        builder.load(frame_slot(builder, frame, FRAME_OUT)), [builder.mul(used, I64(schema.record_size))]
    )


def _is_true(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.NoneType):
        return I1(0)
    if isinstance(kind, types.Optional):
        helper = context.make_helper(builder, kind, value=value)
        return builder.and_(
            cgutils.as_bool_bit(builder, helper.valid), _is_true(context, builder, kind.type, helper.data)
        )
    if isinstance(kind, ViewType):
        return builder.icmp_unsigned("!=", parts(context, builder, kind, value)[1], I64(0))
    return context.is_true(builder, kind, value)


def _store_item(context: Any, builder: Any, record: RecordType, place: Any, item: Any, value: Any) -> None:
    """Store the result of the user's function as the output record at `place`."""
    output = record.plan.output
    if isinstance(item, RecordType) and item.schema.same_fields(output):
        cgutils.raw_memcpy(builder, place, record_parts(context, builder, item, value)[0], I64(output.record_size), 1)
        return
    cells = [(kind, cell(context, builder, value)) for kind, cell in item_cells(item, output)]
    final = place
    if any(_may_refuse(field, kind) for field, (kind, _) in zip(output.fields, cells, strict=True)):
        # `place` may be the input, which must not change if a field is rejected
        words = ir.ArrayType(I64, -(-output.record_size // 8))
        place = builder.bitcast(cgutils.alloca_once(builder, words), POINTER)
    if any(f.nullable for f in output.fields):
        fields.clear_validity(builder, output, place)
    for field, (kind, content) in zip(output.fields, cells, strict=True):
        fields.store(context, builder, output, field, place, kind, content, refuse)
    if place is not final:
        cgutils.raw_memcpy(builder, final, place, I64(output.record_size), 1)


def _may_refuse(field: Field, kind: Any) -> bool:
    """Return whether `fields.store` may reject a value."""
    is_narrow = field.type.is_integer and (field.type.size < 8 or field.type is DataType.UINT64)
    return is_narrow or (isinstance(kind, types.Optional) and not field.nullable)


def item_cells(item: Any, output: Schema | None = None) -> list[Cell]:
    """Return the type of each field of an output item (tuple, record or scalar), and how to extract it.

    Args:
        item: The item's type.
        output: The schema by whose names the fields of a dataclass are extracted; None: not known.
    """
    if isinstance(item, InstanceType) and output is not None and output.takes_names:
        names = output.names
        if set(item.names) == set(names):
            return [_instance_cell(item, item.names.index(name)) for name in names]
    if isinstance(item, RecordType):
        return [_record_cell(item, field) for field in item.schema.fields]
    if isinstance(item, types.BaseTuple):
        kinds: Any = item
        return [_tuple_cell(kind, index) for index, kind in enumerate(kinds)]
    return [(item, lambda _context, _builder, value: value)]


def _record_cell(record: RecordType, field: Field) -> Cell:
    return fields.loaded_type(field), lambda context, builder, value: _load(context, builder, record, value, field)


def _instance_cell(item: InstanceType, place: int) -> Cell:
    name = item.names[place]
    return item.kinds[place], lambda context, builder, value: getattr(
        cgutils.create_struct_proxy(item)(context, builder, value=value), name
    )


def _tuple_cell(kind: Any, index: int) -> Cell:
    return kind, lambda _, builder, value: builder.extract_value(value, index)
