"""Twelve programs by people who know Bytewax: steps have names, functions return whatever Python has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.guesses.guess import clicks, guess, lines, rel

LOG = ('{"user": "ada", "ms": 120}', '{"user": "bob", "ms": 80}', '{"user": "ada", "ms": 300}')


@guess("bytewax", gives=[("ADA",), ("BOB",), ("ADA",), ("EVE",)])
def map_to_a_value(t: Any, folder: Path) -> None:
    clicks(t).map(lambda c: c.user.upper(), name="upper").sink(rel.list(), name="out")


@guess("bytewax", gives=[("ada", 420), ("bob", 80)])
def parse_json_lines(t: Any, folder: Path) -> None:
    parsed = lines(t, *LOG).map(lambda t: json.loads(t.line), name="parse", schema={"user": str, "ms": int})
    parsed.key_by("user").aggregate(name="total", ms=rel.sum("ms")).sink(rel.list(), name="out")


@guess("bytewax", gives=[("to", 2), ("be", 1), ("or", 1)])
def count_words(t: Any, folder: Path) -> None:
    words = lines(t, "to be", "or to").flat_map(lambda t: [{"word": w} for w in t.line.split()], name="split")
    words.key_by("word").aggregate(name="count", n=rel.count()).sink(rel.list(), name="out")


@guess("bytewax", gives=[("ada", 0.12), ("bob", 0.08), ("ada", 0.3), ("eve", 0.05)])
def map_to_a_dict(t: Any, folder: Path) -> None:
    clicks(t).map(lambda c: {"user": c.user, "seconds": c.ms / 1000}, name="seconds").sink(rel.list(), name="out")


@dataclass
class Visit:
    user: str
    slow: bool


@guess("bytewax", gives=[("ada", True), ("bob", False), ("ada", True), ("eve", False)])
def map_to_a_dataclass(t: Any, folder: Path) -> None:
    clicks(t).map(lambda c: Visit(c.user, c.ms > 100), name="visit").sink(rel.list(), name="out")


@guess("bytewax", gives=[("ada", "home", 120), ("bob", "home", 80), ("ada", "cart", 300), ("eve", "home", 50)])
def inspect_on_the_way(t: Any, folder: Path) -> None:
    seen: list[Any] = []
    clicks(t).inspect(seen.append).sink(rel.list(), name="out")


@guess("bytewax", gives=[("ada", 0, 2), ("bob", 0, 1), ("eve", 10, 1)])
def tumbling_window_of_a_timedelta(t: Any, folder: Path) -> None:
    rows = [("ada", 1), ("bob", 2), ("ada", 9), ("eve", 12)]
    timed = t.source(rel.rows(rows, {"user": str, "at": int}), name="in").event_time("at", name="time")
    counts = timed.key_by("user").window(timedelta(seconds=10)).aggregate(name="count", n=rel.count())
    counts.map(lambda w: {"user": w.user, "start": w.start, "n": w.n}, name="short").sink(rel.list(), name="out")


@guess("bytewax", says=("stateful_map", "map", "state="))
def stateful_map(t: Any, folder: Path) -> None:
    clicks(t).key_by("user").stateful_map("count", lambda: 0, lambda n, c: (n + 1, n)).sink(rel.list(), name="out")


@guess("bytewax", says=("merge", "union"))
def merge_two_streams(t: Any, folder: Path) -> None:
    clicks(t).merge("both", t.source(rel.rows([("z", "home", 1)], {"user": str, "page": str, "ms": int}), name="more"))


@guess("bytewax", says=("branch", "split"))
def branch(t: Any, folder: Path) -> None:
    clicks(t).branch("slow", lambda c: c.ms > 100)


@guess("bytewax", gives=[("ADA", 120), ("ADA", 300)])
def map_filter_and_map(t: Any, folder: Path) -> None:
    named = clicks(t).map(lambda c: {**c._asdict(), "user": c.user.upper()}, name="upper")
    slow = named.filter(lambda c: c.ms > 100, name="slow")
    slow.map(lambda c: (c.user, c.ms), name="pair").sink(rel.list(), name="out")


@guess("bytewax", gives=[("ada", 1), ("bob", 1), ("ada", 2), ("eve", 1)])
def running_count_in_a_dataclass(t: Any, folder: Path) -> None:
    @dataclass
    class Seen:
        n: int = 0

    def count(c: Any, s: Any) -> dict[str, Any]:
        s.n += 1
        return {"user": c.user, "n": s.n}

    clicks(t).key_by("user").map(count, name="count", state=Seen, schema={"user": str, "n": int}).sink(
        rel.list(), name="out"
    )
