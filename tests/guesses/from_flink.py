"""Eleven programs by people who know Flink's DataStream API."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tests.guesses.guess import CLICKS, CLICKS_SCHEMA, clicks, guess, rel


class Slow(NamedTuple):
    user: str
    ms: int


@guess("flink", gives=[("ada", 120), ("ada", 300)])
def filter_then_map_to_a_named_tuple(t: Any, folder: Path) -> None:
    slow = clicks(t).filter(lambda c: c.ms > 100)
    slow.map(lambda c: Slow(c.user, c.ms)).sink(rel.list(), name="out")


@guess("flink", gives=[("ada", 420), ("bob", 80), ("eve", 50)])
def keyed_reduce(t: Any, folder: Path) -> None:
    pairs = clicks(t).map(lambda c: {"user": c.user, "ms": c.ms})
    pairs.key_by("user").reduce(lambda a, b: {"user": a.user, "ms": a.ms + b.ms}).sink(rel.list(), name="out")


@guess("flink", says=("sum", "aggregate"))
def keyed_sum(t: Any, folder: Path) -> None:
    clicks(t).key_by("user").sum("ms")


class Seen(NamedTuple):
    n: int = 0


@guess("flink", gives=[("ada", 1), ("bob", 1), ("ada", 2), ("eve", 1)])
def keyed_state(t: Any, folder: Path) -> None:
    def count(c: Any, s: Any) -> Any:
        s.n += 1
        return {"user": c.user, "n": s.n}

    clicks(t).key_by("user").map(count, state=Seen).sink(rel.list(), name="out")


@guess("flink", gives=[(0, 3), (10, 1)])
def tumbling_event_time_windows(t: Any, folder: Path) -> None:
    rows = [("ada", 1), ("bob", 2), ("ada", 9), ("eve", 12)]
    timed = t.source(rel.rows(rows, {"user": str, "at": int})).event_time("at", lateness=2)
    timed.window(seconds=10).aggregate(n=rel.count()).select("start", "n").sink(rel.list(), name="out")


@guess("flink", says=("assign_timestamps_and_watermarks", "event_time"))
def assign_watermarks(t: Any, folder: Path) -> None:
    clicks(t).assign_timestamps_and_watermarks("at")


@guess("flink", gives=4)
def print_a_stream(t: Any, folder: Path) -> Any:
    clicks(t).print()
    return rel.run(t)["print"]


@guess("flink", says=("from_collection", "source", "rel.rows"))
def from_a_collection(t: Any, folder: Path) -> None:
    t.from_collection(CLICKS)


@guess("flink", gives=8)
def union_two_streams(t: Any, folder: Path) -> None:
    clicks(t).union(t.source(rel.rows(CLICKS, CLICKS_SCHEMA))).sink(rel.count(), name="out")


@guess("flink", says=("set_parallelism", "max_processes"))
def set_parallelism(t: Any, folder: Path) -> None:
    clicks(t).map(lambda c: c.ms * 2).set_parallelism(4)


@guess("flink", gives=[("ada", 2), ("ada", 1)])
def session_windows(t: Any, folder: Path) -> None:
    rows = [("ada", 1), ("ada", 5), ("ada", 99)]
    timed = t.source(rel.rows(rows, {"user": str, "at": int})).event_time("at").key_by("user")
    sessions = timed.session(timedelta(seconds=30)).aggregate(n=rel.count())
    sessions.drop("start", "end").sink(rel.list(), name="out")
