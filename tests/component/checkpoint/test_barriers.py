"""Checkpoints at marks that go with the records: nobody stands still until all is drained; which jobs have them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.job import prepare
from rayelastic.runtime.checkpoint.protocol import why_standstill
from tests.component.checkpoint.test_checkpoints import Losing

PATIENCE = 60.0


class Row(NamedTuple):
    key: int
    n: int


ROWS = [Row(n % 7, n) for n in range(4000)]


def test_a_checkpoint_is_complete_while_other_sources_flow_on(tmp_path: Path) -> None:
    """One source stands at its gate, another one never ends: what is under way is never drained."""
    gate = testing.Gate()
    topology = rel.Topology("flows on")
    keyed = topology.source(testing.script([*ROWS[:1000], gate, *ROWS[1000:]], Row), name="rows").key_by("key")
    counts = keyed.aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count())
    counts.sink(rel.list(), name="out")
    topology.source(rel.sequence(1 << 40), name="endless").sink(rel.count(), name="drops")
    config = rel.JobConfig(pes={"rows": 0, "counts": 1}, checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0))
    made = Losing(topology, config)
    try:
        assert gate.wait_reached(PATIENCE)
        for number in (1, 2, 3):
            made.take()
            counted = made.job.status.checkpoints
            assert (counted.taken >= number, counted.abandoned, counted.problem) == (True, 0, "")
    finally:
        gate.open()
        made.job.close()


@pytest.mark.parametrize(
    "pins", [{}, {"rows": 0, "left": 0, "right": 1, "counts": 2}], ids=["one element", "three elements"]
)
def test_streams_that_fork_and_meet_go_back_to_one_moment(pins: dict[str, int], tmp_path: Path) -> None:
    """Each row goes two ways that meet again, one of them slower: after a loss each has been counted twice exactly."""
    gates = [testing.Gate(), testing.Gate()]
    script = testing.script([*ROWS[:1500], gates[0], *ROWS[1500:3000], gates[1], *ROWS[3000:]], Row)
    topology = rel.Topology("meets")
    rows = topology.source(script, name="rows")
    left = rows.map(lambda t: Row(t.key, t.n), name="left", schema=Row, lane="python")
    right = rows.filter(lambda t: t.n >= 0, name="right")
    counts = left.union(right).key_by("key").aggregate(name="counts", emit="update", all=rel.count(), sum=rel.sum("n"))
    counts.sink(rel.list(), name="out")
    config = rel.JobConfig(pes=pins, checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0))
    made = Losing(topology, config)
    try:
        for gate in gates:
            assert gate.wait_reached(PATIENCE)
            made.take()
            assert made.job.status.checkpoints.abandoned == 0
            made.lose(gate)
        out = made.job.wait(PATIENCE)["out"]
    finally:
        for gate in gates:
            gate.open()
        made.job.close()
    last = {row.key: (row.all, row.sum) for row in out}
    assert last == {
        key: (2 * sum(r.key == key for r in ROWS), 2 * sum(r.n for r in ROWS if r.key == key)) for key in range(7)
    }
    assert len(out) == 2 * len(ROWS)


def test_which_jobs_stand_still() -> None:
    def spoken(build: str) -> str:
        topology = rel.Topology("asked")
        rows = topology.source(rel.rows(ROWS, schema=Row), name="rows")
        other = rows.map(lambda t: t, name="other", schema=Row)
        if build == "meeting":
            rows.union(other).sink(rel.list(), name="out")
        if build == "concurrent":
            answers = rows.map(answer, name="ask", schema=Row)
            answers.union(other).sink(rel.list(), name="out")
        if build == "concurrent alone":
            rows.map(answer, name="ask", schema=Row).sink(rel.list(), name="out")
            other.sink(rel.list(), name="also")
        return why_standstill(prepare(topology))

    async def answer(t: Row) -> Row:
        return t

    assert spoken("meeting") == ""
    assert spoken("concurrent alone") == ""
    assert spoken("concurrent") == "'ask' waits for several calls at a time, and several streams lead to 'out'"
