"""The port, examples/ported/anomalies.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rayelastic as rel
from examples.ported import anomalies


def prepare(path: str) -> Callable[[], list[Any]]:
    lines = Path(path).read_text().splitlines()
    rows = [anomalies.Metric(key, float(value)) for key, value in map(str.split, lines)]

    def run() -> list[Any]:
        out: list[Any] = rel.run(anomalies.build(rows))["out"]
        return out

    return run


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted((t.key, t.value, t.is_anomalous) for t in raw)))
