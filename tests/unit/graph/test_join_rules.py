"""What joins ask for: a choice where nothing says what is meant, keys and times that can be equal, their names."""

from __future__ import annotations

import datetime as dt
import enum
import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic.errors import GraphError
from tests.raising import raises

pytestmark = pytest.mark.edges

ZONES = {"none": pa.timestamp("us"), "UTC": pa.timestamp("us", "UTC"), "Berlin": pa.timestamp("us", "Europe/Berlin")}
UNITS = ("s", "ms", "us", "ns")
NOON = dt.datetime.fromisoformat("2024-01-01T12:00")


class Colour(enum.Enum):
    RED = 1


class Shade(enum.Enum):
    RED = 1


ALIKE: list[tuple[Any, Any]] = [
    (ZONES["UTC"], ZONES["Berlin"]),
    (pa.decimal128(12, 2), pa.decimal128(14, 2)),
    (pa.string(), pa.large_string()),
    (Colour, Colour),
]
UNLIKE: list[tuple[Any, Any]] = [
    *itertools.permutations(map(pa.timestamp, UNITS), 2),
    *itertools.permutations(map(pa.duration, UNITS), 2),
    (pa.time32("s"), pa.time32("ms")),
    (pa.time64("us"), pa.time64("ns")),
    (pa.decimal128(12, 2), pa.decimal128(12, 3)),
    (ZONES["none"], ZONES["UTC"]),
    (pa.int32(), pa.int64()),
    (pa.date32(), pa.date64()),
    (Colour, Shade),
]


def streams(left: Any, right: Any) -> tuple[Any, Any]:
    topology = rel.Topology("t")
    made = []
    for name, kind in (("left", left), ("right", right)):
        schema = {"k": kind, name: int, "at": int}
        made.append(topology.source(rel.rows([], schema), name=name))
    return made[0], made[1]


def timed(stream: Any, name: str) -> Any:
    return stream.event_time("at", name=name).key_by("k")


JOINS: dict[str, Any] = {
    "as in SQL": lambda a, b: a.key_by("k").join(b.key_by("k"), name="j", how="inner"),
    "by arrival": lambda a, b: a.key_by("k").join(b.key_by("k"), name="j", by="arrival"),
    "as of a time": lambda a, b: timed(a, "lt").join(timed(b, "rt"), name="j"),
    "interval": lambda a, b: timed(a, "lt").join(timed(b, "rt"), name="j", within=5),
    "window": lambda a, b: timed(a, "lt").join(timed(b, "rt"), name="j", window=5),
}


@pytest.mark.parametrize("join", JOINS)
def test_keys_of_other_parameters_are_rejected(join: str) -> None:
    """B3: their bytes differ though their values are equal, or are equal though the values differ."""
    for left, right in UNLIKE:
        with raises(GraphError, "key-mismatch", "k", operator="j"):
            JOINS[join](*streams(left, right))
    for left, right in ALIKE:
        JOINS[join](*streams(left, right))


def test_messages_name_unit_scale_and_zone() -> None:
    for left, right, said in [
        (pa.timestamp("ns"), pa.timestamp("us"), "key-mismatch"),
        (ZONES["none"], ZONES["UTC"], "key-mismatch UTC"),
        (pa.decimal128(12, 2), pa.decimal128(12, 3), "key-mismatch 12"),
        (pa.duration("ms"), pa.duration("us"), "key-mismatch"),
    ]:
        with raises(GraphError, *said.split()):
            JOINS["as in SQL"](*streams(left, right))


TIMED: dict[str, Any] = {
    "as of": lambda a, b: a.key_by("k").join(b.key_by("k"), name="j"),
    "interval": lambda a, b: a.key_by("k").join(b.key_by("k"), name="j", within=5),
    "window": lambda a, b: a.key_by("k").join(b.key_by("k"), name="j", window=5),
    "cross": lambda a, b: a.cross_join(b, name="j"),
}


@pytest.mark.parametrize("join", TIMED)
def test_event_times_with_and_without_a_zone_are_rejected(join: str) -> None:
    """A12: 12:00 of somewhere is no instant."""
    for left, right in itertools.product(ZONES, ZONES):
        topology = rel.Topology("t")
        a, b = (
            topology.source(rel.arrow(pa.table({"k": [], "at": []}, pa.schema(
                [pa.field("k", pa.string(), nullable=False), pa.field("at", ZONES[zone], nullable=False)]
            ))), name=name).event_time("at", name=f"{name}_time")
            for name, zone in (("left", left), ("right", right))
        )  # fmt: skip
        if (left == "none") == (right == "none"):
            TIMED[join](a, b)
            continue
        with raises(GraphError, "event-time-mismatch", operator="j"):
            TIMED[join](a, b)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (str, "a", 1),
        (int, 1, "1"),
        (int, 1.0, True),
        (bool, True, 1),
        (bytes, b"a", "a"),
        (dt.date, dt.date(2024, 1, 1), NOON),
        (dt.datetime, NOON, NOON.replace(tzinfo=dt.UTC)),
        (dt.datetime, NOON, dt.date(2024, 1, 1)),
        (ZONES["UTC"], NOON.replace(tzinfo=dt.UTC), NOON),
        (Decimal, Decimal("1.50"), "1.50"),
        (Colour, Colour.RED, Shade.RED),
    ],
    ids=str,
)
def test_a_table_whose_keys_never_equal_those_of_the_stream_is_rejected(kind: Any, good: Any, bad: Any) -> None:
    topology = rel.Topology("t")
    keyed = topology.source(rel.rows([], {"k": kind, "n": int}), name="left").key_by("k")
    keyed.enrich({good: "x", None: "y"}, name="good")
    with raises(GraphError, "key-mismatch", "k", operator="bad"):
        keyed.enrich({bad: "y"}, name="bad")


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        (False, False, "neither stream has an event time"),
        (True, False, "the right doesn't have an event time"),
        (False, True, "the left doesn't have an event time"),
    ],
)
def test_a_join_without_event_times_asks_what_is_meant(left: bool, right: bool, said: str) -> None:
    a, b = streams(str, str)
    a = timed(a, "lt") if left else a.key_by("k")
    b = timed(b, "rt") if right else b.key_by("k")
    with raises(GraphError, "no-event-time", str(said), operator="j"):
        a.join(b, name="j")
    with raises(GraphError, "no-event-time", str(said), operator="c"):
        a.cross_join(b, name="c")
    assert a.join(b, name="sql", how="inner").schema.names == ("k", "left", "at", "right", "at_right")
    a.join(b, name="arrival", by="arrival")
    a.cross_join(b, name="cross", by="arrival")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"how": "inner", "keep": "latest"}, "conflicting-arguments latest"),
        ({"how": "full", "symmetric": True}, "conflicting-arguments full"),
        ({"by": "arrival", "symmetric": True, "keep": "all"}, "conflicting-arguments how="),
        ({"by": "arrival", "how": "full"}, "unbounded-state"),
        ({"by": "key"}, "unknown-choice key"),
        ({"how": "inner", "within": 3}, "no-event-time"),
    ],
)
def test_what_doesnt_go_together_is_rejected(how: dict[str, Any], said: str) -> None:
    a, b = streams(str, str)
    with raises(GraphError, *said.split()):
        a.key_by("k").join(b.key_by("k"), name="j", **how)


def test_pairs_have_no_event_time() -> None:
    """Those of a tuple that waited are behind the watermark."""
    a, b = streams(str, str)
    joined = timed(a, "lt").join(b.key_by("k"), name="j", how="inner")
    with raises(GraphError, "no-event-time", "event_time", operator="j"):
        joined.window(seconds=5)
    joined.event_time("at", name="again").window(seconds=5)


def test_three_streams_with_the_same_names_are_joined_by_a_suffix() -> None:
    """B7."""
    topology = rel.Topology("t")
    a, b, c = (topology.source(rel.rows([], {"k": str, "at": int}), name=name).key_by("k") for name in "abc")
    both: Any = a.join(b, name="ab", how="inner").key_by("k")
    with raises(GraphError, "duplicate-field", "at", "at_right", "suffix=", operator="abc"):
        both.join(c, name="abc", how="inner")
    assert both.join(c, name="named", how="inner", suffix="_c").schema.names == ("k", "at", "at_right", "at_c")
    assert both.cross_join(c, name="cross", by="arrival", suffix="_c").schema.names[-2:] == ("k_c", "at_c")
    assert both.enrich({"x": 1}, name="table", schema={"at": int}, suffix="_1").schema.names[-1] == "at_1"
    for bad in ("", "-1", 2):
        with raises(GraphError, "bad-name", "suffix=", operator="bad"):
            both.join(c, name="bad", how="inner", suffix=bad)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (
            lambda a, b: a.key_by("k").join(b.key_by("k"), name="j", how="full"),
            "full join of all pairs of a key, as in SQL",
        ),
        (
            lambda a, b: a.key_by("k").join(b.key_by("k"), name="j", by="arrival"),
            "inner join by arrival, with the latest that has arrived before, which depends on timing",
        ),
        (
            lambda a, b: a.key_by("k").join(b.key_by("k"), name="j", by="arrival", symmetric=True, how="left"),
            "left join by arrival, each with the latest of the other stream that has arrived before",
        ),
        (
            lambda a, b: timed(a, "l").join(timed(b, "r"), name="j"),
            "inner join by event time, with the latest as of at",
        ),
        (
            lambda a, b: timed(a, "l").join(timed(b, "r"), name="j", within=(1, 2), how="right"),
            "right join by event time, with those from 1 s before to 2 s after",
        ),
        (lambda a, b: timed(a, "l").join(timed(b, "r"), name="j", window=5), "with those in the same window of 5 s"),
        (
            lambda a, b: a.cross_join(b.key_by("k"), name="j", by="arrival"),
            "with the latest of each key that has arrived before, which depends on timing",
        ),
    ],
)
def test_explain_says_what_a_join_means(declared: Any, said: str) -> None:
    a, b = streams(str, str)
    declared(a, b)
    assert said in a.topology.operators["j"].reason
