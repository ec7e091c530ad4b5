"""Replicas by the time of day: there when the load is known to come, and given back, whatever the load is now."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import ConfigError
from rayelastic.job import start
from rayelastic.policy.regions.actions import Verdict
from rayelastic.reasons import Code
from rayelastic.runtime.job import region_level
from rayelastic.runtime.values.region_adaptation import RegionAdaptation
from tests.raising import raises
from tests.waiting import wait_until

PERIOD = 0.2  # seconds between two decisions
PATIENCE = 60.0
TICK = 0.005  # seconds between two tuples: next to no load


class Number(NamedTuple):
    key: int
    n: int


class Seen(NamedTuple):
    times: int = 0


def count(t: Number, s: Seen) -> Number:
    if s.times != t.n:
        raise ValueError(f"{t} came where {s.times} was due")
    s.times += 1  # type: ignore[misc]  # state of a key is mutable
    return t


class Clock:
    """The time of the day, as the test says."""

    now = datetime(2026, 11, 24, 7, 0, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()

    class Told(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            assert tz is UTC
            return made.now

    monkeypatch.setattr(region_level, "datetime", Told)
    return made


@pytest.mark.timeout(200)
def test_replicas_are_there_by_the_clock_and_no_key_notices(clock: Clock) -> None:
    enough = threading.Event()

    def numbers() -> Iterator[Number]:
        n = 0
        while not enough.wait(TICK):
            yield Number(n % 7, n // 7)
            n += 1

    topology = rel.Topology("by_the_clock")
    stream = topology.source(rel.callable(numbers, Number), name="numbers").key_by("key")
    stream.map(count, name="count", state=Seen, schema=Number, lane="python").sink(rel.list(), name="out")
    day = rel.Schedule({"08:00": (3, 4), "20:00": 1})
    config = rel.JobConfig(
        regions="elastic",
        elasticity=rel.Elasticity(algorithm="off", region_period=PERIOD, max_processes=4),
        replicas={"count": day},
    )
    job = start(topology, config)

    def replicas() -> int:
        return job.plan().region_of("count").replicas

    try:
        job.pause(10 * PERIOD)
        assert replicas() == 1
        clock.now += timedelta(hours=1)
        wait_until(job, lambda: replicas() == 3, PERIOD)
        told = [one for one in job.adaptations() if isinstance(one, RegionAdaptation)]
        assert [one.decision.verdict for one in told] == [Verdict.BOUND]
        grown, why = told[0].decision.reasons[:2]
        assert (grown.values["before"], grown.values["replicas"], why) == (1, 3, Code.BOUNDS())
        job.pause(16 * PERIOD)  # twice as long as less would have to be enough
        assert replicas() == 3
        clock.now += timedelta(hours=12)
        wait_until(job, lambda: replicas() == 1, PERIOD)
        enough.set()
        rows = job.wait(PATIENCE)["out"]
        assert sum(rows_of(rows, key) for key in range(7)) == len(rows)
    finally:
        enough.set()
        job.close()


def rows_of(rows: list[Number], key: int) -> int:
    """How many rows a key has, which are numbered from 0 on."""
    numbers = [t.n for t in rows if t.key == key]
    assert numbers == list(range(len(numbers)))
    return len(numbers)


@pytest.mark.parametrize(
    ("bounds", "zone", "values"),
    [
        ({}, "UTC", ("Schedule({})",)),
        ({"25:00": 1}, "UTC", ("'25:00'", "'08:00'")),
        ({"08:00": (4, 2)}, "UTC", ("Schedule({'08:00': (4, 2)})",)),
        ({"08:00": 4097}, "UTC", ("4097", "4096")),
        ({"08:00": 2}, "Atlantis", ("zone='Atlantis'", "'UTC'")),
    ],
)
def test_what_can_not_be_is_refused(bounds: Mapping[str, int], zone: str, values: tuple[str, ...]) -> None:
    with raises(ConfigError, "invalid-setting", *values):
        rel.Schedule(bounds, zone)


def test_more_than_may_be_is_refused_before_anything_starts() -> None:
    day = rel.Schedule({"08:00": (4, 16), "20:00": (1, 4)})
    with raises(ConfigError, "invalid-setting", "16", "max_replicas=8", "Elasticity"):
        rel.JobConfig(replicas={"count": day}, elasticity=rel.Elasticity(max_replicas=8))
    topology = rel.Topology("fixed")
    topology.source(rel.sequence(10), name="numbers").sink(rel.list(), name="out")
    with raises(ConfigError, "invalid-setting"):
        rel.start(topology, rel.JobConfig(regions="elastic", replicas={"numbers": day}))


@pytest.mark.parametrize("regions", ["paper", "manual"])
@pytest.mark.parametrize(
    "said", [{"replicas": {"count": rel.Schedule({"08:00": 4})}}, {"elasticity": rel.Elasticity(cool_down=60)}]
)
def test_settings_that_nothing_follows_are_rejected(regions: Any, said: dict[str, Any]) -> None:
    with raises(ConfigError, "invalid-setting", str(regions)):
        rel.JobConfig(regions=regions, **said)
    rel.JobConfig(regions="advise", **said)


def test_times_are_those_of_the_zone() -> None:
    day = rel.Schedule({"08:00": 4, "20:00": 1}, zone="Europe/Berlin")
    assert day.at(datetime(2026, 11, 24, 7, 30, tzinfo=UTC)) == (4, 4)  # 8:30 in winter
    assert day.at(datetime(2026, 7, 24, 18, 30, tzinfo=UTC)) == (1, 1)  # 20:30 in summer
    assert day.at(datetime(2026, 7, 24, 3, 0, tzinfo=UTC)) == (1, 1)  # since the evening before
