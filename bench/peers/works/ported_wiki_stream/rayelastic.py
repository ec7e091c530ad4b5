"""The port, examples/ported/wiki_stream.py."""

from pathlib import Path
from typing import Any

from bench.peers.ported import Build, running
from examples.ported import wiki_stream


def topology(path: str) -> Build:
    lines = Path(path).read_text().splitlines()
    rows = [wiki_stream.Event(line) for line in lines]
    return lambda: wiki_stream.build(rows)


prepare = running(topology)


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(map(tuple, raw))))
