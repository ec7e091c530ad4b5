"""Word count in Ray Data, in batch: flat_map, then groupby and count."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray

from bench.peers.ray_session import start


def prepare(path: str) -> Callable[[], Any]:
    start()
    lines = ray.data.from_items(Path(path).read_text().splitlines()).materialize()

    def run() -> Any:
        words = lines.flat_map(lambda row: [{"word": word} for word in row["item"].split()])
        return words.groupby("word").count().materialize()

    return run


def result(raw: Any) -> dict[str, int]:
    return {row["word"]: row["count()"] for row in raw.take_all()}
