"""A coordinator or an element dies during a change on Ray: it is ended or undone, the stream goes on (R1, R11).

Twenty times at each step: `./dev kills`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic.errors import JobExistsError
from tests.cluster.killing import CONFIG, Outcome, Victim, What, kill, running
from tests.cluster.oracle import Load, finish, flows, topology
from tests.raising import raises

pytestmark = pytest.mark.timeout(180)

AT_ONCE = [Victim.COORDINATOR, Victim.NEW, Victim.GIVER, Victim.SOURCE]


def right(outcome: Outcome | None) -> What:
    assert outcome is not None, "the change didn't come to the step"
    assert outcome.wrong == ""
    return outcome.what


def test_the_next_coordinator_ends_what_one_has_begun(ray_cluster: str, tmp_path: Path) -> None:
    with running(tmp_path) as job:
        pids = {status.pid for status in job.status.pes}
        assert right(kill(job, Victim.COORDINATOR, "commit", tmp_path)) is What.COMPLETED
        assert job.plan().region("r1").replicas == 2
        assert pids < {status.pid for status in job.status.pes}, "elements run on while it is away"
        with raises(JobExistsError, "job-exists"):
            rel.submit(topology(tmp_path), CONFIG)
        job.rescale("r1", 1)
        flows(job)
        finish(job, Load(tmp_path))


@pytest.mark.nightly
@pytest.mark.parametrize(("victim", "step"), [(victim, step) for victim in AT_ONCE for step in victim.steps])
def test_somebody_dies_at_any_step(ray_cluster: str, tmp_path: Path, victim: Victim, step: str) -> None:
    with running(tmp_path) as job:
        if right(kill(job, victim, step, tmp_path)) is not What.LOST:
            if step != "begin":
                job.rescale("r1", 2 if job.plan().region("r1").replicas == 1 else 1)
            flows(job)
            finish(job, Load(tmp_path))
