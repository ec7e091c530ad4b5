"""Word count in Ray Data, in batch: words of whole batches by Arrow, then groupby and count."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import ray

from bench.peers.ray_session import start


def words(batch: pa.Table) -> pa.Table:
    return pa.table({"word": pc.list_flatten(pc.utf8_split_whitespace(batch["item"]))})


def prepare(path: str) -> Callable[[], Any]:
    start()
    lines = ray.data.from_items(Path(path).read_text().splitlines()).materialize()
    return lambda: lines.map_batches(words, batch_format="pyarrow").groupby("word").count().materialize()


def result(raw: Any) -> dict[str, int]:
    return {row["word"]: row["count()"] for row in raw.take_all()}
