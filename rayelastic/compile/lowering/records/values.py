"""Values with their own form in compiled code (records/forms.py): copied, and compared where equal bytes mean equality.

Decimals and UUIDs are integers of 128 bits, members of enums their numbers, the others views of their bytes. Other
operations aren't compiled, except those of inside.py.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG002 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin, lower_constant
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import register_model, typeof_impl

from rayelastic.compile.lowering.base.declare import structure
from rayelastic.compile.lowering.base.rows import RowType
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import Form, enum_form, plain_form
from rayelastic.graph.records.schema import Field

I64 = ir.IntType(64)
_FIXED = (DataType.DECIMAL, DataType.UUID, DataType.ENUM)


class ValueType(types.Type):
    """A value of a form."""

    def __init__(self, form: Form) -> None:
        super().__init__(name=f"value {form}")
        self.form = form

    @property
    def shown(self) -> str:
        """Its name in messages."""
        return f"a {self.form.shown}"


class FixedType(ValueType):
    """A decimal, a UUID, a member of an enum."""


class VariableType(ValueType):
    """A list, struct, map, JSON value or object."""


class JsonType(VariableType):
    """A JSON value that isn't null."""


class StructType(VariableType):
    """A named tuple, or an instance of a dataclass, inside a record."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its parts, as if each were the only field of a record."""
        return tuple(part_field(part) for part in self.form.parts)


class SequenceType(VariableType, RowType):
    """A list or tuple of any length, of items of one type."""

    def __init__(self, form: Form, item: types.Type) -> None:
        super().__init__(form)
        self.item = item

    def compares(self, wanted: types.Type) -> bool:
        """Return whether the value's items are never None."""
        return not isinstance(self.item, types.Optional)


def part_field(part: tuple[str, Form, bool]) -> Field:
    """Return a part of a form as a nullable field; the value around it has its validity bit."""
    name, form, nullable = part
    return Field(name, form.kind, nullable, form, 0, -1)


@register_model(FixedType)
class FixedModel(models.PrimitiveModel):
    """An integer."""

    def __init__(self, dmm: Any, fe_type: FixedType) -> None:
        super().__init__(dmm, fe_type, ir.IntType(8 * fe_type.form.kind.size))


for _kind in (VariableType, StructType, JsonType, SequenceType):  # data and size in bytes, as of a view
    structure(_kind, lambda _: [("data", types.voidptr), ("size", types.int64)])


def value_type(field: Field, loaded: Callable[[Field], Any]) -> ValueType | None:
    """Return the type of a field that has its own form; None for a plain one.

    Args:
        field: A field of a record.
        loaded: Returns the type of an item of a list, as if it were a field.
    """
    form = plain_form(field.format)
    if form.kind in _FIXED:
        return FixedType(form)
    if form.kind is DataType.LIST:
        return SequenceType(form, loaded(part_field(form.parts[0])))
    if form.kind is DataType.STRUCT:
        return StructType(form)
    if form.kind is DataType.JSON:
        return JsonType(form)
    return VariableType(form) if form.kind.is_made else None


class Member:
    """A member of an enum that user code names."""

    def __init__(self, member: enum.Enum) -> None:
        self.form = enum_form(type(member))
        self.number = list(type(member)).index(member)


@typeof_impl.register(Member)
def _typeof_member(value: Member, context: Any) -> FixedType:
    return FixedType(value.form)


@lower_constant(FixedType)
def _constant(context: Any, builder: Any, typ: FixedType, value: Member) -> Any:
    return ir.Constant(ir.IntType(32), value.number)


def _register(function: Any, symbol: str) -> None:
    @infer_global(function)
    class SameForm(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and isinstance(args[0], FixedType) and args[0] == args[1]:
                return signature(types.boolean, *args)
            return None

    @lower_builtin(function, FixedType, FixedType)
    def _compare(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.icmp_signed(symbol, *args)


for _function, _symbol in ((operator.eq, "=="), (operator.ne, "!="), (operator.is_, "=="), (operator.is_not, "!=")):
    _register(_function, _symbol)


def _register_numbers(function: Any, symbol: str) -> None:
    """Register comparisons of enums whose members are whole numbers, such as an IntEnum."""

    @infer_global(function)
    class WithNumbers(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and _is_number(args[0]) and isinstance(args[1], types.Integer):
                return signature(types.boolean, args[0], types.int64)
            return None

    @lower_builtin(function, FixedType, types.Integer)
    def _compare(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        values = [int(member.value) for member in sig.args[0].form.cls]
        table = cgutils.global_constant(builder, "members", ir.Constant(ir.ArrayType(I64, len(values)), values))
        value = builder.load(builder.gep(table, [I64(0), builder.zext(args[0], I64)]))
        return builder.icmp_signed(symbol, value, args[1])


def _is_number(kind: Any) -> bool:
    return isinstance(kind, FixedType) and kind.form.cls is not None and issubclass(kind.form.cls, int)


def _register_order(function: Any, symbol: str) -> None:
    @infer_global(function)
    class Ordered(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            decimals = len(args) == 2 and isinstance(args[0], FixedType) and args[0].form.kind is DataType.DECIMAL
            return signature(types.boolean, *args) if decimals and args[0] == args[1] else None

    @lower_builtin(function, FixedType, FixedType)
    def _compare(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.icmp_signed(symbol, *args)


for _ordering, _symbol in ((operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">=")):
    _register_order(_ordering, _symbol)
    _register_numbers(_ordering, _symbol)
_register_numbers(operator.eq, "==")
_register_numbers(operator.ne, "!=")
