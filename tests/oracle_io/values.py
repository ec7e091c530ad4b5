"""Values of every type at its edges, each with what it is written as: what a reader of texts has to make of a text."""

# ruff: noqa: DTZ001, E501  (tables of values, and times without a zone)

from __future__ import annotations

import datetime as dt
import enum
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

BAD = "not of the type"  # in place of a value
D18 = Decimal(1).scaleb(-18)


class Side(enum.Enum):
    BUY = "buy"
    SELL = 's e,l"l'


@dataclass(frozen=True)
class Kind:
    """A type that a field is declared with.

    Args:
        declared: it.
        texts: (what is written, the value that it stands for, or BAD).
        is_number: whether JSON writes it without quotes.
        numbers: of JSON alone, as texts.
    """

    declared: Any
    texts: tuple[tuple[str, Any], ...]
    is_number: bool = False
    json: tuple[tuple[str, Any], ...] = field(default=())
    csv: tuple[tuple[str, Any], ...] = field(default=())


def _integers(bits: int, *, signed: bool) -> tuple[tuple[str, Any], ...]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    good = {low, low + 1, 0, 1, 7, high - 1, high}
    bad = (str(low - 1), str(high + 1), "1.0", "1e3", "0.5", "-1.5", "9" * 30)
    return (*((str(n), n) for n in sorted(good)), *((text, BAD) for text in bad))


def _moment(text: str, unit: str = "us", zone: str | None = None) -> Any:
    return pa.scalar(np.array([text], f"datetime64[{unit}]").astype("int64")[0].item()).cast(pa.timestamp(unit, zone))


NAN = float("nan")
FLOATS = (
    ("1.5", 1.5), ("-0.0", -0.0), ("0", 0.0), ("5", 5.0), ("1e3", 1000.0), ("1.7976931348623157e308", 1.7976931348623157e308),
    ("5e-324", 5e-324), ("0.1", 0.1), ("9007199254740993", 9007199254740992.0), ("2.5E-3", 0.0025), ("1e400", BAD), ("-1e309", BAD),
    ("123456789012345678901234567890", 1.2345678901234568e29), ("0.30000000000000004", 0.30000000000000004),
)  # fmt: skip
FLOATS_32 = (
    ("1.5", 1.5), ("0.1", float(np.float32(0.1))), ("3.4028234e38", float(np.float32(3.4028234e38))), ("3.5e38", BAD), ("-1e39", BAD),
    ("16777217", 16777216.0), ("-0.0", -0.0),
)  # fmt: skip
DATES = (
    ("2024-02-29", dt.date(2024, 2, 29)), ("1969-12-31", dt.date(1969, 12, 31)), ("0001-01-01", dt.date(1, 1, 1)),
    ("9999-12-31", dt.date(9999, 12, 31)), ("2023-02-29", BAD), ("2024-13-01", BAD), ("yesterday", BAD), ("2024-01-01T00:00:00", BAD),
)  # fmt: skip
TIMES = (
    ("2024-02-29T12:30:00", dt.datetime(2024, 2, 29, 12, 30)), ("2024-02-29 12:30:00.5", dt.datetime(2024, 2, 29, 12, 30, 0, 500000)),
    ("1969-12-31T23:59:59.999999", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)), ("0001-01-01T00:00:00", dt.datetime(1, 1, 1)),
    ("9999-12-31T23:59:59.999999", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)), ("2024-02-29", dt.datetime(2024, 2, 29)),
    ("2024-02-29T12:30:00Z", BAD), ("2024-02-29T12:30:00+02:00", BAD), ("2024-02-29T12:30:00.1234567", BAD), ("2024-02-30T00:00:00", BAD),
    ("2024-02-29T24:00:00", BAD), ("2024-02-29T12:60:00", BAD), ("noon", BAD),
)  # fmt: skip
NANO = (
    ("2024-02-29T12:30:00.123456789", _moment("2024-02-29T12:30:00.123456789", "ns").as_py()),
    ("1677-09-21T00:12:44", _moment("1677-09-21T00:12:44", "ns").as_py()),
    ("2262-04-11T23:47:16.854775807", _moment("2262-04-11T23:47:16.854775807", "ns").as_py()),
    ("2262-04-11T23:47:17", BAD), ("1600-01-01T00:00:00", BAD), ("9999-12-31T00:00:00", BAD),
)  # fmt: skip
ZONED = (
    ("2024-07-01T12:30:00Z", dt.datetime(2024, 7, 1, 12, 30, tzinfo=dt.UTC)),
    ("2024-07-01T12:30:00+02:00", dt.datetime(2024, 7, 1, 10, 30, tzinfo=dt.UTC)),
    ("2024-12-31T23:59:59.5-05:00", dt.datetime(2025, 1, 1, 4, 59, 59, 500000, tzinfo=dt.UTC)),
    ("2024-07-01T12:30:00", BAD), ("2024-07-01", BAD),
)  # fmt: skip
CLOCK = (
    ("12:30:00", dt.time(12, 30)), ("00:00:00", dt.time(0)), ("23:59:59.999999", dt.time(23, 59, 59, 999999)), ("24:00:00", BAD),
    ("12:30:60", BAD), ("noon", BAD),
)  # fmt: skip
DECIMALS = (
    ("1.5", Decimal("1.5")), ("-0.000000000000000001", -D18), ("99999999999999999999.999999999999999999", Decimal("99999999999999999999.999999999999999999")),
    ("0", Decimal(0)), ("1e2", Decimal(100)), ("100000000000000000000", BAD), ("0.1234567890123456789", BAD), ("1e300", BAD),
)  # fmt: skip
SHORT = (("1.25", Decimal("1.25")), ("-999.99", Decimal("-999.99")), ("1000", BAD), ("0.001", BAD), ("7", Decimal(7)))
DURATIONS = (
    ("P1DT2H3M4.5S", dt.timedelta(1, 7384, 500000)), ("-PT0.000001S", dt.timedelta(microseconds=-1)), ("PT0S", dt.timedelta(0)),
    ("-3 days +00:00:00.000001", dt.timedelta(-3, 0, 1)), ("1 day, 2:03:04", dt.timedelta(1, 7384)), ("P100000D", dt.timedelta(100_000)),
    ("P1Y", BAD), ("5", BAD), ("1.5", BAD), ("PT0.0000001S", BAD), ("P300000000D", BAD), ("an hour", BAD),
)  # fmt: skip
IDS = (
    ("00000000-0000-0000-0000-000000000007", uuid.UUID(int=7)), ("ffffffff-FFFF-ffff-ffff-fffffffffffF", uuid.UUID(int=(1 << 128) - 1)),
    ("7", BAD), ("00000000-0000-0000-0000-00000000000g", BAD), ("00000000000000000000000000000007", BAD),
)  # fmt: skip
TEXTS = tuple(
    (text, text)
    for text in ("", "x", " x ", "NA", "null", "nan", "true", "007", "1.50", "1e5", "é", "日本", "😀", "a,b", 'say "hi"', "a\nb", "a\r\nb", "'", ";",
                 "\t", "#x", "\\", "\\N", "a\\", "x" * 300, "2024-01-01", "12:30:00", "0x1F", "+5", "-", "99999999999999999999", "{}", "\u2028", "\x7f")
)  # fmt: skip
TRUTHS = (("true", True), ("false", False))

KINDS: dict[str, Kind] = {
    **{
        f"{'' if signed else 'u'}int{bits}": Kind(getattr(np, f"{'' if signed else 'u'}int{bits}"), _integers(bits, signed=signed), True)
        for bits in (8, 16, 32, 64)
        for signed in (True, False)
    },
    "int": Kind(int, _integers(64, signed=True), True, json=(("-0", 0), ("true", BAD), ('"5"', BAD)), csv=((" 12 ", 12), ("x", BAD), ("007", 7))),
    "float": Kind(float, FLOATS, True, json=(("NaN", NAN), ("Infinity", float("inf")), ("-Infinity", float("-inf")), ('"1.5"', BAD)),
                  csv=(("nan", NAN), ("inf", float("inf")), ("-inf", float("-inf")), ("x", BAD), (" 2.5", 2.5))),
    "float32": Kind(np.float32, FLOATS_32, True),
    "float16": Kind(np.float16, (("1.5", 1.5), ("65504", 65504.0), ("70000", BAD), ("0.25", 0.25)), True),
    "bool": Kind(bool, TRUTHS, True, json=(("1", BAD), ('"true"', BAD)), csv=(("0", False), ("1", True), ("True", True), ("FALSE", False), ("yes", BAD), ("2", BAD))),
    "str": Kind(str, TEXTS, json=(("1.50", "1.50"), ("18446744073709551616", "18446744073709551616"), ("true", BAD), ("[]", BAD), ("{}", BAD), ('"\\ud83d\\ude00"', "😀"),
                                  ('"\\u0000"', "\0"), ('"\\ud800"', BAD), ('"\\/"', "/"))),
    "date": Kind(dt.date, DATES),
    "datetime": Kind(dt.datetime, TIMES, json=(("1704067200", BAD),)),
    "timestamp_ns": Kind(pa.timestamp("ns"), NANO),
    "timestamp_s": Kind(pa.timestamp("s"), (("2024-02-29T12:30:00", dt.datetime(2024, 2, 29, 12, 30)), ("2024-02-29T12:30:00.5", BAD))),
    "timestamp_utc": Kind(pa.timestamp("us", "UTC"), ZONED),
    "time": Kind(dt.time, CLOCK),
    "decimal": Kind(Decimal, DECIMALS, True, json=(('"1.5"', Decimal("1.5")), ('"x"', BAD), ("true", BAD))),
    "decimal_5_2": Kind(pa.decimal128(5, 2), SHORT, True),
    "duration": Kind(dt.timedelta, DURATIONS, json=(("5", BAD), ("1.5", BAD), ("[]", BAD))),
    "uuid": Kind(uuid.UUID, IDS, json=(("7", BAD), ("{}", BAD))),
    "enum": Kind(Side, (("buy", "buy"), ("s e,l\"l", "s e,l\"l"), ("hold", BAD), ("", BAD))),
}  # fmt: skip

# What is written where nothing is declared, a group a column: a reader may infer what it likes as long as it means the same.
GROUPS: dict[str, tuple[str, ...]] = {
    "whole": ("0", "1", "-1", "42", "9007199254740992", "9223372036854775807", "-9223372036854775808"),
    "too wide": ("1", "18446744073709551615", "9223372036854775808", "123456789012345678901234567890"),
    "whole and fractions": ("1.5", "9007199254740993", "9007199254740992", "7", "-0.0", "0.1"),
    "fractions": ("1.5", "-0.0", "0.1", "1e3", "5e-324", "0.30000000000000004", "123.456", "1e400"),
    "truths": ("true", "false"),
    "texts": tuple(text for text, _ in TEXTS),
    "digits": ("007", "01234", "12", "0x1F", "+5", "0", "00"),
    "dates": ("2024-02-29", "1969-12-31", "0001-01-01"),
    "moments": ("2024-02-29T12:30:00", "2024-02-29 12:30:00", "2024-02-29T12:30:00.5", "2024-02-29T12:30:00Z", "2024-02-29T12:30:00.123456789"),
    "clocks": ("12:30:00", "23:59:59", "00:00"),
    "nothing": ("",),
    "mixed": ("1", "x", "1.5", "true", "2024-01-01", ""),
}  # fmt: skip
NAMES = (
    "a", "b", "n", "value", "é", "名", "@timestamp", "user-agent", "class", "order id", "_links", "1x", "", "a.b", "None", "line\nend", "quote\"d",
    "x" * 80, "count", "index", "A", "a b",
)  # fmt: skip
