"""Types of fields, random values of them, and how both are written in a program. Knows no operators."""

from __future__ import annotations

import datetime as dt
import enum
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"


class Point(NamedTuple):
    a: int
    b: str | None


IMPORTS = """import datetime as dt
import enum
import uuid
from decimal import Decimal
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa

import rayelastic as rel
"""
CLASSES = """
class Color(enum.Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"


class Point(NamedTuple):
    a: int
    b: str | None
"""
START = dt.datetime(2024, 2, 28, 23, 59, 58)  # noqa: DTZ001
TEXTS = ("", "a", "b", "Ab", "ä", "twelve bytes", "longer than twelve bytes", "longer than twelve bytes too")


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of fields.

    Args:
        annotation: as a schema has it.
        make: one of few values, so that keys meet.
        is_key: whether tuples can be keyed by it.
        is_ordered: whether there is a least and a greatest.
        like: another annotation of the same sort, with other parameters.
    """

    annotation: str
    make: Callable[[random.Random], Any]
    is_key: bool = True
    is_ordered: bool = True
    like: str = ""


def _pick(*values: Any) -> Callable[[random.Random], Any]:
    return lambda chance: chance.choice(values)


KINDS: dict[str, Kind] = {
    "int": Kind("int", _pick(-(2**40), -1, 0, 1, 2, 2**62)),
    "float": Kind("float", _pick(-1.5, 0.5, 1.0, 1e300, 2.25)),
    "str": Kind("str", _pick(*TEXTS)),
    "bytes": Kind("bytes", _pick(b"", b"a", b"\x00b", b"longer than twelve bytes"), is_ordered=False),
    "bool": Kind("bool", _pick(True, False), is_ordered=False),
    "datetime": Kind(
        "dt.datetime",
        lambda c: START + dt.timedelta(seconds=c.randrange(4)),
        like='Annotated[dt.datetime, pa.timestamp("ns")]',
    ),
    "date": Kind("dt.date", lambda c: dt.date(2024, 2, 27 + c.randrange(3))),
    "time": Kind("dt.time", lambda c: dt.time(23, 59, c.randrange(4))),
    "timedelta": Kind(
        "dt.timedelta",
        lambda c: dt.timedelta(hours=c.randrange(-2, 3)),
        like='Annotated[dt.timedelta, pa.duration("ms")]',
    ),
    "decimal": Kind(
        "Annotated[Decimal, pa.decimal128(12, 2)]",
        lambda c: Decimal(c.randrange(-2, 4)) / 4,
        like="Annotated[Decimal, pa.decimal128(12, 3)]",
    ),
    "uuid": Kind("uuid.UUID", lambda c: uuid.UUID(int=c.randrange(4) << 100), is_ordered=False),
    "enum": Kind("Color", lambda c: c.choice(list(Color)), is_ordered=False),
    "int8": Kind("np.int8", _pick(-128, -1, 0, 127), like="np.int16"),
    "uint16": Kind("np.uint16", _pick(0, 1, 65535), like="np.uint32"),
    "int32": Kind("np.int32", _pick(-(2**31), 0, 7, 2**31 - 1)),
    "float32": Kind("np.float32", _pick(-1.5, 0.5, 2.25)),
    "list": Kind(
        "list[int]", lambda c: [c.randrange(3) for _ in range(c.randrange(3))], is_key=False, is_ordered=False
    ),
    "struct": Kind("Point", lambda c: Point(c.randrange(2), c.choice([None, "b"])), is_key=False, is_ordered=False),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a stream.

    Args:
        name: of the field.
        kind: name of its type.
        nullable: whether it may be None.
        like: whether it is of the type's other parameters.
    """

    name: str
    kind: str
    nullable: bool = False
    like: bool = False

    @property
    def annotation(self) -> str:
        kind = KINDS[self.kind]
        written = kind.like if self.like else kind.annotation
        return f"{written} | None" if self.nullable else written


Schema = tuple[Field, ...]


def schema_text(schema: Schema) -> str:
    return "{" + ", ".join(f'"{f.name}": {f.annotation}' for f in schema) + "}"


def literal(value: Any) -> str:
    """The value as source."""
    match value:
        case enum.Enum():
            return f"Color.{value.name}"
        case dt.datetime() | dt.date() | dt.time() | dt.timedelta():
            return repr(value).replace("datetime.", "dt.", 1)
        case uuid.UUID():
            return f"uuid.{value!r}"
        case tuple() if not hasattr(value, "_fields"):
            return "(" + "".join(f"{literal(one)}, " for one in value).rstrip() + ")"
    return repr(value)
