"""The port, examples/ported/orderbook.py."""

from typing import Any

from bench.peers.ported import Build, running
from examples.ported import orderbook


def topology(path: str) -> Build:
    return lambda: orderbook.build(path)


prepare = running(topology)


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(map(tuple, raw))))
