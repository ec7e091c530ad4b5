"""What happened between two statuses, as the page tells it."""

from dataclasses import replace

from rayelastic.runtime.values.status import CheckpointCounters, JobStatus, State
from rayelastic.web.events import Event, EventKind, state_changes

RUNNING = JobStatus("job", State.RUNNING)


def told(before: CheckpointCounters, now: CheckpointCounters) -> list[Event]:
    return list(state_changes(replace(RUNNING, checkpoints=before), replace(RUNNING, checkpoints=now), 7.0))


def test_each_checkpoint_has_a_marker_with_its_times():
    first = CheckpointCounters(taken=1, last=1, seconds=0.25, paused=0.04)
    (event,) = told(CheckpointCounters(), first)
    assert (event.seconds, event.kind, event.title) == (7.0, EventKind.CHECKPOINT, "checkpoint 1")
    assert event.seen == {
        "the last one took": "0.25 s",
        "sources stood still": "40 ms",
        "complete since the start": "1",
    }
    assert told(first, first) == []
    assert [event.title for event in told(first, replace(first, taken=4, last=5))] == ["checkpoint 5 and 2 before"]


def test_one_that_was_given_up_says_why_and_a_way_back_says_whither():
    (given_up,) = told(CheckpointCounters(), CheckpointCounters(abandoned=1, problem="the disk is full"))
    assert (given_up.kind, given_up.reason) == (EventKind.CHECKPOINT, "the disk is full")
    (back,) = told(CheckpointCounters(taken=3, last=3), CheckpointCounters(taken=3, last=3, restarts=1))
    assert (back.kind, back.title) == (EventKind.FAILURE, "something was lost: the job goes on from checkpoint 3")
    (back,) = told(CheckpointCounters(), CheckpointCounters(restarts=1))
    assert back.title.endswith("goes on from its start")


def test_a_page_that_is_opened_late_tells_the_last_one():
    late = replace(RUNNING, checkpoints=CheckpointCounters(taken=9, last=9))
    titles = [event.title for event in state_changes(None, late, 7.0)]
    assert titles == ["the job is running", "checkpoint 9 and 8 before"]
