"""`ordered=`: replicas keep the order that the program asks for, while they change, and no other."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.errors import ErrorCode, GraphError
from rayelastic.job import Job, start
from rayelastic.plan.routing import elastic_regions
from rayelastic.testing.collect import topology_of
from tests.component.graph.test_any_graph import QUIET, Row, rows
from tests.component.rescale.gated import gated, rows_under_changes
from tests.component.rescale.rescaling import flows
from tests.component.rescale.test_stateless_regions import Number, Numbers
from tests.waiting import wait_until, wait_until_received


def next_one(t: Row) -> Row:
    return Row(t.k, t.n + 1, t.word)


@rel.operator(outputs=Row, stateless=True)
class NextOne:
    def invoke(self, t: Row) -> Iterator[Row]:
        yield next_one(t)


def declared(stream: Any, steps: tuple[tuple[str, Any], ...], lane: Any) -> Any:
    for at, (kind, ordered) in enumerate(steps):
        source = stream.key_by("k") if ordered == "key" else stream
        if kind == "class":
            stream = source.apply(NextOne(), name=f"step{at}", ordered=ordered)
        else:
            stream = source.map(next_one, name=f"step{at}", schema=Row, lane=lane, ordered=ordered)
    return stream


def has_no_order(choices: list[Any]) -> bool:
    """Whether a step asks for the order that an earlier one has given up."""
    return any(choice is True and {False, "key"} & {*choices[:at]} for at, choice in enumerate(choices))


def by_key(found: Any) -> dict[int, list[tuple[Any, ...]]]:
    keys = defaultdict(list)
    for t in found:
        keys[t[0]].append(tuple(t))
    return dict(keys)


@seed(11)
@settings(max_examples=25, **QUIET)  # type: ignore[arg-type]
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["map", "class"]), st.sampled_from([None, True, False, "key"])),
        min_size=1,
        max_size=3,
    ).map(tuple),
    given_rows=rows,
    data=st.data(),
)
def test_replicas_that_change_keep_the_order_asked_for(
    steps: tuple[tuple[str, Any], ...], given_rows: list[Row], data: st.DataObject
) -> None:
    lane = data.draw(st.sampled_from(["python", "compiled"]))
    choices = [ordered for _, ordered in steps]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(given_rows)), min_size=1, max_size=3)))
    source, gates = gated(given_rows, cuts, Row)
    if has_no_order(choices):
        with pytest.raises(GraphError) as caught:
            topology_of(lambda s: declared(s, steps, lane), source)
        assert caught.value.code == ErrorCode.NO_ORDER
        return

    def rescale(job: Job) -> None:
        job.rescale(data.draw(st.sampled_from(elastic_regions(job.plan()))), data.draw(st.integers(1, 3)))

    config = rel.JobConfig(elasticity="off", regions="manual", threads=2)
    found = rows_under_changes(topology_of(lambda s: declared(s, steps, lane), source), config, gates, rescale)
    expected = [(t.k, t.n + len(steps), t.word) for t in given_rows]
    assert Counter(found) == Counter(expected)
    if False not in choices:
        assert by_key(found) == by_key(expected)
    if not {False, "key"} & {*choices}:
        assert found == expected


def test_other_tuples_overtake_those_of_a_replica_that_stands_still(tmp_path: Path) -> None:
    block, blocked, release = (tmp_path / name for name in ("block", "blocked", "release"))

    @rel.operator(outputs=Number, stateless=True)
    class Second:
        """Stands still in the second replica that there is."""

        def initialize(self) -> None:
            self.number = len(list(tmp_path.glob("replica*")))
            (tmp_path / f"replica{self.number}").touch()

        def invoke(self, t: Number) -> Iterator[Number]:
            if self.number == 1 and block.exists():
                blocked.touch()
                while not release.exists():
                    threading.Event().wait(0.01)
            yield t

    numbers = Numbers()
    topology = rel.Topology("overtaking")
    stream = topology.source(rel.callable(numbers, Number), name="numbers")
    stream.apply(Second(), name="work", ordered=False).sink(rel.list(), name="out")
    job = start(topology, rel.JobConfig(regions="manual", elasticity="off", threads=2))
    try:
        job.rescale(job.plan().region_of("work").region.name, 2)
        flows(job)
        block.touch()
        wait_until(job, blocked.exists)
        received = job.metrics().operator("out").tuples_in
        wait_until_received(job, "out", received + 2_000)
        release.touch()
        flows(job)
        numbers.enough.set()
        out = [t.value for t in job.wait()["out"]]
    finally:
        numbers.enough.set()
        release.touch()
        job.close()
    assert sorted(out) == list(range(numbers.made))
    assert out != sorted(out)
