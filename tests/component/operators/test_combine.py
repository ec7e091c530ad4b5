"""Users' own aggregates of keys and windows, compiled and in Python, against plain Python over the same tuples."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.errors import GraphError, JobFailedError, LaneError
from rayelastic.plan.explain import describe
from tests.component.operators.running import CONFIGS, table_of
from tests.raising import check_reason, raises

KEY = b"0123456789abcdef"
GAP, DISORDER, OPEN = 5, 3, 6


class Row(NamedTuple):
    key: str
    at: int
    n: int
    word: str


class Seen(NamedTuple):
    rows: int = 0
    total: int = 0
    longest: str = ""


class Found(NamedTuple):
    mean: float
    longest: str
    marked: str | None


class Summary:
    """Counts, sums, and keeps a text: what it gives is made of all three."""

    init = Seen

    def __init__(self, mark: str = "!") -> None:
        self.mark = mark

    def add(self, t: Any, state: Any) -> None:
        state.rows += 1
        state.total += t.n
        if (len(t.word), t.word) > (len(state.longest), state.longest):
            state.longest = t.word

    def merge(self, other: Any, state: Any) -> None:
        state.rows += other.rows
        state.total += other.total
        if (len(other.longest), other.longest) > (len(state.longest), state.longest):
            state.longest = other.longest

    def result(self, state: Any) -> Found:
        marked = None if len(state.longest) < 3 else state.longest + self.mark
        return Found(state.total / state.rows, state.longest, marked)


class Listed:
    """Its state is a dict, which isn't compiled."""

    def init(self) -> dict[str, Any]:
        return {"rows": 0, "total": 0, "longest": ""}

    def add(self, t: Any, state: dict[str, Any]) -> None:
        state["rows"] += 1
        state["total"] += t.n
        state["longest"] = max(state["longest"], t.word, key=lambda word: (len(word), word))

    def result(self, state: dict[str, Any]) -> Found:
        return Summary().result(Seen(**state))


WORDS = ["", "a", "bb", "cc", "a word of more than twelve bytes", "another word of more than twelve bytes"]
streams = st.lists(
    st.builds(Row, st.sampled_from("abc"), st.integers(0, 40), st.integers(-9, 9), st.sampled_from(WORDS)), max_size=40
)
LANES = [(Summary("!"), "compiled"), (Summary("!"), "python"), (Listed(), "auto")]


def summary(rows: list[Row]) -> tuple[Any, ...]:
    longest = max((row.word for row in rows), key=lambda word: (len(word), word))
    mean = sum(row.n for row in rows) / len(rows)
    return (mean, longest, None if len(longest) < 3 else longest + "!")


def run(rows: list[Row], declare: Callable[[Any], Any], config: rel.JobConfig | None = None) -> list[tuple[Any, ...]]:
    topology = rel.Topology("combined")
    source = topology.source(rel.arrow(table_of(Row, rows), Row), name="rows")
    declare(source.event_time("at", name="time", lateness=40).key_by("key")).sink(rel.list(), name="out")
    return [tuple(t) for t in rel.run(topology, config or CONFIGS["manual"])["out"]]


def by(rows: list[Row], place: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        for one in place(row):
            found[one].append(row)
    return found


@pytest.mark.parametrize(("own", "lane"), LANES)
@settings(max_examples=15, deadline=None)
@given(streams)
def test_keys(own: Any, lane: Any, rows: list[Row]) -> None:
    found = run(rows, lambda s: s.combine(own, name="summary", lane=lane))
    assert sorted(found) == sorted((key, *summary(some)) for key, some in by(rows, lambda row: [row.key]).items())
    each = run(rows, lambda s: s.combine(own, name="summary", emit="update", lane=lane))
    expected = [
        (row.key, *summary([one for one in rows[: at + 1] if one.key == row.key])) for at, row in enumerate(rows)
    ]
    assert each == expected


@pytest.mark.parametrize(("own", "lane"), LANES)
@pytest.mark.parametrize(("size", "slide"), [(10, 10), (7, 3)])
@settings(max_examples=10, deadline=None)
@given(streams)
def test_windows(size: int, slide: int, own: Any, lane: Any, rows: list[Row]) -> None:
    found = run(rows, lambda s: s.window(seconds=size, slide=slide).combine(own, name="summary", lane=lane))

    def windows(row: Row) -> list[tuple[str, int, int]]:
        starts = [start for start in range(-84, 84) if start % slide == 0 and start <= row.at < start + size]
        return [(row.key, start, start + size) for start in starts]

    assert sorted(found) == sorted((*window, *summary(some)) for window, some in by(rows, windows).items())


def sessions(rows: list[Row]) -> list[tuple[Any, ...]]:
    found = []
    for key, some in by(rows, lambda row: [row.key]).items():
        some.sort(key=lambda row: row.at)
        parts = [[some[0]]]
        for row in some[1:]:
            if row.at <= parts[-1][-1].at + GAP:
                parts[-1].append(row)
            else:
                parts.append([row])
        found += [(key, part[0].at, part[-1].at + GAP, *summary(part)) for part in parts]
    return found


@pytest.mark.parametrize(("own", "lane"), LANES)
@settings(max_examples=10, deadline=None)
@given(streams)
def test_sessions(own: Any, lane: Any, rows: list[Row]) -> None:
    found = run(rows, lambda s: s.session(gap=GAP).combine(own, name="summary", lane=lane))
    assert sorted(found) == sorted(sessions(rows))


@settings(max_examples=10, deadline=None)
@given(streams, st.sampled_from(list(CONFIGS)))
def test_windows_by_count_and_of_the_whole_stream(rows: list[Row], config: str) -> None:
    found = run(rows, lambda s: s.window(count=4, slide=2).combine(Summary, name="summary"), CONFIGS[config])
    expected = []
    for key, some in by(rows, lambda row: [row.key]).items():
        expected += [(key, *summary(some[at : at + 4])) for at in range(0, len(some) - 3, 2)]
    assert sorted(found) == sorted(expected)
    topology = rel.Topology("whole")
    topology.source(rel.rows(rows, Row)).window(count=3).combine(Summary).sink(rel.list(), name="out")
    parts = [rows[at : at + 3] for at in range(0, len(rows), 3)]
    assert [tuple(t) for t in rel.run(topology)["out"]] == [summary(part) for part in parts]


def test_late_tuples_correct_sessions_that_are_merged() -> None:
    rows = [
        Row("a", 0, 1, "x"),
        Row("a", 8, 2, "yy"),
        Row("a", 14, 3, "zzz"),
        Row("a", 4, 4, "a longer one of them all"),
    ]
    topology = rel.Topology("corrected")
    timed = topology.source(rel.rows(rows, Row), name="rows").event_time("at", name="time").key_by("key")
    combined = timed.session(gap=GAP, lateness=30).combine(Summary, name="summary", lane="compiled")
    combined.sink(rel.list(), name="out")
    found = [tuple(t)[:5] for t in rel.run(topology)["out"]]
    assert found == [
        ("a", 0, 5, False, 1.0),
        ("a", 8, 13, False, 2.0),
        ("a", 0, 13, True, 7 / 3),
        ("a", 14, 19, False, 3.0),
    ]


def test_early_results_are_given_by_python() -> None:
    rows = [Row("a", 0, 1, "x"), Row("a", 2, 3, "yyy"), Row("a", 7, 5, "z")]
    found = run(rows, lambda s: s.window(seconds=10).combine(Summary, name="summary", every=5))
    assert found == [("a", 0, 10, False, 2.0, "yyy", "yyy!"), ("a", 0, 10, True, 3.0, "yyy", "yyy!")]
    found = run(rows, lambda s: s.window(seconds=10).combine(Summary, until=lambda made: made.mean >= 2))
    assert [t[:4] for t in found] == [("a", 0, 10, 2.0), ("a", 0, 10, 5.0)]


def test_the_plan_says_what_runs() -> None:
    topology = rel.Topology("told")
    keyed = topology.source(rel.rows([Row("a", 0, 1, "x")], Row), name="rows").key_by("key")
    keyed.combine(Summary, name="fast").sink(rel.list(), name="one")
    keyed.combine(Listed, name="slow").sink(rel.list(), name="two")
    text = " ".join(str(topology.explain()).split())
    assert "an object of class Summary, compiled to machine code" in text
    check_reason(describe(topology.operators)["slow"].refusal, "state_class")


class First(NamedTuple):
    value: int
    by: str


class Largest:
    """Its first state isn't what the class of states would make."""

    def init(self) -> First:
        return First(-1000, "nobody")

    def add(self, t: Any, state: Any) -> None:
        if t.n > state.value:
            state.value = t.n
            state.by = t.word

    def merge(self, other: Any, state: Any) -> None:
        if other.value > state.value:
            state.value = other.value
            state.by = other.by

    def result(self, state: Any) -> str:
        return f"{state.by} {state.value}"


@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_the_first_state_is_what_init_gives(lane: Any) -> None:
    rows = [Row("a", 0, -2000, "lowest"), Row("b", 0, 4, "a word of more than twelve bytes"), Row("b", 12, -3, "x")]
    found = run(rows, lambda s: s.window(seconds=10).combine(Largest, name="largest", lane=lane))
    assert sorted(found) == [
        ("a", 0, 10, "nobody -1000"),
        ("b", 0, 10, "a word of more than twelve bytes 4"),
        ("b", 10, 20, "x -3"),
    ]
    later = [Row("a", 100 * n, -2000, "lowest") for n in range(200)]  # in places of windows that were given
    short = rel.JobConfig(threads=rel.Threads(count=1, model="dynamic", queue_records=8, run_records=4))
    found = run(later, lambda s: s.window(seconds=10).combine(Largest, name="largest", lane=lane), short)
    assert [t[3] for t in found] == ["nobody -1000"] * 200


class Failing(Summary):
    """Fails on a tuple, or in its result."""

    def add(self, t: Any, state: Any) -> None:
        state.rows += 1
        state.total += 10 // t.n

    def result(self, state: Any) -> float:  # type: ignore[override]
        return 1 / (state.total - 10)


@pytest.mark.parametrize("lane", ["compiled", "python"])
@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("windowed", [False, True])
def test_what_raises_is_told(lane: Any, n: int, windowed: bool) -> None:
    def declare(s: Any) -> Any:
        of = s.window(seconds=10) if windowed else s
        return of.combine(Failing, name="failing", lane=lane)

    with raises(JobFailedError, "function-raised", "ZeroDivisionError", operator="failing") as failed:
        run([Row("a", 0, n, "x")], declare)
    method = "add" if n == 0 else "result"
    assert (f"{method}: " if lane == "compiled" else f"in {method} of Failing") in str(failed.value)


def test_a_state_that_is_too_large_fails() -> None:
    with raises(JobFailedError, "function-raised", "64"):
        run([Row("a", 0, 2**62, ""), Row("a", 0, 2**62, "")], lambda s: s.combine(Summary, name="sum", lane="compiled"))


class Forgetful(Summary):
    """Gives what it should have changed."""

    def add(self, t: Any, state: Any) -> Any:
        return Seen(state.rows + 1, state.total + t.n)


class WithoutMerge:
    init = Seen
    add = Summary.add

    def result(self, state: Any) -> int:
        return int(state.total)


def test_bad_aggregates_are_refused() -> None:
    topology = rel.Topology("bad")
    keyed = topology.source(rel.rows([Row("a", 0, 1, "x")], Row)).event_time("at").key_by("key")

    class NoAdd:
        init = Seen

        def result(self, state: Any) -> int:
            return 1

    class TwoInAdd(Summary):
        def add(self, t: Any) -> None:  # type: ignore[override]
            pass

    class KeyAgain(Summary):
        def result(self, state: Any) -> Row:  # type: ignore[override]
            return Row("", 0, 0, "")

    class Unknown(Listed):
        def result(self, state: Any):  # type: ignore[no-untyped-def]
            return 1

    with raises(GraphError, "missing-method", "NoAdd"):
        keyed.combine(NoAdd, name="a")
    with raises(GraphError, "wrong-parameters"):
        keyed.combine(TwoInAdd, name="b")
    with raises(GraphError, "duplicate-field", "key"):
        keyed.combine(KeyAgain, name="c")
    with raises(rel.errors.SchemaError, "no-schema"):
        keyed.combine(Unknown, name="d")
    with raises(LaneError, "not-compiled"):
        keyed.window(seconds=5).combine(WithoutMerge, name="e", lane="compiled")
    with raises(LaneError, "not-compiled"):
        keyed.window(count=5).combine(Listed, name="f")
    with raises(GraphError, "state-expires-early", "ttl=3"):
        keyed.combine(Summary, name="g", ttl=3)
    with raises(GraphError, "unknown-choice", "often", "emit="):
        keyed.combine(Summary, name="h", emit="often")  # type: ignore[arg-type]
    found = run([Row("a", 0, 4, "x")], lambda s: s.window(seconds=5).combine(WithoutMerge, name="e"))
    assert found == [("a", 0, 5, 4)]
    with raises(JobFailedError, "function-raised", "it has to change the state"):
        run([Row("a", 0, 4, "x")], lambda s: s.combine(Forgetful, name="e"))


def test_a_result_of_another_width_is_told() -> None:
    class Wider(Listed):
        def result(self, state: Any) -> Any:
            return 1, 2, 3

    with raises(JobFailedError, "function-raised", "Wider"):
        run([Row("a", 0, 4, "x")], lambda s: s.combine(Wider, name="e", schema={"x": int, "y": int}))


SHARED: list[int] = []


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: 1 // 0, "function-raised Own"),
        (lambda: None, "bad-return Own"),
        (lambda: 0, "bad-return Own"),
        (lambda: SHARED, "bad-return Own"),
    ],
)
def test_a_state_of_nothing_that_is_none_is_refused(made: Callable[[], Any], says: str) -> None:
    class Own(Listed):
        def init(self) -> Any:
            return made()

    keyed = rel.Topology("bad").source(rel.rows([Row("a", 0, 1, "x")], Row), name="rows").key_by("key")
    with raises(GraphError, *says.split()) as refused:
        keyed.combine(Own, name="own")
    assert "operator 'own'" in str(refused.value)
    assert "a NamedTuple, an object, a list or a dict" in str(refused.value)


def test_a_key_is_forgotten() -> None:
    rows = [Row("a", 0, 1, "x"), Row("a", 10, 3, "x"), Row("a", 100, 5, "x")]
    for lane in ("compiled", "python"):

        def declare(s: Any, lane: Any = lane) -> Any:
            return s.combine(Summary, name="mean", emit="update", ttl=20, lane=lane)

        assert [t[1] for t in run(rows, declare)] == [1.0, 2.0, 5.0]


def test_infinite_defaults() -> None:
    class Low(NamedTuple):
        low: float = math.inf

    class Lowest:
        init = Low

        def add(self, t: Any, state: Any) -> None:
            state.low = min(state.low, t.n)

        def result(self, state: Any) -> float:
            return float(state.low)

    rows = [Row("a", 0, 5, ""), Row("a", 0, 3, "")]
    assert run(rows, lambda s: s.combine(Lowest, name="low")) == [("a", 3.0)]
