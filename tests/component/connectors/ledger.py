"""The sink of docs/how_to/write_your_own_sink.md, as it stands there, and a source that waits for the test."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any, ClassVar

import rayelastic as rel
from rayelastic.job.job import Job

ROWS = 1000
PAGE = Path(__file__).resolve().parents[3] / "docs" / "how_to" / "write_your_own_sink.md"


_BLOCK = re.search(r"^```python\n(.*?)^topology = ", PAGE.read_text(), re.DOTALL | re.MULTILINE)
assert _BLOCK is not None
exec(compile(_BLOCK[1], str(PAGE), "exec"))  # here, so that other processes find its classes
Amount: Any = globals()["Amount"]
Ledger: Any = globals()["Ledger"]


def read(folder: Path) -> list[int]:
    """What a reader sees."""
    return [amount for file in folder.glob("*.json") for amount in json.loads(file.read_text())]


class Part:
    """Amounts up to the limit that the test sets."""

    def __init__(self, position: int) -> None:
        self.position = position

    def poll(self) -> list[tuple[int]] | None:
        first, self.position = self.position, max(self.position, min(Paced.limit, ROWS))
        return None if first == ROWS else [(n,) for n in range(first, self.position)]


class Paced:
    """A source that waits for the test, and can be held meanwhile."""

    idle = 0.005
    limit: ClassVar[int] = 0

    def partitions(self) -> list[str]:
        return ["amounts"]

    def open(self, _: str, position: int | None) -> Part:
        return Part(position or 0)


def paced(field: str = "amount") -> Any:
    """The source, which gives nothing yet."""
    Paced.limit = 0
    return rel.polled(Paced(), {field: int})


def await_checkpoints(job: Job, more: int) -> None:
    """Wait until so many more are complete."""
    before, looked = job.status.checkpoints.taken, threading.Event()
    while job.status.checkpoints.taken < before + more:
        assert not job.status.state.is_final, job.status
        looked.wait(0.01)
