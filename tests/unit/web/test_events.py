"""What happened between two statuses, as the web UI shows it."""

from dataclasses import replace

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation
from rayelastic.policy.regions.actions import AdaptationDecision
from rayelastic.policy.regions.observation import PlanObservation
from rayelastic.reasons import Code
from rayelastic.runtime.loops.region_loop import ADVICE
from rayelastic.runtime.values.adaptation import Adaptation
from rayelastic.runtime.values.checkpoint_record import CheckpointCounters, CheckpointRecord
from rayelastic.runtime.values.region_adaptation import RegionAdaptation, RegionJournal
from rayelastic.runtime.values.status import JobStatus, State
from rayelastic.web.events import Event, EventKind, event_of, state_changes

RUNNING = JobStatus("job", State.RUNNING)


def told(before: CheckpointCounters, now: CheckpointCounters) -> list[Event]:
    return list(state_changes(replace(RUNNING, checkpoints=before), replace(RUNNING, checkpoints=now), 7.0))


def counted(*records: CheckpointRecord, **more: int) -> CheckpointCounters:
    return replace(CheckpointCounters(taken=len(records), recent=records), **more)  # type: ignore[arg-type]


def test_each_checkpoint_has_a_marker_with_its_times() -> None:
    first = CheckpointRecord(1, 6.5, 0.25, 0.04, 2048, "totals", 0.2)
    (event,) = told(CheckpointCounters(), counted(first))
    assert (event.seconds, event.kind, event.title) == (6.5, EventKind.CHECKPOINT, "checkpoint 1")
    assert event.seen == {
        "duration": "0.25 s",
        "sources paused": "40 ms",
        "state written": "2,048 bytes",
        "slowest operator": "totals, after 0.20 s",
    }
    assert told(counted(first), counted(first)) == []
    later = [CheckpointRecord(number, 5.0 + number, 0.1) for number in (2, 3)]
    assert [event.title for event in told(counted(first), counted(first, *later))] == ["checkpoint 2", "checkpoint 3"]


def test_a_savepoint_is_told_with_its_place() -> None:
    (event,) = told(CheckpointCounters(), counted(CheckpointRecord(4, 6.0, 0.5, place="/tmp/words")))
    assert (event.kind, event.title) == (EventKind.SAVEPOINT, "savepoint 4 at /tmp/words")


def test_an_abandoned_checkpoint_has_its_problem_and_its_repetitions_are_routine() -> None:
    first, second, other = (
        CheckpointRecord(0, at, 0.5, problem=problem)
        for at, problem in ((5.0, "the disk is full"), (6.0, "the disk is full"), (7.0, "no server"))
    )
    events = told(CheckpointCounters(), counted(first, second, other))
    assert [(event.kind, event.reason) for event in events] == [
        (EventKind.ABANDONED, "the disk is full"),
        (EventKind.CHECKPOINT, "the disk is full"),
        (EventKind.ABANDONED, "no server"),
    ]
    (event,) = told(counted(first), counted(first, second))
    assert event.kind is EventKind.CHECKPOINT


def test_a_recovery_names_its_restore_point() -> None:
    (event,) = told(CheckpointCounters(taken=3, last=3), CheckpointCounters(taken=3, last=3, restarts=1))
    assert (event.kind, event.seen) == (EventKind.RECOVERY, {"restored from": "checkpoint 3"})
    (event,) = told(CheckpointCounters(), CheckpointCounters(restarts=1))
    assert event.seen == {"restored from": "the start"}


def test_a_page_that_is_opened_late_tells_the_last_ones() -> None:
    late = replace(RUNNING, checkpoints=counted(CheckpointRecord(8, 5.0, 0.1), CheckpointRecord(9, 6.0, 0.1)))
    titles = [event.title for event in state_changes(None, late, 7.0)]
    assert titles == ["the job is running", "checkpoint 8", "checkpoint 9"]


def test_a_pause_of_elasticity_is_told() -> None:
    (event,) = state_changes(RUNNING, replace(RUNNING, paused=True), 7.0)
    assert (event.kind, "paused" in event.title) == (EventKind.STATE, True)
    (event,) = state_changes(replace(RUNNING, paused=True), RUNNING, 8.0)
    assert (event.kind, event.title) == (EventKind.STATE, "elasticity resumed")


def test_advice_is_no_change() -> None:
    plan = ExecPlan("empty", ())
    seen = PlanObservation(time=5.0, period=5.0, plan=plan, regions=())
    wanted = AdaptationDecision(replace(plan, epoch=1), reasons=(Code.UNEVEN(),), rule="L1")
    assert event_of(RegionAdaptation(0, seen, wanted, plan, problem=ADVICE)).kind is EventKind.ADVICE


def test_followers_hear_all_of_a_loop_that_has_begun_anew() -> None:
    plan = ExecPlan("empty", ())
    seen = PlanObservation(time=5.0, period=5.0, plan=plan, regions=())
    journal = RegionJournal()
    assert journal.since(7) == ()
    for number in range(3):
        journal.add(RegionAdaptation(number, seen, AdaptationDecision(plan), plan))
    assert [done.number for done in journal.since(2)] == [2]
    assert journal.since(3) == ()  # the next one isn't there yet
    assert [done.number for done in journal.since(57)] == [0, 1, 2]  # 57 were those of a loop that died


def test_a_sleeping_thread_is_no_cpu_in_use() -> None:
    """The controller counts one that waits for a service as a CPU; people are told what CPUs do."""
    seen = Observation(1.0, 1.0, 20.0, 1, cpu_count=5, own_cpu=1.0, asleep=0.96, sleepers=1, host_cpu=0.392)
    event = event_of(Adaptation("pe0", 0, seen, Decision(1), 1))
    assert (event.seen["CPUs used by this PE"], event.seen["host busy"]) == ("0.04 of 4", "25 %")
