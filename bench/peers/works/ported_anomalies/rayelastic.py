"""The port, examples/ported/anomalies.py."""

from pathlib import Path
from typing import Any

from bench.peers.ported import Build, running
from examples.ported import anomalies


def topology(path: str) -> Build:
    lines = Path(path).read_text().splitlines()
    rows = [anomalies.Metric(key, float(value)) for key, value in map(str.split, lines)]
    return lambda: anomalies.build(rows)


prepare = running(topology)


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted((t.key, t.value, t.is_anomalous) for t in raw)))
