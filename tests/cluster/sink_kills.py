"""Kills elements, coordinators and the server at each step of each sink's protocol: `./dev kills --sinks`.

One job has all sinks. Who is to die waits for its shot in a file: an element in the calls of one sink, the coordinator
before and after it asks for them. Shots are fired one after the other, as the job recovers. Afterwards an outsider
reads what the sinks show, with nothing of rayelastic: each row once.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import deltalake
import pyarrow.parquet
import pytest

import rayelastic as rel
from rayelastic.connectors import registry as makers
from rayelastic.connectors.sink import SinkOperator
from rayelastic.errors import RayelasticError, UnavailableError
from rayelastic.job import Job, prepare
from rayelastic.on_ray.jobs import start_coordinator
from rayelastic.runtime.checkpoint.take import Taker
from rayelastic.runtime.element import hosted
from rayelastic.runtime.element.processing_element import ProcessingElement
from rayelastic.runtime.job.completion import Completion
from rayelastic.runtime.job.coordinator import Coordinator
from tests.cluster.killing import Row
from tests.component.connectors import ledger
from tests.postgres import needs_postgres, postgres_server, restart

ROWS = 12_000  # what a sink keeps in memory outlives the coordinator up to a megabyte
BURST, PACE = 5, 0.05  # rows, and seconds between so many, until there is a file `go`
PATIENCE = 90.0  # seconds for a shot to be fired
LOOK = 0.05  # seconds
ELEMENT, COORDINATOR, SERVER = "element", "coordinator", "server"
BEFORE, AFTER = "before", "after"
RUNNING, ENDING = "running", "ending"  # when: while rows come, or once they have ended
IN_ELEMENT = {  # what comes in a recovery stands behind others
    RUNNING: ("prepare", "commit", "make", "begin"),
    ENDING: ("prepare", "commit", "make", "begin", "close"),
}
IN_COORDINATOR = {RUNNING: ("save", "note", "commit"), ENDING: ("save", "note", "commit", "complete", "end")}


@dataclass(frozen=True, slots=True)
class Shot:
    """When who dies.

    Args:
        victim: ELEMENT, COORDINATOR or SERVER.
        sink: at a step of which; of the coordinator: empty.
        step: the call.
        when: BEFORE or AFTER it.
        phase: RUNNING or ENDING.
    """

    victim: str
    sink: str
    step: str
    when: str
    phase: str

    @property
    def title(self) -> str:
        return f"{self.phase}, {self.when} {self.step}"


def shots_of(sinks: Sequence[str], phases: Sequence[str] = (RUNNING, ENDING)) -> Iterator[Shot]:
    """All there are."""
    for phase in phases:
        for sink in sinks:
            for step in IN_ELEMENT[phase]:
                yield from (Shot(ELEMENT, sink, step, when, phase) for when in (BEFORE, AFTER))
        if "postgres" in sinks:
            for step in IN_ELEMENT[phase]:
                yield from (Shot(SERVER, "postgres", step, when, phase) for when in (BEFORE, AFTER))
        for step in IN_COORDINATOR[phase]:  # last of all, as nothing is fired once the end is noted
            yield from (Shot(COORDINATOR, "", step, when, phase) for when in (BEFORE, AFTER))


class Number(NamedTuple):
    n: int


# --- who dies -------------------------------------------------------------------------------------------------------


def passing(folder: Path, victims: Sequence[str], sink: str, step: str, when: str) -> None:
    """Fires the next shot if it is meant for here."""
    pending = (file for file in sorted((folder / "shots").glob("*.json")) if not file.with_suffix(".hit").exists())
    file = next(pending, None)
    if file is None:
        return
    shot = Shot(**json.loads(file.read_text()))
    phase = ENDING if (folder / "go").exists() else RUNNING
    if shot.victim not in victims or (shot.sink, shot.step, shot.when, shot.phase) != (sink, step, when, phase):
        return
    try:
        file.with_suffix(".hit").open("x").close()
    except FileExistsError:  # another element came first
        return
    if shot.victim == SERVER:
        while not file.with_suffix(".settled").exists():
            threading.Event().wait(LOOK)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def around(call: Callable[..., Any], passes: Callable[[str], None]) -> Callable[..., Any]:
    """A call with a chance to die before and after it."""

    def called(*arguments: Any, **named: Any) -> Any:
        passes(BEFORE)
        made = call(*arguments, **named)
        passes(AFTER)
        return made

    return called


def folder_of(config: Any) -> Path:
    return Path(config.checkpoint.location).parent


class MortalElement(ProcessingElement):
    """Dies in the calls of its sinks."""

    def open(self) -> Any:
        folder, victims, make = folder_of(self.spec.config), (ELEMENT, SERVER), makers.sink_operator

        def made(spec: Any, *arguments: Any, **named: Any) -> SinkOperator:
            sink: SinkOperator = around(make, partial(passing, folder, victims, spec.name, "make"))(
                spec, *arguments, **named
            )
            for step in ("prepare", "commit", "begin", "close"):
                setattr(sink, step, around(getattr(sink, step), partial(passing, folder, victims, spec.name, step)))
            return sink

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hosted, "sink_operator", made)
            return super().open()


class MortalCoordinator(Coordinator):
    """Dies before and after what it asks elements for."""

    def __init__(self, job: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(job, *arguments, **named)

        def passes(step: str) -> Callable[[str], None]:
            return partial(passing, folder_of(job.config), (COORDINATOR,), "", step)

        for owner, method, step in (
            (Taker, "_save_at_barriers", "save"),
            (self._journal, "checkpointed", "note"),
            (Taker, "commit", "commit"),
            (Completion, "_completed", "complete"),
            (self._journal, "ends_job", "end"),
        ):
            setattr(owner, method, around(getattr(owner, method), passes(step)))


ELEMENT_PATH = f"{__name__}:MortalElement"
COORDINATOR_PATH = f"{__name__}:MortalCoordinator"


# --- the sinks, and what an outsider reads ----------------------------------------------------------------------


class Numbered:
    """Writes each row to a file that has its number: what comes again replaces what was there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def initialize(self) -> None:
        self.folder.mkdir(exist_ok=True)

    def __call__(self, t: Any, epoch: int, number: int) -> None:
        (self.folder / str(number)).write_text(str(t.n))


class Booked(ledger.Ledger):  # type: ignore[misc]
    """The ledger of the guide, of rows with another name."""

    def __call__(self, t: Any) -> None:
        self.amounts.append(t.n)


def shown(place: Path) -> list[Path]:
    """The files that readers see."""
    return [file for file in ([place] if place.is_file() else place.rglob("*")) if is_shown(file, place)]


def is_shown(file: Path, place: Path) -> bool:
    inside = file.relative_to(place.parent).parts
    return file.is_file() and not any(part.startswith((".", "_")) for part in inside)


def read_parquet(place: Path) -> list[int]:
    return [n for file in shown(place) for n in pyarrow.parquet.read_table(file)["n"].to_pylist()]


def read_csv(place: Path) -> list[int]:
    return [int(row["n"]) for file in shown(place) for row in csv.DictReader(file.open())]


def read_json(place: Path) -> list[int]:
    return [json.loads(line)["n"] for file in shown(place) for line in file.read_text().splitlines()]


def read_numbered(place: Path) -> list[int]:
    return [int(file.read_text()) for file in place.iterdir()]


def read_delta(place: Path) -> list[int]:
    rows: list[int] = deltalake.DeltaTable(place).to_pyarrow_table()["n"].to_pylist()
    return rows


def read_table(server: str, table: str) -> list[int]:
    import psycopg

    with psycopg.connect(server) as connection:
        return [n for (n,) in connection.execute(f"SELECT n FROM {table}").fetchall()]


Kind = tuple[Callable[[Path], Any], Callable[[Path], list[int]] | None]  # the sink; what is there, None: in the result
SINKS: Mapping[str, Kind] = {
    "parquet": (lambda at: rel.parquet(str(at)), read_parquet),
    "csv": (lambda at: rel.csv(str(at)), read_csv),
    "json": (lambda at: rel.json(str(at)), read_json),
    "one.parquet": (lambda at: rel.parquet(str(at)), read_parquet),
    "one.csv": (lambda at: rel.csv(str(at)), read_csv),
    "one.jsonl": (lambda at: rel.json(str(at)), read_json),
    "growing": (lambda at: rel.spark.sink_stream(str(at), seconds=0.2), read_parquet),
    "delta": (lambda at: rel.delta(at), read_delta),
    "ledger": (lambda at: rel.call(Booked(at)), ledger.read),
    "numbered": (lambda at: rel.call(Numbered(at), numbered=True), read_numbered),
    "list": (lambda _: rel.list(), None),
    "arrow": (lambda _: rel.arrow(), None),
    "count": (lambda _: rel.count(), None),
}
POSTGRES = "postgres"


def topology(folder: Path, sinks: Sequence[str], server: str) -> rel.Topology:
    """Numbers into all sinks; slowly until there is a file `go`."""
    go = folder / "go"

    def paced(t: Number) -> Number:
        if t.n % BURST == 0 and not go.exists():
            threading.Event().wait(PACE)
        return t

    made = rel.Topology(f"sinks-{folder.name}")
    rows = made.source(rel.generate(lambda n: n, ROWS, schema=Number), name="numbers").map(
        paced, name="pace", schema=Number, lane="python"
    )
    for name in sinks:
        into = rel.postgres(server, table_of(folder)) if name == POSTGRES else SINKS[name][0](folder / "out" / name)
        rows.sink(into, name=name)
    return made


def table_of(folder: Path) -> str:
    return f"rows_{folder.name.replace('-', '_')}"


def wrong_rows(rows: list[int]) -> str:
    """What an outsider finds wrong."""
    lost, doubled = set(range(ROWS)) - set(rows), len(rows) - len(set(rows))
    return f"{len(lost)} lost, {doubled} doubled" if lost or doubled or len(rows) != ROWS else ""


# --- the campaign ---------------------------------------------------------------------------------------------------


def fire(shots: Sequence[Shot], sinks: Sequence[str], folder: Path, server: str = "") -> list[Row]:
    """Has one job live through some shots of one phase; a row for each."""
    phase = shots[0].phase
    (folder / "shots").mkdir(parents=True)
    (folder / "out").mkdir()
    for number, shot in enumerate(shots):
        (folder / "shots" / f"{number:03}.json").write_text(json.dumps(asdict(shot)))
    every = 0.5 if phase == RUNNING else 600.0  # seconds: then the first one is taken after a second
    checkpoint = rel.Checkpoint(folder / "checkpoints", every=every, restarts=10_000)
    pins = {"numbers": 0, "pace": 0, **{name: index % 2 for index, name in enumerate(sinks)}}
    config = rel.JobConfig(regions="manual", elasticity="off", checkpoint=checkpoint, pes=pins)
    made = topology(folder, sinks, server)
    spec = prepare(made, config)
    control = start_coordinator(spec, pe_class=ELEMENT_PATH, coordinator_class=COORDINATOR_PATH)
    job = Job(made.name, control, made)
    wrong: list[str] = []
    times: dict[int, float] = {}
    try:
        job._start()
        if phase == RUNNING:
            times = await_shots(job, folder, shots, server)
            (folder / "go").touch()
        else:
            await_checkpoint(job)
            (folder / "go").touch()
            times = await_shots(job, folder, shots, server)
        result = finished(job)
        (folder / "over").touch()
        wrong = [f"{name}: {what}" for name in sinks if (what := wrong_rows(read(folder, name, server, result)))]
    except (AssertionError, RayelasticError, TimeoutError) as error:
        wrong.append(f"{type(error).__name__}: {error}"[:500])
    finally:
        job.close()
    rows = []
    for number, shot in enumerate(shots):
        row = Row(f"{shot.victim} {shot.sink}".strip(), shot.title)
        if number in times:
            row.add("killed", times[number])
        rows.append(row)
    rows[-1].wrong += wrong
    return rows


def finished(job: Job) -> Any:
    """Waits for the end of a job."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return job.wait(PATIENCE)
        except UnavailableError:
            assert time.monotonic() < until, "the coordinator doesn't come back"
            threading.Event().wait(LOOK)


def read(folder: Path, name: str, server: str, result: Any) -> list[int]:
    if name == POSTGRES:
        return read_table(server, table_of(folder))
    reader = SINKS[name][1]
    if reader is not None:
        return reader(folder / "out" / name)
    left = result[name]
    if name == "count":
        return [*range(left)]
    return left["n"].to_pylist() if name == "arrow" else [t.n for t in left]


def await_checkpoint(job: Job) -> None:
    until = time.monotonic() + PATIENCE
    while job.status.checkpoints.taken == 0:
        assert time.monotonic() < until, "no checkpoint is taken"
        threading.Event().wait(LOOK)


def await_shots(job: Job, folder: Path, shots: Sequence[Shot], server: str) -> dict[int, float]:
    """Waits until all are fired; {number: seconds since the one before}."""
    times: dict[int, float] = {}
    for number, shot in enumerate(shots):
        began = time.monotonic()
        file = folder / "shots" / f"{number:03}"
        while not file.with_suffix(".hit").exists():
            with contextlib.suppress(RayelasticError, TimeoutError):  # its coordinator has just died
                status = job.status
                over = status.state.is_final and not file.with_suffix(".hit").exists()
                assert not over, f"{shot} wasn't fired: {status.state}, {status.failure}"
            assert time.monotonic() - began < PATIENCE, f"{shot} wasn't fired"
            threading.Event().wait(LOOK)
        if shot.victim == SERVER:
            restart(server)
            file.with_suffix(".settled").touch()
        times[number] = time.monotonic() - began
    return times


def all_sinks(wanted: Sequence[str] = ()) -> list[str]:
    """The names of sinks; PostgreSQL where it is installed."""
    there = [*SINKS, *([POSTGRES] if not needs_postgres.args[0] else [])]
    unknown = set(wanted) - set(there)
    if unknown:
        raise SystemExit(f"no such sinks: {', '.join(unknown)}; there are {', '.join(there)}")
    return [name for name in there if name in wanted] if wanted else there


def of_sinks(wanted: Sequence[str], steps: Sequence[str], folder: Path) -> Iterator[Row]:
    """The whole campaign of some sinks, on the cluster that this process is connected to."""
    sinks = all_sinks(wanted)
    shots = [shot for shot in shots_of(sinks) if not steps or shot.step in steps]
    with postgres_server() if POSTGRES in sinks else contextlib.nullcontext("") as server:
        # Whatever is wanted: a job in which no sink shows rows has no last checkpoint.
        yield from campaign(shots, sinks if "parquet" in sinks else [*sinks, "parquet"], folder, server)


def campaign(shots: Sequence[Shot], sinks: Sequence[str], folder: Path, server: str = "") -> Iterator[Row]:
    """Fires all shots: a job for each victim, or each sink in whose calls elements die, and each phase."""
    for (phase, victim, sink), mine in itertools.groupby(shots, lambda shot: (shot.phase, shot.victim, shot.sink)):
        yield from fire(
            [*mine], sinks, folder / "-".join(filter(None, (phase, victim, sink))).replace(".", "-"), server
        )
