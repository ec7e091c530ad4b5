"""A job that failed is raised from the exception of the user's function (B7)."""

from __future__ import annotations

import pickle
import threading
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.commands.plain_values import plain
from rayelastic.errors import JobFailedError
from rayelastic.runtime.values.failure import MOST_PICKLED, Cause, Failure

pytestmark = pytest.mark.edges


class Number(NamedTuple):
    n: int


class PriceError(Exception):
    pass


def inverse(t: Number) -> float:
    return 1 / (t.n - 3)


def noted(t: Number) -> float:
    try:
        return inverse(t)
    except ZeroDivisionError as error:
        problem = PriceError("no price")
        problem.add_note(f"of {t.n}")
        raise problem from error


def failed(declare: Any, config: rel.JobConfig | None = None) -> JobFailedError:
    with pytest.raises(JobFailedError) as caught:
        testing.collect(declare, [(n,) for n in range(9)], Number, config)
    return caught.value


@pytest.mark.parametrize("lane", ["compiled", "python"])
@pytest.mark.parametrize("pes", [1, 2])
def test_the_exception_of_a_function_is_the_cause(lane: Any, pes: int) -> None:
    error = failed(
        lambda s: s.key_by("n").map(inverse, name="inverse", schema=float, lane=lane), rel.JobConfig(pes=pes)
    )
    assert isinstance(error.__cause__, ZeroDivisionError)
    frames = error.__cause__.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    assert frames is not None
    assert frames.tb_frame.f_code is inverse.__code__


def test_notes_and_the_cause_of_the_cause_are_kept() -> None:
    cause = failed(lambda s: s.map(noted, name="price", schema=float, lane="python")).__cause__
    assert isinstance(cause, PriceError)
    assert cause.__notes__ == ["of 3"]
    assert isinstance(cause.__cause__, ZeroDivisionError)


def test_the_exception_of_a_source_is_the_cause() -> None:
    topology = rel.Topology("flaky")
    topology.source(testing.script([(1,), testing.Raise(OSError("gone"))], Number), name="n").sink(
        rel.list(), name="out"
    )
    with pytest.raises(JobFailedError) as caught:
        rel.run(topology)
    assert isinstance(caught.value.__cause__, OSError)


def test_the_exception_of_a_sink_is_the_cause() -> None:
    def refuse(t: Number) -> None:
        raise LookupError("no room")

    topology = rel.Topology("refused")
    topology.source(rel.rows([(1,)], Number), name="n").sink(rel.call(refuse), name="out")
    with pytest.raises(JobFailedError) as caught:
        rel.run(topology)
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_failure_keeps_its_cause_on_its_way_between_processes() -> None:
    problem = PriceError("no price")
    problem.add_note("of 3")
    sent: Failure = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(Failure("r", cause=Cause(problem))))))
    assert sent == Failure("r")
    assert sent.cause is not None
    read = sent.cause.error()
    assert isinstance(read, PriceError)
    assert read.__notes__ == ["of 3"]


@pytest.mark.parametrize("problem", [PriceError(threading.Lock()), PriceError("x" * MOST_PICKLED)])
def test_what_does_not_pickle_is_left_to_the_text(problem: Exception) -> None:
    sent: Cause = pickle.loads(pickle.dumps(Cause(problem)))
    assert sent.error() is None


def test_json_has_no_cause() -> None:
    assert "cause" not in plain(Failure("r", cause=Cause(PriceError("x"))))
