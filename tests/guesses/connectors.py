"""Five programs that read from or write to a system outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.guesses.guess import clicks, guess, rel


@guess("connector", says=("kafka", "rel.polled"))
def kafka(t: Any, folder: Path) -> None:
    t.source("clicks", rel.kafka("localhost:9092", "clicks"))


@guess("connector", says=("websocket", "rel.polled"))
def websocket(t: Any, folder: Path) -> None:
    t.source("ticks", rel.websocket("wss://example.org/ticks"))


@guess("connector", says=("s3", "rel.parquet"))
def s3(t: Any, folder: Path) -> None:
    t.source("clicks", rel.s3("bucket/clicks"))


@guess("connector", says=("delta", "rel.parquet"))
def delta(t: Any, folder: Path) -> None:
    clicks(t).sink("out", rel.delta("table"))


@guess("connector", says=("jdbc", "rel.postgres"))
def jdbc(t: Any, folder: Path) -> None:
    t.source("users", rel.jdbc("jdbc:postgresql://db/users"))
