"""What descriptions of operators answer to plans, checkpoints and PEs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rayelastic.graph import Schema, StateKind
from rayelastic.graph.operators.aggregation import Aggregation
from rayelastic.graph.operators.channels import Channels, InTurn
from rayelastic.graph.operators.event_time import EventTime, Union
from rayelastic.graph.operators.joins.by_key import Join, JoinKind
from rayelastic.graph.operators.joins.merge import Merge
from rayelastic.graph.operators.pacing import Delay, Throttle
from rayelastic.graph.operators.processes import KeyedProcess
from rayelastic.graph.operators.splits import Split
from rayelastic.graph.records.time_info import TimeInfo, TimeToLive
from rayelastic.graph.spec.operator_spec import OperatorBody

TIME = TimeInfo("at", "s")
BY_CLOCK = TimeToLive(5, None, "last")
JOIN = Join(JoinKind.LATEST, ("k",), (), None, None)
CROSS = replace(JOIN, kind=JoinKind.CROSS)
PROCESS = KeyedProcess(object(), dict, Schema.of({"k": int}), ("k",), None)

YES: dict[str, list[OperatorBody]] = {
    "uses_clock": [Delay(1, 1), EventTime(TIME, 0, 1.0), PROCESS, replace(JOIN, ttl=BY_CLOCK)],
    "aligns": [Delay(1, 1), Split(2), JOIN, Throttle(1)],
    "ends": [Delay(1, 1), Aggregation(()), InTurn()],
    "ends_time": [Aggregation(()), replace(JOIN, kind=JoinKind.PAIRS)],
    "has_splits": [Union((True, False))],
    "takes_rules": [CROSS],
    "orders_rules": [replace(CROSS, left_time=TIME)],
    "routes_inputs": [JOIN],
    "takes_turns": [Aggregation(())],
}
NO: dict[str, list[OperatorBody]] = {
    "uses_clock": [Throttle(1), EventTime(TIME, 0), replace(PROCESS, time=TIME), JOIN, replace(CROSS, ttl=BY_CLOCK)],
    "aligns": [Channels(2, 1), InTurn()],
    "ends": [Throttle(1), JOIN],
    "ends_time": [JOIN, Merge(TIME)],
    "has_splits": [Throttle(1)],
    "takes_rules": [JOIN, replace(CROSS, left_time=TIME)],
    "orders_rules": [CROSS],
    "routes_inputs": [Merge(TIME), Union((True,))],
    "takes_turns": [Split(2), PROCESS],
}


@pytest.mark.parametrize("question", YES)
def test_answers(question: str) -> None:
    for answer, bodies in ((True, YES[question]), (False, NO[question])):
        for body in bodies:
            assert getattr(body, question) is answer, body


@pytest.mark.parametrize(
    ("body", "keys", "state", "keeps"),
    [
        (Aggregation(()), ("k",), StateKind.PARTITIONED, True),
        (Aggregation(()), (), StateKind.STATEFUL, True),
        (Aggregation((), partial=True), ("k",), StateKind.STATELESS, False),
        (Split(2), (), StateKind.STATEFUL, True),
        (Split(2, ("k",)), (), StateKind.STATELESS, True),
        (Channels(2, 2, keys=("k",)), (), StateKind.STATELESS, True),
        (PROCESS, (), StateKind.PARTITIONED, False),
    ],
)
def test_state_and_keys(body: Any, keys: tuple[str, ...], state: StateKind, keeps: bool) -> None:
    assert (body.state_kind(keys), body.keeps_keys(("k",))) == (state, keeps)
