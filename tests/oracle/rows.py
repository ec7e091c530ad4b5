"""Adversarial tuples: the fields that programs may read, and values on which two implementations may part.

Knows nothing of programs but the constants in them, which it puts into the tuples, so that comparisons are met.
"""

# ruff: noqa: DTZ001 -- a record's times have no zone

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

FIELDS = {  # name: letter of its type, annotation
    "s": ("s", "str"),
    "u": ("s", "str"),
    "b": ("b", "bytes"),
    "c": ("b", "bytes"),
    "i": ("i", "int"),
    "j": ("i", "int"),
    "x": ("x", "float"),
    "y": ("x", "float"),
    "p": ("p", "bool"),
    "at": ("a", "dt.datetime"),
    "since": ("a", "dt.datetime"),
    "day": ("e", "dt.date"),
    "span": ("g", "dt.timedelta"),
    "n": ("ni", "int | None"),
    "m": ("ns", "str | None"),
    "q": ("nx", "float | None"),
    "z": ("Z", 'Annotated[dt.datetime, pa.timestamp("us", "Europe/Berlin")]'),
    "h": ("Z", 'Annotated[dt.datetime, pa.timestamp("us", "Europe/Berlin")]'),
    "v": ("U", 'Annotated[dt.datetime, pa.timestamp("us", "UTC")]'),
    "w": ("U", 'Annotated[dt.datetime, pa.timestamp("us", "UTC")]'),
}
BERLIN = ZoneInfo("Europe/Berlin")

SPACES = " \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
TRAPS = [
    *SPACES,
    "\0",
    "İ",
    "ı",
    "ß",
    "ẞ",
    "ς",
    "Σ",
    "σ",
    "ǅ",
    "ſ",
    "\u212a",
    "ä",
    "e\u0301",
    "\u0301",
    "中",
    "😀",
    "𐐀",
    "ﬃ",
    "\u200b",
    "\ufeff",
    "٣",
    "５",
    "²",
    "½",
    "\x7f",
    "\x1b",
]
WORDS = ["a", "b", "abc", "GET", "POST", "error", "key", "the", "x1", "longer than twelve bytes", "ab", "true"]
MARKS = [" ", " ", ",", ";", "=", ":", "-", "/", ".", "_", "\n", "%", "\t"]
NUMERALS = [
    "0",
    "1",
    "7",
    "-3",
    "+5",
    "12",
    "007",
    "1_000",
    "3.5",
    "-0.0",
    "1e5",
    "nan",
    "inf",
    "0x1f",
    "-0",
    "ff",
    "9223372036854775807",
    "9223372036854775808",
    "99999999999999999999",
    "1e400",
    ".5",
    "2.",
    "1__0",
]
WHOLE = [
    "",
    " ",
    "a=1;b=2;a=3",
    "k=v,k=w",
    "GET /index.html 200",
    "the cat the dog the",
    "b b",
    "1,2,3",
    "3;1;2",
    "2020-05-17",
    "2020-05-17T03:04:05",
    "1969-12-31",
    "a" * 12,
    "a" * 13,
    "ä" * 6,
    "ä" * 7,
    "\x1c-0",
    "\x1f12",
    "x" * 70,
    "127.0.0.1",
    "a,b,,c",
    "=",
    "==",
    "k=",
    "=v",
    "Hello, World",
    "aA bB",
    "abcabc",
    "1 2 3",
]
INTS = [
    0,
    1,
    -1,
    2,
    3,
    -3,
    5,
    7,
    10,
    60,
    63,
    64,
    -7,
    100,
    255,
    256,
    1000,
    -1000,
    2**31 - 1,
    -(2**31),
    2**32,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    2**63 - 1,
    -(2**63),
    -(2**63) + 1,
    3037000500,
    10**12,
    86400,
]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    2.675,
    1e-9,
    0.1,
    3.0,
    100.0,
    1e16,
    1e22,
    1e-5,
    1e306,
    1e308,
    -1e308,
    5e-324,
    2.2250738585072014e-308,
    math.inf,
    -math.inf,
    math.nan,
    2.0**53,
    2.0**63,
    -(2.0**63),
    9.3e18,
    123456.789,
    710.0,
    -0.75,
    1e300,
    4.35,
    1.005,
]
DATETIMES = [
    dt.datetime(*parts)  # type: ignore[arg-type]
    for parts in [
        (1970, 1, 1),
        (1969, 12, 31, 23, 59, 59, 999999),
        (1, 1, 1),
        (9999, 12, 31, 23, 59, 59, 999999),
        (1900, 2, 28, 12),
        (2000, 2, 29),
        (2020, 5, 17, 3, 4, 5, 6),
        (2024, 12, 30, 0, 0, 1),
        (1583, 10, 15, 7, 30),
        (1969, 1, 1, 0, 0, 0, 1),
        (2020, 5, 17, 3, 4, 5),
        (2021, 1, 3),
    ]
]
TIMEDELTAS = [
    dt.timedelta(),
    dt.timedelta(microseconds=1),
    dt.timedelta(microseconds=-1),
    dt.timedelta(seconds=1),
    dt.timedelta(microseconds=3),
    dt.timedelta(days=1),
    dt.timedelta(days=-1, microseconds=5),
    dt.timedelta(hours=36),
    dt.timedelta(seconds=-1.5),
    dt.timedelta(days=200_000),
    dt.timedelta(days=-200_000, seconds=7),
    dt.timedelta(minutes=90),
    dt.timedelta(microseconds=7),
]


CHANGES = [  # of Berlin's clock: forward, back; midnight there; the ends of a year and of a week
    dt.datetime(year, month, day, hour, tzinfo=dt.UTC)
    for year, month, day, hour in (
        (2026, 3, 29, 1), (2026, 10, 25, 1), (2026, 10, 25, 0), (2026, 7, 5, 22), (2026, 12, 31, 23), (1980, 4, 6, 1),
        (1970, 1, 1, 0), (2027, 1, 3, 23),
    )
]  # fmt: skip


class Values:
    """Draws values of a type.

    Args:
        chosen: where chance comes from.
        constants: those of the program.
    """

    def __init__(self, chosen: random.Random, constants: Sequence[object] = ()) -> None:
        self.chosen = chosen
        self._texts = [c for c in constants if type(c) is str and len(c) < 60] or WORDS
        self._bytes = [c for c in constants if type(c) is bytes]
        self._ints = [c for c in constants if type(c) is int and abs(c) < 2**63] or [1]
        self._floats = [c for c in constants if type(c) is float] or [0.5]

    def text(self) -> str:
        pick = self.chosen.choice
        way = self.chosen.random()
        if way < 0.14:
            return pick(WHOLE)
        if way < 0.26:
            return pick(self._texts)
        if way < 0.36:
            return pick([*SPACES, "", "", ""]) + pick(NUMERALS) + pick(["", "", "", " ", "\x1f"])
        alphabet: list[Callable[[], str]] = [
            lambda: pick(WORDS), lambda: pick(MARKS), lambda: pick(self._texts), lambda: pick(TRAPS),
            lambda: pick(NUMERALS), lambda: pick(WORDS).upper(), lambda: pick(MARKS),
        ]  # fmt: skip
        used = self.chosen.sample(alphabet, 3)
        made = "".join(pick(used)() for _ in range(self.chosen.randrange(1, 8)))
        return made + " " + made if way > 0.9 else made

    def integer(self) -> int:
        way = self.chosen.random()
        if way < 0.35:
            return self.chosen.randrange(-4, 12)
        if way < 0.5:
            return self.chosen.choice(self._ints) + self.chosen.choice((0, 0, 1, -1))
        if way < 0.8:
            return self.chosen.choice(INTS)
        return self.chosen.getrandbits(self.chosen.randint(1, 63)) * self.chosen.choice((1, -1))

    def real(self) -> float:
        way = self.chosen.random()
        if way < 0.5:
            return self.chosen.choice(FLOATS)
        if way < 0.65:
            return self.chosen.choice(self._floats)
        if way < 0.85:
            return round(self.chosen.uniform(-100, 100), self.chosen.randrange(4))
        return self.chosen.uniform(-1, 1) * 10.0 ** self.chosen.randint(-20, 20)

    def moment(self) -> dt.datetime:
        if self.chosen.random() < 0.6:
            return self.chosen.choice(DATETIMES)
        start = dt.datetime(1900, 1, 1)
        return start + dt.timedelta(microseconds=self.chosen.randrange(200 * 365 * 86_400_000_000))

    def duration(self) -> dt.timedelta:
        if self.chosen.random() < 0.6:
            return self.chosen.choice(TIMEDELTAS)
        return dt.timedelta(microseconds=self.chosen.randrange(-(10**13), 10**13))

    def instant(self) -> dt.datetime:
        """In UTC: mostly around a change of Berlin's clock, or around midnight there."""
        if self.chosen.random() < 0.2:
            return self.moment().replace(tzinfo=dt.UTC) if self.chosen.random() < 0.2 else self.chosen.choice(CHANGES)
        minutes = self.chosen.choice((-1441, -61, -60, -1, 0, 1, 29, 59, 60, 119, 1440))
        return self.chosen.choice(CHANGES) + dt.timedelta(minutes=minutes, seconds=self.chosen.choice((0, 0, 59)))

    def zoned(self) -> dt.datetime:
        """In Berlin; what leaves the years 1 to 9999 there isn't drawn."""
        when = self.instant()
        return (when if 1 < when.year < 9999 else CHANGES[0]).astimezone(BERLIN)

    def of(self, kind: str) -> Any:
        if kind[0] == "n":
            return None if self.chosen.random() < 0.35 else self.of(kind[1:])
        if kind == "b":
            return self.chosen.choice(self._bytes) if self._bytes and self.chosen.random() < 0.3 else self.octets()
        return {
            "s": self.text, "i": self.integer, "x": self.real, "p": lambda: self.chosen.random() < 0.5,
            "a": self.moment, "e": lambda: self.moment().date(), "g": self.duration,
            "Z": self.zoned, "U": self.instant,
        }[kind]()  # fmt: skip

    def octets(self) -> bytes:
        if self.chosen.random() < 0.7:
            return self.text().encode()
        return self.chosen.randbytes(self.chosen.randrange(20))


def drawn(fields: Sequence[str], count: int, chosen: random.Random, constants: Sequence[object] = ()) -> list[Any]:
    """Tuples of these fields; now and then two fields of a type are alike, or one a part of the other."""
    values = Values(chosen, constants)
    rows = []
    for _ in range(count):
        row = {name: values.of(FIELDS[name][0]) for name in fields}
        for one, other in (("s", "u"), ("i", "j"), ("x", "y"), ("at", "since"), ("b", "c"), ("z", "h"), ("v", "w")):
            if one in row and other in row and (way := chosen.random()) < 0.3:
                row[other] = row[one]
                if one == "s" and way < 0.15:
                    row["u"] = chosen.choice((row["s"].lower(), row["s"][1:], row["s"][:3], row["s"].strip()))
        rows.append(tuple(row.values()))
    return rows
