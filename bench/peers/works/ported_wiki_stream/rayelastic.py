"""The port, examples/ported/wiki_stream.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rayelastic as rel
from examples.ported import wiki_stream


def prepare(path: str) -> Callable[[], list[Any]]:
    lines = Path(path).read_text().splitlines()
    rows = [wiki_stream.Event(line) for line in lines]

    def run() -> list[Any]:
        out: list[Any] = rel.run(wiki_stream.build(rows))["out"]
        return out

    return run


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(map(tuple, raw))))
