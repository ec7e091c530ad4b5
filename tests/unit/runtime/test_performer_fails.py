"""The performer where something fails, at each call, step and line of the journal: a change is ended or undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from rayelastic.errors import ChangeError, PELostError
from rayelastic.runtime.rescale import performer
from rayelastic.runtime.rescale.batches import has_moved_all_keys
from tests.raising import raises
from tests.unit.runtime.performing import (
    BATCH_BYTES,
    GROW,
    MOVE,
    SHAPES,
    SHRINK,
    Died,
    Run,
    Shape,
    at_line,
    dies,
    doomed,
    failing,
    is_silent,
    length,
    nth,
    refuses,
)

BOTH = Shape("r1", 2, 1, other=2, also=1)


@pytest.fixture(autouse=True, params=[BATCH_BYTES, 100 * BATCH_BYTES], ids=["small batches", "held along"])
def batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two or so for each replica, held one by one; or one for each pair, and those of one owner held along."""
    monkeypatch.setattr(performer, "BATCH_BYTES", request.param)


in_small_batches = pytest.mark.parametrize("batches", [BATCH_BYTES], ids=["small batches"], indirect=True)


# --- a call fails ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("fails", [refuses, is_silent])
@pytest.mark.parametrize("shape", [*SHAPES, BOTH], ids=str)
def test_whatever_fails_once_the_change_is_carried_out_or_undone(
    shape: Shape, fails: Callable[[Run, str], None], done: bool
) -> None:
    outcomes: Counter[int] = Counter()
    for number in range(length(shape)[0]):
        run = failing(shape, number, fails, done=done, spared=("routing.detach", "advance"))
        plan = run.perform()
        run.check(plan)
        outcomes[plan.region(shape.region).replicas] += 1
    assert set(outcomes) == {shape.before, shape.after}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_element_that_does_not_hear_of_the_new_epoch_is_no_failure(shape: Shape) -> None:
    for number in range(len(Run(shape).change.new.pes)):
        run = Run(shape)
        heard = nth(number)

        def fault(pe: str, method: str, run: Run = run, heard: Callable[..., bool] = heard) -> None:
            if method == "advance" and heard():
                is_silent(run, pe)

        run.cluster.before = fault
        assert run.perform() == run.change.new
        run.check(run.change.new)


def failing_detach(shape: Shape, number: int, *, done: bool) -> Run:
    run = Run(shape)
    is_now = nth(number)

    def fault(pe: str, method: str) -> None:
        if method == "routing.detach" and is_now():
            refuses(run, pe)

    setattr(run.cluster, "after" if done else "before", fault)
    return run


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize(("shape", "number"), [(SHRINK, 0), (Shape("r1", 3, 1), 1)], ids=str)
def test_a_farewell_that_fails_is_tried_again(shape: Shape, number: int, done: bool) -> None:
    run = failing_detach(shape, number, done=done)
    plan = run.perform()
    assert plan.region("r1").replicas == 1
    run.check(plan)


def test_a_router_that_never_lets_go_is_a_loss() -> None:
    """By then keys can't go back: a router that has said goodbye has ended the replica's stream."""
    run = Run(SHRINK)
    run.cluster.before = lambda pe, method: refuses(run, pe) if method == "routing.detach" else None
    with raises(PELostError, "pe-lost"):
        run.perform()
    assert not run.cluster.wrong


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_element_that_dies_is_a_loss_only_if_it_had_keys(shape: Shape, done: bool) -> None:
    spared = 0
    for number in range(length(shape)[0]):
        run = failing(shape, number, dies, done=done)
        try:
            plan = run.perform()
        except PELostError:
            assert any(is_needed(run, pe) for pe in lost(run)), number
            continue
        if not any(pe in plan.pes for pe in lost(run)):
            run.check(plan)
            spared += 1
    assert spared > 0


def lost(run: Run) -> set[str]:
    everyone = {*run.change.old.pes, *run.change.new.pes}
    return {pe for pe in everyone if pe in run.cluster.elements and pe not in run.cluster.alive}


def is_needed(run: Run, pe: str) -> bool:
    """Whether the journal says that an element has keys."""
    here = run.journal.open_change
    if here is not None and pe in here.change.started_pes:
        return here.moved > (here.undoing or 0)
    return not (here is not None and has_moved_all_keys(here, pe)) and pe in run.in_force.pes


# --- a coordinator dies ---------------------------------------------------------------------------------------------


def dying(shape: Shape) -> Iterator[Run]:
    """Changes whose coordinator dies: at each step, before and after each call and each line of the journal."""
    calls, steps, lines = length(shape)
    for number in range(steps):
        run = Run(shape)
        run.dies = nth(number)
        yield run
    for number in range(calls):
        for done in (False, True):
            yield failing(shape, number, dies_itself, done=done)
    for number in range(lines):
        for done in (False, True):
            run = Run(shape)
            run.store.dies = at_line(len(run.store.told) + number, done)
            yield run


def dies_itself(run: Run, pe: str) -> None:
    raise Died


@pytest.mark.parametrize("shape", [*SHAPES, BOTH], ids=str)
def test_another_coordinator_ends_what_one_has_begun(shape: Shape) -> None:
    outcomes: Counter[int] = Counter()
    for run in dying(shape):
        try:
            plan = run.perform()
        except Died:
            begun = run.journal.open_change is not None
            plan = run.recover()
            assert not begun or plan == run.change.new
        run.check(plan)
        outcomes[plan.region(shape.region).replicas] += 1
    assert outcomes[shape.after] > outcomes[shape.before] > 0


# --- back -----------------------------------------------------------------------------------------------------------


@in_small_batches
def test_the_steps_of_undoing_are_in_order() -> None:
    run = doomed(GROW)
    with raises(ChangeError, "change-failed"):
        run.performer.perform(run.change)
    assert run.steps == [
        *("begin", "start", "attach"),
        *MOVE,
        *("hold", "flush", "copy", "undo", "route back"),
        *MOVE,
        *("detach", "end undo"),
    ]
    run.check(replace(run.change.old, epoch=1))
    assert (run.counters["r1"].changes, run.counters["r1"].undone) == (0, 1)
    assert run.cluster.retired == ["pe1"]
    assert run.performer.recover() is None


def test_of_several_replicas_each_is_said_goodbye_to() -> None:
    run = doomed(Shape("r1", 1, 3))
    run.check(run.perform())
    assert run.steps.count("detach") == 2
    assert run.cluster.retired == ["pe1", "pe2"]


@pytest.mark.parametrize("shape", [GROW, SHRINK, Shape("r1", 1, 3), Shape("r1", 1, 2, other=2)], ids=str)
def test_another_coordinator_undoes_what_one_has_begun_to(shape: Shape) -> None:
    whole = doomed(shape)
    first = len(whole.store.told)
    whole.perform()
    back = whole.steps.index("undo")
    crashes = 0
    for step in range(back, len(whole.steps)):
        run = doomed(shape)
        run.dies = nth(step)
        crashes += ends_undone(run)
    for line in range(first, len(whole.store.told)):
        for done in (False, True):
            run = doomed(shape)
            run.store.dies = at_line(line, done)
            crashes += ends_undone(run)
    assert crashes > len(whole.steps) - back


def ends_undone(run: Run) -> bool:
    """Whether it had begun to be undone; then it is."""
    with pytest.raises(Died):
        run.perform()
    here = run.journal.open_change
    undoing = here is not None and here.undoing is not None
    run.cluster.before = lambda *_: None
    plan = run.recover()
    if undoing:
        assert plan == replace(run.change.old, epoch=run.change.epoch)
    run.check(plan)
    return undoing


@pytest.mark.parametrize("batches", [100 * BATCH_BYTES], ids=["held along"], indirect=True)
def test_what_was_held_along_flows_to_its_owner_again() -> None:
    run = doomed(Shape("r1", 1, 3))
    with pytest.raises(ChangeError):
        run.performer.perform(run.change)
    assert [run.steps.count(step) for step in ("copy", "commit")] == [2 + 1, 1 + 1], "two batches, one of them back"
    assert run.steps.count("hold") == 1 + 1, "once for both, and once more for the way back"
    run.check(replace(run.change.old, epoch=1))


@in_small_batches
def test_batches_that_have_gone_back_stay_there() -> None:
    run = doomed(Shape("r1", 1, 3))
    run.store.dies = lambda _, written: written and '"kind": "undo", "count": 2' in run.store.told[-1]
    with pytest.raises(Died):
        run.perform()
    run.steps.clear()
    run.recover()
    assert run.journal.open_change is None
    moved = 3  # of the four batches, when the last one failed
    assert run.steps.count("commit") == moved - 2
    assert run.steps.count("forget") == moved
    run.check(run.in_force)


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("shape", [*SHAPES, BOTH], ids=str)
def test_what_fails_while_a_change_is_undone_is_tried_again(shape: Shape, done: bool) -> None:
    whole = doomed(shape)
    whole.perform()
    assert "undo" in whole.steps
    failures = 0
    for number in range(len(whole.cluster.calls)):
        run = doomed(shape)
        forward, is_now, failed = run.cluster.before, nth(number), False

        def fault(pe: str, method: str, run: Run = run, is_now: Callable[..., bool] = is_now) -> None:
            nonlocal failed
            if "undo" in run.steps and method not in ("wait", "routing.detach") and is_now():
                failed = True
                refuses(run, pe)

        def before(pe: str, method: str, forward: Callable[[str, str], None] = forward) -> None:
            forward(pe, method)
            if not done:
                fault(pe, method)

        run.cluster.before = before
        if done:
            run.cluster.after = fault
        with pytest.raises(ChangeError):
            run.performer.perform(run.change)
        run.check(replace(run.change.old, epoch=run.change.epoch))
        failures += failed
    assert failures > 0


def test_a_change_that_can_not_be_undone_is_a_loss() -> None:
    """To leave it open would hold keys for ever, and the next change would forget of it."""
    run = doomed(GROW)
    forward = run.cluster.before

    def fault(pe: str, method: str) -> None:
        forward(pe, method)
        if "undo" in run.steps and method == "routing.route":
            refuses(run, pe)

    run.cluster.before = fault
    with raises(PELostError, "pe-lost"):
        run.performer.perform(run.change)
    with raises(PELostError, "pe-lost"):
        run.performer.recover()


def test_what_can_not_be_ended_by_the_next_coordinator_is_undone() -> None:
    run = Run(GROW)
    run.dies = lambda step: step == "copy"
    with pytest.raises(Died):
        run.perform()
    run.cluster.before = lambda pe, method: refuses(run, pe) if method == "send_state" else None
    plan = run.recover()
    assert plan == replace(run.change.old, epoch=1)
    run.check(plan)


def test_a_new_element_that_has_stopped_answering_is_given_up() -> None:
    run = Run(GROW)

    def fault(pe: str, method: str) -> None:
        if method == "send_state":
            refuses(run, pe)
        if method == "drop_state":
            is_silent(run, pe)

    run.cluster.before = fault
    plan = run.perform()
    assert plan.region("r1").replicas == 1
    run.check(plan)
    assert run.cluster.given_up == ["pe1"]
    assert [timeout for method, timeout in run.cluster.timeouts if method == "drop_state"] == [2.0]


def test_an_element_that_has_keys_is_never_given_up() -> None:
    run = Run(SHRINK)
    silent = nth(0)

    def fault(pe: str, method: str) -> None:
        if method == "send_state" and not run.steps.count("undo"):
            refuses(run, pe)
        if method == "drop_state" and silent():
            is_silent(run, pe)

    run.cluster.before = fault
    with pytest.raises(TimeoutError):
        run.performer.perform(run.change)
    assert run.cluster.given_up == []
    assert [timeout for method, timeout in run.cluster.timeouts if method == "drop_state"] == [120.0]
    assert run.performer.recover() == replace(run.change.old, epoch=1)
    run.check(run.in_force)


@in_small_batches
def test_keys_that_are_gone_with_a_new_replica_can_not_go_back() -> None:
    run = Run(GROW)

    def fault(pe: str, method: str) -> None:
        if method == "send_state" and run.steps.count("commit"):
            run.cluster.lose("pe1")
            run.cluster.noticed.add("pe1")
            refuses(run, pe)

    run.cluster.before = fault
    with raises(PELostError, "pe-lost"):
        run.performer.perform(run.change)
    with raises(PELostError, "pe-lost", "None"):
        run.performer.recover()


@in_small_batches
def test_no_router_is_asked_once_keys_are_gone_since_it_may_wait_for_the_link_to_them() -> None:
    run = Run(GROW)

    def fault(pe: str, method: str) -> None:
        if method == "send_state" and run.steps.count("commit"):
            refuses(run, pe)
        if method == "drop_state" and pe == "pe1":
            is_silent(run, pe)

    run.cluster.before = fault
    with raises(PELostError, "pe-lost"):
        run.performer.perform(run.change)
    assert run.cluster.given_up == ["pe1"]
    assert run.steps[-1] == "undo"
    assert run.cluster.calls[-1] == ("pe1", "drop_state")


@in_small_batches
def test_nobody_waits_for_a_mark_once_another_replica_is_lost() -> None:
    run = Run(Shape("r1", 2, 3))

    def passing(name: str) -> bool:
        if name == "flush":
            run.cluster.elements["pe0"].stuck = True
            run.cluster.noticed.add("pe1")
        return False

    run.dies = passing
    with pytest.raises((ChangeError, PELostError), match="pe1"):
        run.performer.perform(run.change)
    assert run.cluster.calls.count(("pe0", "routing.await_mark")) <= 2, "once each second, for a minute"
