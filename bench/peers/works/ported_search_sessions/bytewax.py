"""As Bytewax's search_session.py writes it, over rows in memory in batches of 1,000."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as windowing
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource

START = datetime(2024, 1, 1, tzinfo=UTC)
PAUSE = 30


def rate(session: tuple[str, tuple[int, list[tuple[int, bool]]]]) -> tuple[str, int, int, int, int, float]:
    user, (_, actions) = session
    clicks = sum(is_click for _, is_click in actions)
    searches = len(actions) - clicks
    first, last = min(at for at, _ in actions), max(at for at, _ in actions)
    return user, first, last + PAUSE, searches, clicks, clicks / searches if searches else 0.0


def declare(path: str, out: list[Any]) -> Dataflow:
    lines = Path(path).read_text().splitlines()
    flow = Dataflow("search_sessions")
    rows = [(user, (int(at), click == "1")) for user, at, click in map(str.split, lines)]
    events = op.input("events", flow, TestingSource(rows, batch_size=1_000))
    clock = windowing.EventClock(
        lambda event: START + timedelta(seconds=event[0]), wait_for_system_duration=timedelta(seconds=10)
    )
    framed = windowing.SessionWindower(gap=timedelta(seconds=PAUSE))
    sessions = windowing.collect_window("sessions", events, clock, framed)
    made = op.map("rates", sessions.down, rate)
    op.output("out", made, TestingSink(out))
    return flow


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(raw)))
