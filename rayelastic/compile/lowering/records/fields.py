"""Fields of a record: their types in compiled code, how they are loaded, and which values they can store.

Temporal fields are integers of a unit (moment_types.py). Times of day have their own type, which can be compared and
stored.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG002 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.errors import TypingError
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import register_model

from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.moment_types import DAY, MomentType, PointType, SpanType, ZonedType, moment_type
from rayelastic.compile.lowering.base.plan import Plan
from rayelastic.compile.lowering.base.refusal import refuse
from rayelastic.compile.lowering.base.views import BYTES, TEXT, ViewType, load_view, parts, store_view
from rayelastic.compile.lowering.numbers import halves
from rayelastic.compile.lowering.records.json_values import is_present, is_stored, stored
from rayelastic.compile.lowering.records.values import JsonType, ValueType, value_type
from rayelastic.graph.records.schema import DataType, Field, Schema
from rayelastic.reasons import Code

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
F32, F64 = ir.FloatType(), ir.DoubleType()
MILLISECONDS_A_DAY = 86_400_000

Fail = Callable[[Any], None]


class TimeOfDay(types.Type):
    """datetime.time as units since midnight."""

    def __init__(self, unit: str) -> None:
        super().__init__(name=f"time[{unit}]")
        self.unit = unit


@register_model(TimeOfDay)
class TimeOfDayModel(models.PrimitiveModel):
    """A 64-bit integer."""

    def __init__(self, dmm: Any, fe_type: TimeOfDay) -> None:
        super().__init__(dmm, fe_type, I64)


def _register_comparison(function: Any, symbol: str) -> None:
    @infer_global(function)
    class TimeComparison(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and isinstance(args[0], TimeOfDay) and args[0] == args[1]:
                return signature(types.boolean, *args)
            return None

    @lower_builtin(function, TimeOfDay, TimeOfDay)
    def _compare(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.icmp_signed(symbol, *args)


for _function, _symbol in (
    (operator.eq, "=="), (operator.ne, "!="), (operator.lt, "<"),
    (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">="),
):  # fmt: skip
    _register_comparison(_function, _symbol)


def _unit(field: Field) -> Any:
    """Return the unit of a temporal field: 's', 'ms', 'us' or 'ns'."""
    return {"s": "s", "m": "ms", "u": "us", "n": "ns"}[field.format[2]]


def plain_type(field: Field) -> Any:
    """Return the type of a field that isn't None."""
    kind = field.type
    if kind is DataType.BOOL:
        return types.boolean
    if kind.is_integer:
        return types.int64
    if kind.is_float:
        return types.float64
    if kind.is_text:
        return TEXT if kind is DataType.STRING else BYTES
    if (value := value_type(field, loaded_type)) is not None:
        return value
    if kind in (DataType.DATE32, DataType.DATE64):
        return DAY
    if kind is DataType.TIMESTAMP:
        return moment_type(_unit(field), field.format.partition(":")[2])
    if kind is DataType.DURATION:
        return SpanType(_unit(field))
    return TimeOfDay(_unit(field))


def loaded_type(field: Field) -> Any:
    """Return the type of t.field in compiled code."""
    plain = plain_type(field)
    return types.Optional(plain) if field.nullable else plain


def inferred_format(kind: Any) -> tuple[str, bool] | None:
    """Return Arrow format and nullability of a field for a value of this type; None if a record can't hold it."""
    if isinstance(kind, types.Optional):
        inner = inferred_format(kind.type)
        return (inner[0], True) if inner else None
    kind = types.unliteral(kind)
    if isinstance(kind, types.Boolean):
        return "b", False
    if isinstance(kind, types.Integer):
        return "l", False
    if isinstance(kind, types.Float):
        return "g", False
    if isinstance(kind, ViewType):
        return ("u" if kind == TEXT else "z"), False
    if isinstance(kind, MomentType | ZonedType):
        return _temporal("ts", kind.unit, ":" + kind.zone)
    if isinstance(kind, PointType):
        return "tdD", False
    if isinstance(kind, SpanType):
        return _temporal("tD", kind.unit, "")
    if isinstance(kind, ValueType):
        return kind.form, False
    if isinstance(kind, TimeOfDay):
        return {"s": "tts", "ms": "ttm", "us": "ttu", "ns": "ttn"}[kind.unit], False
    return None


def _temporal(prefix: str, unit: str, suffix: str) -> tuple[str, bool] | None:
    letter = {"s": "s", "ms": "m", "us": "u", "ns": "n"}.get(unit)
    return (prefix + letter + suffix, False) if letter else None


def check_storing(plan: Plan, schema: Schema, field: Field, kind: Any) -> None:
    """Raise TypingError if a value of this type can't be stored in a field."""
    kind = types.unliteral(kind)
    if isinstance(kind, types.NoneType) and field.nullable:
        return
    kind = kind.type if isinstance(kind, types.Optional) else kind
    if isinstance(kind, types.NoneType) or not (kind == plain_type(field) or _converts(kind, field)):
        values = {"field": field.name, "schema": schema.name, "kind": field.type.value, "value": described(kind)}
        raise TypingError(plan.refuse(Code.WRONG_KIND, **values))


def _converts(kind: Any, field: Field) -> bool:
    if isinstance(kind, JsonType):
        return is_stored(field.type)
    if field.type.is_integer:
        return isinstance(kind, types.Integer | types.Boolean)
    if field.type.is_float:
        return isinstance(kind, types.Integer | types.Float | types.Boolean)
    if field.type is DataType.BOOL:
        return isinstance(kind, types.Boolean)
    if field.type is DataType.DURATION:
        return isinstance(kind, SpanType)
    return False


def described(kind: Any) -> str:
    """Return the Python name of a Numba type."""
    kind = types.unliteral(kind)
    if isinstance(kind, types.Optional):
        return f"{described(kind.type)} or None"
    if isinstance(kind, types.Boolean):
        return "a bool"
    if isinstance(kind, types.Integer):
        return "an int"
    if isinstance(kind, types.Float):
        return "a float"
    if isinstance(kind, types.NoneType):
        return "None"
    if isinstance(kind, types.BaseTuple):
        return f"a tuple of {len(kind)}"
    return str(getattr(kind, "shown", f"a {kind}"))


def clear_validity(builder: Any, schema: Schema, record: Any) -> None:
    """Set every nullable field of an output record to None, before its fields are stored."""
    bits = sum(f.nullable for f in schema.fields)
    for byte in range((bits + 7) // 8):
        builder.store(I8(0), builder.gep(record, [I64(schema.validity_offset + byte)]))


def _at(builder: Any, record: Any, offset: int) -> Any:
    return builder.gep(record, [I64(offset)])


def _validity(builder: Any, schema: Schema, field: Field, record: Any) -> tuple[Any, int]:
    byte = _at(builder, record, schema.validity_offset + field.validity // 8)
    return byte, 1 << field.validity % 8


def _set_validity(builder: Any, schema: Schema, field: Field, record: Any, valid: bool) -> None:
    byte, bit = _validity(builder, schema, field, record)
    old = builder.load(byte)
    builder.store(builder.or_(old, I8(bit)) if valid else builder.and_(old, I8(255 - bit)), byte)


def load(context: Any, builder: Any, schema: Schema, field: Field, record: Any) -> Any:
    """Return the value of a field, of type `loaded_type(field)`."""
    value = load_plain(context, builder, field, record)
    if not field.nullable:
        return value
    byte, bit = _validity(builder, schema, field, record)
    helper = context.make_helper(builder, loaded_type(field))
    helper.valid = builder.icmp_unsigned("!=", builder.and_(builder.load(byte), I8(bit)), I8(0))
    if field.type is DataType.JSON:  # null is also one of its texts
        helper.valid = builder.and_(helper.valid, is_present(context, builder, value))
    helper.data = value
    return helper._getvalue()


def load_plain(context: Any, builder: Any, field: Field, record: Any) -> Any:
    """Return the value of a field that isn't None."""
    kind, place = field.type, _at(builder, record, field.offset)
    if kind.is_variable:
        return load_view(context, builder, plain_type(field), place)
    if kind is DataType.FLOAT64:
        return builder.load(builder.bitcast(place, F64.as_pointer()))
    if kind is DataType.FLOAT32:
        return builder.fpext(builder.load(builder.bitcast(place, F32.as_pointer())), F64)
    raw = builder.load(builder.bitcast(place, ir.IntType(8 * kind.size).as_pointer()), align=min(kind.size, 8))
    if isinstance(plain_type(field), ValueType):
        return raw
    if kind is DataType.FLOAT16:
        return halves.load(context, builder, builder.zext(raw, I64))
    if kind is DataType.BOOL:
        return builder.icmp_unsigned("!=", raw, I8(0))
    if kind is DataType.DATE64:
        return builder.sdiv(raw, I64(MILLISECONDS_A_DAY))
    if kind is DataType.UINT64:
        with builder.if_then(builder.icmp_signed("<", raw, I64(0)), likely=False):
            refuse(builder)
    if kind.size == 8:
        return raw
    return builder.zext(raw, I64) if kind.value.startswith("uint") else builder.sext(raw, I64)


def store(
    context: Any, builder: Any, schema: Schema, field: Field, record: Any, kind: Any, value: Any, fail: Fail
) -> None:
    """Store a value of Numba type `kind`; `fail` ends the block if the field can't hold that value."""
    kind, value = _unwrapped(context, builder, schema, field, record, kind, value, fail)
    if kind is None:
        return
    if field.nullable and not isinstance(value, _Guarded):
        _set_validity(builder, schema, field, record, valid=True)
    if isinstance(value, _Guarded):
        with builder.if_else(value.valid) as (present, absent):
            with present:
                _store_plain(context, builder, field, record, kind, value.data, fail)
                _set_validity(builder, schema, field, record, valid=True)
            with absent:
                _clear(builder, field, record)
                _set_validity(builder, schema, field, record, valid=False)
        return
    _store_plain(context, builder, field, record, kind, value, fail)


class _Guarded:
    """The content of an Optional for a nullable field."""

    def __init__(self, valid: Any, data: Any) -> None:
        self.valid, self.data = valid, data


def _unwrapped(
    context: Any, builder: Any, schema: Schema, field: Field, record: Any, kind: Any, value: Any, fail: Fail
) -> tuple[Any, Any]:
    """Return plain type and value, guarded if it may be None; the type is None for a None that is stored already."""
    if isinstance(kind, types.NoneType):
        _clear(builder, field, record)
        _set_validity(builder, schema, field, record, valid=False)
        return None, None
    if not isinstance(kind, types.Optional):
        return kind, value
    helper = context.make_helper(builder, kind, value=value)
    valid = cgutils.as_bool_bit(builder, helper.valid)
    if field.nullable:
        return kind.type, _Guarded(valid, helper.data)
    with builder.if_then(builder.not_(valid), likely=False):
        fail(builder)
    return kind.type, helper.data


def _clear(builder: Any, field: Field, record: Any) -> None:
    """Zero the bytes of a None, so that equal records have equal bytes."""
    raw = ir.IntType(8 * field.type.size)
    builder.store(
        raw(0), builder.bitcast(_at(builder, record, field.offset), raw.as_pointer()), align=min(field.type.size, 8)
    )


def _store_plain(context: Any, builder: Any, field: Field, record: Any, kind: Any, value: Any, fail: Fail) -> None:
    target, place = field.type, _at(builder, record, field.offset)
    plain = plain_type(field)
    if isinstance(kind, JsonType) and target is not DataType.JSON:
        kind, value = stored(context, builder, target, value)
    if target.is_variable:
        store_view(context, builder, plain, value, place)
        return
    if target is DataType.FLOAT64 and isinstance(types.unliteral(kind), types.Integer):
        _fail_if_inexact(builder, context.cast(builder, value, types.unliteral(kind), types.int64), fail)
    value = context.cast(builder, value, types.unliteral(kind), plain)
    if target is DataType.FLOAT64:
        builder.store(value, builder.bitcast(place, F64.as_pointer()))
        return
    if target is DataType.FLOAT32:
        builder.store(builder.fptrunc(value, F32), builder.bitcast(place, F32.as_pointer()))
        return
    raw = ir.IntType(8 * target.size)
    if target is DataType.FLOAT16:
        value = halves.store(context, builder, value)
    elif target is DataType.BOOL:
        value = builder.zext(value, I8)
    elif target is DataType.DATE64:
        value = builder.mul(value, I64(MILLISECONDS_A_DAY))
    elif target is DataType.UINT64:
        with builder.if_then(builder.icmp_signed("<", value, I64(0)), likely=False):
            fail(builder)
    if target.size < 8 and target not in (DataType.BOOL, DataType.ENUM):
        value = _narrowed(builder, value, raw, target, fail)
    builder.store(value, builder.bitcast(place, raw.as_pointer()), align=min(target.size, 8))


def _fail_if_inexact(builder: Any, value: Any, fail: Fail) -> None:
    """Fail if an int has no equal float."""
    real = builder.sitofp(value, F64)
    too_big = builder.fcmp_ordered(">=", real, F64(2.0**63))
    back = builder.fptosi(builder.select(too_big, F64(0.0), real), I64)
    with builder.if_then(builder.or_(too_big, builder.icmp_signed("!=", back, value)), likely=False):
        fail(builder)


def _narrowed(builder: Any, value: Any, raw: Any, target: DataType, fail: Fail) -> Any:
    narrow = builder.trunc(value, raw)
    if target is DataType.FLOAT16:
        return narrow
    wide = builder.zext(narrow, I64) if target.value.startswith("uint") else builder.sext(narrow, I64)
    with builder.if_then(builder.icmp_signed("!=", wide, value), likely=False):
        fail(builder)
    return narrow


def keep_text(
    context: Any,
    builder: Any,
    schema: Schema,
    field: Field,
    record: Any,
    kind: Any,
    value: Any,
    engine_context: Any,
    fail: Fail,
) -> None:
    """Store text into a state record, which owns its copy (rel_keep_text)."""
    place = _at(builder, record, field.offset)

    def keep(data: Any, size: Any) -> None:
        refused = engine.keep_text(builder, engine_context, place, data, size)
        with builder.if_then(builder.icmp_unsigned("!=", refused, I32(0)), likely=False):
            fail(builder)

    if isinstance(kind, types.NoneType):
        keep(place, I64(0))
        _set_validity(builder, schema, field, record, valid=False)
        return
    plain = plain_type(field)
    if isinstance(kind, types.Optional):
        helper = context.make_helper(builder, kind, value=value)
        valid = cgutils.as_bool_bit(builder, helper.valid)
        data, size = parts(context, builder, plain, helper.data)
        if field.nullable:
            size = builder.select(valid, size, I64(0))
            keep(data, size)
            with builder.if_else(valid) as (present, absent):
                with present:
                    _set_validity(builder, schema, field, record, valid=True)
                with absent:
                    _set_validity(builder, schema, field, record, valid=False)
            return
        with builder.if_then(builder.not_(valid), likely=False):
            fail(builder)
        keep(data, size)
        return
    data, size = parts(context, builder, plain, value)
    keep(data, size)
    if field.nullable:
        _set_validity(builder, schema, field, record, valid=True)
