"""Reading keyed state of a job that doesn't run, or of elements that don't tell: of which operator, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

import rayelastic as rel
from rayelastic.errors import PELostError, RayelasticError, StateError
from rayelastic.job.state import OperatorState
from rayelastic.runtime.state.queries import check_readable, read_state
from rayelastic.runtime.values.status import State
from tests.raising import raises

GONE = [TimeoutError("the PE has stopped"), PELostError("PE pe1 is gone")]


def told_by(error: RayelasticError) -> StateError:
    assert isinstance(error, StateError)
    assert error.operator == "counts"
    assert error.hint
    return error


@pytest.mark.parametrize("error", GONE, ids=str)
def test_an_element_that_does_not_tell(error: Exception) -> None:
    topology = rel.Topology("read")
    rows = topology.source(rel.rows([(1, 1)], schema={"key": int, "n": int}), name="rows")
    rows.key_by("key").aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")

    def gone(operator: str, ranges: object, most: int) -> list[bytes]:
        raise error

    with raises(StateError, "state-not-readable", f"{error}") as told:
        read_state(topology.operators, "counts", None, 1, [gone])
    assert "savepoints" in told_by(told.value).hint


@pytest.mark.parametrize("error", GONE, ids=str)
def test_a_coordinator_that_does_not_answer(error: Exception) -> None:
    def gone(key: tuple[Any, ...] | None, most: int) -> Any:
        raise error

    state = OperatorState("counts", gone)
    for ask in (lambda: state.get(1), lambda: state.key_of(["1"]), state.items, state.keys, state.table):
        with raises(StateError, "state-not-readable", f"{error}") as told:
            list(ask())
        assert "savepoints" in told_by(told.value).hint


@pytest.mark.parametrize("state", [state for state in State if state is not State.RUNNING])
def test_a_job_that_does_not_run(state: State) -> None:
    with raises(StateError, "job-not-running", str(state.value)) as told:
        check_readable("read", "counts", state)
    assert ("savepoints" in told_by(told.value).hint) == state.is_final
