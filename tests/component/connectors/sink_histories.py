"""Random histories of one output: jobs that start, end, crash, recover and are restored, one beside the other or not.

An oracle reads the output as an outsider does. Whatever happens, each row of a stream is there at most once, none in
front of it is missing, streams are mixed only where the sink appends, and who is rejected has touched nothing.

    ./dev histories --histories 200 --seed 1 --sink csv-folder
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.connectors.output.owner import OutputOwner
from rayelastic.errors import JobFailedError, RayelasticError, SinkError, StateError
from rayelastic.runtime.checkpoint import protocol
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.status import State
from tests.component.connectors.outputs import KINDS, SCHEMA, Kind
from tests.postgres import postgres_server
from tests.raising import raises
from tests.waiting import wait_until

PATIENCE = 60.0
NEVER = 600.0  # seconds
ROWS = 50  # of a stream
CUTS = (10, 20, 30, 40)  # where its source waits, and behind the last row: nothing is shown while others are tried
STREAM = 1000  # numbers of a stream begin at a multiple of it
STEPS = 9  # of a history


@dataclass
class Place:
    """A savepoint, a snapshot or the newest checkpoint of a run.

    Args:
        path: where.
        stream: whose rows.
        position: how many of them.
        valid: whether the output has had these rows ever since, so that a restore has to succeed.
    """

    path: Path
    stream: int
    position: int
    valid: bool = True


@dataclass
class Run:
    """A job that stands at a cut of its stream."""

    job: Any
    stream: int
    position: int
    gates: list[tuple[int, testing.Gate]]
    checkpoints: Path
    fenced: bool = False
    saved: int = 0

    def open_all(self) -> None:
        for _, gate in self.gates:
            gate.open()


@dataclass
class History:
    """What happens to one output.

    Args:
        kind: the sink.
        folder: where it and all that is saved is.
        seed: of what happens.
        read: the numbers that an outsider sees.
        takes_over: whether who is restored beside a running job takes its place, as in PostgreSQL.
    """

    kind: Kind
    folder: Path
    seed: object
    read: Callable[[], list[int]]
    takes_over: bool = False
    told: list[str] = field(default_factory=list)
    accepted: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(str(self.seed))
        self.runs: list[Run] = []
        self.places: list[Place] = []
        self.streams = 0
        self.complete: set[int] = set()

    def play(self) -> None:
        """Plays it; an AssertionError tells all that happened."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(protocol, "FIRST", NEVER)  # the only checkpoints are those that the history takes
            self._play()

    def _play(self) -> None:
        try:
            for _ in range(STEPS):
                self._step()
                self._look()
            while self.runs:
                self._finish(self.runs[0])
                self._look()
        except BaseException as error:
            error.add_note(f"{self.kind.name}, seed {self.seed}: {'; '.join(self.told)}; there is {self.read()}")
            raise
        finally:
            for run in self.runs:
                run.open_all()
                run.job.close()

    def _step(self) -> None:
        alive = [run for run in self.runs if not run.fenced]
        if not alive or self.random.random() < 0.3:
            if self.places and self.random.random() < 0.65:
                self._restore(self.random.choice(self.places))
            else:
                self._start()
            return
        run = alive[-1]
        steps = [self._go_on, self._go_on, self._savepoint, self._checkpoint, self._lose]
        self.random.choice([*steps, self._finish, self._cancel, self._crash, self._stop])(run)

    # -- what happens ---------------------------------------------------------------------------------------------

    def _start(self) -> None:
        stream, before = self.streams, self.read()
        self.streams += 1
        self.told.append(f"start stream {stream}")
        beside = any(not run.fenced for run in self.runs)
        run = self._run(stream, None)
        if not isinstance(run, Run):
            assert self.read() == before, "who is rejected has touched something"
            assert beside or not (self.kind.appends or self.kind.is_file), f"nobody else writes there: {run}"
            return
        assert not beside or self.takes_over, "two jobs on one output"
        self.runs.append(run)

    def _restore(self, place: Place) -> None:
        self.told.append(f"restore {place.path.name} (stream {place.stream} at {place.position})")
        beside = [run for run in self.runs if not run.fenced]
        if self.takes_over:
            beside = [run for run in beside if run.stream == place.stream]
        before = self.read()
        run = self._run(place.stream, place)
        if not isinstance(run, Run):
            assert self.read() == before, "who is rejected has touched something"
            assert not place.valid or (beside and not self.takes_over), f"it has all that it counts on: {run}"
            return
        assert self.takes_over or not beside, "two jobs on one output"
        for other in beside:
            other.fenced = True
        for other_place in self.places:
            if other_place.stream == place.stream and other_place.position > place.position:
                other_place.valid = False
        self.complete.discard(place.stream)
        self.runs.append(run)

    def _run(self, stream: int, place: Place | None) -> Run | RayelasticError:
        """Starts a job, which comes to its first cut; returns the error of one that is rejected."""
        position = 0 if place is None else place.position
        gates = [(cut, testing.Gate()) for cut in (*(cut for cut in CUTS if cut > position), ROWS)]
        steps: list[Any] = [(stream * STREAM + n,) for n in range(ROWS)]
        for cut, gate in reversed(gates):
            steps.insert(cut, gate)
        topology = rel.Topology("history")
        source = topology.source(testing.script(steps, SCHEMA), name="numbers")
        source.sink(self.kind.sink(str(self.folder / self.kind.name)), name="out")
        checkpoints = self.folder / f"checkpoints-{len(list(self.folder.glob('checkpoints-*')))}"
        checkpoints.mkdir(mode=0o700)
        takes_checkpoints = self.random.random() < 0.7
        config = rel.JobConfig(
            checkpoint=rel.Checkpoint(checkpoints, every=NEVER, restarts=100) if takes_checkpoints else False
        )
        try:
            job = rel.start(topology, config, restore=None if place is None else place.path)
        except (SinkError, StateError) as error:
            for _, gate in gates:
                gate.open()
            self.told[-1] += f", rejected: {type(error).__name__}"
            return error
        self.accepted += 1
        run = Run(job, stream, position, gates, checkpoints, saved=position)
        self._reach(run)
        return run

    def _reach(self, run: Run) -> None:
        """Waits until a job stands at its next cut."""
        run.position, gate = run.gates[0]
        assert gate.wait_reached(PATIENCE)

    def _go_on(self, run: Run) -> None:
        if len(run.gates) > 1:
            self.told.append("go on")
            _, gate = run.gates.pop(0)
            gate.open()
            self._reach(run)

    def _savepoint(self, run: Run) -> None:
        path = self.folder / f"save-{len(self.places)}"
        self.told.append(f"savepoint {path.name} at {run.position}")
        run.job.snapshot(path)
        self.places.append(Place(path, run.stream, run.position))

    def _checkpoint(self, run: Run) -> None:
        checkpoints = run.job._control._coordinator._checkpoints
        if checkpoints is not None:
            self.told.append(f"checkpoint at {run.position}")
            taken = run.job.status.checkpoints.taken
            checkpoints.loop.take()
            assert run.job.status.checkpoints.taken == taken + 1, run.job.status.checkpoints.problem
            self._checkpointed(run)

    def _checkpointed(self, run: Run) -> None:
        """Note that the newest checkpoint of a run is the one at its position."""
        run.saved = run.position
        self.places = [place for place in self.places if place.path != run.checkpoints]
        self.places.append(Place(run.checkpoints, run.stream, run.position))

    def _lose(self, run: Run) -> None:
        recovery = run.job._control._coordinator._recovery
        if recovery is None:
            return
        self.told.append("lose an element")
        restarts = run.job.status.checkpoints.restarts
        recovery.lose(Failure("planted"))
        wait_until(
            run.job, lambda: run.job.status.checkpoints.restarts != restarts and run.job.status.state is State.RUNNING
        )
        for place in self.places:  # the output is taken back behind these, too
            if place.stream == run.stream and place.position > run.saved:
                place.valid = False
        self._reach(run)

    def _finish(self, run: Run) -> None:
        self.told.append(f"finish stream {run.stream}" + (", fenced" if run.fenced else ""))
        self.runs.remove(run)
        run.open_all()
        try:
            if run.fenced:
                with raises(JobFailedError, "output-taken"):
                    run.job.wait(PATIENCE)
            else:
                run.job.wait(PATIENCE)
                self.complete.add(run.stream)
                run.position = ROWS
                if run.job._control._coordinator._checkpoints is not None:
                    self._checkpointed(run)  # the last one
        finally:
            run.job.close()

    def _cancel(self, run: Run) -> None:
        self.told.append("cancel")
        self.runs.remove(run)
        run.job.cancel(drain=False)
        run.open_all()
        run.job.close()

    def _crash(self, run: Run) -> None:
        """Ends as by SIGKILL: its claim stays, and its process is gone."""
        self.told.append("crash")
        self.runs.remove(run)
        release = OutputOwner.release
        OutputOwner.release = lambda owner, **_: owner._released.set()  # type: ignore[method-assign]
        try:
            run.job.cancel(drain=False)
            run.open_all()
            run.job.close()
        finally:
            OutputOwner.release = release  # type: ignore[method-assign]
        for record in self.folder.rglob(".rayelastic/*.json"):
            held = json.loads(record.read_text())
            if held["process"] is not None:
                held["process"]["started"] = "long ago"
            record.write_text(json.dumps(held))

    def _stop(self, run: Run) -> None:
        path = self.folder / f"stop-{len(self.places)}"
        self.told.append(f"stop into {path.name} at {run.position}")
        self.runs.remove(run)
        try:
            run.job.stop(path)
        finally:
            run.open_all()
            run.job.close()
        self.places.append(Place(path, run.stream, run.position))

    # -- the oracle -----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        rows = self.read()
        by_stream: dict[int, list[int]] = {}
        for row in rows:
            by_stream.setdefault(row // STREAM, []).append(row % STREAM)
        for stream, seen in by_stream.items():
            assert seen == list(range(len(seen))), f"stream {stream} has lost, doubled or mixed rows: {seen}"
        if not self.kind.appends:
            assert len(by_stream) <= 1, f"streams {sorted(by_stream)} are mixed"
            gone = {place.stream for place in self.places} - set(by_stream)
            if by_stream:
                for place in self.places:
                    place.valid = place.valid and place.stream not in gone
                self.complete &= set(by_stream)
        for stream in self.complete:
            assert len(by_stream.get(stream, ())) == ROWS, f"stream {stream} is complete, and rows are gone"


def play(name: str, seed: object) -> History:
    """Plays one history of a sink that writes files."""
    with tempfile.TemporaryDirectory() as folder:
        kind = KINDS[name]
        history = History(kind, Path(folder), f"{name}:{seed}", lambda: kind.rows(Path(folder)))
        history.play()
    return history


def play_on_postgres(count: int, seed: str, folder: Path) -> int:
    """Plays histories of tables, on a server of their own; how many runs there were."""
    accepted = 0
    with postgres_server() as server:
        for number in range(count):
            table = f"t{number}"

            def read(table: str = table) -> list[int]:
                with psycopg.connect(server) as connection:
                    (there,) = connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() or (None,)
                    rows = connection.execute(f"SELECT n FROM {table}").fetchall() if there else []
                return [n for (n,) in sorted(rows)]

            kind = Kind(table, lambda table: rel.postgres(server, Path(table).name), appends=True)
            place = folder / table
            place.mkdir()
            history = History(kind, place, f"{seed}:{number}", read, takes_over=True)
            history.play()
            accepted += history.accepted
    return accepted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--histories", type=int, default=200, help="of each sink (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    sinks = [*KINDS, "postgres"]
    parser.add_argument("--sink", choices=sinks, action="append", help="this one alone; may come several times")
    options = parser.parse_args()
    for name in options.sink or sinks:
        if name == "postgres":
            with tempfile.TemporaryDirectory() as folder:
                runs = play_on_postgres(options.histories, str(options.seed), Path(folder))
        else:
            runs = sum(play(name, f"{options.seed}:{number}").accepted for number in range(options.histories))
        sys.stdout.write(f"{name}: {options.histories} histories, {runs} runs: none mixed, lost or doubled\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
