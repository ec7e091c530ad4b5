"""Jobs that write to one output, and what an outsider reads there: for tests of who owns it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

import rayelastic as rel
from tests.component.rescale.gated import gated

PATIENCE = 60.0
TOTAL = 1000  # rows of a whole stream
SCHEMA = {"n": int}


@dataclass(frozen=True)
class Kind:
    """A sink to one output.

    Args:
        name: of the file or folder.
        sink: makes it of a path.
        appends: whether rows of other jobs stay.
    """

    name: str
    sink: Callable[[str], Any]
    appends: bool = False

    @property
    def is_file(self) -> bool:
        return "." in self.name

    def rows(self, folder: Path) -> list[int]:
        """What an outsider reads: of visible files alone, in the order of their names."""
        target = folder / self.name
        if self.is_file:
            return _read(target) if target.exists() else []
        files = sorted(target.glob("[!._]*"), key=lambda file: (int(file.stem.split("-")[1]), file.name))
        return [n for file in files for n in _read(file)]

    def files(self, folder: Path) -> dict[str, bytes]:
        """All that readers see, by name."""
        target = folder / self.name
        seen = [target] if self.is_file else target.glob("[!._]*")
        return {file.name: file.read_bytes() for file in seen if file.exists()}


def _read(file: Path) -> list[int]:
    if file.suffix == ".jsonl":
        return [json.loads(line)["n"] for line in file.read_text().splitlines()]
    table: pa.Table = parquet.read_table(file) if file.suffix == ".parquet" else csv.read_csv(file)
    return [int(n) for n in table.column("n").to_pylist()]


KINDS = {
    "csv-folder": Kind("out", rel.csv),
    "parquet-folder": Kind("out", rel.parquet),
    "json-folder": Kind("out", rel.json),
    "growing": Kind("out", lambda path: rel.spark.sink_stream(path, seconds=600.0), appends=True),
    "csv-file": Kind("out.csv", rel.csv),
    "parquet-file": Kind("out.parquet", rel.parquet),
    "json-file": Kind("out.jsonl", rel.json),
}


def writes(sink: Any, source: Any = None, name: str = "writes") -> rel.Topology:
    """A job that writes numbers to a sink."""
    topology = rel.Topology(name)
    rows = rel.rows([(n,) for n in range(TOTAL)], schema=SCHEMA) if source is None else source
    topology.source(rows, name="numbers").sink(sink, name="out")
    return topology


class Held:
    """A job whose source waits at given numbers of rows, until it is let go.

    Args:
        sink: that it writes to.
        stops: where it waits.
        name: of the job.
        options: of rel.start.
    """

    def __init__(self, sink: Any, stops: Sequence[int], name: str = "writes", **options: Any) -> None:
        source, self._gates = gated([(n,) for n in range(TOTAL)], stops, SCHEMA)
        try:
            self.job = rel.start(writes(sink, source, name), **options)
        except BaseException:
            self.let_go()
            raise
        self._next = 0

    def wait(self) -> None:
        """Waits until the source has come to the next stop."""
        if self._next:
            self._gates[self._next - 1].open()
        assert self._gates[self._next].wait_reached(PATIENCE)
        self._next += 1

    def let_go(self) -> None:
        for gate in self._gates:
            gate.open()

    def end(self) -> None:
        """Lets it come to its end."""
        try:
            self.let_go()
            self.job.wait(PATIENCE)
        finally:
            self.job.close()

    def cancel(self) -> None:
        """Cancels it at once."""
        self.job.cancel(drain=False)
        self.let_go()
        self.job.close()
