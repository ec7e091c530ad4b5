"""The port, examples/ported/search_sessions.py."""

from pathlib import Path
from typing import Any

from bench.peers.ported import Build, running
from examples.ported import search_sessions


def topology(path: str) -> Build:
    lines = Path(path).read_text().splitlines()
    rows = [search_sessions.Action(user, int(at), click == "1") for user, at, click in map(str.split, lines)]
    return lambda: search_sessions.build(rows)


prepare = running(topology)


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(map(tuple, raw))))
