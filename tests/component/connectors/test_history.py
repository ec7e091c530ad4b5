"""History, then live: two sources as one, whose seam loses and doubles no row, wherever a job is stopped."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pytest
from pyarrow import parquet

import rayelastic as rel
from rayelastic import testing
from rayelastic.connectors.pushed.declaration import IngestSource
from rayelastic.errors import GraphError, JobFailedError, SchemaError, StateError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.unread import mark_unread
from tests.component.checkpoint.test_checkpoints import Losing
from tests.kafka import Topics, kafka_broker, needs_kafka, part_files, topics
from tests.raising import raises
from tests.waiting import wait_until, wait_until_emitted, wait_until_received

__all__ = ["kafka_broker", "topics"]

PATIENCE = 60.0
PAST, ALL = 6, 10  # rows of the history, and of both
EACH = 1500  # rows of a part, of those that are stopped somewhere
N = {"n": int}


class Event(NamedTuple):
    at: int  # milliseconds
    n: int


def topology_of(history: Any, live: Any) -> rel.Topology:
    topology = rel.Topology("history")
    topology.source(rel.history(history).then(live), name="both").sink(rel.list(), name="out")
    return topology


def rows(history: Any, live: Any) -> list[Any]:
    return [tuple(t) for t in rel.run(topology_of(history, live))["out"]]


def numbers(*ranges: range) -> list[Any]:
    return [rel.rows([(n,) for n in of], N) for of in ranges]


def in_parquet(folder: Path, of: range) -> Any:
    half = len(of) // 2
    for number, part in enumerate((of[:half], of[half:])):
        table = pa.table({"n": pa.array(part, pa.int64())})
        parquet.write_table(table, folder / f"{number}.parquet", row_group_size=100)
    return rel.parquet(folder / "*.parquet", N)


def in_csv(folder: Path, of: range) -> Any:
    half = len(of) // 2
    for number, part in enumerate((of[:half], of[half:])):
        (folder / f"{number}.csv").write_text("n\n" + "".join(f"{n}\n" for n in part))
    return rel.csv(folder / "*.csv", N)


def in_json(folder: Path, of: range) -> Any:
    (folder / "rows.json").write_text("".join(json.dumps({"n": n}) + "\n" for n in of))
    return rel.json(folder / "rows.json", N)


class Numbers:
    """Two partitions, as a client of one's own has them."""

    idle = 0.01

    def __init__(self, of: range) -> None:
        self.of = of

    def partitions(self) -> list[str]:
        return ["even", "odd"]

    def open(self, partition: str, position: Any) -> Any:
        return Polled(self.of[partition == "odd" :: 2], position or 0)


class Polled:
    def __init__(self, of: range, position: int) -> None:
        self.of, self.position = of, position

    def poll(self) -> list[Any] | None:
        batch = self.of[self.position : self.position + 50]
        self.position += len(batch)
        return [(n,) for n in batch] or None


KINDS: dict[str, Callable[[Path, range], Any]] = {
    "parquet": in_parquet,
    "csv": in_csv,
    "json": in_json,
    "arrow": lambda _, of: rel.arrow(pa.table({"n": pa.array(of, pa.int64())}), N),
    "rows": lambda _, of: rel.rows([(n,) for n in of], N),
    "generate": lambda _, of: rel.generate(lambda i: of.start + i, len(of), N),
    "callable": lambda _, of: rel.callable(lambda: iter([(n,) for n in of]), N),
    "polled": lambda _, of: rel.polled(Numbers(of), N),
    "nested": lambda _, of: rel.history(numbers(of[:700])[0]).then(numbers(of[700:])[0]),
}


@pytest.mark.parametrize("least", [300, EACH - 20, EACH + 400])
@pytest.mark.parametrize(("past", "live"), [(one, "rows") for one in KINDS] + [("rows", one) for one in KINDS])
def test_it_continues_wherever_a_job_was_stopped(past: str, live: str, least: int, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("past", "live")]
    for folder in folders:
        folder.mkdir()

    def topology() -> rel.Topology:
        made = rel.Topology("stopped")
        first = KINDS[past](folders[0], range(EACH))
        both = rel.history(first).then(KINDS[live](folders[1], range(EACH, 2 * EACH)))
        made.source(both, name="both").throttle(6000, name="paced").sink(rel.list(), name="out")
        return made

    job = rel.start(topology())
    wait_until_received(job, "out", least)
    read = [t.n for t in job.stop(tmp_path / "saved")["out"]]
    assert least <= len(read) < 2 * EACH
    read += [t.n for t in rel.run(topology(), restore=tmp_path / "saved")["out"]]
    assert sorted(read) == [*range(2 * EACH)]
    assert sorted(read[:EACH]) == [*range(EACH)]  # the history comes first


def scripted(gate: testing.Gate, emitted: int, *, history_ends: bool) -> tuple[Any, Any]:
    """A history and a live source that wait at a gate after so many rows."""
    past: list[Any] = [Event(10 * n, n) for n in range(PAST)]
    live: list[Any] = [Event(10 * n, n) for n in range(PAST, ALL)]
    if emitted < PAST or not history_ends:
        past.insert(emitted, gate)
    else:
        live.insert(emitted - PAST, gate)
    return testing.script(past, Event), testing.script(live, Event)


POINTS = [(n, True) for n in range(ALL + 1)] + [(PAST, False)]


@pytest.mark.parametrize(("emitted", "history_ends"), POINTS)
def test_windows_and_rows_are_right_at_every_restart_point(emitted: int, history_ends: bool, tmp_path: Path) -> None:
    def topology(history: Any, live: Any) -> rel.Topology:
        made = rel.Topology("windows")
        events = made.source(rel.history(history).then(live), name="both")
        events.sink(rel.list(), name="rows")
        timed = events.event_time("at", lateness=0, unit="ms")
        timed.window(seconds=0.02).aggregate(name="sums", n=rel.sum("n")).sink(rel.list(), name="out")
        return made

    gate = testing.Gate()
    job = rel.start(topology(*scripted(gate, emitted, history_ends=history_ends)))
    assert gate.wait_reached(PATIENCE)
    wait_until_received(job, "rows", emitted)
    stopped = job.stop(tmp_path / "saved")
    gate.open()
    opened = testing.Gate()
    opened.open()
    again = rel.run(topology(*scripted(opened, emitted, history_ends=history_ends)), restore=tmp_path / "saved")
    assert [t.n for t in [*stopped["rows"], *again["rows"]]] == [*range(ALL)]
    assert [t.n for t in stopped["rows"]] == [*range(emitted)]
    windows = [tuple(t) for t in [*stopped["out"], *again["out"]]]
    assert windows == [(20 * n, 20 * n + 20, 4 * n + 1) for n in range(ALL // 2)]


@pytest.mark.parametrize("is_restored", [False, True])
def test_a_window_over_the_seam_closes_while_the_live_source_runs(is_restored: bool, tmp_path: Path) -> None:
    """Files of the history have watermarks of their own, which don't stay after it, also in a restored state."""
    (tmp_path / "past").mkdir()
    for number in range(3):
        table = pa.table({"at": range(number, 105, 3), "n": [1] * 35})
        parquet.write_table(table, tmp_path / "past" / f"{number}.parquet")

    def topology(live: list[Any]) -> rel.Topology:
        made = rel.Topology("seam")
        both = rel.history(rel.parquet(tmp_path / "past", Event)).then(testing.script(live, Event))
        events = made.source(both, name="both")
        events.sink(rel.count(), name="rows")
        counted = events.event_time("at", lateness=0, unit="ms").window(seconds=0.01).aggregate(n=rel.count())
        counted.sink(rel.call(lambda t: closed.open() if t.end == 110 else None), name="open")
        counted.sink(rel.list(), name="out")
        return made

    at_seam, closed = testing.Gate(), testing.Gate()
    live = [at_seam, *(Event(at, 1) for at in range(105, 120)), closed, Event(130, 1)]
    job, before = rel.start(topology(live)), []
    assert at_seam.wait_reached(PATIENCE)
    wait_until_received(job, "rows", 105)
    if is_restored:
        before = [tuple(t) for t in job.stop(tmp_path / "saved")["out"]]
        at_seam.open()
        job = rel.start(topology(live), restore=tmp_path / "saved")
    at_seam.open()
    result = job.wait(PATIENCE)  # the last row comes only when the window over the seam has closed
    windows = [*before, *(tuple(t) for t in result["out"])]
    assert windows == [(at, at + 10, 10) for at in range(0, 120, 10)] + [(130, 140, 1)]


def test_windows_close_by_the_clock_while_the_live_source_is_silent() -> None:
    gate = testing.Gate()
    topology = rel.Topology("idle")
    past = rel.rows([Event(1, 1), Event(4, 1)], Event)
    both = rel.history(past).then(testing.script([gate, Event(30, 1)], Event))
    timed = topology.source(both, name="both").event_time("at", unit="ms", idle_after=0.1, by_clock=True)
    counts = timed.window(seconds=0.01).aggregate(n=rel.count())
    counts.sink(rel.call(lambda _: gate.open()), name="open")
    counts.sink(rel.list(), name="out")
    assert next(tuple(t) for t in rel.run(topology)["out"]) == (0, 10, 2)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_job_that_recovers_reads_each_row_once(lost: int, tmp_path: Path) -> None:
    """Checkpoints in the history, at the seam and in the live source; a PE is lost after one of them."""
    gates = [testing.Gate() for _ in range(3)]
    past = [*((n,) for n in range(100)), gates[0], *((n,) for n in range(100, 200))]
    live = [gates[1], *((n,) for n in range(200, 300)), gates[2], *((n,) for n in range(300, 400))]
    topology = rel.Topology("recovers")
    both = rel.history(testing.script(past, N)).then(testing.script(live, N))
    topology.source(both, name="both").sink(rel.parquet(str(tmp_path / "out")), name="out")
    losing = Losing(topology, rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0)))
    try:
        for number, gate in enumerate(gates):
            assert gate.wait_reached(PATIENCE)
            losing.take()
            if lost == number:
                losing.lose(gate)
            gate.open()
        losing.job.wait(PATIENCE)
    finally:
        for gate in gates:
            gate.open()
        losing.job.close()
    assert sorted(part_files(tmp_path / "out")) == [(n,) for n in range(400)]


@pytest.mark.parametrize(("past", "live"), [(0, 3), (3, 0), (0, 0)])
def test_one_of_them_may_be_empty(past: int, live: int) -> None:
    assert rows(*numbers(range(past), range(past, past + live))) == [(n,) for n in range(past + live)]


def test_files_of_a_history_that_was_read_may_change(tmp_path: Path) -> None:
    def topology(live: Sequence[Any]) -> rel.Topology:
        return topology_of(rel.csv(tmp_path / "past/*.csv", N), testing.script(live, N))

    (tmp_path / "past").mkdir()
    (tmp_path / "past/0.csv").write_text("n\n1\n2\n")
    gate = testing.Gate()
    job = rel.start(topology([(3,), gate, (4,)]))
    assert gate.wait_reached(PATIENCE)
    wait_until_received(job, "out", 3)
    (tmp_path / "past/0.csv").write_text("n\n7\n")
    assert [t.n for t in job.stop(tmp_path / "saved")["out"]] == [1, 2, 3]
    gate.open()
    (tmp_path / "past/1.csv").write_text("n\n8\n")
    assert [t.n for t in rel.run(topology([(3,), (4,)]), restore=tmp_path / "saved")["out"]] == [4]


def test_a_history_that_changed_before_it_was_read_is_an_error(tmp_path: Path) -> None:
    gate = testing.Gate()

    def topology(count: int) -> rel.Topology:
        past = testing.script([*((n,) for n in range(count)), gate], N)
        return topology_of(past, rel.rows([(9,)], N))

    job = rel.start(topology(5))
    assert gate.wait_reached(PATIENCE)
    wait_until_received(job, "out", 5)
    job.stop(tmp_path / "saved")
    gate.open()
    with pytest.raises(JobFailedError, match="ended 2 tuples before where the job was stopped"):
        rel.run(topology(3), restore=tmp_path / "saved")
    with raises(StateError, "changed-input", "history, then live", operator="both"):
        alone = rel.Topology("history")
        alone.source(rel.history(in_csv(tmp_path, range(9))).then(rel.rows([(9,)], N)), name="both").sink(
            rel.list(), name="out"
        )
        plain = rel.Topology("history")
        plain.source(rel.csv(tmp_path / "*.csv", N), name="both").throttle(20).sink(rel.list(), name="out")
        job = rel.start(plain)
        job.stop(tmp_path / "plain")
        rel.run(alone, restore=tmp_path / "plain")


def test_an_error_of_either_names_the_operator() -> None:
    def breaks() -> Any:
        yield (1,)
        raise OSError("the disk is gone")

    fine, broken = rel.rows([(0,)], N), rel.callable(breaks, N)
    for history, live in ((fine, broken), (broken, fine)):
        with pytest.raises(JobFailedError, match="operator 'both': OSError: the disk is gone"):
            rows(history, live)
    with pytest.raises(JobFailedError, match=r"its iterator yielded \(1, 2\)"):
        rows(fine, rel.callable(lambda: iter([(1, 2)]), N))


def test_columns_that_nobody_reads_are_left_out_of_the_history(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"at": [1, 2], "n": [3, 4]}), tmp_path / "past.parquet")
    topology = rel.Topology("pruned")
    both = rel.history(rel.parquet(tmp_path / "past.parquet", Event)).then(rel.rows([Event(5, 6)], Event))
    topology.source(both, name="both").map(lambda t: t.n, name="n").sink(rel.list(), name="out")
    assert mark_unread(topology.operators)["both"].unread == ("at",)
    assert [t.value for t in rel.run(topology)["out"]] == [3, 4, 6]


def test_bad_rows_of_one_of_them_are_diverted(tmp_path: Path) -> None:
    (tmp_path / "past.csv").write_text("n\n1\nx\n2\n")
    topology = rel.Topology("bad")
    past = rel.csv(tmp_path / "past.csv", N, on_bad_row="divert")
    stream = topology.source(rel.history(past).then(rel.rows([(3,)], N)), name="both")
    stream.sink(rel.list(), name="out")
    stream.errors.sink(rel.list(), name="bad")
    result = rel.run(topology)
    assert ([t.n for t in result["out"]], [t.text for t in result["bad"]]) == ([1, 2, 3], ["x"])


def test_bad_rows_of_both_are_counted(tmp_path: Path) -> None:
    for name in ("past", "live"):
        (tmp_path / f"{name}.csv").write_text("n\n1\nx\n")
    files = [rel.csv(tmp_path / f"{name}.csv", N, on_bad_row="skip") for name in ("past", "live")]
    assert rel.run(topology_of(*files)).metrics.operator("both").dropped == {"bad_row": 2}


def test_an_object_is_initialized_on_the_pe() -> None:
    class Client(Numbers):
        def initialize(self) -> None:
            self.of = range(4)

    read = rows(rel.rows([(9,)], N), rel.polled(Client(range(0)), N))
    assert (read[0], sorted(read[1:])) == ((9,), [(n,) for n in range(4)])


def test_what_cannot_be_combined_is_an_error_at_the_declaration(tmp_path: Path) -> None:
    def declared(history: Any, live: Any) -> None:
        topology_of(history, live)

    fine = rel.rows([(0,)], N)
    with raises(SchemaError, "schema-mismatch", "'n: int64' and 'n: string'; 'none' and 'm: int64'", operator="both"):
        declared(fine, rel.rows([("a", 1)], {"n": str, "m": int}))
    with raises(SchemaError, "schema-mismatch", "'n: int64' and 'n: int64 | None'"):
        declared(fine, rel.rows([(0,)], {"n": int | None}))
    with raises(SchemaError, "schema-mismatch", "a, b and b, a, in this order"):
        declared(rel.rows([(0, 1)], {"a": int, "b": int}), rel.rows([(0, 1)], {"b": int, "a": int}))
    with raises(SchemaError, "unsupported-type", "Python objects"):
        declared(*[rel.rows([(object(),)], {"o": Any})] * 2)
    with raises(GraphError, "conflicting-arguments", "never ends"):
        declared(rel.generate(lambda n: n, None, N), fine)
    with raises(GraphError, "conflicting-arguments", "an object of a class"):
        declared(rel.polled(Numbers(range(1)), N), rel.polled(Numbers(range(1)), N))
    with raises(GraphError, "not-a-source", "needs the source that continues it"):
        rel.Topology("t").source(rel.history(fine))
    with raises(GraphError, "not-a-source"):
        declared(fine, 7)
    with raises(GraphError, "not-a-source", "pushed from outside"):
        declared(fine, IngestSource(Schema.of(N), "a client"))
    (tmp_path / "bad.csv").write_text("n\n1\n")
    diverting = rel.csv(tmp_path / "bad.csv", N, on_bad_row="divert")
    with raises(GraphError, "conflicting-arguments", "both sources divert"):
        declared(diverting, diverting)


def test_explain_names_both(tmp_path: Path) -> None:
    shown = str(topology_of(in_parquet(tmp_path, range(4)), rel.rows([(0,)], N)).explain())
    assert "first Parquet files (pyarrow reader, native conversion), then" in " ".join(shown.split())


def message(n: int) -> bytes:
    return b'{"n": %d}' % n


@needs_kafka
@pytest.mark.guarantee(
    source="Parquet files, then a topic of Kafka",
    sink="Parquet files",
    lost="a PE, in either and between them",
    rows="each once",
)
@pytest.mark.parametrize("lost", ["history", "seam", "live", "all"])
def test_a_topic_continues_files_though_pes_are_lost(topics: Topics, lost: str, tmp_path: Path) -> None:
    topic, gate, out = topics.make(3), testing.Gate(), tmp_path / "out"
    gate.open()
    (tmp_path / "past").mkdir()
    columns = {"n": range(900), "p": [-1] * 900, "o": range(900)}
    parquet.write_table(pa.table(columns), tmp_path / "past/0.parquet", row_group_size=100)
    seen: set[tuple[int, int]] = set()

    def has_seen(rows: int) -> bool:
        return len(seen) >= rows

    def topology() -> rel.Topology:
        made = rel.Topology("recovers")
        past = rel.parquet(tmp_path / "past", {"n": int, "p": int, "o": int})
        live = rel.kafka(topics.address, topic, N, fields={"partition": "p", "offset": "o"})
        both = made.source(rel.history(past).then(live), name="both").throttle(900, name="paced")
        both.sink(rel.parquet(str(out)), name="out")
        both.sink(rel.call(lambda t: seen.add((t.n, t.p))), name="seen")
        return made

    losing = Losing(topology(), rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0)))
    job, written = losing.job, 0
    try:
        for point, rows in (("history", 200), ("seam", 900), ("live", 990)):
            wait_until(job, functools.partial(has_seen, rows))
            losing.take()
            if lost in (point, "all"):
                losing.lose(gate)
            if point != "history":
                for partition in range(3):
                    topics.write(topic, [message(n) for n in range(written, written + 30)], partition)
                written += 30
        wait_until(job, functools.partial(has_seen, 1080))
        job.stop(tmp_path / "stopped")
    finally:
        job.close()
    topics.write(topic, [message(written)])
    job = rel.start(topology(), restore=tmp_path / "stopped")
    wait_until_received(job, "out", 1)
    job.stop(tmp_path / "again")
    history = [(n, -1, n) for n in range(900)]
    assert part_files(tmp_path / "out")[:900] == history
    expected = [(n, p, n) for n in range(60) for p in range(3)] + [(60, 0, 60)]
    assert sorted(part_files(tmp_path / "out")[900:]) == sorted(expected)


@needs_kafka
@pytest.mark.parametrize("is_restored", [False, True])
@pytest.mark.parametrize("start", ["latest", "earliest"])
def test_messages_that_arrive_while_the_history_is_read_are_read_after_it(
    topics: Topics, start: Literal["latest", "earliest"], is_restored: bool, tmp_path: Path
) -> None:
    topic, gate = topics.make(), testing.Gate()
    topics.write(topic, [message(n) for n in range(3)])

    def topology() -> rel.Topology:
        past = testing.script([(100,), gate, (101,)], N)
        return topology_of(past, rel.kafka(topics.address, topic, N, start=start))

    job, before = rel.start(topology()), []
    assert gate.wait_reached(PATIENCE)
    wait_until_received(job, "out", 1)
    assert job.metrics().operator("both").lag == 0  # of the history
    topics.write(topic, [message(n) for n in range(3, 6)])
    if is_restored:
        before = [t.n for t in job.stop(tmp_path / "saved")["out"]]
        gate.open()
        job = rel.start(topology(), restore=tmp_path / "saved")
    gate.open()
    expected = [100, 101, *range(3 if start == "latest" else 0, 6)]
    wait_until_received(job, "out", len(expected) - len(before))
    wait_until(job, lambda: job.metrics().operator("both").lag == 0)
    assert [*before, *(t.n for t in job.stop(tmp_path / "again")["out"])] == expected


@needs_kafka
def test_a_topic_continues_a_topic_and_its_partitions_have_watermarks(topics: Topics, tmp_path: Path) -> None:
    old, new = topics.make(2), topics.make(2)
    for n in range(40):
        topics.write(old if n < 20 else new, [b'{"at": %d, "n": %d}' % (n, n)], n % 2)

    def topology() -> rel.Topology:
        made = rel.Topology("topics")
        past, live = (rel.kafka(topics.address, topic, Event, stop="end") for topic in (old, new))
        paced = made.source(rel.history(past).then(live), name="both").throttle(10, name="paced")
        timed = paced.event_time("at", lateness=0, unit="ms")
        timed.window(seconds=0.01).aggregate(n=rel.count()).sink(rel.list(), name="out")
        return made

    job = rel.start(topology())
    wait_until_emitted(job, "paced", 25)
    results = [job.stop(tmp_path / "saved"), rel.run(topology(), restore=tmp_path / "saved")]
    windows = [tuple(t) for result in results for t in result["out"]]
    assert windows == [(at, at + 10, 10) for at in range(0, 40, 10)]
