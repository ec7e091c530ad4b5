"""`fold` and `reduce` of windows compiled, compared with the same functions in Python over tuples out of order."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import JobFailedError, StateError
from tests.component.connectors.behind_gate import behind_gate
from tests.component.operators.running import CONFIGS
from tests.raising import raises


class Offer(NamedTuple):
    key: str
    price: int
    at: int
    note: str


class Seen(NamedTuple):
    n: int = 0
    low: float = 1e9
    note: str = ""


def seen(so_far: Seen, t: Offer) -> Seen:
    return Seen(so_far.n + 1, min(so_far.low, t.price), t.note if t.price > 50 else so_far.note)


DICE = random.Random(1)
ROWS = [
    Offer(DICE.choice("xyz"), DICE.randrange(100), at // 3 + DICE.randrange(4), "n" * DICE.randrange(30))
    for at in range(600)
]
FRAMES: dict[str, Any] = {
    "tumbling": lambda s: s.window(seconds=10),
    "sliding": lambda s: s.window(seconds=10, slide=3),
    "gaps": lambda s: s.window(seconds=3, slide=10),
    "session": lambda s: s.session(gap=2),
    "open longer": lambda s: s.window(seconds=10, slide=3, lateness=9),
    "batch": lambda s: s.window(count=7, within=12),
}
METHODS: dict[str, Any] = {
    "number": lambda w, **k: w.fold(lambda n, t: (n * 31 + t.price) % 1_000_003, 7, name="kept", **k),
    "record": lambda w, **k: w.fold(seen, Seen(), name="kept", **k),
    "text": lambda w, **k: w.fold(lambda text, t: text[-20:] + str(t.price), "", name="kept", **k),
    "least": lambda w, **k: w.reduce(lambda one, t: min(one, t, key=lambda it: it.price), name="kept", **k),
    "either": lambda w, **k: w.reduce(lambda best, t: t if t.price > best.price else best, name="kept", **k),
    "made": lambda w, **k: w.reduce(
        lambda so_far, t: Offer(t.key, so_far.price * 3 % 101 + t.price, t.at, so_far.note), name="kept", **k
    ),
}


def never(_: Any) -> bool:
    return False


def declared(frame: str, method: str, source: Any, lateness: int = 2, **when: Any) -> rel.Topology:
    topology = rel.Topology("ordered")
    sinks(frame, method, topology.source(source, name="rows"), lateness, **when)
    return topology


def sinks(frame: str, method: str, rows: rel.Stream, lateness: int = 2, **when: Any) -> None:
    kept = METHODS[method](FRAMES[frame](rows.event_time("at", lateness=lateness).key_by("key")), **when)
    kept.sink(rel.list(), name="out")
    kept.late().sink(rel.list(), name="late")


def results(topology: rel.Topology, config: Any = None) -> tuple[list[Any], list[Any]]:
    result = rel.run(topology, config) if config is not None else rel.run(topology)
    return [tuple(t) for t in result["out"]], [tuple(t) for t in result["late"]]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("method", METHODS)
def test_compiled_and_python_agree(frame: str, method: str) -> None:
    native = declared(frame, method, rel.rows(ROWS))
    python = declared(frame, method, rel.rows(ROWS), until=never)
    lanes = [one.operators["kept"].body.lane for one in (native, python)]
    assert lanes == [rel.Lane.COMPILED, rel.Lane.PYTHON]
    ours, theirs = results(native), results(python)
    assert ours == theirs
    assert ours[0]
    assert ours[1] or frame == "open longer"
    assert any(row[3] for row in ours[0]) or frame != "open longer"  # corrected


@pytest.mark.parametrize("config", CONFIGS)
def test_threads_and_queues_change_nothing(config: str) -> None:
    expected = results(declared("sliding", "text", rel.rows(ROWS)))
    assert results(declared("sliding", "text", rel.rows(ROWS)), CONFIGS[config]) == expected


@pytest.mark.parametrize("frame", ["tumbling", "session", "open longer", "batch"])
def test_a_restored_job_goes_on_with_what_waits_and_what_is_accumulated(frame: str, tmp_path: Path) -> None:
    gate, half = testing.Gate(), len(ROWS) // 2
    schema = {"key": str, "price": int, "at": int, "note": str}
    job = rel.start(declared(frame, "text", testing.script([*ROWS[:half], gate, *ROWS[half:]], schema), 5))
    assert gate.wait_reached(60)
    job.snapshot(kept := rel.Snapshot(tmp_path / "kept", key=b"s" * 32))
    gate.open()
    expected = [tuple(t) for t in job.wait()["out"]]
    restored = rel.run(declared(frame, "text", testing.script(ROWS, schema), 5), restore=kept)
    assert [tuple(t) for t in restored["out"]] == expected


def kept_of(frame: str, method: str, folder: Path, **when: Any) -> tuple[Any, list[Any]]:
    """What is known of the state of a running job, and its table."""
    with behind_gate(ROWS[:305], lambda rows: sinks(frame, method, rows, **when)) as job:
        rows = rel.read_snapshot(job.snapshot(rel.Snapshot(folder, key=b"s" * 32)))["kept"].to_pylist()
        keys = dict(job.state("kept").items(limit=9))
        assert keys == {key: job.state("kept").get(key) for key in keys}
        return keys, rows


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("method", ["number", "record", "either"])
def test_its_open_windows_are_read_as_those_of_python(frame: str, method: str, tmp_path: Path) -> None:
    ours, rows = kept_of(frame, method, tmp_path / "ours")
    theirs, others = kept_of(frame, method, tmp_path / "theirs", until=never)
    if method == "either":  # Python keeps the key, too
        theirs = {key: {at: kept[1:] for at, kept in windows.items()} for key, windows in theirs.items()}
    assert ours == theirs
    assert ours

    def plain(row: dict[str, Any]) -> tuple[Any, ...]:
        key, start, end, *values = (value for name, value in row.items() if name != "corrected")
        if method == "either":  # Python's are shown as text
            return key, start, end
        return (key, start, end, *(values[0].values() if isinstance(values[0], dict) else values))

    assert sorted(map(plain, rows)) == sorted(map(plain, others))


def test_a_snapshot_of_python_windows_does_not_fit(tmp_path: Path) -> None:
    kept_of("sliding", "number", tmp_path / "kept", until=never)
    topology = rel.Topology("gated")
    sinks("sliding", "number", topology.source(rel.rows(ROWS), name="rows"))
    with raises(StateError, "changed-state", operator="kept"):
        rel.run(topology, restore=rel.Snapshot(tmp_path / "kept", key=b"s" * 32))


@pytest.mark.parametrize(
    ("fold", "says"),
    [
        (lambda n, t: n + 10 // (t.price - 9), "fn: ZeroDivisionError"),
        (lambda n, t: n // (n - 7) if t.price == 9 else 7, "fn: ZeroDivisionError"),  # of what was accumulated
        (lambda n, t: (n + t.price + 9) * 2**40, "64 bits"),
    ],
)
def test_what_raises_names_its_operator_and_tuple(fold: Any, says: str) -> None:
    rows = [Offer("x", price, at, "") for at, price in enumerate([1, 2, 9])]

    def folded(s: Any) -> Any:
        timed = s.event_time("at", name="time").key_by("key")
        return timed.window(seconds=10).fold(fold, 0, name="kept")

    with raises(JobFailedError, "function-raised", says, "the tuple was", operator="kept"):
        testing.collect(folded, rows, Offer)


def test_the_whole_stream_and_rows_of_a_table() -> None:
    table = pa.table({"price": [5, None, 9], "day": [dt.date(2026, 1, 1)] * 3, "at": [1, 2, 11]})
    topology = rel.Topology("whole")
    windows = topology.source(rel.arrow(table)).event_time("at").window(seconds=10)
    windows.reduce(lambda _, t: t, name="last").sink(rel.list(), name="lasts")
    windows.fold(lambda n, t: n + (t.price or 0), 0, name="sum").sink(rel.list(), name="sums")
    assert {topology.operators[name].body.lane for name in ("last", "sum")} == {rel.Lane.COMPILED}
    result = rel.run(topology)
    day = dt.date(2026, 1, 1)
    assert [tuple(t) for t in result["lasts"]] == [(0, 10, None, day, 2), (10, 20, 9, day, 11)]
    assert [tuple(t) for t in result["sums"]] == [(0, 10, 5), (10, 20, 9)]


@pytest.mark.parametrize(
    ("declare", "why"),
    [
        (lambda w: w.fold(lambda n, t: n + t.price, 0, every=3), "early results"),
        (lambda w: w.fold(lambda n, t: [*n, t.price][-3:], [0], schema={"last": list[int]}), "types of its schema"),
        (lambda w: w.fold(lambda text, t: text + t.note, "a text of more than 12 bytes"), "12 bytes"),
        (lambda w: w.reduce(lambda one, t: t._replace(price=one.price)), "_replace"),
    ],
)
def test_what_runs_in_python_says_why(declare: Any, why: str) -> None:
    topology = rel.Topology("python")
    timed = topology.source(rel.rows(ROWS)).event_time("at").key_by("key")
    declare(timed.window(seconds=10)).sink(rel.list(), name="out")
    assert why in " ".join(topology.explain().split())
