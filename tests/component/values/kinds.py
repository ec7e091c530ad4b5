"""Types of fields with values of them, for Hypothesis: every form, in every other."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from typing import Annotated, Any, NamedTuple, Optional

import pyarrow as pa
from hypothesis import strategies as st

from rayelastic.graph.records.forms import Json


class Side(enum.Enum):
    BUY = "buy; at <once>"
    SELL = "sell"


class Level(enum.IntEnum):
    LOW = -1
    HIGH = 9


class Shape(enum.Enum):
    ROUND = (1, 2)
    FLAT = None


class Point(NamedTuple):
    x: float
    tag: str | None


@dataclasses.dataclass
class Leg:
    side: Side
    price: Annotated[decimal.Decimal, pa.decimal128(12, 2)]
    at: Point | None = None


Kind = tuple[Any, st.SearchStrategy[Any]]  # a type, and values of it

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBER = st.floats(allow_nan=False, width=64)
PRICE = st.decimals(min_value=-(10**10) + 1, max_value=10**10 - 1, places=2)
POINT = st.builds(Point, NUMBER, st.none() | TEXT)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | NUMBER.filter(lambda x: abs(x) < 1e300) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)

KEYS: list[Kind] = [
    (int, st.integers(-(2**63), 2**63 - 1)),
    (str, TEXT),
    (uuid.UUID, st.uuids()),
    (Side, st.sampled_from(Side)),
    (Level, st.sampled_from(Level)),
    (Annotated[decimal.Decimal, pa.decimal128(12, 2)], PRICE),
    (decimal.Decimal, st.decimals(min_value=-(10**20) + 1, max_value=10**20 - 1, places=18)),
    (dt.date, st.dates()),
    (dt.datetime, st.datetimes()),
    (bool, st.booleans()),
]
LEAVES: list[Kind] = [
    *KEYS,
    (Shape, st.sampled_from(Shape)),
    (float, NUMBER),
    (bytes, st.binary(max_size=20)),
    (Point, POINT),
    (Leg, st.builds(Leg, st.sampled_from(Side), PRICE, st.none() | POINT)),
]


def optional(kind: Kind) -> Kind:
    """The same, or None."""
    return Optional[kind[0]], st.none() | kind[1]  # noqa: UP045  # made as it runs


def listed(kind: Kind) -> Kind:
    """Lists of it."""
    return list.__class_getitem__(kind[0]), st.lists(kind[1], max_size=4)


def tupled(kind: Kind) -> Kind:
    """Tuples of it."""
    return tuple.__class_getitem__((kind[0], ...)), st.lists(kind[1], max_size=4).map(tuple)


@st.composite
def kinds(draw: st.DrawFn, depth: int = 2) -> Kind:
    """A type, and values of it."""
    if depth == 0:
        return draw(st.sampled_from(LEAVES))
    how = draw(st.sampled_from(["leaf", "optional", "list", "tuple", "map", "json"]))
    if how == "json":
        return Json, JSON
    if how == "leaf":
        return draw(st.sampled_from(LEAVES))
    inner = draw(kinds(depth - 1))
    if how == "optional":
        return inner if inner[0] is Json else optional(inner)
    if how == "map":
        key, of_key = draw(st.sampled_from(KEYS))
        return dict.__class_getitem__((key, inner[0])), st.dictionaries(of_key, inner[1], max_size=3)
    return listed(inner) if how == "list" else tupled(inner)


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """A schema, and rows of it."""
    columns = draw(st.lists(kinds(), min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(*(values for _, values in columns)), max_size=5))
    return {f"f{n}": kind for n, (kind, _) in enumerate(columns)}, rows
