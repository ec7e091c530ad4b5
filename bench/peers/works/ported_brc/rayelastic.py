"""The port, examples/ported/brc.py."""

from collections.abc import Callable
from typing import Any

import rayelastic as rel
from examples.ported import brc


def prepare(path: str) -> Callable[[], list[Any]]:
    rows = path

    def run() -> list[Any]:
        out: list[Any] = rel.run(brc.build(rows))["out"]
        return out

    return run


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted((t.station, t.least, round(t.mean, 9), t.greatest) for t in raw)))
