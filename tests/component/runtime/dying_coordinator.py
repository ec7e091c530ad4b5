"""A coordinator that dies at a given call of an element, and the one that follows it with the same journal."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import rayelastic as rel
from rayelastic import testing
from rayelastic.job import Job, LocalControl, prepare
from rayelastic.runtime.element.host import InProcessHandle, InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.journal import ChangeJournal
from rayelastic.runtime.remote import Call, Remote, perform
from rayelastic.runtime.values.specs import PESpec
from rayelastic.runtime.values.status import State
from rayelastic.testing import Gate
from tests.file_store import FileStore

if TYPE_CHECKING:
    from rayelastic.runtime.element.api import ElementApi

PATIENCE = 60.0


class Row(NamedTuple):
    key: str
    n: int


ROWS = [Row(f"key {n % 7}", n) for n in range(600)]


class Died(BaseException):
    """A coordinator that is gone catches nothing."""


class Doom:
    """When a coordinator dies: at the given call of a method of an element, before or after it is done."""

    def __init__(self, method: str = "", pe: str = "", *, after: bool = False) -> None:
        self.when = (method, pe)
        self.after = after
        self.died = False

    def check(self, method: str, pe: str, *, after: bool) -> None:
        self.died = self.died or ((method, pe) == self.when and after == self.after)
        if self.died and not threading.current_thread().name.startswith("watch-"):  # these see nothing any more
            raise Died


def bury(dead: Coordinator) -> None:
    """Nothing of a dead coordinator acts from now on: neither its loops, nor what watches its elements."""
    dead._life.was_over(State.FAILED, None)
    dead._loops.halt()
    if dead._checkpoints is not None:
        dead._checkpoints.loop.halt()
    dead._journal.close()


class DoomedHandle(InProcessHandle):
    doom: Doom

    def within(self, timeout: float) -> ElementApi:
        def answer(call: Call) -> Any:
            self.doom.check(call.method, self.pe, after=False)
            done = perform(self._element, call)
            self.doom.check(call.method, self.pe, after=True)
            return done

        return cast("ElementApi", Remote(answer))


class DoomedHost(InProcessHost):
    def __init__(self, doom: Doom) -> None:
        super().__init__()
        self.doom = doom

    def start_pe(self, spec: PESpec) -> InProcessHandle:
        made = DoomedHandle(super().start_pe(spec)._element)
        made.doom = self.doom
        return made


def counting(gate: Gate) -> rel.Topology:
    """Counts the rows of each key; the second half of them comes when the gate opens."""
    topology = rel.Topology("doomed")
    rows = topology.source(testing.script([*ROWS[:300], gate, *ROWS[300:]], Row), name="rows")
    rows.key_by("key").aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count()).sink(
        rel.list(), name="out"
    )
    return topology


class DoomedJob:
    """A job whose first coordinator dies.

    Args:
        topology: what it runs.
        config: of the job.
        host: of its elements.
        folder: for the journal.
    """

    def __init__(self, topology: rel.Topology, config: rel.JobConfig, host: DoomedHost, folder: Path) -> None:
        self._topology, self._host, self._folder = topology, host, folder
        self._spec = prepare(topology, config)
        self.coordinator = self._another()
        self.job = Job(topology.name, LocalControl(self.coordinator), topology)
        self.job._start()

    def follow(self) -> None:
        """The coordinator has died: another one takes over what its journal says."""
        bury(self.coordinator)
        self._host.doom.died, self._host.doom.when = False, ("", "")
        self.coordinator = self._another()
        self.coordinator.resume()
        self.job = Job(self._topology.name, LocalControl(self.coordinator), self._topology)

    def numbers(self) -> list[int]:
        """What has come to its sink, at the end."""
        return [row.n for row in self.job.wait(PATIENCE)["out"]]

    def _another(self) -> Coordinator:
        return Coordinator(self._spec, self._host, journal=ChangeJournal(FileStore(self._folder / "journal")))
