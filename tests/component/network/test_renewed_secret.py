"""A running job goes on with another secret: the old one opens nothing any more, and no row is lost or doubled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import ChangeError
from rayelastic.job import Job
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.journal import ChangeJournal
from rayelastic.runtime.port.data_port import HandshakeError, Refusal, dial
from tests.component.runtime.dying_coordinator import PATIENCE, ROWS, Died, Doom, DoomedHost, DoomedJob, Row
from tests.file_store import FileStore
from tests.raising import raises
from tests.waiting import wait_until

GATES = 2
SETTLED = {"regions": "manual", "elasticity": "off"}


@pytest.fixture
def gates() -> Iterator[list[testing.Gate]]:
    made = [testing.Gate() for _ in range(GATES)]
    yield made
    for gate in made:
        gate.open()


def topology(gates: list[testing.Gate]) -> rel.Topology:
    """Counts by key; its source stops at each gate."""
    made = rel.Topology("renewed")
    script = testing.script([*ROWS[:200], gates[0], *ROWS[200:400], gates[1], *ROWS[400:]], Row)
    keyed = made.source(script, name="rows").key_by("key")
    keyed.aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count()).sink(rel.list(), name="out")
    return made


def region_of(job: Job) -> str:
    return str(job.plan().region_of("counts").region.name)


def said(coordinator: Coordinator, secret: bytes) -> Refusal | None:
    """What an element's port says to somebody who has this secret; None: that it believes him."""
    address = coordinator._cluster._addresses["pe0"]
    assert address is not None
    try:
        dial(
            address,
            job_id=coordinator._job.job_id,
            sender="stranger",
            receiver="pe0",
            channel="link:nobody->there",
            epoch=1 << 20,
            secret=secret,
        ).close()
    except HandshakeError as error:
        return error.refusal
    return None


def test_the_old_secret_opens_nothing_and_the_next_coordinator_has_the_new_one(
    gates: list[testing.Gate], tmp_path: Path
) -> None:
    saved = rel.Checkpoint(tmp_path / "checkpoints", every=600.0)
    config = rel.JobConfig(**SETTLED, checkpoint=saved, pes=2)  # type: ignore[arg-type]
    doomed = DoomedJob(topology(gates), config, DoomedHost(Doom()), tmp_path)
    try:
        assert gates[0].wait_reached(PATIENCE)
        old = doomed.coordinator._cluster.secret
        assert said(doomed.coordinator, old) is None
        doomed.job.renew_secret()
        new = doomed.coordinator._cluster.secret
        assert new != old
        assert said(doomed.coordinator, old) is Refusal.SECRET
        assert said(doomed.coordinator, new) is None
        gates[0].open()
        assert gates[1].wait_reached(PATIENCE)
        doomed.follow()
        assert doomed.job.rescale(region_of(doomed.job), 2).region(region_of(doomed.job)).replicas == 2  # it is let in
        gates[1].open()
        rows = doomed.job.wait(PATIENCE)["out"]
        assert sorted(row.n for row in rows) == list(range(len(ROWS)))
        assert all(row.all == row.n // 7 + 1 for row in rows)
        assert doomed.job.status.checkpoints.restarts == 0
    finally:
        doomed.job.close()


class DyingStore(FileStore):
    """Its coordinator dies while a secret is renewed: behind the line that tells the new one, or before the next."""

    def __init__(self, path: Path, doom: Doom, *, behind: bool) -> None:
        super().__init__(path)
        self._doom, self._behind, self._renews = doom, behind, False

    def append(self, line: str, *, alone: bool) -> None:
        if self._renews:
            self._die()
        super().append(line, alone=alone)
        self._renews = json.loads(line)["kind"] == "secret"
        if self._renews and self._behind:
            self._die()

    def _die(self) -> None:
        self._doom.died = True
        raise Died


class JobRenewed(DoomedJob):
    """A job whose first coordinator dies while its secret is renewed."""

    def __init__(self, gates: list[testing.Gate], config: rel.JobConfig, folder: Path, *, behind: bool) -> None:
        self._behind = behind
        super().__init__(topology(gates), config, DoomedHost(Doom()), folder)

    def _another(self) -> Coordinator:
        path, first = self._folder / "journal", not (self._folder / "journal").exists()
        store = DyingStore(path, self._host.doom, behind=self._behind) if first else FileStore(path)
        return Coordinator(self._spec, self._host, journal=ChangeJournal(store))


@pytest.mark.parametrize("behind", [True, False], ids=["before any element ended", "after all have"])
def test_the_old_secret_opens_nothing_though_the_coordinator_dies_meanwhile(
    behind: bool, gates: list[testing.Gate], tmp_path: Path
) -> None:
    saved = rel.Checkpoint(tmp_path / "checkpoints", every=600.0)
    config = rel.JobConfig(**SETTLED, checkpoint=saved, pes=2)  # type: ignore[arg-type]
    doomed = JobRenewed(gates, config, tmp_path, behind=behind)
    try:
        assert gates[0].wait_reached(PATIENCE)
        old = doomed.coordinator._cluster.secret
        with pytest.raises(Died):
            doomed.job.renew_secret()
        doomed.follow()
        gates[0].open()
        assert gates[1].wait_reached(PATIENCE)
        new = doomed.coordinator._cluster.secret
        assert new != old
        wait_until(
            doomed.job,
            lambda: doomed.job.status.state.value == "running" and said(doomed.coordinator, new) is None,
        )
        assert said(doomed.coordinator, old) is Refusal.SECRET
        gates[1].open()
        assert sorted(row.n for row in doomed.job.wait(PATIENCE)["out"]) == list(range(len(ROWS)))
    finally:
        doomed.job.close()


def test_a_job_without_checkpoints_keeps_its_secret(gates: list[testing.Gate]) -> None:
    job = rel.start(topology(gates), rel.JobConfig(**SETTLED, checkpoint=False))  # type: ignore[arg-type]
    try:
        assert gates[0].wait_reached(PATIENCE)
        with raises(ChangeError, "no-checkpoint"):
            job.renew_secret()
        for gate in gates:
            gate.open()
        assert len(job.wait(PATIENCE)["out"]) == len(ROWS)
    finally:
        job.close()
