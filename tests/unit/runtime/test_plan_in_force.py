"""What the loss of an element means, before, in the middle of and after a change of the plan."""

from __future__ import annotations

import pytest

import rayelastic as rel
from rayelastic.runtime.job.plan_in_force import PlanInForce
from rayelastic.runtime.rescale import performer
from rayelastic.runtime.values.specs import JobSpec
from rayelastic.runtime.values.status import PEStatus, State
from tests.unit.runtime.performing import BATCH_BYTES, GROW, SHRINK, Died, Run, doomed


def plan_of(run: Run) -> PlanInForce:
    spec = JobSpec("job", run.cluster.operators, run.change.old, rel.JobConfig(regions="manual"))
    return PlanInForce(spec, run.journal)


def stopped_at(run: Run, step: str, time: int = 1) -> Run:
    run.dies = lambda name: name == step and run.steps.count(name) == time
    with pytest.raises(Died):
        run.perform()
    return run


def test_whoever_is_in_the_plan_is_needed() -> None:
    plan = plan_of(Run(GROW))
    assert not plan.is_dispensable("pe0")
    assert plan.is_dispensable("pe1"), "no plan has it"


@pytest.mark.parametrize(("step", "needed"), [("attach", False), ("commit", False), ("forget", True), ("end", True)])
def test_a_new_element_is_needed_once_it_has_keys(step: str, needed: bool) -> None:
    assert plan_of(stopped_at(Run(GROW), step)).is_dispensable("pe1") is not needed


@pytest.mark.parametrize(("step", "needed"), [("hold", True), ("commit", True), ("detach", False), ("end", False)])
def test_one_that_is_to_go_is_needed_until_it_has_moved_all_its_keys(step: str, needed: bool) -> None:
    assert plan_of(stopped_at(Run(SHRINK), step)).is_dispensable("pe1") is not needed


def test_one_whose_keys_have_gone_back_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performer, "BATCH_BYTES", BATCH_BYTES)
    run = stopped_at(doomed(GROW), "detach")
    here = run.journal.open_change
    assert here is not None
    assert here.undoing == here.moved > 0
    assert plan_of(run).is_dispensable("pe1")


def test_a_loss_says_which_state_goes_with_it() -> None:
    plan = plan_of(Run(SHRINK))
    told = "it is gone; the state of 'count' there is lost: there is no checkpoint to go on from"
    assert plan.loss("it is gone", "pe1").reason == told
    assert "what was in it is lost" in plan.loss("it is gone", "nowhere").reason
    assert "what was in it is lost" in plan.loss("nobody knows which").reason


def test_a_loss_in_the_middle_of_a_change_names_what_the_new_element_has() -> None:
    assert "the state of 'count'" in plan_of(stopped_at(Run(GROW), "forget")).loss("it is gone", "pe1").reason


def test_nodes_are_those_of_the_elements_of_the_plan() -> None:
    plan = plan_of(Run(GROW))
    before = plan.now
    elements = {pe: PEStatus(pe, State.RUNNING, node="n1") for pe in ("pe0", "gone")} | {
        "pe5": PEStatus("pe5", State.CREATED)
    }
    assert plan.placed(elements).nodes == {"pe0": "n1"}
    assert plan.now is not before
    assert plan.placed(elements) is plan.now, "another one would tell of a change"
