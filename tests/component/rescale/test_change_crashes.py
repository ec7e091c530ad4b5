"""A coordinator dies while its job goes over to another plan; the next one goes back, and no row is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic.runtime.element.host import InProcessHandle
from rayelastic.runtime.values.status import State
from rayelastic.testing import Gate
from tests.component.runtime.dying_coordinator import PATIENCE, Died, Doom, DoomedHost, DoomedJob, counting

STEPS = [
    ("checkpoint.save_at_barriers", "pe0", False),
    ("checkpoint.save_at_barriers", "pe0", True),
    ("checkpoint.commit", "pe0", False),
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
    gate, doom = Gate(), Doom()
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0))
    doomed = DoomedJob(counting(gate), config, Host(doom), tmp_path)
    try:
        assert gate.wait_reached(PATIENCE)
        plan = doomed.job.plan()
        region = plan.region_of("counts").region.name
        doom.when, doom.after = (method, pe), after
        with pytest.raises(Died):
            doomed.job.change(plan.with_replicas(region, 1, ["pe1"]))
        assert doomed.coordinator._checkpoints is not None
        doomed.coordinator._checkpoints.loop.halt()  # it is dead
        doomed.follow()
        gate.open()
        left = doomed.numbers()
    finally:
        gate.open()
        doomed.job.close()
    assert left == list(range(600))
