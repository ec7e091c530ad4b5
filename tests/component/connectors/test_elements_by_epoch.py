"""All sinks of an element at once, behind the native scheduler, which is held, prepared, killed and made anew."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import pyarrow.dataset as dataset
import pytest

import rayelastic as rel
from rayelastic import _native, testing
from rayelastic.connectors.output.record import Output
from rayelastic.job.preparing import prepare
from rayelastic.runtime.element.hosted import HostedOperators
from rayelastic.runtime.element.wiring import connect_operators
from rayelastic.runtime.values.specs import PESpec
from tests.component.runtime.checkpoint_folder import Blobs

PATIENCE = 60.0
TOTAL = 100_000  # rows: more than an Arrow batch of a sink has
CUTS = (30_000, 70_000)


class Row(NamedTuple):
    n: int


class Element:
    """A PE's operators and scheduler, without its links and loops."""

    def __init__(self, topology: rel.Topology, blobs: Blobs, outputs: dict[str, Output], position: int) -> None:
        job = prepare(topology)
        spec = PESpec("pe0", job.name, "id", b"", tuple(job.operators.values()), (), (), job.config)
        self.blobs = blobs
        self.before = position
        self.hosted = HostedOperators(spec)
        self.hosted.open(outputs, blobs, takes_checkpoints=True)
        self.hosted.begin()
        self.hosted.build()
        self.scheduler = _native.Scheduler()
        self.ids = {
            name: self.scheduler.add(native, skip=position if name == "rows" else 0)
            for name, native in self.hosted.natives.items()
        }
        connect_operators(self.scheduler, spec.operators, self.ids)
        self.scheduler.start(1)

    @property
    def position(self) -> int:
        return self.before + self.scheduler.sample().operators[self.ids["rows"]].tuples_out

    def prepare(self, epoch: int) -> dict[str, Output]:
        self.scheduler.hold(list(self.ids.values()), drain=True, timeout=PATIENCE)
        outputs = {name: sink.prepare(epoch, self.blobs) for name, sink in self.hosted.sinks.items()}
        assert {name: output.rows for name, output in outputs.items()} == dict.fromkeys(outputs, self.position)
        document = json.dumps({name: asdict(output) for name, output in outputs.items()})
        return {name: Output(**one) for name, one in json.loads(document).items()}

    def commit(self, epoch: int) -> None:
        for sink in self.hosted.sinks.values():
            sink.commit(epoch)

    def kill(self) -> None:
        self.scheduler.stop()
        self.hosted.close()


class Ledger:
    """Keeps the tuples of an epoch in a file of their own, which counts once it is committed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[int] = []

    def __call__(self, t: Row) -> None:
        self.rows.append(t.n)

    def prepare(self, epoch: int) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{epoch}.prepared").write_text(json.dumps(self.rows))
        self.rows = []

    def commit(self, epoch: int) -> None:
        for file in self.folder.glob("*.prepared"):
            if int(file.stem) <= epoch:
                file.rename(file.with_suffix(".committed"))

    def abort(self) -> None:
        self.rows = []
        for file in self.folder.glob("*.prepared"):
            file.unlink()

    def committed(self) -> list[int]:
        files = sorted(self.folder.glob("*.committed"), key=lambda file: int(file.stem))
        return [n for file in files for n in json.loads(file.read_text())]


def every_sink(folder: Path, gates: list[testing.Gate], numbered: list[tuple[int, int, int]]) -> rel.Topology:
    rows = [Row(n) for n in range(TOTAL)]
    steps = [*rows[: CUTS[0]], gates[0], *rows[CUTS[0] : CUTS[1]], gates[1], *rows[CUTS[1] :]]
    topology = rel.Topology("sinks")
    stream = topology.source(testing.script(steps, Row), name="rows")
    stream.sink(rel.list(), name="listed")
    stream.sink(rel.arrow(), name="table")
    stream.sink(rel.count(), name="counted")
    stream.sink(rel.call(Ledger(folder / "ledger")), name="ledger")
    stream.sink(
        rel.call(lambda t, epoch, number: numbered.append((t.n, epoch, number)), numbered=True), name="numbered"
    )
    for name, sink in (("parquet", rel.parquet), ("csv", rel.csv)):
        stream.sink(sink(folder / f"all.{name}"), name=f"{name}-file")
        stream.sink(sink(folder / name), name=f"{name}-parts")
    stream.sink(rel.spark.sink_stream(str(folder / "growing"), seconds=0.05), name="growing")
    return topology


def results(element: Element, folder: Path) -> dict[str, list[int]]:
    """What everybody sees at the end, by sink."""
    element.hosted.complete()
    taken = {name: element.scheduler.sample().operators[element.ids[name]].tuples_in for name in element.hosted.sinks}
    assert {sink.before + taken[name] for name, sink in element.hosted.sinks.items()} == {TOTAL}
    parts = {name: sorted((folder / name).glob("part-*"), key=_number) for name in ("parquet", "csv", "growing")}
    tables = {
        "listed": element.hosted.sinks["listed"].close(),
        "table": element.hosted.sinks["table"].close(),
        "parquet-file": dataset.dataset(folder / "all.parquet").to_table(),
        "csv-file": dataset.dataset(folder / "all.csv", format="csv").to_table(),
        "parquet-parts": dataset.dataset(parts["parquet"]).to_table(),
        "csv-parts": dataset.dataset(parts["csv"], format="csv").to_table(),
        "growing": dataset.dataset(parts["growing"]).to_table(),
    }
    return {name: table["n"].to_pylist() for name, table in tables.items()}


def _number(part: Path) -> int:
    return int(part.stem.split("-")[1])


@pytest.mark.parametrize("lost", ["held", "prepared", "complete", "told", "later"])
def test_an_element_that_is_lost_is_made_anew_and_every_sink_goes_on(lost: str, tmp_path: Path) -> None:
    blobs, gates = Blobs(tmp_path / "blobs"), [testing.Gate(), testing.Gate()]
    numbered: list[tuple[int, int, int]] = []
    topology = every_sink(tmp_path, gates, numbered)
    element = Element(topology, blobs, {}, 0)
    assert gates[0].wait_reached(PATIENCE)
    outputs, position = element.prepare(1), element.position
    first = position
    assert 0 < position <= CUTS[0]
    element.scheduler.release()
    element.commit(1)
    gates[0].open()
    assert gates[1].wait_reached(PATIENCE)
    if lost != "held":
        later, there = element.prepare(2), element.position
        assert position < there <= CUTS[1]
        if lost != "prepared":
            outputs, position = later, there
        if lost in ("told", "later"):
            element.commit(2)
        element.scheduler.release()
    gates[1].open()
    if lost == "later":
        assert element.scheduler.wait(PATIENCE)
        element.hosted.complete()
    element.kill()
    element = Element(topology, blobs, outputs, position)
    assert element.scheduler.wait(PATIENCE)
    left = results(element, tmp_path)
    assert len(left) == 7
    assert all(rows == list(range(TOTAL)) for rows in left.values())
    assert {(n, number) for n, _, number in numbered} == {(n, n) for n in range(TOTAL)}
    assert {(0, 1, 0), (first - 1, 1, first - 1), (first, 2, first)} <= set(numbered)
    if lost != "later":  # an object can't take back what its stream's end has shown
        assert Ledger(tmp_path / "ledger").committed() == list(range(TOTAL))
    assert not [file for file in tmp_path.rglob(".*") if file.is_file()]
    element.kill()
