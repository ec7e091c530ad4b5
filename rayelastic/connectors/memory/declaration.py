"""Tuples in memory: a source of rows, and the sinks that collect or count them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import GenericAlias
from typing import Any, ClassVar, TypeVar, overload

from rayelastic.connectors.description import EDGE_ROWS, Content, Sink, Source
from rayelastic.connectors.typed import Declared, N, Plain, Value
from rayelastic.errors import ErrorCode, SchemaError, SourceError
from rayelastic.graph.records.record_classes import field_names, values_by_name
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.operator_spec import Lane, OperatorSpec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowsSource(Source[T]):
    """A collection of tuples."""

    unit: ClassVar[str] = "rows"
    seeks: ClassVar[bool] = True

    rows: tuple[tuple[Any, ...], ...] = field(repr=False)
    schema: Schema
    lane: Lane = Lane.PYTHON
    passes_objects = True

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"{len(self.rows)} Python tuples"

    def check(self, operator: str) -> None:
        """Raise SourceError that names the first row whose length isn't that of the schema."""
        width = len(self.schema.fields)
        for i, row in enumerate(self.rows):
            if not _fits(row, width):
                raise SourceError(
                    f"row {i} is {shown(row)}, which isn't a tuple of the {width} fields of {self.schema}",
                    operator=operator,
                    hint="Pass each row as a tuple with one value per field",
                    code=ErrorCode.SCHEMA_MISMATCH,
                )

    def contents(self) -> Sequence[Content]:
        """Return the rows."""
        rows = self.rows
        return [Content(len(rows), EDGE_ROWS, lambda a, b: repr([tuple(row) for row in rows[a:b]]).encode())]

    def is_shorter_than(self, position: int) -> bool:
        """Return whether there are fewer rows."""
        return len(self.rows) < position


@overload
def rows(rows: Iterable[Any], schema: type[N]) -> RowsSource[N]: ...


@overload
def rows(rows: Iterable[Any], schema: type[Plain]) -> RowsSource[Value[Plain]]: ...


@overload
def rows(rows: Iterable[Any], schema: type[Mapping[str, Any]]) -> RowsSource[Any]: ...


@overload
def rows(rows: Iterable[Any], schema: type[T]) -> RowsSource[T]: ...


@overload
def rows(rows: Iterable[Mapping[str, Any]], schema: None = None) -> RowsSource[Any]: ...


@overload
def rows(rows: Iterable[T], schema: None = None) -> RowsSource[T]: ...


@overload
def rows(rows: Iterable[Any], schema: Declared) -> RowsSource[Any]: ...


def rows(rows: Iterable[Any], schema: object = None) -> RowsSource[Any]:
    """Make a source of tuples in memory.

    Args:
        rows: Tuples, one value per field; or mappings that have the fields by name, or instances of dataclasses and
            other classes with typed fields. A nullable field may be missing. Or plain values of one field.
        schema: Their schema; unnecessary for instances of classes, mappings and plain values, which have types. The
            field of plain values is then `value`.

    Raises:
        SchemaError: No schema, and none can be inferred from the first row; or a mapping or an instance has other
            fields.

    >>> print(rows([("a", 1), ("b", 2)], {"word": str, "count": int}).schema)
    Record(word: string, count: int64)
    >>> rows([{"count": 1, "word": "a"}], {"word": str, "count": int}).rows
    (('a', 1),)
    >>> print(rows(["to be", "or not to be"]).schema)
    Record(value: string)
    """
    kept = tuple(rows)
    if schema is None:
        schema = _schema_of(kept)
    columns = Schema.of(schema)
    checked_rows = (
        row if isinstance(row, tuple) else _in_order(number, row, columns) for number, row in enumerate(kept)
    )
    return RowsSource(tuple(checked_rows), columns)


def _schema_of(rows: tuple[Any, ...]) -> object:
    """Infer the schema of rows: their class, or the types of the values of mappings."""
    first = rows[0] if rows else None
    if hasattr(first, "_fields") or field_names(type(first)) is not None:
        return type(first)
    if not rows or isinstance(first, tuple):
        what = "the fields of plain tuples" if rows else "a schema from no rows"
        raise SchemaError(
            f"rel.rows can't infer {what}",
            hint="Pass schema={field: type}, or NamedTuples, dicts or dataclasses",
            code=ErrorCode.NO_SCHEMA,
        )
    if not isinstance(first, Mapping):
        return {"value": _type_of("value", rows)}
    columns: dict[Any, builtins.list[Any]] = {}
    for row in rows:
        if not isinstance(row, Mapping) or row.keys() != first.keys():
            break  # the schema's check raises the error
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return {name: _type_of(name, values) for name, values in columns.items()}


def _type_of(name: Any, values: Iterable[Any]) -> Any:
    """Return the type of a column, in which some values may be None, or lists of values of one type."""
    kept = builtins.list(values)
    found = {type(value) for value in kept}
    kinds = found - {type(None)}
    if kinds == {builtins.list}:
        kind: Any = GenericAlias(builtins.list, (_type_of(name, [item for value in kept for item in value or ()]),))
    elif len(kinds) != 1 or kinds <= {dict, tuple}:
        shown = " and ".join(sorted(kind.__name__ for kind in found)) or "no value"
        raise SchemaError(
            f"rel.rows can't infer the type of field {name!r}: its values are {shown}",
            hint="Pass schema={field: type}",
            code=ErrorCode.NO_SCHEMA,
        )
    else:
        kind = kinds.pop()
    return kind | None if type(None) in found else kind


def _in_order(number: int, row: Any, schema: Schema) -> Any:
    """Return the values of a mapping or an instance in the order of the fields; anything else unchanged."""
    named = values_by_name(row)
    if named is None:
        return (row,) if len(schema.fields) == 1 else row
    missing = [f.name for f in schema.fields if f.name not in named and not f.nullable]
    surplus = [name for name in named if schema.find(name) is None]
    if missing or surplus:
        what = f"has no field {missing[0]!r}" if missing else f"has the field {surplus[0]!r}"
        raise SchemaError(
            f"row {number} {what}, its schema is {schema}",
            hint="Pass rows with these fields and no others",
            code=ErrorCode.SCHEMA_MISMATCH,
        )
    return tuple(named.get(name) for name in schema.names)


def _fits(row: object, width: int) -> bool:
    return isinstance(row, tuple) and len(row) == width


@dataclass(frozen=True, slots=True)
class ListSink(Sink):
    """Collects tuples into a Python list."""

    shows_rows: ClassVar[bool] = False

    lane: Lane = Lane.BUILT_IN
    reason: str = "native conversion to Arrow batches, tuples when they are asked for"


@dataclass(frozen=True, slots=True)
class CountSink(Sink):
    """Counts tuples and drops them."""

    shows_rows: ClassVar[bool] = False

    lane: Lane = Lane.BUILT_IN
    reason: str = "native counter"

    def reads(self, spec: OperatorSpec, port: int) -> tuple[()]:  # noqa: ARG002
        """Return no field."""
        return ()


def list() -> ListSink:  # noqa: A001  (the public name is rel.list)
    """Collect the tuples into a list, which is the job's result under the sink's name.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("numbers")
    >>> topology.source(rel.sequence(2)).sink(rel.list(), name="out")
    <sink out>
    >>> rel.run(topology)["out"]
    [Sequence(value=0), Sequence(value=1)]
    """
    return ListSink()
