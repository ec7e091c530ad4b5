"""What compiled code refuses is answered by Python where the answer fits: in its place, once, and counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import JobFailedError
from tests.component.operators.running import CONFIGS, results, table_of
from tests.raising import raises

BIG = 2**62


class Row(NamedTuple):
    n: int
    a: int
    x: float
    s: str


class Out(NamedTuple):
    n: int
    value: int
    text: str


class Number(NamedTuple):
    n: int
    value: float


class Count(NamedTuple):
    count: int = 0  # type: ignore[assignment]


# One of five needs more than 64 bits on the way; what comes of it fits.
ROWS = [
    Row(n, BIG + n if n % 5 == 0 else n, n / 2, f"{n}" if n % 3 else f"9999999999999999999{n}, a long text behind it")
    for n in range(2000)
]


def on_the_way(t: Row) -> Out:
    return Out(t.n, (t.a * 4) // 8, t.s + "!")


def in_place(t: Row) -> Row:
    return Row(t.n, t.a * 4 // 8 + len(t.s), t.x, t.s)


def fields_alone(t: Number) -> Number:
    return Number(t.n * 4 // 8, t.value + 1)


def number_or_minus_one(t: Row) -> Out:
    try:
        return Out(t.n, int(t.s.partition(",")[0]) % 1000, t.s)
    except Exception:
        return Out(t.n, -1, t.s)


def passes(t: Row) -> bool:
    return t.a * 4 % 8 == 0


def some(t: Row) -> Iterator[Out]:
    for i in range(t.n % 4):
        yield Out(t.n, i, t.s)
    yield Out(t.n, t.a * 4 // 8, t.s)


def many(t: Row) -> Iterator[Out]:
    """More of the failing tuple goes out than an output buffer holds."""
    for i in range(300 if t.n % 50 == 0 else 1):
        yield Out(t.n, i, t.s)
    yield Out(t.n, t.a * 4 // 8, t.s)
    for i in range(3):
        yield Out(t.n, i, "behind it")


def wanted(function: Any, kind: str) -> list[tuple[Any, ...]]:
    if kind == "filter":
        return [tuple(t) for t in ROWS if function(t)]
    if kind == "map":
        return [tuple(function(t)) for t in ROWS]
    return [tuple(item) for t in ROWS for item in function(t)]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (on_the_way, "map"),
        (in_place, "map"),
        (number_or_minus_one, "map"),
        (passes, "filter"),
        (some, "flat_map"),
        (many, "flat_map"),
    ],
)
def test_python_s_answer_comes_in_its_place(function: Any, kind: str, config: rel.JobConfig) -> None:
    def declare(stream: rel.Stream) -> rel.Stream:
        made: rel.Stream = getattr(stream, kind)(function, name="step", lane="compiled")
        return made

    assert results(Row, ROWS, declare, config) == wanted(function, kind)


@pytest.mark.parametrize("on_error", ["fail", "skip", "divert"])
@pytest.mark.parametrize(("function", "kind"), [(on_the_way, "map"), (passes, "filter"), (many, "flat_map")])
def test_it_is_counted_and_is_no_error(function: Any, kind: str, on_error: Any) -> None:
    topology = rel.Topology("counted")
    stream = topology.source(rel.arrow(table_of(Row, ROWS), Row), name="rows")
    made = getattr(stream, kind)(function, name="step", lane="compiled", on_error=on_error)
    made.sink(rel.list(), name="out")
    if on_error == "divert":
        made.errors.sink(rel.list(), name="errors")
    result = rel.run(topology)
    assert [tuple(t) for t in result["out"]] == wanted(function, kind)
    sample = result.metrics.operator("step")
    assert sample.answered_by_python == sum(t.n % 5 == 0 for t in ROWS)
    assert sample.dropped == {}


def test_a_chain_of_functions_that_work_in_place() -> None:
    rows = [Number(BIG + n if n % 3 == 0 else n, n / 2) for n in range(1000)]

    def declare(stream: rel.Stream) -> rel.Stream:
        kept = stream.filter(lambda t: t.n * 4 // 8 % 2 == 0, name="kept", lane="compiled")
        return kept.map(fields_alone, name="first", lane="compiled").map(fields_alone, name="second", lane="compiled")

    made = [fields_alone(fields_alone(t)) for t in rows if t.n * 4 // 8 % 2 == 0]
    assert results(Number, rows, declare) == [tuple(t) for t in made]


@pytest.mark.parametrize(
    ("function", "schema", "bad", "shown", "reason"),
    [
        (
            lambda t: t.a * 4,
            {"value": int},
            Row(1, BIG, 0.0, ""),
            f"Row(n=..., a={BIG}, x=..., s=...)",
            f"it gave {BIG * 4} for 'value' of Record, which is int64",
        ),
        (
            lambda t: t.a**t.n,
            {"value": int},
            Row(-1, 2, 0.0, ""),
            "Row(n=-1, a=2, x=..., s=...)",
            "it gave 0.5 for 'value' of Record, which is int64",
        ),
        (
            lambda t: t.a if t.n else t.x,
            None,
            Row(1, 2**53 + 1, 0.0, ""),
            f"Row(n=1, a={2**53 + 1}, x=0.0, s=...)",
            "which is a float and would hold another number",
        ),
        (
            lambda t: t.a * 4 // (t.a - BIG),
            None,
            Row(1, BIG, 0.0, ""),
            f"Row(n=..., a={BIG}, x=..., s=...)",
            "ZeroDivisionError",
        ),
    ],
    ids=["a number beyond 64 bits", "a float for an int", "an int in a float", "an exception"],
)
def test_an_answer_that_does_not_fit_fails_with_tuple_value_and_field(
    function: Any, schema: Any, bad: Row, shown: str, reason: str
) -> None:
    topology = rel.Topology("unfit")
    stream = topology.source(rel.arrow(table_of(Row, [Row(0, 1, 1.0, ""), bad]), Row), name="rows")
    stream.map(function, name="step", schema=schema, lane="compiled").sink(rel.list(), name="out")
    with pytest.raises(JobFailedError) as raised:
        rel.run(topology)
    assert reason in str(raised.value)
    assert "step" in str(raised.value)
    assert shown in str(raised.value)


def test_an_int_that_a_float_holds_is_taken() -> None:
    rows = [Row(1, 2**60, 0.5, ""), Row(0, 1, 0.5, "")]
    made = results(Row, rows, lambda s: s.map(lambda t: t.a if t.n else t.x, name="step", lane="compiled"))
    assert made == [(float(2**60),), (0.5,)]


def test_state_of_keys_is_left_as_it_is_and_the_reason_says_so() -> None:
    def counted(t: Row, s: Count) -> int:
        s.count += 1  # type: ignore[misc]
        return t.a * 4 // 8 + s.count

    topology = rel.Topology("keyed")
    stream = topology.source(rel.arrow(table_of(Row, ROWS[1:20]), Row), name="rows")
    stream.key_by("s").map(counted, name="step", state=Count, lane="compiled").sink(rel.list(), name="out")
    with raises(JobFailedError, "function-raised", "state of the tuple's key may have changed"):
        rel.run(topology)


def test_no_answer_by_what_has_changed_since_declaration() -> None:
    rules = {1: 10}

    def ruled(t: Row) -> int:
        return t.a * 4 // 8 + rules.get(1, 0)

    topology = rel.Topology("changed")
    stream = topology.source(rel.arrow(table_of(Row, ROWS[1:20]), Row), name="rows")
    stream.map(ruled, name="step", lane="compiled").sink(rel.list(), name="out")
    assert "compiled to machine code; rules as at declaration" in topology.explain()
    rules[1] = 20
    with raises(JobFailedError, "function-raised", "rules may not be as at declaration any more"):
        rel.run(topology)


def test_what_is_skipped_is_counted() -> None:
    rows = [Row(n, n % 3, 0.0, f"{n}") for n in range(300)]
    for lane in ("compiled", "python"):
        topology = rel.Topology("skipped")
        stream = topology.source(rel.arrow(table_of(Row, rows), Row), name="rows")
        made = stream.map(lambda t: 6 // t.a, name="step", schema={"value": int}, lane=lane, on_error="skip")
        made.sink(rel.count(), name="out")
        assert rel.run(topology).metrics.operator("step").dropped == {"failed": 100}
