"""The states of a job and of its elements: they end once, and the first word counts."""

from __future__ import annotations

import pytest

from rayelastic.errors import ErrorCode, StateError
from rayelastic.runtime.job.life import JobLife
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.status import PEStatus, State


class Ended:
    """Counts the ends of a life, and looks at what is told then."""

    def __init__(self, *pes: str) -> None:
        self.ends: list[tuple[State, Failure | None]] = []
        self.now = 0.0
        self.life = JobLife("job", pes, self._ending, lambda: self.now)

    def _ending(self, state: State, failure: Failure | None) -> None:
        assert self.life.state is state
        assert not self.life.wait(0), "its elements haven't ended yet"
        self.ends.append((state, failure))

    def finishes(self, *pes: str) -> None:
        for pe in pes:
            self.life.progresses(PEStatus(pe, State.FINISHED))
            self.life.end_if_finished()


def test_a_job_is_finished_when_all_its_elements_are() -> None:
    one = Ended("pe0", "pe1")
    one.life.runs()
    one.finishes("pe0")
    assert (one.life.state, one.ends) == (State.RUNNING, [])
    one.finishes("pe1")
    assert one.ends == [(State.FINISHED, None)]
    assert one.life.wait(0)


def test_a_job_finishes_when_its_savepoints_are_complete() -> None:
    one = Ended("pe0")
    one.life.runs()
    with one.life.saving():
        with one.life.saving():
            one.finishes("pe0")
            assert (one.life.state, one.ends) == (State.RUNNING, [])
        assert one.life.state is State.RUNNING, "another one is being written"
    assert one.ends == [(State.FINISHED, None)]
    with pytest.raises(StateError) as caught, one.life.saving():
        pass
    assert caught.value.code is ErrorCode.JOB_NOT_RUNNING


def test_the_first_failure_counts_and_no_end_is_told_twice() -> None:
    one, first = Ended("pe0", "pe1"), Failure("first")
    one.life.fail(first)
    one.life.fail(Failure("second"))
    one.finishes("pe0", "pe1")
    assert one.ends == [(State.FAILED, first)]
    assert one.life.status().failure is first
    assert not any(status.state.is_final for status in one.life.status().pes), "states are those of the end"


def test_a_job_that_was_told_to_stop_is_cancelled_when_its_elements_have_finished() -> None:
    one = Ended("pe0")
    assert one.life.cancels()
    assert one.life.is_cancelling
    one.finishes("pe0")
    assert one.ends == [(State.CANCELLED, None)]
    assert not one.life.cancels(), "it is over"


def test_to_cancel_a_job_that_is_over_leaves_no_trace() -> None:
    one = Ended("pe0")
    one.finishes("pe0")
    assert not one.life.cancels()
    assert not one.life.is_cancelling


def test_an_element_that_is_retired_is_waited_for_no_longer() -> None:
    one = Ended("pe0", "pe1")
    one.finishes("pe0")
    one.life.keeps(["pe0"])
    assert one.ends == [(State.FINISHED, None)]
    one.life.progresses(PEStatus("pe1", State.FAILED))
    assert list(one.life.elements()) == ["pe0"]


def test_an_element_that_is_lost_is_told_of_once_and_only_while_the_job_has_it() -> None:
    one = Ended("pe0", "pe1")
    one.life.begins(PEStatus("pe2", State.RUNNING, node="n", pid=7))
    assert one.life.loses("pe2", "gone")
    lost = Failure("gone", code=ErrorCode.PE_LOST)
    assert one.life.elements()["pe2"] == PEStatus("pe2", State.FAILED, lost, node="n", pid=7)
    assert not one.life.loses("pe3", "never there")
    one.life.end(State.CANCELLED)
    assert not one.life.loses("pe0", "gone too")


@pytest.mark.parametrize("over", [False, True])
def test_seconds_are_since_it_runs(over: bool) -> None:
    one = Ended("pe0")
    one.now = 5.0
    if over:  # a short job is over before its coordinator notes that it runs
        one.finishes("pe0")
    one.life.runs()
    one.now = 7.0
    assert one.life.seconds == 2.0
    assert one.life.state is (State.FINISHED if over else State.RUNNING)


def test_a_job_that_ended_under_an_earlier_coordinator_isnt_ended_again() -> None:
    one, failure = Ended("pe0"), Failure("it is finished")
    one.life.was_over(State.FAILED, failure)
    assert one.life.wait(0), "nothing is left to end"
    one.life.end(State.CANCELLED)
    assert (one.life.state, one.life.failure, one.ends) == (State.FAILED, failure, [])


def test_a_job_that_goes_back_before_its_coordinator_notes_that_it_runs_is_not_over_with_the_first_new_element() -> (
    None
):
    one = Ended("pe0", "pe1")
    one.life.recovers()
    one.life.runs()
    one.life.begins(PEStatus("pe0", State.RUNNING))
    one.finishes("pe0")
    assert (one.life.state, one.ends) == (State.RECOVERING, [])
    one.life.begins(PEStatus("pe1", State.RUNNING))
    one.life.runs_again()
    one.finishes("pe1")
    assert one.ends == [(State.FINISHED, None)]


class Lossy(JobLife):
    """Loses an element behind each look at its state: whoever takes two looks sees two jobs."""

    @property
    def is_recovering(self) -> bool:
        found = super().is_recovering
        self.recovers()
        return found

    def elements(self) -> dict[str, PEStatus]:
        found = super().elements()
        self.recovers()
        return found


def test_a_loss_just_when_the_job_is_looked_at_does_not_end_it() -> None:
    """It was told as finished, without results: behind a loss there is no element, and so none that runs."""
    ends = list[State]()
    life = Lossy("job", ("pe0", "pe1"), lambda state, _: ends.append(state), lambda: 0.0)
    life.runs()
    life.progresses(PEStatus("pe0", State.FINISHED))
    life.end_if_finished()
    assert ends == []
    life.recovers()
    life.end_if_finished()
    assert ends == []
