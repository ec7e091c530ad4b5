"""A coordinator dies at each step of a stop: the next one has the job go on, or end where it was saved."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import StateError
from rayelastic.job import Job, LocalControl, prepare
from rayelastic.runtime.element.host import InProcessHandle, InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.remote import Call, Remote, perform
from rayelastic.runtime.rescale.change_journal import ChangeJournal, FileStore
from rayelastic.runtime.snapshot import SnapshotFolder
from rayelastic.runtime.values.specs import PESpec
from rayelastic.testing import Gate

if TYPE_CHECKING:
    from rayelastic.runtime.element.api import ElementApi

PATIENCE = 60.0
PES = {"rows": 0, "counts": 1}


class Row(NamedTuple):
    key: str
    n: int


ROWS = [Row(f"key {n % 7}", n) for n in range(600)]


class Died(BaseException):
    """A coordinator that is gone catches nothing."""


class Doom:
    """When a coordinator dies: at the given call of a method of an element, before or after it is done."""

    def __init__(self, method: str, pe: str, after: bool) -> None:
        self.when = (method, pe)
        self.after = after
        self.died = False

    def check(self, method: str, pe: str, after: bool) -> None:
        self.died = self.died or ((method, pe) == self.when and after == self.after)
        if self.died and not threading.current_thread().name.startswith("watch-"):  # these see nothing any more
            raise Died


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


STEPS = [
    (method, pe, after)
    for method in ("hold_sources", "hold_all", "save", "release")
    for pe in ("pe0", "pe1")
    for after in (False, True)
]


@pytest.mark.parametrize(("method", "pe", "after"), STEPS)
def test_a_stop_whose_coordinator_dies_is_ended_or_undone(
    method: str, pe: str, after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, doom, saved = Gate(), Doom(method, pe, after), tmp_path / "saved"
    topology = rel.Topology("stops")
    rows = topology.source("rows", testing.script([*ROWS[:300], gate, *ROWS[300:]], Row))
    rows.key_by("key").aggregate("counts", emit="update", n=rel.last("n"), all=rel.count()).sink("out", rel.list())
    spec, host = prepare(topology, rel.JobConfig(pins=PES)), DoomedHost(doom)
    first = Coordinator(spec, host, journal=ChangeJournal(FileStore(tmp_path / "journal")))
    job = Job("stops", LocalControl(first), topology)
    job._start()
    try:
        assert gate.wait_reached(PATIENCE)
        discard = SnapshotFolder.discard
        monkeypatch.setattr(SnapshotFolder, "discard", lambda self: None if doom.died else discard(self))
        monkeypatch.setattr(first._journal, "goes_on", lambda: None)  # it is dead
        with pytest.raises(Died):
            job.stop(saved)
        monkeypatch.undo()
        first._life.end = lambda *_: None  # type: ignore[method-assign]
        first._journal.close()
        doom.died, doom.when = False, ("", "")
        second = Coordinator(spec, host, journal=ChangeJournal(FileStore(tmp_path / "journal")))
        second.resume()
        gate.open()
        job = Job("stops", LocalControl(second), topology)
        left = [row.n for row in job.wait(PATIENCE)["out"]]
    finally:
        gate.open()
        job.close()
    if method == "release":  # it had been saved by then
        rest = rel.run(topology, rel.JobConfig(pins=PES), restore=saved)["out"]
        assert left + [row.n for row in rest] == list(range(600))
        assert 0 < len(left) < 600
    else:
        assert left == list(range(600))
        with pytest.raises(StateError, match="has no manifest"):
            rel.run(topology, restore=saved)
