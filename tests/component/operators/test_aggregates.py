"""Aggregates of keyed and of whole streams, against plain Python; the sketch against its error bound."""

from __future__ import annotations

import math
import random
import statistics
from decimal import Decimal, localcontext
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.errors import JobFailedError
from tests.component.operators.running import CONFIGS, results
from tests.raising import raises


class Row(NamedTuple):
    key: str
    n: int | None
    x: float | None
    w: int
    text: str | None


def aggregates() -> dict[str, Any]:
    return {
        "tuples": rel.count(),
        "values": rel.count("x"),
        "mean": rel.weighted_mean("x", "w"),
        "spread": rel.stddev("x"),
        "population": rel.stddev("n", ddof=0),
        "texts": rel.distinct("text"),
        "numbers": rel.distinct("n"),
        "top": rel.top_k("n", 2),
        "median": rel.quantile("x", 0.5, error=0.001),
        "p90": rel.quantile("x", 0.9, error=0.001),
        "last": rel.last("text"),
    }


def exact_quantile(values: list[float], probability: float) -> float | None:
    return sorted(values)[math.floor(probability * (len(values) - 1))] if values else None


def reference(rows: list[Row]) -> tuple[Any, ...]:
    numbers = [r.n for r in rows if r.n is not None]
    values = [r.x for r in rows if r.x is not None]
    weights = sum(r.w for r in rows if r.x is not None)
    products = sum(r.x * r.w for r in rows if r.x is not None)
    top = [*sorted(numbers, reverse=True)[:2], None, None]
    texts = [r.text for r in rows if r.text is not None]
    return (
        len(rows),
        len(values),
        None if not values else products / weights if weights else math.nan,
        statistics.stdev(values) if len(values) > 1 else None,
        statistics.pstdev(numbers) if numbers else None,
        len(set(texts)),
        len(set(numbers)),
        top[0],
        top[1],
        exact_quantile(values, 0.5),
        exact_quantile(values, 0.9),
        texts[-1] if texts else None,
    )


def check(found: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    for at, (one, other) in enumerate(zip(found, expected, strict=True)):
        error = 0.0011 if at in (9, 10) else 1e-9
        assert one == other or one == pytest.approx(other, rel=error, abs=1e-6, nan_ok=True), (at, found, expected)


ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from(["a", "b", "a key of more than twelve bytes"]),
        st.none() | st.integers(-5, 5) | st.integers(-(2**40), 2**40),
        st.none() | st.floats(-1e6, 1e6).map(lambda x: round(x, 3)),
        st.integers(0, 100),
        st.none() | st.sampled_from(["", "x", "twelve bytes", "thirteen bytes and more"]),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ROWS)
def test_keyed_and_global_aggregates_equal_the_reference(rows: list[Row]) -> None:
    by_key: dict[str, list[Row]] = {}
    for row in rows:
        by_key.setdefault(row.key, []).append(row)
    keyed = results(Row, rows, lambda s: s.key_by("key").aggregate(name="keyed", **aggregates()))
    assert [found[0] for found in keyed] == list(by_key)
    for found in keyed:
        check(found[1:], reference(by_key[found[0]]))
    together = results(Row, rows, lambda s: s.aggregate(name="global", **aggregates()))
    assert len(together) == min(len(rows), 1)
    for found in together:
        check(found, reference(rows))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_updates_after_each_tuple(config: rel.JobConfig) -> None:
    chance = random.Random(5)
    rows = [
        Row(
            chance.choice("abc"),
            chance.randrange(50),
            chance.choice([None, chance.uniform(-9, 9)]),
            chance.randrange(9),
            chance.choice("xyz") * 15,
        )
        for _ in range(1500)
    ]
    found = results(
        Row,
        rows,
        lambda s: s.key_by("key").aggregate(name="each", emit="update", tuples=rel.count(), texts=rel.distinct("n")),
        config,
    )
    seen: dict[str, list[int | None]] = {}
    for row, (key, tuples, numbers) in zip(rows, found, strict=True):
        of_key = seen.setdefault(row.key, [])
        of_key.append(row.n)
        assert (key, tuples, numbers) == (row.key, len(of_key), len(set(of_key)))


@pytest.mark.parametrize("error", [0.05, 0.01, 0.001])
def test_quantiles_are_within_the_error(error: float) -> None:
    chance = random.Random(11)
    values = [chance.lognormvariate(0, 4) * chance.choice([1, 1, 1, -1]) for _ in range(20_000)] + [0.0] * 100
    probabilities = [0, 0.001, 0.1, 0.25, 0.26, 0.5, 0.9, 0.99, 0.999, 1]
    wanted: Any = {f"q{i}": rel.quantile("value", p, error=error) for i, p in enumerate(probabilities)}
    (found,) = results(float, [(v,) for v in values], lambda s: s.aggregate(name="all", **wanted))
    for probability, one in zip(probabilities, found, strict=True):
        exact = exact_quantile(values, probability)
        assert exact is not None
        assert abs(one - exact) <= error * abs(exact) * (1 + 1e-9)


def test_many_distinct_texts_and_the_largest_of_times() -> None:
    class Event(NamedTuple):
        name: str
        at: int

    rows = [Event(f"name {n % 7919} of the event", n * 31 % 10_007) for n in range(30_000)]
    found = results(
        Event,
        rows,
        lambda s: s.aggregate(name="all", n=rel.distinct("name"), top=rel.top_k("at", 3), times=rel.distinct("at")),
    )
    assert found == [(7919, *sorted((row.at for row in rows), reverse=True)[:3], 10_007)]


class Paid(NamedTuple):
    key: str
    at: int
    price: Annotated[Decimal, pa.decimal128(12, 2)]
    tip: Decimal | None


PRICES = st.decimals(min_value=-(10**10) + 1, max_value=10**10 - 1, places=2)
TIPS = st.decimals(min_value=-(10**18), max_value=10**18, places=18)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.builds(Paid, st.sampled_from("ab"), st.integers(0, 30), PRICES, st.none() | TIPS), max_size=30))
def test_decimals_are_summed_exactly(rows: list[Paid]) -> None:
    wanted: Any = {"price": rel.sum("price"), "tip": rel.sum("tip"), "mean": rel.mean("price")}

    def expected(some: list[Paid]) -> tuple[Any, ...]:
        tips = [row.tip for row in some if row.tip is not None]
        total = sum((row.price for row in some), Decimal(0))
        with localcontext(prec=60):
            return (
                total,
                sum(tips, Decimal(0)) if tips else None,
                pytest.approx(float(total / len(some)), rel=1e-12, abs=1e-9),
            )

    found = results(Paid, rows, lambda s: s.key_by("key").aggregate(name="sums", **wanted))
    by_key = {key: [row for row in rows if row.key == key] for key in "ab"}
    assert sorted(found) == [(key, *expected(some)) for key, some in by_key.items() if some]

    def sliding(s: rel.Stream) -> rel.Stream:
        return s.event_time("at", name="time", lateness=30).window(seconds=10, slide=5).aggregate(name="sums", **wanted)

    windows = {start: [row for row in rows if start <= row.at < start + 10] for start in range(-5, 35, 5)}
    assert results(Paid, rows, sliding) == [
        (start, start + 10, *expected(some)) for start, some in windows.items() if some
    ]


def test_a_sum_of_more_than_38_digits_fails() -> None:
    most = Decimal(10**20 - 1)
    rows = [Paid("a", 0, Decimal(1), most)] * 2
    with raises(JobFailedError, "job-failed", "tip", "38"):
        results(Paid, rows, lambda s: s.key_by("key").aggregate(name="sums", tip=rel.sum("tip")))
