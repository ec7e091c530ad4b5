"""The port, examples/ported/orderbook.py."""

from collections.abc import Callable
from typing import Any

import rayelastic as rel
from examples.ported import orderbook


def prepare(path: str) -> Callable[[], list[Any]]:
    def run() -> list[Any]:
        out: list[Any] = rel.run(orderbook.build(path))["out"]
        return out

    return run


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(map(tuple, raw))))
