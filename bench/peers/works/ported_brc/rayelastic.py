"""The port, examples/ported/brc.py."""

from typing import Any

from bench.peers.ported import Build, running
from examples.ported import brc


def topology(path: str) -> Build:
    return lambda: brc.build(path)


prepare = running(topology)


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted((t.station, t.least, round(t.mean, 9), t.greatest) for t in raw)))
