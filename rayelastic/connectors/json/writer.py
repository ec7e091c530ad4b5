"""Writes Arrow batches as lines of JSON, or of the one text of each row."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.texts import base64_of, duration_text
from rayelastic.errors import ErrorCode, SinkError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import Form, plain_form
from rayelastic.graph.records.shown import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.records.schema import Schema

_MINUTE, _DAY = dt.timedelta(minutes=1), dt.timedelta(days=1)
COPY_BYTES = 1 << 20  # the size of a read when a file is copied


class JsonFormat:
    """JSON, an object per line; implements FileFormat.

    Args:
        schema: The schema of the rows.
    """

    suffix = ".jsonl"

    def __init__(self, schema: Schema) -> None:
        self._forms = {field.name: plain_form(field.format) for field in schema.fields}

    def begin(self, file: Any) -> JsonWriter:
        """Return a writer."""
        return JsonWriter(file, self._forms)

    def copy(self, before: Any, rows: int, writer: Any, file: Any) -> None:  # noqa: ARG002  (it keeps nothing back)
        """Copy bytes."""
        left = _lines(before, rows)
        before.seek(0)
        while left > 0 and (piece := before.read(min(COPY_BYTES, left))):
            file.write(piece)
            left -= len(piece)


class TextFormat(JsonFormat):
    """The one text of each row, a line each."""

    suffix = ".txt"

    def begin(self, file: Any) -> TextWriter:
        """Return a writer."""
        return TextWriter(file, self._forms)


class JsonWriter:
    """Writes batches to an open file.

    Args:
        file: A file with `write`.
        forms: The fields' forms, by name.
    """

    def __init__(self, file: Any, forms: dict[str, Form]) -> None:
        self._file = file
        self._forms = {name: form for name, form in forms.items() if _differs(form)}

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write the rows, each with its line end."""
        rows, forms = batch.to_pylist(), self._forms
        if forms:
            lines = [_object((_text_of(name), _text_of(v, forms.get(name))) for name, v in row.items()) for row in rows]
        else:
            lines = [_text_of(row) for row in rows]
        self._file.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Do nothing, because everything is written."""


class TextWriter(JsonWriter):
    """Writes batches of one column of texts."""

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write the texts, each with its line end.

        Raises:
            SinkError: a text has a line end in it, so it would be read as two.
        """
        texts = [text or "" for text in batch.column(0).to_pylist()]
        if broken := next((text for text in texts if "\n" in text or "\r" in text), None):
            raise SinkError(f"a line end in the text {shown(broken)}", hint="Write it by rel.json, or replace it")
        self._file.write("".join(f"{text}\n" for text in texts).encode())


def _differs(form: Form) -> bool:
    """Return whether Python's json would write it differently, or not at all."""
    return form.kind in (DataType.JSON, DataType.MAP) or any(_differs(part) for _, part, _ in form.parts)


def _text_of(value: Any, form: Form | None = None) -> str:
    """Return a value as JSON: JSON text unchanged, maps with text keys as objects.

    Args:
        value: Arrow's Python value.
        form: Its form; None: Python's json can write it.

    Raises:
        SinkError: A text that should be JSON isn't, or is nested too deep.
    """
    if value is None:
        return "null"
    if form is None or not _differs(form):
        return json.dumps(value, ensure_ascii=False, default=_text)
    if form.kind is DataType.JSON:
        return _checked(value)
    parts = [part for _, part, _ in form.parts]
    if form.kind is DataType.MAP and parts[0].kind is DataType.STRING:
        return _object((_text_of(key), _text_of(item, parts[1])) for key, item in dict(value).items())
    if form.kind is DataType.MAP:
        return _list(_list((_text_of(key, parts[0]), _text_of(item, parts[1]))) for key, item in value)
    if form.kind is DataType.LIST:
        return _list(_text_of(item, parts[0]) for item in value)
    return _object((_text_of(name), _text_of(value[name], part)) for name, part, _ in form.parts)


def _checked(text: str) -> str:
    """Return JSON text on one line, with its numbers unchanged."""
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_json)
    except (ValueError, RecursionError) as error:
        problem = "is nested too deep" if isinstance(error, RecursionError) else f"isn't JSON: {error}"
        raise SinkError(
            f"a value of rel.Json {problem}: {shown(text)}", hint="Write it as a str", code=ErrorCode.UNWRITABLE_VALUE
        ) from None
    return text.replace("\n", " ").replace("\r", " ")


def _no_json(constant: str) -> None:
    raise ValueError(f"it has {constant}")


def _object(fields: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in fields) + "}"


def _list(items: Iterable[str]) -> str:
    return "[" + ", ".join(items) + "]"


def _text(value: Any) -> Any:
    """Return the JSON replacement of a value that JSON lacks."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None and (value.utcoffset() or _DAY) % _MINUTE:
        value = value.astimezone(dt.UTC)  # before 1900, offsets have seconds, which ISO 8601 can't write
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        return base64_of(value)
    if isinstance(value, dt.timedelta):
        return duration_text(value)
    raise TypeError(f"{value!r} can't be written as JSON")


def _lines(file: Any, lines: int) -> int:
    """Return where so many lines end, in bytes; the end of the file if there are fewer."""
    at, seen = 0, 0
    if lines == 0:
        return 0
    while piece := file.read(COPY_BYTES):
        ends = piece.count(b"\n")
        if seen + ends >= lines:
            inside = -1
            for _ in range(lines - seen):
                inside = piece.index(b"\n", inside + 1)
            return at + inside + 1
        at, seen = at + len(piece), seen + ends
    return at
