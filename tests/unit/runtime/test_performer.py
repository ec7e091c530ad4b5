"""The performer on elements without threads, sockets and clocks: each step, and each answer of a router."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rayelastic._native import RouterAnswer
from rayelastic.errors import ChangeError
from rayelastic.plan.hash_ring import PARTITIONS
from rayelastic.plan.plan_change import PlanChange, plan_change
from rayelastic.runtime.journal import OpenChange
from rayelastic.runtime.rescale import performer
from rayelastic.runtime.rescale.batches import batches_of, has_moved_all_keys
from rayelastic.runtime.rescale.performer import check_performable
from tests.raising import raises
from tests.unit.runtime.fake_cluster import KEYS, STATE_BYTES
from tests.unit.runtime.performing import BATCH_BYTES, GROW, MOVE, SHAPES, SHRINK, Died, Run, Shape, length, nth


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performer, "BATCH_BYTES", BATCH_BYTES)


MOST_AT_ONCE = performer.BATCH_BYTES


def test_16_mib_of_state_move_at_once() -> None:
    assert MOST_AT_ONCE == 16 * 1024 * 1024


def moved_keys(change: PlanChange) -> int:
    moving = {partition for part in change.regions for moves in part.moved for partition in moves.partitions}
    return len(moving & set(KEYS))


# --- all goes well --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_fast", [False, True], ids=["slow links", "fast links"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_change_is_carried_out(shape: Shape, is_fast: bool) -> None:
    run = Run(shape)
    run.cluster.is_fast = is_fast
    assert run.perform() == run.change.new
    run.check(run.change.new)
    keys = moved_keys(run.change)
    counted = run.counters[shape.region]
    assert (counted.changes, counted.undone) == (1, 0)
    assert (counted.moved_keys, counted.moved_bytes) == (keys, keys * STATE_BYTES)
    assert counted.longest_hold == 0.5
    assert counted.held_seconds == 0.5 * run.steps.count("commit")
    assert tuple(run.cluster.retired) == run.change.stopped_pes
    assert {pe: element.epochs for pe, element in run.cluster.elements.items()} == {
        pe: [run.change.epoch] for pe in run.change.new.pes
    }
    assert run.performer.recover() is None


def test_the_steps_are_in_order_when_a_region_grows() -> None:
    run = Run(GROW)
    run.perform()
    assert run.steps == ["begin", "start", "attach", *MOVE, *MOVE, "end"]
    moved = [
        ("pe0", "routing.hold"),
        ("pe0", "routing.await_mark"),
        ("pe0", "send_state"),
        ("pe0", "drop_state"),
        ("pe0", "routing.route"),
    ]
    assert run.cluster.calls == [
        ("pe0", "state_size"),
        ("pe1", "start"),
        ("pe0", "routing.attach"),
        ("pe0", "routing.hold"),  # its watermark comes through the new replica, to who takes its output
        ("pe1", "routing.await_mark"),
        ("pe0", "routing.await_mark"),
        *moved,
        *moved,
        ("pe0", "advance"),
        ("pe1", "advance"),
    ]


def test_the_steps_are_in_order_when_a_region_shrinks() -> None:
    run = Run(SHRINK)
    run.perform()
    assert run.steps == ["begin", "start", *MOVE, *MOVE, "detach", "end"]
    assert [call for call in run.cluster.calls if call[0] == "pe1"] == [
        ("pe1", "state_size"),
        *[("pe1", method) for method in ("routing.await_mark", "send_state", "drop_state") * 2],
    ]


@pytest.mark.parametrize(
    ("shape", "step", "pes"),
    [
        (Shape("r1", 1, 2, other=1, also=2), "attach", ["pe0", "pe0"]),
        (Shape("r1", 2, 1, other=2, also=1), "detach", ["pe0", "pe0"]),
    ],
    ids=["both grow", "both shrink"],
)
def test_elements_that_come_or_go_hear_nothing_of_others_that_do(shape: Shape, step: str, pes: list[str]) -> None:
    run = Run(shape)
    assert run.perform() == run.change.new
    assert run.steps.count(step) == 2
    assert [pe for pe, method in run.cluster.calls if method == f"routing.{step}"] == pes
    assert {region: counted.changes for region, counted in run.counters.items()} == {"r1": 1, "r2": 1}


@pytest.mark.parametrize(
    "shape",
    [
        Shape("r1", 1, 2, other=1, also=2),
        Shape("r1", 2, 1, other=2, also=1),
        Shape("r1", 1, 3, other=2, also=1),
        Shape("r1", 2, 1, other=1, also=3),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_fast", [False, True], ids=["slow links", "fast links"])
def test_regions_in_a_row_change_at_once(shape: Shape, is_fast: bool) -> None:
    run = Run(shape)
    run.cluster.is_fast = is_fast
    assert run.perform() == run.change.new
    run.check(run.change.new)


def test_what_one_replica_gives_to_several_is_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in front of it has to be processed once, not for each of them; of much state no more than a batch."""
    monkeypatch.setattr(performer, "BATCH_BYTES", 100 * BATCH_BYTES)
    run = Run(Shape("r1", 1, 3))
    assert run.perform() == run.change.new
    run.check(run.change.new)
    assert run.steps == ["begin", "start", "attach", "attach", *MOVE, *MOVE[2:], "end"]
    assert run.counters["r1"].longest_hold == 0.5


def test_each_call_has_its_time() -> None:
    run = Run(GROW)
    run.perform()
    assert dict(run.cluster.timeouts) == {
        "state_size": 30.0,
        "routing.attach": 30.0,
        "routing.hold": 30.0,
        "routing.await_mark": 90.0,
        "send_state": 120.0,
        "drop_state": 120.0,
        "routing.route": 30.0,
        "advance": 30.0,
    }


def test_commands_are_fenced_by_epoch_and_incarnation_and_marks_differ() -> None:
    run = Run(GROW)
    run.restart()
    run.perform()
    router = run.cluster.entry
    assert router.epoch == run.change.epoch << 16 | 2
    marks = [mark for point, mark in run.cluster.elements["pe0"].seen if point == "r1"]
    announced = next(mark for point, mark in run.cluster.elements["pe1"].seen if point == "r1")
    assert [announced, *marks] == [router.epoch << 20 | number for number in (1, 2, 3)]


def test_as_many_partitions_move_at_once_as_have_so_much_state(monkeypatch: pytest.MonkeyPatch) -> None:
    size, partitions = len(KEYS) * STATE_BYTES, PARTITIONS
    for most, batch in ((BATCH_BYTES, 1170), (1, 5), (size, partitions), (2 * size, 2 * partitions)):
        monkeypatch.setattr(performer, "BATCH_BYTES", most)
        run = Run(GROW)
        run.dies = lambda step: step == "start"
        with pytest.raises(Died):
            run.perform()
        assert run.journal.open_change is not None
        assert run.journal.open_change.batch == batch


def test_the_fullest_giver_says_how_many_move_at_once() -> None:
    run = Run(Shape("r1", 3, 1))
    del run.cluster.elements["pe2"].state["r1"][next(iter(run.cluster.elements["pe2"].state["r1"]))]
    fullest = max(len(run.cluster.elements[pe].state["r1"]) for pe in ("pe1", "pe2"))
    loads = run.change.old.region("r1").ring.loads()
    run.dies = lambda step: step == "start"
    with pytest.raises(Died):
        run.perform()
    assert run.journal.open_change is not None
    assert run.journal.open_change.batch == int(BATCH_BYTES / (fullest * STATE_BYTES / loads[1]))


@pytest.mark.parametrize(("keys", "batch"), [(0, PARTITIONS), (1, int(BATCH_BYTES / (STATE_BYTES / PARTITIONS)))])
def test_keys_with_little_state_move_at_once(keys: int, batch: int) -> None:
    run = Run(GROW)
    state = run.cluster.elements["pe0"].state["r1"]
    for partition in KEYS[keys:]:
        del state[partition]
    run.cluster.sent.clear()
    run.cluster.got.clear()
    run.cluster.entry.ended = True  # for a moment: none flows while the size is asked
    run.dies = lambda step: step == "start"
    with pytest.raises(Died):
        run.performer.perform(run.change)
    assert run.journal.open_change is not None
    assert run.journal.open_change.batch == batch


# --- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (RouterAnswer.LATE, "it is busy"),
        (RouterAnswer.REFUSED, "a later coordinator was there"),
    ],
)
@pytest.mark.parametrize("command", ["attach", "hold", "route"])
def test_a_router_that_does_not_obey_says_why(command: str, answer: RouterAnswer, words: str) -> None:
    run = Run(GROW)

    def disobey(pe: str, method: str) -> None:
        if method == f"routing.{command}" and "undo" not in run.steps:
            run.cluster.answers[pe, "events->count"] = answer

    run.cluster.before = disobey
    with raises(ChangeError, "change-failed", str(command), str(words)):
        run.performer.perform(run.change)
    run.check(run.in_force)


@pytest.mark.parametrize("command", ["attach", "hold", "route"])
def test_a_region_all_of_whose_streams_have_ended_keeps_its_replicas(command: str) -> None:
    run = Run(GROW)

    def ends(pe: str, method: str) -> None:
        if method == f"routing.{command}" and "undo" not in run.steps:
            run.cluster.answers[pe, "events->count"] = RouterAnswer.ENDED

    run.cluster.before = ends
    if command == "route":  # nothing will ever be routed there
        assert run.performer.perform(run.change) == run.change.new
        return
    with raises(ChangeError, "change-failed"):
        run.performer.perform(run.change)
    run.check(run.in_force)


def test_a_router_that_is_busy_with_what_waited_is_waited_for() -> None:
    run, late = Run(GROW), [RouterAnswer.LATE, RouterAnswer.LATE]

    def busy(pe: str, method: str) -> None:
        if method == "routing.route" and late:
            run.cluster.answers[pe, "events->count"] = late.pop()

    run.cluster.before = busy
    assert run.performer.perform(run.change) == run.change.new
    assert not late
    run.check(run.change.new)


def test_a_later_coordinator_shuts_an_earlier_one_out() -> None:
    run = Run(GROW)
    earlier = run.performer
    run.restart()
    run.performer.perform(run.change)
    router = run.cluster.elements["pe0"].routing
    assert router.route("events->count", ((5, 5),), 0, earlier._epoch(run.change)) is RouterAnswer.REFUSED
    run.check(run.change.new)


def test_a_stream_that_ends_meanwhile_loses_nothing() -> None:
    for step in range(length(GROW)[1]):
        run = Run(GROW)
        is_now = nth(step)

        def ends(name: str, run: Run = run, is_now: Callable[..., bool] = is_now) -> bool:
            run.cluster.entry.ended = run.cluster.entry.ended or is_now()
            return False

        run.dies = ends
        try:
            run.check(run.perform())
        except ChangeError:  # it ended between two batches: each has an owner, and nobody needs another
            run.cluster.check_tuples()
            with raises(ChangeError, "change-half-done"):
                run.perform()


def test_a_change_goes_on_where_one_of_its_routers_has_ended() -> None:
    """The other one's stream goes on: its mark comes once more behind what the ended one sent, and nothing waits."""
    for step in range(length(Shape("r2", 1, 2, other=2))[1]):
        run = Run(Shape("r2", 1, 2, other=2))
        is_now = nth(step)

        def ends(name: str, run: Run = run, is_now: Callable[..., bool] = is_now) -> bool:
            if is_now():
                run.cluster.elements["pe11"].routers["count->watch"].ended = True
            return False

        run.dies = ends
        assert run.perform() == run.change.new
        assert not run.cluster.elements["pe0"].routers["count->watch"].held
        assert ("pe1", "routing.end") not in run.cluster.calls, "there is a router that leads there"


@pytest.mark.parametrize(
    ("step", "replica", "pe"), [("attach", "pe1", "pe1"), ("attach", "pe1", "pe0"), ("flush", "pe0", "pe0")]
)
def test_what_does_not_come_through_in_time_undoes_the_change(step: str, replica: str, pe: str) -> None:
    run = Run(GROW)

    def passing(name: str) -> bool:
        if pe in run.cluster.elements:
            run.cluster.elements[pe].stuck = name == step
        return False

    run.dies = passing
    with raises(ChangeError, "change-failed", str(replica), str(pe)):
        run.performer.perform(run.change)
    run.check(run.in_force)


# --- what a change is -----------------------------------------------------------------------------------------------


def test_batches_are_pieces_of_what_moves() -> None:
    change = Run(Shape("r1", 3, 1)).change
    batches = list(batches_of(OpenChange(change, 50)))
    for moves in change.regions[0].moved:
        pieces = [batch.partitions for batch in batches if (batch.source, batch.target) == (moves.source, moves.target)]
        assert tuple(partition for piece in pieces for partition in piece) == moves.partitions
        assert all(len(piece) == 50 for piece in pieces[:-1])
    assert {batch.region for batch in batches} == {"r1"}


def test_who_has_moved_all_its_keys() -> None:
    change = Run(Shape("r1", 3, 1)).change
    order = [batch.source for batch in batches_of(OpenChange(change, 50))]
    assert order == sorted(order)
    first = order.count(1)
    for moved, given in ((0, []), (first - 1, []), (first, ["pe1"]), (len(order), ["pe1", "pe2"])):
        here = OpenChange(change, 50, moved)
        assert [pe for pe in ("pe0", "pe1", "pe2") if has_moved_all_keys(here, pe)] == given
        assert not any(has_moved_all_keys(replace(here, undoing=0), pe) for pe in ("pe0", "pe1", "pe2"))


def test_replicas_stay_where_they_are_and_apart() -> None:
    change = Run(GROW).change
    moved = plan_change(change.old, change.old.with_replicas("r1", 2, ("pe1", "pe2")))
    with raises(ChangeError, "bad-change"):
        check_performable(moved)
    shared = plan_change(change.old, change.old.with_replicas("r1", 3, ("pe0", "pe1", "pe1")))
    with raises(ChangeError, "bad-change"):
        Run(GROW).performer.perform(shared)
    check_performable(change)
