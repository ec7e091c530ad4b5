"""Five programs that read from or write to a system outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.guesses.guess import clicks, guess, rel


@guess("connector", says=("kafka", "rel.polled"))
def kafka(t: Any, folder: Path) -> None:
    t.source(rel.kafka("localhost:9092", "clicks"), name="clicks")


@guess("connector", says=("websocket", "rel.polled"))
def websocket(t: Any, folder: Path) -> None:
    t.source(rel.websocket("wss://example.org/ticks"), name="ticks")


@guess("connector", says=("s3", "rel.parquet"))
def s3(t: Any, folder: Path) -> None:
    t.source(rel.s3("bucket/clicks"), name="clicks")


@guess("connector", says=("delta", "rel.parquet"))
def delta(t: Any, folder: Path) -> None:
    clicks(t).sink(rel.delta("table"), name="out")


@guess("connector", says=("jdbc", "rel.postgres"))
def jdbc(t: Any, folder: Path) -> None:
    t.source(rel.jdbc("jdbc:postgresql://db/users"), name="users")
