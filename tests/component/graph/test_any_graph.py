"""Any graph of operators gives the same in every lane, at 1, 2 and 8 threads, in every threading model, with state
exported and imported at random moments: live, and into another job (issue 5's property; J05, J07, J16).

The gate tries few graphs; `./dev nightly` tries many.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.fluent.stream import Stream
from rayelastic.plan.settings.threads import ModelName
from rayelastic.runtime.checkpoint.state_files import export_chunks
from rayelastic.testing.collect import SINK, SOURCE, topology_of
from tests.component.rescale.gated import gated
from tests.waiting import wait_until_emitted

KEY = b"0123456789abcdef" * 2
PATIENCE = 60.0
LANES = ("python", "compiled")
MODELS: tuple[ModelName, ...] = ("manual", "dynamic", "dedicated")
THREADS = (1, 2, 8)
LATEST = 20_000  # more than any n


class Row(NamedTuple):
    k: int
    n: int
    word: str


class Memory(NamedTuple):
    seen: int = 0
    total: int = 0
    word: str = ""


def shift(t: Row) -> Row:
    return Row(t.k, (t.n * 7 + 3) % 1009, t.word)


def rekey(t: Row) -> Row:
    return Row((t.k * 5 + t.n) % 11, t.n, t.word)


def shout(t: Row) -> Row:
    return Row(t.k, t.n + len(t.word), t.word.upper() + "!")


def odd(t: Row) -> bool:
    return t.n % 2 == 1


def small(t: Row) -> bool:
    return t.n < 700


def some(t: Row) -> Any:
    for copy in range(t.n % 3):
        yield Row(t.k, t.n + copy, t.word)


def remember(t: Row, s: Any) -> Row:
    s.seen += 1
    s.total += t.n
    if len(t.word) > len(s.word):
        s.word = t.word
    return Row(t.k, (s.total + s.seen) % 1009, s.word)


def every_second(t: Row, s: Any) -> bool:
    s.seen += 1
    return s.seen % 2 == 0


Step = Callable[[Stream, str, Any], Stream]


def pair(stream: Stream, lane: Any) -> Stream:
    return stream.flat_map(some, name="some", lane=lane, schema=Row).map(shout, name="shout", lane=lane, schema=Row)


def recalled(stream: Stream, lane: Any) -> Stream:
    made: Stream = stream.key_by("k").map(remember, name="remember", state=Memory, lane=lane, schema=Row)
    return made


def united(parts: Any) -> Stream:
    first, *others = parts
    made: Stream = first.union(*others)
    return made


def timed(stream: Stream, name: str, side: str) -> Stream:
    return stream.event_time("n", name=f"{name}-{side}", lateness=LATEST)  # of two streams, who is late depends on both


STATELESS: dict[str, Step] = {
    "shift": lambda s, name, lane: s.map(shift, name=name, lane=lane, schema=Row),
    "rekey": lambda s, name, lane: s.map(rekey, name=name, lane=lane, schema=Row),
    "shout": lambda s, name, lane: s.map(shout, name=name, lane=lane, schema=Row),
    "odd": lambda s, name, lane: s.filter(odd, name=name, lane=lane),
    "small": lambda s, name, lane: s.filter(small, name=name, lane=lane),
    "some": lambda s, name, lane: s.flat_map(some, name=name, lane=lane, schema=Row),
    "in channels": lambda s, name, lane: s.parallel(2, lambda c: pair(c, lane), name=name, order=True),
    "elastic": lambda s, name, lane: s.elastic(lambda c: pair(c, lane), name=name, most=3, start=2, order=True),
}
ORDERED: dict[str, Step] = {
    "remember": lambda s, name, lane: s.key_by("k").map(remember, name=name, state=Memory, lane=lane, schema=Row),
    "every second": lambda s, name, lane: s.key_by("word").filter(every_second, name=name, state=Memory, lane=lane),
    "by key": lambda s, name, lane: s.parallel(3, lambda c: recalled(c, lane), name=name, by="k", order=True),
}
LAST: dict[str, Step] = {
    "as it is": lambda s, name, lane: s,
    "totals": lambda s, name, lane: s.key_by("k").aggregate(name=name, n=rel.sum("n"), most=rel.max("word")),
    "all": lambda s, name, lane: s.aggregate(name=name, rows=rel.count(), mean=rel.mean("n")),
    "by hash": lambda s, name, lane: united(s.key_by("word").split(3, name=name)),
    "by predicate": lambda s, name, lane: united(s.split(name=name, lane=lane, odd=odd, small=small)),
}
TIMELY: dict[str, Step] = {  # what they keep can't move yet
    "windows": lambda s, name, lane: s.key_by("k").window(count=4, slide=3).aggregate(name=name, n=rel.sum("n")),
    "moving": lambda s, name, lane: s.window(count=5, slide=1).aggregate(
        name=name, top=rel.max("n"), last=rel.last("word")
    ),
    "by time": lambda s, name, lane: (
        timed(s, name, "n").key_by("k").window(seconds=50).aggregate(name=name, n=rel.count())
    ),
    "joined": lambda s, name, lane: (
        timed(s, name, "left").key_by("k").join(timed(s, name, "right"), name=name, how="left")
    ),
}


@dataclass(frozen=True)
class Graph:
    """Steps in a row; then, it may be, two branches that meet again; then what is left at the end."""

    steps: tuple[str, ...]
    branches: tuple[tuple[str, ...], ...]
    last: str

    def declare(self, stream: Stream, lane: Any) -> Stream:
        both = {**STATELESS, **ORDERED}
        for number, step in enumerate(self.steps):
            stream = both[step](stream, f"step{number}", lane)
        made = []
        for side, steps in enumerate(self.branches):
            branch = stream
            for number, step in enumerate(steps):
                branch = both[step](branch, f"side{side}-{number}", lane)
            made.append(branch)
        if made:
            stream = made[0].union(*made[1:])
        return {**LAST, **TIMELY}[self.last](stream, "last", lane)


steps = st.lists(st.sampled_from([*STATELESS, *ORDERED]), min_size=1, max_size=4).map(tuple)
graphs = st.builds(
    Graph,
    steps=steps,
    branches=st.one_of(st.just(()), st.tuples(steps, steps)),
    last=st.sampled_from([*LAST]),
)
timely_graphs = st.builds(Graph, steps=steps, branches=st.just(()), last=st.sampled_from([*TIMELY]))
rows = st.builds(
    lambda count, salt: [Row((n * salt) % 7, (n * n + salt) % 1009, "wörd " * (n % 5)) for n in range(count)],
    count=st.integers(0, 400),
    salt=st.integers(1, 50),
)


def move_state(job: rel.Job) -> None:
    """Takes the state of every operator of a live job out, in small chunks, and puts it back."""
    element = job._control._coordinator._cluster.handles["pe0"]._element  # type: ignore[attr-defined]
    scheduler, natives = element._running.scheduler, element._hosted.natives
    scheduler.hold(range(len(natives)), drain=True, timeout=PATIENCE)
    for native in natives.values():
        if native.state is not None:
            chunks = list(export_chunks(native.state, max_bytes=64))
            native.state.remove()
            for chunk in reversed(chunks):
                native.state.import_(chunk)
    scheduler.release()


def run(graph: Graph, given: list[Row], lane: str, config: rel.JobConfig, cuts: list[int]) -> Counter[Any]:
    """The graph's output where state moves after `cuts` of the rows, the last time into another job."""

    def declared(stream: Stream) -> Stream:
        return graph.declare(stream, lane)

    source, gates = gated(given, cuts, Row)
    job = rel.start(topology_of(declared, source), config)
    try:
        for cut, gate in zip(cuts, gates, strict=True):
            assert gate.wait_reached(PATIENCE), job.status
            wait_until_emitted(job, SOURCE, cut)
            if gate is not gates[-1]:
                move_state(job)
                gate.open()
        with tempfile.TemporaryDirectory() as folder:
            snapshot = rel.Snapshot(f"{folder}/snapshot", key=KEY)
            output = job.stop(snapshot)[SINK]
            return Counter(map(tuple, output)) + Counter(
                testing.collect(declared, given, Row, config, restore=snapshot)
            )
    finally:
        job.close()


def check(graph: Graph, given: list[Row], data: st.DataObject) -> None:
    expected = Counter(
        testing.collect(lambda s: graph.declare(s, "python"), given, Row, rel.JobConfig(elasticity="off"))
    )
    for lane in LANES:
        for model in MODELS:
            threads = data.draw(st.sampled_from(THREADS))
            queue = data.draw(st.sampled_from([2, 64, 1024]))
            config = rel.JobConfig(
                threads=rel.Threads(count=threads, model=model, queue_records=queue, run_records=min(queue, 64)),
                elasticity="off",
            )
            if graph.last in TIMELY:
                found = Counter(testing.collect(partial(graph.declare, lane=lane), given, Row, config))
                assert found == expected, (lane, model, threads, queue)
                continue
            cuts = sorted(data.draw(st.lists(st.integers(0, len(given)), min_size=1, max_size=3)))
            assert run(graph, given, lane, config, cuts) == expected, (lane, model, threads, queue, cuts)


QUIET = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}


@seed(5)
@settings(max_examples=12, **QUIET)  # type: ignore[arg-type]
@given(graph=graphs, given=rows, data=st.data())
def test_any_graph_gives_the_same_however_it_runs(graph: Graph, given: list[Row], data: st.DataObject) -> None:
    check(graph, given, data)


@seed(6)
@settings(max_examples=6, **QUIET)  # type: ignore[arg-type]
@given(graph=timely_graphs, given=rows, data=st.data())
def test_any_graph_with_windows_or_a_join_gives_the_same(graph: Graph, given: list[Row], data: st.DataObject) -> None:
    check(graph, given, data)


@pytest.mark.nightly
@settings(max_examples=1000, **QUIET)  # type: ignore[arg-type]
@given(graph=st.one_of(graphs, timely_graphs), given=rows, data=st.data())
def test_a_thousand_graphs_give_the_same(graph: Graph, given: list[Row], data: st.DataObject) -> None:
    check(graph, given, data)
