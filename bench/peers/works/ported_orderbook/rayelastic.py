"""The port, examples/ported/orderbook.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rayelastic as rel
from examples.ported import orderbook


def prepare(path: str) -> Callable[[], list[Any]]:
    lines = Path(path).read_text().splitlines()
    rows = [orderbook.Message(*line.split(" ", 1)) for line in lines]

    def run() -> list[Any]:
        out: list[Any] = rel.run(orderbook.build(rows))["out"]
        return out

    return run


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(map(tuple, raw))))
