"""The log: each event a line of JSON with its job; what operators print is kept, and limited."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

import rayelastic as rel
from rayelastic.errors import ConfigError, JobFailedError
from rayelastic.runtime.watch.event_log import LOGGER, LONGEST_LINE, RateLimited, write_events
from tests.raising import raises


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logger = logging.getLogger(LOGGER)
    before = logger.handlers[:], logger.level, logger.propagate
    write_events("info", stream)
    yield stream
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


def lines(written: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_job_logs_its_start_and_end(written: io.StringIO) -> None:
    topology = rel.Topology("logged")
    topology.source(rel.sequence(10), name="numbers").sink(rel.count(), name="out")
    rel.run(topology)
    events = lines(written)
    assert [one["event"] for one in events] == ["job starts", "job ended"]
    assert all(one["job"] == "logged" and one["level"] == "info" and str(one["time"]).endswith("Z") for one in events)
    assert events[1]["state"] == "finished"


def test_a_failure_is_an_error_on_one_line(written: io.StringIO) -> None:
    topology = rel.Topology("fails")
    numbers = topology.source(rel.sequence(10), name="numbers")
    numbers.map(lambda t: 1 // (t.value - 5), name="inverse", schema={"value": int}).sink(rel.count(), name="out")
    with pytest.raises(JobFailedError):
        rel.run(topology)
    ended = lines(written)[-1]
    assert (ended["event"], ended["level"], ended["operator"]) == ("job ended", "error", "inverse")
    assert "division" in str(ended["reason"])


def test_the_level_is_obeyed(written: io.StringIO) -> None:
    write_events("error", written)
    topology = rel.Topology("quiet")
    topology.source(rel.sequence(10), name="numbers").sink(rel.count(), name="out")
    rel.run(topology)
    assert written.getvalue() == ""
    with raises(ConfigError, "invalid-setting", "log_level"):
        rel.JobConfig(log_level="loud")  # type: ignore[arg-type]


def test_what_is_printed_too_fast_is_counted() -> None:
    seconds, stream = [0.0], io.StringIO()
    limited = RateLimited(stream, rate=10, burst=5, clock=lambda: seconds[0])
    for number in range(100):
        print(number, file=limited)
    seconds[0] = 1.0
    print("later", file=limited)
    assert stream.getvalue().splitlines() == [
        *map(str, range(5)),
        "(95 lines were left out: more than 10 a second)",
        "later",
    ]


def test_what_has_no_line_ends_is_bounded_and_shown() -> None:
    seconds, stream = [0.0], io.StringIO()
    limited = RateLimited(stream, clock=lambda: seconds[0])
    for percent in range(3):
        limited.write(f"{percent} %\r")
    limited.write("\nwindows\r\nline\r")
    limited.write("\n")
    assert stream.getvalue().splitlines() == ["0 %", "1 %", "2 %", "windows", "line"]
    for _ in range(30_000):
        limited.write(".")
    assert len(limited._open) < LONGEST_LINE
    assert stream.getvalue().splitlines()[5:] == ["." * LONGEST_LINE] * 3
    seconds[0] += 1.0
    limited.write("!")
    assert stream.getvalue().splitlines()[-1] == "." * (30_000 % LONGEST_LINE) + "!"
    limited.write("x" * (3 * LONGEST_LINE + 1) + "\n")
    assert [len(line) for line in stream.getvalue().splitlines()[-4:]] == [LONGEST_LINE] * 3 + [1]
