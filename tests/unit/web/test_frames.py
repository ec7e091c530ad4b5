"""What a frame says of two readings, and what a history keeps within its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayelastic.errors import ConfigError
from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.runtime.values.status import JobMetrics, OperatorSample, PESample
from rayelastic.web.events import Event, EventKind
from rayelastic.web.frames import COLUMNS, Frame, Rows, frame_between, replica_series
from rayelastic.web.history import LONGEST_SERIES, MOST_EVENTS, MOST_POINTS, History
from tests.raising import raises

PLAN = ExecPlan(
    "words",
    (
        RegionPlan(Region("r0", RegionKind.SOURCE, ("lines",)), (Pipeline(("lines",), ("pe0",)),)),
        RegionPlan(
            Region("r1", RegionKind.DATA_PARALLEL, ("counts",), ("word",)), (Pipeline(("counts",), ("pe0", "pe1")),)
        ),
    ),
    (("lines", "counts"),),
)
ROWS = Rows(PLAN)


def reading(seconds: float, tuples: int, marks: int = 0) -> JobMetrics:
    lines = OperatorSample("lines", "dedicated", 0, 2 * tuples, 0, 0, 0.1 * seconds, 0.25 * seconds)
    first = OperatorSample(
        "counts", "dynamic", tuples, 0, 5, 10, 0.3 * seconds, 0.5 * seconds, 0.2 * seconds, 0.1 * seconds,
        state_keys=3, latency=(0, 0, marks, 0),
    )  # fmt: skip
    second = OperatorSample("counts", "dynamic", tuples, 0, 1, 10, 0.0, 0.75 * seconds, state_keys=4)
    return JobMetrics(
        "words",
        seconds,
        (PESample("pe0", seconds, 2, 0.0, (lines, first)), PESample("pe1", seconds, 1, 0.5 * seconds, (second,))),
    )


def test_a_frame_has_rates_sums_and_highest_shares() -> None:
    frame = frame_between(reading(2.0, 100), reading(4.0, 300, marks=9), PLAN, ROWS)
    lines, counts = (dict(zip(COLUMNS, map(float, row), strict=True)) for row in frame.operators)
    assert (lines["rate_out"], lines["rate_in"], lines["tuples_out"]) == (200.0, 0.0, 600.0)
    assert (counts["rate_in"], counts["queued"], counts["state_keys"], counts["hosts"]) == (200.0, 6.0, 7.0, 2.0)
    assert counts["busy"] == pytest.approx(0.75)
    assert counts["waited"] == pytest.approx(0.2)
    assert counts["blocked"] == pytest.approx(0.1)
    assert counts["fill"] == pytest.approx(0.5)
    assert (lines["cost"], counts["cost"]) == (pytest.approx(0.25), pytest.approx(0.75))
    assert counts["p99"] == pytest.approx(4e-6)
    assert frame.series["throughput"] == 200.0
    assert (frame.series["threads"], frame.series["replicas"], frame.series["queues"]) == (
        3.0,
        2.0,
        1.0,
    )  # a source has no queue
    assert frame.series["cpu"] == pytest.approx(0.4)
    assert [pe["gil"] for pe in frame.pes] == [0.0, 0.5]


def test_a_frame_names_the_pes_that_do_not_answer() -> None:
    now = replace(reading(4.0, 300), silent=("pe1",))
    assert [pe["silent"] for pe in frame_between(reading(2.0, 100), now, PLAN, ROWS).pes] == [False, True]


def test_the_first_frame_knows_no_rates() -> None:
    frame = frame_between(None, reading(2.0, 100), PLAN, ROWS)
    assert frame.series["throughput"] is None
    assert frame.operators[0][COLUMNS.index("tuples_out")] == 200.0
    assert frame.operators[0][COLUMNS.index("rate_out")] == 0.0


def test_a_history_is_bounded_and_goes_back_to_the_start() -> None:
    history = History(PLAN)
    frame = frame_between(None, reading(2.0, 100), PLAN, ROWS)
    for second in range(LONGEST_SERIES + 100):
        history.add(Frame(float(second), frame.operators, frame.series))
    series = history.series()
    assert len(series["seconds"]) <= LONGEST_SERIES
    assert (series["seconds"][-1], series["seconds"][0]) == (LONGEST_SERIES + 99, 1)
    found = history.frame_at(500.2)
    assert found is not None
    assert found.seconds == 500.0


def test_decisions_outlive_passes_and_checkpoints_in_a_full_history() -> None:
    history = History(PLAN)
    history.add_events([Event(0.0, EventKind.QUEUES, "pe0", "adds a queue")])
    for kind in (EventKind.PASS, EventKind.CHECKPOINT):
        history.add_events(Event(float(n), kind, "pe0", "routine") for n in range(MOST_EVENTS))
    assert history.event_count == 2 * MOST_EVENTS + 1
    kept = history.events_from(0)
    assert len(kept) <= MOST_EVENTS
    assert (kept[0]["number"], kept[0]["kind"]) == (0, "queues")
    last = history.event_count - 1
    assert [one["number"] for one in history.events_from(last - 1)] == [last - 1, last]


def test_an_operator_has_series_of_a_bounded_number_of_points() -> None:
    history = History(PLAN)
    first = frame_between(reading(2.0, 100), reading(4.0, 300, marks=9), PLAN, ROWS)
    for second in range(MOST_POINTS + 50):
        history.add(replace(first, seconds=float(second)))
    series = history.operator_series("counts")
    assert len(series["seconds"]) <= MOST_POINTS
    assert series["seconds"][-1] == MOST_POINTS + 49
    assert (series["rate_in"][-1], series["busy"][-1], series["fill"][-1]) == (200.0, 0.75, 0.5)
    with raises(ConfigError, "unknown-operator"):
        history.operator_series("nothing")


def test_replicas_are_those_of_a_region_and_not_their_sum() -> None:
    both = ExecPlan(
        "both", (PLAN.regions[1], replace(PLAN.regions[1], region=replace(PLAN.regions[1].region, name="r2")))
    )
    assert replica_series(both) == {"replicas": 2.0}
    assert replica_series(ExecPlan("none", (PLAN.regions[0],))) == {"replicas": None}


def test_a_history_knows_the_plan_of_each_time() -> None:
    history = History(PLAN)
    wider = PLAN.with_replicas("r1", 3)
    history.set_plan(wider, 10.0)
    assert history.plan_at(9.9) == PLAN
    assert history.plan_at(10.0) == history.plan_at(None) == wider
