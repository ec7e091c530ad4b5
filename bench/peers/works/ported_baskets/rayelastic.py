"""The port, examples/ported/baskets.py."""

from pathlib import Path
from typing import Any

from bench.peers.ported import Build, running
from examples.ported import baskets


def topology(path: str) -> Build:
    lines = Path(path).read_text().splitlines()
    rows = [baskets.Basket(line) for line in lines]
    return lambda: baskets.build(rows)


prepare = running(topology)


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted((str((one, other)), n) for one, other, n in raw)))
