"""What holds the sources back, and what others use: one row for each rule, on both sides of its border."""

from __future__ import annotations

from typing import Any

import pytest

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.guided.load import LoadThresholds, Saturation, cpus_of_others, saturation_of
from rayelastic.policy.element.observation import Observation, OperatorObservation
from rayelastic.policy.element.pieces import OperatorGraph
from rayelastic.reasons import Code, Reason

T = LoadThresholds()
LESS = 0.01  # below a border
GRAPH = OperatorGraph(["source", "a", "b"])


def seen(queue_fill: float = 0.0, samples: tuple[int, int, int] = (10, 20, 20), **values: Any) -> Observation:
    """Two threads at work on a source, and an operator behind a queue that feeds another, half busy, on eight CPUs."""
    operators = (
        OperatorObservation("source", switchable=False, samples=samples[0]),
        OperatorObservation("a", ThreadingModel.DYNAMIC, samples=samples[1], queue_fill=queue_fill),
        OperatorObservation("b", samples=samples[2]),
    )
    given = {"throughput": 1e5, "thread_count": 4, "cpu_count": 8, "own_cpu": 1.0, "operators": operators}
    return Observation(time=1, period=1, **{**given, **values})


@pytest.mark.parametrize(
    ("observation", "state", "why"),
    [
        (seen(throughput=0.0, idle=1.0), Saturation.SLACK, Code.NO_TUPLES()),
        (seen(idle=T.asleep, own_cpu=1 - T.asleep), Saturation.SLACK, Code.THREADS_IDLE(idle=T.asleep)),
        (seen(idle=T.asleep, own_cpu=1.0), Saturation.UNSURE, None),
        (seen(idle=T.asleep - LESS, own_cpu=0.0), Saturation.FULL, Code.NO_PROFILE()),
        (seen(source_wait=T.source_wait), Saturation.SLACK, Code.SOURCES_WAIT(wait=T.source_wait)),
        (seen(source_wait=T.source_wait - LESS), Saturation.UNSURE, None),
        (seen(source_wait=T.source_busy), Saturation.FULL, Code.SOURCE_BUSY(wait=T.source_busy)),
        (seen(source_wait=T.source_busy + LESS), Saturation.UNSURE, None),
        (seen(samples=(0, 0, 0), system_samples=9), Saturation.FULL, Code.NO_PROFILE()),
        (seen(queue_fill=T.full_queue), Saturation.FULL, Code.QUEUE_FULL(fill=T.full_queue)),
        (seen(queue_fill=T.full_queue - LESS), Saturation.UNSURE, None),
        (seen(blocked=T.blocked), Saturation.FULL, Code.THREADS_BLOCKED(blocked=T.blocked)),
        (seen(blocked=T.blocked - LESS), Saturation.UNSURE, None),
        (seen(token_wait=T.token_wait), Saturation.FULL, Code.THREADS_WAIT_FOR_GIL(wait=T.token_wait)),
        (seen(token_wait=T.token_wait - LESS), Saturation.UNSURE, None),
        # the piece of a and b has 40 of 50 samples
        (seen(own_cpu=T.busy * 50 / 40 + LESS), Saturation.FULL, Code.THREAD_FULL(busy=pytest.approx(0.858))),
        (seen(own_cpu=T.busy * 50 / 40 - LESS), Saturation.UNSURE, None),
        # samples outside operators are those of both pieces, half each: (40 + 25) of 100
        (
            seen(own_cpu=T.busy * 100 / 65 + LESS, system_samples=50),
            Saturation.FULL,
            Code.THREAD_FULL(busy=pytest.approx(0.8565)),
        ),
        (seen(own_cpu=T.busy * 100 / 65 - LESS, system_samples=50), Saturation.UNSURE, None),
        (seen(samples=(25, 13, 12), own_cpu=1.69), Saturation.UNSURE, None),
        (seen(samples=(25, 13, 12), own_cpu=0.85, cpu_count=1), Saturation.FULL, Code.CPUS_BUSY(busy=0.85, cpus=1)),
        (seen(samples=(25, 13, 12), own_cpu=0.84, cpu_count=1), Saturation.UNSURE, None),
        (seen(own_cpu=0.8, idle=T.idle), Saturation.SLACK, Code.SOURCES_LIMIT()),
        (seen(own_cpu=0.8, idle=T.idle - LESS), Saturation.UNSURE, None),
        (seen(own_cpu=T.slack * 50 / 40 - LESS, idle=T.idle), Saturation.SLACK, Code.SOURCES_LIMIT()),
        (seen(own_cpu=T.slack * 50 / 40 + LESS, idle=T.idle), Saturation.UNSURE, None),
    ],
)
def test_saturation(observation: Observation, state: Saturation, why: Reason | None) -> None:
    found, said = saturation_of(observation, GRAPH, T)
    assert found is state
    assert said[0] == why if why is not None else said[0].code is Code.PARTLY_BUSY


@pytest.mark.parametrize(
    ("values", "others"),
    [
        ({"own_cpu": 2.0, "host_cpu": 0.25}, 0),
        ({"own_cpu": 2.0, "host_cpu": 0.25 + 0.39 / 8}, 0),  # not worth giving way to
        ({"own_cpu": 2.0, "host_cpu": 0.25 + 0.41 / 8}, 1),
        ({"own_cpu": 2.0, "host_cpu": 0.25 + 1.39 / 8}, 1),
        ({"own_cpu": 2.0, "host_cpu": 0.25 + 1.41 / 8}, 2),
        ({"own_cpu": 0.0, "host_cpu": 0.9}, 4),  # no more than half are left to them, or who comes late gets nothing
        ({"own_cpu": 1.0, "host_cpu": 1.0, "thread_count": 1}, 4),
        ({"own_cpu": 4.0, "host_cpu": 0.94}, 4),
        ({"own_cpu": 4.0, "host_cpu": 1.0}, 4),  # who competes gets all it wants: so do others
        ({"own_cpu": 4.0, "host_cpu": 1.0, "thread_count": 2}, 4),  # and no less than it uses
        ({"own_cpu": 6.0, "host_cpu": 1.0, "thread_count": 9}, 3),  # 6 of the 8 it could use, and they 2 of 2.67
        ({"own_cpu": 6.0, "host_cpu": 1.0, "thread_count": 7}, 2),
    ],
)
def test_cpus_of_others(values: dict[str, Any], others: int) -> None:
    assert cpus_of_others(seen(**{"thread_count": 4, **values}), T) == others


def test_on_large_machines_a_share_of_the_cpus_is_not_worth_giving_way_to() -> None:
    assert cpus_of_others(seen(cpu_count=100, own_cpu=10.0, host_cpu=0.149), T) == 0
    assert cpus_of_others(seen(cpu_count=100, own_cpu=10.0, host_cpu=0.151), T) == 5
