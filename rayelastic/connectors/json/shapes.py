"""The types of fields of JSON objects, inferred so that reading a value as that type doesn't change it.

Texts stay texts, whatever they look like. Fields that are null in all rows are texts, as in all formats.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.casts import is_inexact
from rayelastic.connectors.json.lines import Number, kind_of
from rayelastic.errors import ErrorCode, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

_INT64 = range(-(1 << 63), 1 << 63)
_LONG = 4000  # digits that Python converts to an int


@dataclass(slots=True)
class Shape:
    """The kinds of values that a field has.

    Args:
        rows: {kind of value: the number of the first row that has it}.
        wide: A whole number that a float doesn't hold exactly, and its row.
        beyond: A whole number beyond 64 bits, and its row.
        item: The shape of a list's items.
        fields: The shapes of an object's fields.
    """

    rows: dict[str, int] = field(default_factory=dict)
    wide: tuple[str, int] | None = None
    beyond: tuple[str, int] | None = None
    item: Shape | None = None
    fields: dict[str, Shape] = field(default_factory=dict)

    def add(self, value: Any, row: int) -> None:
        """Add a value."""
        if value is None:
            return
        kind = kind_of(value)
        if isinstance(value, Number):
            kind = "a whole number" if value.is_whole else "a number"
            if kind == "a whole number" and len(value) > 15:
                self._add_whole(value, row)
        self.rows.setdefault(kind, row)
        if isinstance(value, list):
            self.item = self.item or Shape()
            for value_of in value:
                self.item.add(value_of, row)
        elif isinstance(value, dict):
            for name, value_of in value.items():
                self.fields.setdefault(name, Shape()).add(value_of, row)

    def _add_whole(self, value: Number, row: int) -> None:
        if len(value) > _LONG or is_inexact(value.encode()):
            self.wide = self.wide or (value, row)
        if len(value) > _LONG or int(value) not in _INT64:
            self.beyond = self.beyond or (value, row)

    def type_of(self, name: str, path: str, field: str) -> pa.DataType:
        """Return the type that holds the values unchanged.

        Args:
            name: The field's name, with those of the objects around it: 'user.id'.
            path: The file, as messages show it.
            field: The tuple's field that holds it.

        Raises:
            SchemaError: There is no such type.
        """
        import pyarrow as pa

        kinds = set(self.rows)
        if "a number" in kinds:
            kinds.discard("a whole number")
        if len(kinds) > 1:
            said = " and ".join(f"{kind} in row {row:,}" for kind, row in self.rows.items())
            raise SchemaError(f"{path!r}: field '{name}' is {said}", hint=_json(field), code=ErrorCode.NO_SCHEMA)
        is_float = kinds == {"a number"} or self.beyond is not None
        if is_float and self.wide is not None:
            number, row = self.wide
            both = "neither 64-bit integers nor floats hold"
            said = both if self.beyond == self.wide else "floats don't hold, and others that aren't whole"
            raise SchemaError(
                f"{path!r}: field '{name}' has {_short(number)} in row {row:,}, which {said}",
                hint=f"Say what it is: types={{{field!r}: str}}, Decimal, or float to have it rounded; "
                "rel.Json keeps any value",
                code=ErrorCode.NO_SCHEMA,
            )
        match next(iter(kinds), None):
            case "a whole number" if not is_float:
                return pa.int64()
            case "a number" | "a whole number":
                return pa.float64()
            case "a truth value":
                return pa.bool_()
            case "a list":
                return pa.list_(self.item.type_of(f"{name}[]", path, field) if self.item is not None else pa.string())
            case "an object":
                return self._struct(name, path, field)
        return pa.string()

    def _struct(self, name: str, path: str, field: str) -> pa.DataType:
        import pyarrow as pa

        if not self.fields:
            raise SchemaError(
                f"{path!r}: field '{name}' is an object without fields", hint=_json(field), code=ErrorCode.NO_SCHEMA
            )
        return pa.struct([(part, shape.type_of(f"{name}.{part}", path, field)) for part, shape in self.fields.items()])


def _json(field: str) -> str:
    return f"Say what it is: types={{{field!r}: rel.Json}} keeps any value"


def _short(number: str) -> str:
    return number if len(number) < 60 else f"{number[:40]}... of {len(number):,} digits"


def shapes_of(rows: Iterable[tuple[int, dict[str, Any]]]) -> dict[str, Shape]:
    """Return {field: its shape} of numbered objects, fields in the order of their first row."""
    shapes: dict[str, Shape] = {}
    for number, row in rows:
        for name, value in row.items():
            shapes.setdefault(name, Shape()).add(value, number)
    return shapes
