"""Objects of users: initialized before the first tuple, flushed at checkpoints and at the end, shut down after."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import rayelastic as rel
from rayelastic.errors import JobFailedError
from tests.component.connectors import ledger
from tests.component.connectors.ledger import Paced, await_checkpoints, paced
from tests.raising import raises

pytestmark = pytest.mark.edges

ROWS = 1234
SCHEMA = {"n": int}
KEYED = {"k": int, "n": int}


class Lives:
    """Notes its life; what it is called for comes between."""

    calls: ClassVar[list[str]] = []

    def initialize(self) -> None:
        assert not hasattr(self, "resource"), "twice"
        self.resource = threading.Lock()  # what can't be copied
        self.calls.append("initialize")

    def shutdown(self) -> None:
        del self.resource
        self.calls.append("shutdown")

    def used(self) -> None:
        assert self.resource is not None
        if "used" not in self.calls:
            self.calls.append("used")


class Maps(Lives):
    def __call__(self, t: Any) -> Any:
        self.used()
        return t.n


class Filters(Lives):
    def __call__(self, _: Any) -> bool:
        self.used()
        return True


class FlatMaps(Lives):
    def __call__(self, t: Any) -> Iterator[int]:
        self.used()
        yield t.n


class Generates(Lives):
    def __call__(self, n: int) -> int:
        self.used()
        return n


class Iterates(Lives):
    def __call__(self) -> Iterator[int]:
        self.used()
        yield from range(ROWS)


class Polls(Lives):
    def partitions(self) -> list[str]:
        return ["one"]

    def open(self, _: str, position: Any) -> Any:
        self.used()
        return Polled()


class Polled:
    position = 0

    def poll(self) -> list[tuple[int]] | None:
        self.position += 1
        return [(n,) for n in range(ROWS)] if self.position == 1 else None


class Processes(Lives):
    def on_tuple(self, t: Any, state: Any, out: Any) -> None:
        self.used()
        out.give(t)


async def nothing() -> None:
    """What an async client does as it opens."""


class Waits(Lives):
    """Its client belongs to the event loop."""

    async def initialize(self) -> None:  # type: ignore[override]
        await asyncio.wait_for(nothing(), 1)
        self.loop = asyncio.get_running_loop()
        super().initialize()

    async def shutdown(self) -> None:  # type: ignore[override]
        await asyncio.wait_for(nothing(), 1)
        assert asyncio.get_running_loop() is self.loop
        super().shutdown()

    async def __call__(self, t: Any) -> int:
        assert asyncio.get_running_loop() is self.loop
        self.used()
        return int(t.n)


def topology_of(kind: type[Lives]) -> rel.Topology:
    made = rel.Topology("life")
    own: Any = kind()
    sources: dict[Any, Any] = {
        Generates: lambda: rel.generate(own, ROWS, SCHEMA),
        Iterates: lambda: rel.callable(own, SCHEMA),
        Polls: lambda: rel.polled(own, SCHEMA),
    }
    source = sources.get(kind, lambda: rel.generate(lambda n: n, ROWS, SCHEMA))()
    rows = made.source(source, name="rows")
    match kind.__name__:
        case "Maps" | "Waits":
            rows = rows.map(own, name="own", schema=SCHEMA)
        case "Filters":
            rows = rows.filter(own, name="own")
        case "FlatMaps":
            rows = rows.flat_map(own, name="own", schema=SCHEMA)
        case "Processes":
            keyed = rows.map(lambda t: (0, t.n), name="key", schema=KEYED).key_by("k")
            rows = keyed.process(own, name="own", schema=KEYED, clock=True)
    rows.sink(rel.count(), name="out")
    return made


KINDS = [Maps, Filters, FlatMaps, Generates, Iterates, Polls, Processes, Waits]


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    Lives.calls.clear()
    Batch.reset()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("saves", [False, True], ids=["plain", "checkpoints"])
def test_a6_every_object_has_a_life(kind: type[Lives], saves: bool, tmp_path: Path) -> None:
    made = topology_of(kind)
    for _ in range(2):  # the user's own object stays as it was
        config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "checkpoints") if saves else False)
        assert rel.run(made, config)["out"] == ROWS
        assert Lives.calls == ["initialize", "used", "shutdown"]
        Lives.calls.clear()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a6_a_job_that_is_cancelled_shuts_its_objects_down(kind: type[Lives]) -> None:
    job = rel.start(topology_of(kind))
    job.cancel(drain=False)
    job.close()
    assert Lives.calls.count("shutdown") == Lives.calls.count("initialize") <= 1


class Batch:
    """Writes 500 at once."""

    written: ClassVar[list[int]] = []
    calls: ClassVar[list[str]] = []
    raises: ClassVar[str] = ""

    @classmethod
    def reset(cls) -> None:
        cls.written, cls.calls, cls.raises = [], [], ""

    def __init__(self) -> None:
        self.batch: list[int] = []

    def _call(self, name: str) -> None:
        Batch.calls.append(name)
        if Batch.raises == name:
            raise OSError("the disk is gone")

    def initialize(self) -> None:
        self._call("initialize")

    def __call__(self, t: Any) -> None:
        self.batch.append(t.n)
        if len(self.batch) == 500:
            self.write()

    def write(self) -> None:
        Batch.written += self.batch
        self.batch = []

    def flush(self) -> None:
        self._call("flush")
        self.write()

    def shutdown(self) -> None:
        self._call("shutdown")


def batches(*, saves: Path | None = None) -> Any:
    made = rel.Topology("batches")
    made.source(rel.generate(lambda n: n, ROWS, SCHEMA), name="rows").sink(rel.call(Batch()), name="out")
    return rel.run(made, rel.JobConfig(checkpoint=rel.Checkpoint(saves) if saves else False))


@pytest.mark.parametrize("saves", [False, True], ids=["plain", "checkpoints"])
def test_a6_a_batch_that_a_sink_keeps_is_written(saves: bool, tmp_path: Path) -> None:
    assert batches(saves=tmp_path if saves else None)["out"] == ROWS
    assert Batch.written == list(range(ROWS))
    assert (Batch.calls[0], Batch.calls[-1]) == ("initialize", "shutdown")
    assert set(Batch.calls[1:-1]) == {"flush"}


@pytest.mark.parametrize(
    ("name", "code"), [("initialize", "function-raised"), ("flush", "sink-failed"), ("shutdown", "function-raised")]
)
def test_what_raises_in_the_life_of_a_sink_fails_the_job_and_is_named(name: str, code: str) -> None:
    Batch.raises = name
    with raises(JobFailedError, code, "the disk is gone") as failed:
        batches()
    assert failed.value.operator == "out"


def test_a6_rows_before_a_checkpoint_are_flushed_before_it_is_complete(tmp_path: Path) -> None:
    made = rel.Topology("batches")
    made.source(paced("n"), name="rows").sink(rel.call(Batch()), name="out")
    job = rel.start(made, rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path, every=0.2)))
    try:
        Paced.limit = 7
        looked = threading.Event()
        while job.metrics().operator("out").tuples_in < 7:
            looked.wait(0.01)
        await_checkpoints(job, 2)  # the first one may have begun before
        assert Batch.written == list(range(7))
        Paced.limit = ledger.ROWS
        job.wait(60)
    finally:
        job.close()
    assert Batch.written == list(range(ledger.ROWS))
