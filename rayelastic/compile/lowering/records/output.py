"""The output schema of a compiled function: the declared one, checked against its results, or the inferred one.

A NamedTuple class or dataclass has its annotations, a dict its keys. A tuple of scalars has fields f0, f1, .., a scalar
the one field `value`, and the input tuple the input schema (findings section 4).
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.errors import TypingError

from rayelastic.compile.lowering.base.plan import Plan
from rayelastic.compile.lowering.records import fields
from rayelastic.compile.lowering.records.instances import InstanceType
from rayelastic.compile.lowering.records.types import RecordType, item_cells
from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.spec.requests import FunctionKind
from rayelastic.reasons import Code


def decide(plan: Plan, typing_context: Any, delivered: list[Any], input_schema: Schema) -> None:
    """Set `plan.decided` from the types of everything that the function returns or yields.

    Raises:
        TypingError: No record of the schema can hold a result, or there is none.
    """
    delivered = [types.unliteral(item) for item in delivered]
    if plan.kind is FunctionKind.FILTER:
        plan.decided = input_schema
        for item in delivered:
            _check_condition(plan, item)
        return
    if not delivered:
        raise TypingError(plan.refuse(Code.NO_RESULT, returns="yields" if plan.is_generator else "returns"))
    if plan.decided is None:
        plan.decided = _inferred(plan, typing_context, delivered)
    for item in delivered:
        _check_item(plan, item, plan.decided)


def _check_condition(plan: Plan, item: Any) -> None:
    if isinstance(item, types.Optional):
        item = item.type
    if not isinstance(
        item, types.Boolean | types.Integer | types.Float | types.NoneType
    ) and not fields.inferred_format(item):
        raise TypingError(plan.refuse(Code.NOT_A_CONDITION, kind=fields.described(item)))


def _check_item(plan: Plan, item: Any, schema: Schema) -> None:
    if isinstance(item, RecordType) and item.is_state:
        raise TypingError(plan.refuse(Code.WRITE_INSTEAD, what="returning its state", instead="fields of it"))
    if isinstance(item, types.NoneType) and not (len(schema.fields) == 1 and schema.fields[0].nullable):
        raise _returned_none(plan)
    if isinstance(item, InstanceType) and schema.takes_names:
        _check_instance(plan, item, schema)
    cells = item_cells(item, schema)
    if len(cells) != len(schema.fields):
        counts = {"count": len(cells), "schema": str(schema), "fields": len(schema.fields)}
        raise TypingError(plan.refuse(Code.WRONG_COUNT, what="its result", **counts))
    for field, (kind, _) in zip(schema.fields, cells, strict=True):
        fields.check_storing(plan, schema, field, kind)


def _check_instance(plan: Plan, item: InstanceType, schema: Schema) -> None:
    """Check that a dataclass has the fields of the schema; one that lacks nullable ones is left to Python."""
    surplus = set(item.names) - set(schema.names)
    missing = [field for field in schema.fields if field.name not in item.names]
    if len(schema.fields) == 1 or not (surplus or missing):
        return
    cls = item.instance_class.__name__
    problem = f"it returns a {cls} with the fields {', '.join(item.names)} where {schema} is declared"
    if surplus or not all(field.nullable for field in missing):
        plan.mistake = plan.mistake or SchemaError(
            problem, hint=f"Declare schema={cls}, or return what the schema has", code=ErrorCode.BAD_RETURN
        )
    raise TypingError(plan.refuse(Code.RETURNS_OTHER_FIELDS, kind=cls, names=list(item.names), schema=str(schema)))


def _returned_none(plan: Plan, which: str = "some") -> TypingError:
    returns = "yields" if plan.is_generator else "returns"
    return TypingError(plan.refuse(Code.RETURNS_NONE, returns=returns, which=which))


def _inferred(plan: Plan, typing_context: Any, delivered: list[Any]) -> Schema:
    nothing = sum(isinstance(item, types.NoneType) for item in delivered)
    if nothing == len(delivered):
        raise _returned_none(plan, "all")
    named: list[Any] = [item for item in delivered if isinstance(item, types.BaseNamedTuple | InstanceType)]
    classes = {item.instance_class for item in named}
    if classes:
        if nothing:
            raise _returned_none(plan)
        if len(classes) > 1 or len(named) < len(delivered):
            raise TypingError(plan.refuse(Code.RETURNS_DIFFERENT, parts="classes"))
        tuple_class = classes.pop()
        return Schema.of(tuple_class) if issubclass(tuple_class, tuple) else Schema.of(tuple_class, name="Record")
    records = [item for item in delivered if isinstance(item, RecordType) and not item.is_state]
    if records and len(records) == len(delivered):
        return records[0].schema
    if any(isinstance(item, types.Optional) and isinstance(item.type, RecordType) for item in delivered):
        raise _returned_none(plan)
    widths = {len(item_cells(item)) for item in delivered if not isinstance(item, types.NoneType)}
    if len(widths) != 1:
        raise TypingError(plan.refuse(Code.RETURNS_DIFFERENT, parts="lengths"))
    is_tuple = any(isinstance(item, types.BaseTuple) for item in delivered)
    columns = []
    for index in range(widths.pop()):
        kinds = [item_cells(item)[index][0] for item in delivered if is_tuple <= isinstance(item, types.BaseTuple)]
        name = (plan.names[index] if plan.names else f"f{index}") if is_tuple else "value"
        unified = typing_context.unify_types(*(types.unliteral(kind) for kind in kinds))
        column = None if unified is None else fields.inferred_format(unified)
        if column is None:
            shown = " or ".join(dict.fromkeys(fields.described(kind) for kind in kinds))
            raise TypingError(plan.refuse(Code.NO_FIELD_KIND, field=name, kind=shown))
        columns.append((name, *column))
    return laid_out("Record", columns)
