"""Texts of values that Arrow's casts don't support: UUIDs, durations in ISO 8601, bytes in base64."""

from __future__ import annotations

import base64
import datetime as dt
import re
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ISO = re.compile(  # also as pandas and Java write it, with a sign for each part
    r"([+-]?)P(?:([+-]?\d{1,18})W)?(?:([+-]?\d{1,18})D)?"
    r"(?:T(?=[+\d-])(?:([+-]?\d{1,18})H)?(?:([+-]?\d{1,18})M)?(?:([+-]?\d{1,18})(?:[.,](\d{1,9}))?S)?)?"
)
_CLOCK = re.compile(  # as pandas, DuckDB and Python's str write it: '-3 days +00:00:01', '71:59:59.5', '1 day, 2:03:04'
    r"(?:([+-]?\d{1,18}) days?)?(?:(?:,? |^)([+-]?)(\d{1,18}):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?"
)
_SECONDS = (604_800, 86_400, 3600, 60, 1)  # of a week, a day, an hour, a minute and a second
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # of a second
_MOST = 1 << 63


def has_own_text(kind: pa.DataType) -> bool:
    """Return whether this module reads and writes values of a type."""
    import pyarrow as pa

    return pa.types.is_duration(kind) or _is_uuid(kind)


def of_texts(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Read a column of texts.

    Raises:
        ValueError: a text isn't of the type, or is finer than its unit.
    """
    import pyarrow as pa

    if _is_uuid(kind):
        return pa.ExtensionArray.from_storage(kind, _each(column, _uuid_bytes, pa.binary(16)))
    ticks = _TICKS[kind.unit]
    return _each(column, lambda text: _ticks_of(text, ticks), pa.int64()).cast(kind)


def to_texts(column: pa.Array) -> pa.Array:
    """Write a column as texts."""
    import pyarrow as pa

    if _is_uuid(column.type):
        return _each(column.storage, lambda value: str(uuid.UUID(bytes=value)), pa.string())
    ticks = _TICKS[column.type.unit]
    return _each(column.cast(pa.int64()), lambda value: _duration_text(value, ticks), pa.string())


def bytes_of(text: str) -> bytes | None:
    """Read base64 (RFC 4648, padded); None if the text isn't."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def base64_of(value: bytes) -> str:
    """Write bytes in base64.

    >>> base64_of(b"cafe"), bytes_of("Y2FmZQ=="), bytes_of("caf!")
    ('Y2FmZQ==', b'cafe', None)
    """
    return base64.b64encode(value).decode()


def duration_text(value: dt.timedelta) -> str:
    """Write a duration in ISO 8601, with nanoseconds for a pandas Timedelta."""
    micros = (value.days * 86_400 + value.seconds) * 10**6 + value.microseconds
    return _duration_text(micros * 1000 + getattr(value, "nanoseconds", 0), _TICKS["ns"])


def _is_uuid(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return isinstance(kind, pa.UuidType)


def _each(column: pa.Array, function: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    return pa.array([None if value is None else function(value) for value in column.to_pylist()], kind)


def _uuid_bytes(text: str) -> bytes:
    if _UUID.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no UUID, such as '01234567-89ab-cdef-0123-456789abcdef'")
    return uuid.UUID(text).bytes


def _ticks_of(text: str, ticks: int) -> int:
    """Convert a duration into units.

    >>> _ticks_of("P1DT2H3M4.5S", 1000), _ticks_of("-PT0.000001S", 10**6), _ticks_of("-1 days +23:00:00", 1)
    (93784500, -1, -3600)
    """
    nanos = _nanoseconds(text)
    if nanos is None:
        raise ValueError(f"{text!r} is no duration, such as 'P1DT2H3M4.5S' or '1 day 02:03:04.5'")
    total, left = divmod(nanos * ticks, 10**9)
    if left or not -_MOST <= total < _MOST:
        raise ValueError(f"{text!r} is finer than its type, or beyond it")
    return total


def _nanoseconds(text: str) -> int | None:
    if (iso := _ISO.fullmatch(text)) is not None and any(iso.groups()[1:]):
        sign, *parts, fraction = iso.groups()
        seconds = sum(int(part or 0) * each for part, each in zip(parts, _SECONDS, strict=True))
        finer = _fraction(fraction) * (-1 if (parts[-1] or "").startswith("-") else 1)
        return (seconds * 10**9 + finer) * (-1 if sign == "-" else 1)
    if (clock := _CLOCK.fullmatch(text)) is not None and text:
        days, sign, hours, minutes, last, fraction = clock.groups()
        seconds = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(last or 0)
        within = (seconds * 10**9 + _fraction(fraction)) * (-1 if sign == "-" else 1)
        return int(days or 0) * _SECONDS[1] * 10**9 + within
    return None


def _fraction(digits: str | None) -> int:
    return int((digits or "").ljust(9, "0"))


def _duration_text(count: int, ticks: int) -> str:
    """Write a number of units as a duration.

    >>> _duration_text(93784500, 1000), _duration_text(-1, 10**6), _duration_text(0, 1)
    ('P1DT2H3M4.5S', '-PT0.000001S', 'PT0S')
    """
    whole, left = divmod(abs(count), ticks)
    fraction = f"{left * (10**9 // ticks):09}".rstrip("0")
    days, seconds = divmod(whole, _SECONDS[1])
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    last = f"{seconds}.{fraction}" if fraction else f"{seconds}" if seconds else ""
    clock = "".join(f"{n}{unit}" for n, unit in ((hours or "", "H"), (minutes or "", "M"), (last, "S")) if n)
    text = (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
    return f"{'-' if count < 0 else ''}P{text or 'T0S'}"
