"""A coordinator dies while its job goes over to another plan; the next one goes back, and no row is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.job import Job, LocalControl, prepare
from rayelastic.runtime.element.host import InProcessHandle
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.rescale.change_journal import ChangeJournal, FileStore
from rayelastic.runtime.values.status import State
from rayelastic.testing import Gate
from tests.component.test_stop_crashes import PATIENCE, ROWS, Died, Doom, DoomedHost, Row

STEPS = [
    ("save_at_marks", "pe0", False),
    ("save_at_marks", "pe0", True),
    ("commit", "pe0", False),
    ("open", "pe0", False),
    ("open", "pe1", True),
    ("connect", "pe0", True),
    ("start", "pe1", False),
    ("start", "pe0", True),
]


class Host(DoomedHost):
    """A process that has been cleared hosts nothing, as on Ray."""

    def find_pes(self) -> Sequence[InProcessHandle]:
        return [made for made in self._made.values() if made._element.status().state is not State.CANCELLED]


@pytest.mark.parametrize(("method", "pe", "after"), STEPS)
def test_a_coordinator_dies_while_the_plan_changes(method: str, pe: str, after: bool, tmp_path: Path) -> None:
    gate, doom = Gate(), Doom("", "", after=False)
    topology = rel.Topology("changes")
    rows = topology.source("rows", testing.script([*ROWS[:300], gate, *ROWS[300:]], Row))
    rows.key_by("key").aggregate("counts", emit="update", n=rel.last("n"), all=rel.count()).sink("out", rel.list())
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0))
    spec, host = prepare(topology, config), Host(doom)
    first = Coordinator(spec, host, journal=ChangeJournal(FileStore(tmp_path / "journal")))
    job = Job("changes", LocalControl(first), topology)
    job._start()
    try:
        assert gate.wait_reached(PATIENCE)
        plan = job.plan()
        region = plan.region_of("counts").region.name
        doom.when, doom.after = (method, pe), after
        with pytest.raises(Died):
            job.change(plan.with_replicas(region, 1, ["pe1"]))
        assert first._safety is not None
        first._safety._loop.halt()  # it is dead
        first._life.end = lambda *_: None  # type: ignore[method-assign]
        first._journal.close()
        doom.died, doom.when = False, ("", "")
        second = Coordinator(spec, host, journal=ChangeJournal(FileStore(tmp_path / "journal")))
        second.resume()
        gate.open()
        job = Job("changes", LocalControl(second), topology)
        left = [row.n for row in job.wait(PATIENCE)["out"]]
    finally:
        gate.open()
        job.close()
    assert left == list(range(600))
