"""Changes of a job's plan as its coordinator asks for them: the plan in force and the life of the job afterwards."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, cast

import pytest

import rayelastic as rel
from rayelastic.errors import ChangeError, StateError
from rayelastic.plan.node_placement import Node
from rayelastic.runtime.job.life import JobLife
from rayelastic.runtime.job.plan_in_force import PlanInForce
from rayelastic.runtime.job.rescaling import Rescaling
from rayelastic.runtime.rescale import performer
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.specs import JobSpec
from rayelastic.runtime.values.status import State
from tests.raising import raises
from tests.unit.runtime.performing import BATCH_BYTES, GROW, SHRINK, Died, Run, Shape, doomed, refuses


class Elements:
    """The fake cluster as a coordinator has it."""

    def __init__(self, run: Run) -> None:
        self._cluster = run.cluster
        self.held = False  # whether local levels hold still

    def hold_levels(self, held: bool) -> None:
        self.held = held

    @property
    def handles(self) -> dict[str, object]:
        return dict.fromkeys(self._cluster.elements)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


class Host:
    """One node, and nobody who has to be ready."""

    def nodes(self) -> tuple[Node, ...]:
        return (Node("here", 64.0),)

    def make_ready(self, count: int, node: str = "") -> None:
        pass


class Job:
    """A job over the fake cluster."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.ends: list[tuple[State, Failure | None]] = []
        old = run.change.old
        spec = JobSpec("job", run.cluster.operators, old, rel.JobConfig(regions="manual"))
        self.life = JobLife("job", old.pes, lambda state, failure: self.ends.append((state, failure)), lambda: 0.0)
        self.life.runs()
        self.plan = PlanInForce(spec, run.journal)
        self.elements, host = Elements(run), cast("Any", Host())
        cluster = cast("Any", self.elements)
        self.rescaling = Rescaling(spec, cluster, host, run.journal, self.life, self.plan, {}, lambda: 0.0)


@pytest.mark.parametrize("shape", [GROW, SHRINK], ids=str)
def test_a_region_gets_another_number_of_replicas(shape: Shape) -> None:
    job = Job(Run(shape))
    assert job.rescaling.rescale("r1", shape.after) is job.plan.now
    assert job.plan.now.region("r1").replicas == shape.after
    assert job.life.state is State.RUNNING
    assert set(job.life.elements()) <= set(job.plan.now.pes), "who was retired isn't waited for"
    job.run.cluster.check(job.plan.now)


@pytest.mark.parametrize("fails", [False, True])
def test_local_levels_hold_still_while_regions_change_and_go_on_whatever_becomes_of_it(*, fails: bool) -> None:
    job = Job(doomed(GROW) if fails else Run(GROW))
    called, before = [], job.run.cluster.before

    def call(pe: str, method: str) -> None:
        called.append((pe, method, job.elements.held))
        before(pe, method)

    job.run.cluster.before = call
    with pytest.raises(ChangeError) if fails else nullcontext():
        job.rescaling.change(job.run.change.new)
    assert called
    assert all(held for _, _, held in called), called
    assert not job.elements.held


def test_the_next_coordinator_lets_local_levels_go_on() -> None:
    run = Run(GROW)
    run.dies = lambda name: name == "hold"
    with pytest.raises(Died):
        run.perform()
    run.dies = lambda _: False
    run.restart()
    job = Job(run)
    job.elements.held = True
    job.rescaling.take_over()
    assert not job.elements.held


def test_a_change_that_is_undone_leaves_the_job_as_it_was() -> None:
    job = Job(doomed(GROW))
    with pytest.raises(ChangeError):
        job.rescaling.change(job.run.change.new)
    assert job.plan.now.region("r1").replicas == 1
    assert job.life.state is State.RUNNING


@pytest.mark.parametrize("has_keys", [False, True])
def test_the_next_coordinator_keeps_a_new_element_that_has_keys(
    has_keys: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that has ended in the middle of the change leaves it half done: they can't go back."""
    monkeypatch.setattr(performer, "BATCH_BYTES", BATCH_BYTES)
    run = Run(GROW)
    run.dies = lambda name: name == "hold" and has_keys is ("commit" in run.steps)
    with pytest.raises(Died):
        run.perform()
    run.dies = lambda _: False
    run.cluster.entry.ended = True
    run.restart()
    job = Job(run)
    job.rescaling.take_over()
    assert (run.journal.open_change is not None) is has_keys
    saving = raises(StateError, "change-half-done") if has_keys else nullcontext()  # no plan has all of those with keys
    with saving, job.rescaling.saving():
        pass
    assert run.cluster.retired == ([] if has_keys else ["pe1"])
    assert job.life.state is State.RUNNING
    run.cluster.check_tuples()


def ended(job: Job) -> Failure:
    [(state, failure)] = job.ends
    assert state is State.FAILED
    assert failure is not None
    return failure


@pytest.mark.parametrize("error", [RuntimeError("a fault of ours"), OSError("no room")], ids=str)
def test_no_change_stays_open_in_a_job_that_goes_on(error: Exception) -> None:
    job = Job(Run(GROW))

    def fault(pe: str, method: str) -> None:
        if method == "send_state":
            raise error

    job.run.cluster.before = fault
    with pytest.raises(type(error)):
        job.rescaling.change(job.run.change.new)
    assert job.run.journal.open_change is not None
    assert "a change of plan can neither be ended nor undone" in ended(job).reason


def test_a_change_that_can_not_be_undone_ends_the_job() -> None:
    run = doomed(GROW)
    job, forward = Job(run), run.cluster.before

    def fault(pe: str, method: str) -> None:
        forward(pe, method)
        if (
            method == "routing.route"
            and run.journal.open_change is not None
            and run.journal.open_change.undoing is not None
        ):
            refuses(run, pe)

    run.cluster.before = fault
    with raises(rel.errors.RayelasticError, "pe-lost"):
        job.rescaling.change(run.change.new)
    assert "can neither be ended nor undone" in ended(job).reason


def test_the_plan_may_change_while_a_checkpoint_is_copied() -> None:
    job = Job(Run(GROW))
    with job.rescaling.saving(), job.rescaling.released():
        assert job.rescaling.change(job.run.change.new).region("r1").replicas == GROW.after


def test_a_restart_while_a_checkpoint_is_copied_makes_it_worthless() -> None:
    job = Job(Run(GROW))
    parts = job.rescaling.saving(), job.rescaling.released(), job.rescaling.standing_still()
    with raises(StateError, "job-not-running"), parts[0], parts[1], parts[2]:
        job.rescaling.forget()
    with job.rescaling.standing_still():
        pass
