"""Converts pyarrow's values into those of a form: members of enums, named tuples, dataclasses, dicts, objects."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from typing import Any

from rayelastic.errors import ErrorCode, SinkError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import Form, plain_form
from rayelastic.graph.records.schema import Schema, generated_type
from rayelastic.graph.records.sealing import Seal

Reader = Callable[[Any], Any]


def tuples_of(table: Any, schema: Schema, operator: str) -> list[Any]:
    """Return the rows of a pyarrow table of a schema, as tuples of its class; errors name the operator.

    Raises:
        SinkError: Python has no such value.
    """
    columns = []
    for column, field in zip(table.columns, schema.fields, strict=True):
        reader = reader_of(plain_form(field.format), generated_type)
        try:
            values = column.to_pylist()
        except OverflowError as error:
            raise SinkError(
                f"field '{field.name}' of {schema.name} has a time that a datetime can't hold ({error})",
                operator=operator,
                hint="Write it to a file, or pass the event time as a number",
                code=ErrorCode.UNWRITABLE_VALUE,
            ) from error
        columns.append(values if reader is None else [reader(value) for value in values])
    return list(map(schema.tuple_type, *columns))


def reader_of(form: Form, generated: Callable[[str, tuple[str, ...]], type]) -> Reader | None:
    """Return a function from a value of `to_pylist()` to one of the form; None if they are the same.

    Args:
        form: The values' form.
        generated: Makes the class of a struct that has none.
    """
    inner = [(name, reader_of(part, generated)) for name, part, _ in form.parts]
    if form.kind is DataType.LIST:
        return _list_reader(form.of is tuple, inner[0][1])
    if form.kind is DataType.MAP:
        key, value = (reader for _, reader in inner)
        return _present(lambda given: {_read(key, k): _read(value, v) for k, v in given})
    if form.kind is DataType.STRUCT:
        cls: Any = form.cls or generated("Struct", tuple(name for name, _ in inner))
        return _present(lambda given: cls(*[_read(reader, given[name]) for name, reader in inner]))
    if form.kind is DataType.ENUM and form.cls is not None:
        return _member_reader(form.cls)
    if form.kind is DataType.JSON:
        return _present(json.loads)
    return _present(form.of.opened) if isinstance(form.of, Seal) else None


def _list_reader(as_tuple: bool, item: Reader | None) -> Reader | None:
    if item is None:
        return _present(tuple) if as_tuple else None
    container: Any = tuple if as_tuple else list
    return _present(lambda given: container(map(item, given)))


def _member_reader(cls: Any) -> Reader:
    members: list[enum.Enum] = list(cls)
    plain = all(type(m.value) is int for m in members) or all(isinstance(m.value, str) for m in members)
    known: dict[Any, enum.Enum] = {m.value if plain else m.name: m for m in members}
    return _present(known.__getitem__)


def _present(reader: Reader) -> Reader:
    return lambda given: None if given is None else reader(given)


def _read(reader: Reader | None, value: Any) -> Any:
    return value if reader is None else reader(value)
