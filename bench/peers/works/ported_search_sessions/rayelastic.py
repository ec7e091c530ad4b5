"""The port, examples/ported/search_sessions.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rayelastic as rel
from examples.ported import search_sessions


def prepare(path: str) -> Callable[[], list[Any]]:
    lines = Path(path).read_text().splitlines()
    rows = [search_sessions.Action(user, int(at), click == "1") for user, at, click in map(str.split, lines)]

    def run() -> list[Any]:
        out: list[Any] = rel.run(search_sessions.build(rows))["out"]
        return out

    return run


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(map(tuple, raw))))
