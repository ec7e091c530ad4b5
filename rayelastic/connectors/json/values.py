"""Converts values of JSON to those of a schema, one object at a time, or explains why they aren't of it."""

from __future__ import annotations

import decimal
import math
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.casts import cast_column, is_inexact
from rayelastic.connectors.files.texts import bytes_of, has_own_text
from rayelastic.connectors.json.inference import JsonSource
from rayelastic.connectors.json.lines import BadLineError, Number, Twice, kind_of, text_of
from rayelastic.graph.records.conversion import with_nullable_parts
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import Form, members_of, plain_form
from rayelastic.graph.records.shown import shown

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_NUMBER = 4000  # digits
_TEXTS = (
    DataType.DATE32, DataType.DATE64, DataType.TIME32, DataType.TIME64, DataType.TIMESTAMP, DataType.DURATION,
    DataType.UUID,
)  # fmt: skip
_LARGEST = {DataType.FLOAT16: 65504.0, DataType.FLOAT32: 3.4028234663852886e38}


def read_type(kind: pa.DataType) -> pa.DataType:
    """Return the type for pyarrow's reader: times and UUIDs as texts, whose casts are strict; half floats as others."""
    import pyarrow as pa

    if pa.types.is_temporal(kind) or has_own_text(kind):
        return pa.string()
    return pa.float32() if pa.types.is_float16(kind) else kind


class Lines:
    """Converts objects to rows of a source.

    Args:
        body: the source.
    """

    def __init__(self, body: JsonSource) -> None:
        import pyarrow as pa

        self._body = body
        target = body.schema.to_arrow()
        self._columns = {
            column: (field.name, plain_form(field.format), field.nullable, field.name in body.inferred)
            for column, field in zip(body.columns, body.schema.fields, strict=True)
        }
        self._read = [with_nullable_parts(field.type, read_type) for field in target]
        self._wanted = pa.schema([field.with_type(with_nullable_parts(field.type)) for field in target])

    def row(self, values: dict[str, Any]) -> list[Any]:
        """Return the values of an object's fields, converted.

        Raises:
            BadLineError: A value isn't of the schema.
        """
        if isinstance(values, Twice):
            values.check(None if self._body.is_whole else self._columns)
        if self._body.is_whole:
            for name in values:
                if name not in self._columns:
                    raise BadLineError(
                        f"it has a field {name!r}, which the first rows don't have: "
                        f"declare it by types={{{name!r}: ...}}, or choose fields by columns="
                    )
        return [
            _value(values.get(column), form, optional, inferred, column)
            for column, (_, form, optional, inferred) in self._columns.items()
        ]

    def batch(self, rows: list[list[Any]]) -> pa.RecordBatch:
        """Return a batch of such rows."""
        import pyarrow as pa

        columns = [
            cast_column(pa.array([row[at] for row in rows], read), wanted.type)
            for at, (read, wanted) in enumerate(zip(self._read, self._wanted, strict=True))
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._wanted)


def _value(value: Any, form: Form, optional: bool, inferred: bool, name: str) -> Any:
    """Convert a value.

    Raises:
        BadLineError: It isn't of the form.
    """
    if form.kind is DataType.JSON:
        return None if value is None else _json(value)
    if value is None:
        if not optional:
            raise BadLineError(f"field '{name}' is null or absent, but {form.shown} is declared without None")
        return None
    if form.kind is DataType.LIST and isinstance(value, list):
        _, item, may_be_none = form.parts[0]
        return [_value(one, item, may_be_none, inferred, f"{name}[]") for one in value]
    if form.kind is DataType.STRUCT and isinstance(value, dict):
        names = [part for part, _, _ in form.parts]
        if isinstance(value, Twice):
            value.check(None if inferred else names)
        if inferred and (other := next((n for n in value if n not in names), None)) is not None:
            raise BadLineError(
                f"field '{name}' has {other!r}, which the first rows don't have: "
                "types= with rel.Json for it keeps any value"
            )
        return {part: _value(value.get(part), inner, n, inferred, f"{name}.{part}") for part, inner, n in form.parts}
    if form.kind is DataType.MAP and (pairs := _pairs(value, form)) is not None:
        (_, key, _), (_, item, may_be_none) = form.parts
        return [
            (_value(one, key, False, inferred, f"{name} key"), _value(other, item, may_be_none, inferred, f"{name}[]"))
            for one, other in pairs
        ]
    made = None if form.parts else _plain(value, form, inferred)
    if made is None:
        said = (
            f"{kind_of(value)} in field '{name}' doesn't fit"
            if isinstance(value, list | dict)
            else (f"{shown(value)} of field '{name}' doesn't fit the")
        )
        raise BadLineError(
            f"{said} {form.shown}"
            + (", which was inferred from the first rows: declare it by types=" if inferred else "")
        )
    return made


def _pairs(value: Any, form: Form) -> list[Any] | None:
    """Return the keys and values of a map, from an object for text keys, else from a list of pairs; None: it isn't one.

    Raises:
        BadLineError: A key is duplicate.
    """
    if form.parts[0][1].kind is DataType.STRING:
        if isinstance(value, Twice):
            value.check()
        return list(value.items()) if isinstance(value, dict) else None
    if not isinstance(value, list) or not all(isinstance(one, list) and len(one) == 2 for one in value):
        return None
    if len({text_of(key) for key, _ in value}) < len(value):
        raise BadLineError("it has a key twice in one map")
    return value


def _json(value: Any) -> str:
    if isinstance(value, Number) and len(value) > _LONGEST_NUMBER:
        raise BadLineError(f"it has a number of {len(value):,} digits")
    return text_of(value)


def _plain(value: Any, form: Form, inferred: bool) -> Any:
    """Return a value of a form without parts; None if it isn't of it."""
    kind = form.kind
    if kind is DataType.BOOL:
        return value if isinstance(value, bool) else None
    if kind is DataType.ENUM:
        member = int(value) if isinstance(value, Number) and value.is_whole else value
        return member if member in members_of(form) and not isinstance(member, bool) else None
    if kind is DataType.STRING:
        return str(value) if isinstance(value, str) and not (inferred and isinstance(value, Number)) else None
    if kind is DataType.DECIMAL:
        return _decimal(value, form) if isinstance(value, str) else None
    if kind is DataType.BINARY:
        return bytes_of(value) if type(value) is str else None
    if kind in _TEXTS:
        return value if type(value) is str and _is_text_of(value, form) else None
    if not isinstance(value, Number):
        return None
    if kind.is_integer:
        return _whole(value, kind) if value.is_whole else None
    return _float(value, kind, inferred)


def _whole(value: Number, kind: DataType) -> int | None:
    bits, signed = 8 * kind.size, not kind.value.startswith("u")
    if len(value) > 20:
        return None
    number = int(value)
    return number if (-(1 << bits - 1) if signed else 0) <= number < 1 << bits - signed else None


def _float(value: Number, kind: DataType, inferred: bool) -> float | None:
    number = float(value)
    if inferred and is_inexact(value.encode()):
        return None
    is_beyond = math.isinf(number) or (math.isfinite(number) and abs(number) > _LARGEST.get(kind, math.inf))
    return None if is_beyond and not value.endswith("y") else number


def _decimal(value: str, form: Form) -> decimal.Decimal | None:
    precision, scale = map(int, form[2:].split(","))
    context = decimal.Context(prec=precision + 1, traps=[decimal.InvalidOperation])
    try:
        number = decimal.Decimal(value, context)
        made = number.quantize(decimal.Decimal(1).scaleb(-scale), context=context)
    except decimal.InvalidOperation:
        return None
    is_same = made == number and len(made.as_tuple().digits) <= precision and "_" not in value
    return made if is_same else None


def _is_text_of(value: str, form: Form) -> bool:
    import pyarrow as pa

    try:
        cast_column(pa.array([value]), form.arrow)
    except (pa.ArrowException, ValueError):
        return False
    return True
