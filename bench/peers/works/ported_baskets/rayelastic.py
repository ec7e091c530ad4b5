"""The port, examples/ported/baskets.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rayelastic as rel
from examples.ported import baskets


def prepare(path: str) -> Callable[[], list[Any]]:
    lines = Path(path).read_text().splitlines()
    rows = [baskets.Basket(line) for line in lines]

    def run() -> list[Any]:
        out: list[Any] = rel.run(baskets.build(rows))["out"]
        return out

    return run


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted((str((one, other)), n) for one, other, n in raw)))
