"""A coordinator dies at each step of a stop: the next one has the job go on, or end where it was saved."""

from __future__ import annotations

from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic.errors import StateError
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from rayelastic.testing import Gate
from tests.component.runtime.dying_coordinator import PATIENCE, Died, Doom, DoomedHost, DoomedJob, counting
from tests.raising import raises

CONFIG = rel.JobConfig(pes={"rows": 0, "counts": 1})
STEPS = [
    (method, pe, after)
    for method in ("checkpoint.hold_sources", "checkpoint.hold_all", "checkpoint.save", "checkpoint.release")
    for pe in ("pe0", "pe1")
    for after in (False, True)
]


@pytest.mark.parametrize(("method", "pe", "after"), STEPS)
def test_a_stop_whose_coordinator_dies_is_ended_or_undone(
    method: str, pe: str, after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, doom, saved = Gate(), Doom(method, pe, after=after), tmp_path / "saved"
    topology = counting(gate)
    doomed = DoomedJob(topology, CONFIG, DoomedHost(doom), tmp_path)
    try:
        assert gate.wait_reached(PATIENCE)
        discard = SnapshotFolder.discard
        monkeypatch.setattr(SnapshotFolder, "discard", lambda self: None if doom.died else discard(self))
        monkeypatch.setattr(doomed.coordinator._journal, "resumes", lambda: None)  # it is dead
        with pytest.raises(Died):
            doomed.job.stop(saved)
        monkeypatch.undo()
        doomed.follow()
        gate.open()
        left = doomed.numbers()
    finally:
        gate.open()
        doomed.job.close()
    if method == "checkpoint.release":  # it had been saved by then
        rest = rel.run(topology, CONFIG, restore=saved)["out"]
        assert left + [row.n for row in rest] == list(range(600))
        assert 0 < len(left) < 600
    else:
        assert left == list(range(600))
        with raises(StateError, "damaged-state"):
            rel.run(topology, restore=saved)
