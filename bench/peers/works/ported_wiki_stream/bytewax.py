"""As Bytewax's wikistream.py writes it, over rows in memory in batches of 1,000."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as windowing
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource

START = datetime(2024, 1, 1, tzinfo=UTC)


def most(largest: int | None, counted: tuple[int, int]) -> tuple[int, tuple[int, int, int]]:
    window, n = counted
    largest = max(largest or 0, n)
    return largest, (window, n, largest)


def declare(path: str, out: list[Any]) -> Dataflow:
    lines = Path(path).read_text().splitlines()
    flow = Dataflow("wiki_stream")
    events = op.map("parse", op.input("events", flow, TestingSource(lines, batch_size=1_000)), json.loads)
    clock = windowing.EventClock(
        lambda event: START + timedelta(seconds=event["timestamp"]), wait_for_system_duration=timedelta(seconds=10)
    )
    framed = windowing.TumblingWindower(align_to=START, length=timedelta(seconds=2))
    counts = windowing.count_window("counts", events, clock, framed, lambda event: event["server_name"])
    made = op.stateful_map("most", counts.down, most)
    op.output("out", made, TestingSink(out))
    return flow


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted((server, window * 2.0, n, largest) for server, (window, n, largest) in raw)))
