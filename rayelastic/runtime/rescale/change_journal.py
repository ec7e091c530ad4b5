"""What a coordinator has to remember of changes of plan, so that another one can go on where it died.

Lines of JSON, in a store that outlives the process or in memory, each written through before what it tells is done.
Must not know what a change does.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rayelastic.errors import JobExistsError
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.plan_change import PlanChange, plan_change

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["ChangeJournal", "FileStore", "JournalStore", "OpenChange", "OpenStop", "SavedAt"]


@dataclass(frozen=True, slots=True)
class OpenChange:
    """A change that has begun and neither ended nor been undone.

    Args:
        change: what was to be done.
        batch: most partitions that were to move at once.
        moved: how many batches have a new owner.
        undoing: it has been given up, and this many batches have their old owner again.
    """

    change: PlanChange
    batch: int
    moved: int = 0
    undoing: int | None = None


@dataclass(frozen=True, slots=True)
class OpenStop:
    """A job that is being stopped into a snapshot.

    Args:
        location: of the snapshot.
        saved: it is complete, and what is left to do is to end the sources.
    """

    location: str
    saved: bool = False


@dataclass(frozen=True, slots=True)
class SavedAt:
    """A complete checkpoint.

    Args:
        epoch: its number.
        location: of it.
    """

    epoch: int
    location: str


class JournalStore(Protocol):
    """Where lines are kept, whatever becomes of the process that writes them."""

    def lines(self) -> list[str]:
        """Return what there is, in order."""
        ...

    def append(self, line: str, *, alone: bool) -> None:
        """Add a line; it is safe when this returns, and may be there or not when this raises.

        Args:
            line: of text.
            alone: nothing before it matters any more.

        Raises:
            JobExistsError: another coordinator of the job has added one meanwhile.
        """
        ...

    def close(self) -> None:
        """Lets another coordinator have it."""
        ...


class FileStore:
    """Lines in a file that is one process's alone.

    Args:
        path: of the file.

    Raises:
        JobExistsError: another coordinator of the job has it.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "a+b", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the process, however that ends
        except OSError as error:
            self._file.close()
            raise JobExistsError(
                f"another coordinator has the journal {path}", hint="A job has one coordinator: attach to it"
            ) from error
        self._whole = os.fstat(self._file.fileno()).st_size  # bytes of whole lines

    def lines(self) -> list[str]:
        """Return what there is, in order."""
        self._file.seek(0)
        told = self._file.readall()
        whole = told[: told.rfind(b"\n") + 1]
        self._whole = len(whole)
        self._take_back()  # of one that died while it wrote: it hasn't done what it was to tell
        return whole.decode().splitlines()

    def append(self, line: str, *, alone: bool) -> None:  # noqa: ARG002  (a file tells all of its history)
        """Add a line; it is on the disk when this returns. When it raises nothing of it is there, if possible."""
        self._take_back()  # of an earlier one, where it couldn't then
        left = memoryview(f"{line}\n".encode())
        after = self._whole + len(left)
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except BaseException:
            with suppress(OSError):
                self._take_back()
            raise
        self._whole = after

    def _take_back(self) -> None:
        """Remove what is behind the last whole line, which another one would be torn by."""
        if os.fstat(self._file.fileno()).st_size > self._whole:
            self._file.truncate(self._whole)

    def close(self) -> None:
        """Lets another coordinator have the file."""
        self._file.close()


class ChangeJournal:
    """The changes of one job.

    Args:
        store: what it has is read, and more is written there; None: memory.

    Raises:
        JobExistsError: another coordinator of the job writes there.

    >>> journal = ChangeJournal()
    >>> journal.plan is None, journal.open_change is None, journal.over is None
    (True, True, True)
    """

    def __init__(self, store: JournalStore | None = None) -> None:
        self._store = store
        self._lock = threading.Lock()
        self.plan: ExecPlan | None = None
        self.began: float | None = None  # when the job did, in seconds since 1970
        self.open_change: OpenChange | None = None
        self.open_stop: OpenStop | None = None
        self.checkpoints: tuple[SavedAt, ...] = ()  # complete ones that are kept, the newest last
        self._doubtful: tuple[SavedAt, ...] = ()  # whose line couldn't be written, or was: another coordinator knows
        self.left: tuple[str, ...] = ()  # nodes
        self.paused = False  # whether its elasticity is
        self.secret = b""  # that its elements prove to know, once it was renewed; empty: the job's first one
        self.renewing = False  # whether some of its elements may still have the one before
        self.over: tuple[str, str] | None = None
        self.results: Mapping[str, Mapping[str, Any]] = {}
        self.incarnation = 0
        for line in store.lines() if store is not None else ():
            self._take(json.loads(line))

    @property
    def outlives(self) -> bool:
        """Whether what is noted is there when this process no longer is."""
        return self._store is not None

    def close(self) -> None:
        """Lets another coordinator have the store."""
        if self._store is not None:
            self._store.close()

    def started(self) -> int:
        """Record that a coordinator begins; return the number of its incarnation, higher than all before."""
        self._write({"kind": "started", "incarnation": self.incarnation + 1})
        return self.incarnation

    def begin(self, change: PlanChange, batch: int) -> None:
        """Record what is about to be done."""
        self._write({"kind": "begin", "old": change.old.to_dict(), "new": change.new.to_dict(), "batch": batch})

    def moved(self, count: int) -> None:
        """Record that so many batches belong to their new owners, whatever happens."""
        self._write({"kind": "moved", "count": count})

    def undo(self, count: int) -> None:
        """Record that the change has been given up, and how many batches belong to their old owners again."""
        self._write({"kind": "undo", "count": count})

    def end(self, plan: ExecPlan, began: float | None = None) -> None:
        """Record that nothing is under way, and which plan is in force.

        Args:
            plan: in force.
            began: when the job did, in seconds since 1970, if it just has.
        """
        self.began = self.began if began is None else began
        if self.over is None:
            self._write({"kind": "end", **self._all(plan, self.checkpoints)}, alone=True)

    def leaves(self, nodes: tuple[str, ...]) -> None:
        """Record the nodes that the job has left for good."""
        self._write({"kind": "left", "nodes": list(nodes)})

    def pauses(self, paused: bool) -> None:
        """Record that nothing is to be adapted from now on, or again."""
        self._write({"kind": "paused", "paused": paused})

    def renews(self, secret: bytes) -> None:
        """Record the secret that the job's elements get, before those that have the old one end."""
        self._write({"kind": "secret", "secret": secret.hex()})

    def stops(self, location: str) -> None:
        """Record that the job is about to be held, and saved there."""
        self._write({"kind": "stop", "location": location})

    def saved(self) -> None:
        """Record that it is saved: it ends where it is held."""
        self._write({"kind": "saved"})

    def checkpointed(self, at: SavedAt, plan: ExecPlan, keep: int) -> tuple[SavedAt, ...]:
        """Record that a checkpoint is complete, under the plan in force, and that the job goes on.

        Args:
            at: the checkpoint.
            plan: in force.
            keep: how many are kept.

        Returns:
            Those that aren't kept any more; with them those for which this raised, which may have been noted then all
            the same, and had to stay.
        """
        all_of_them = (*self.checkpoints, at)
        try:
            self._write({"kind": "checkpoint", **self._all(plan, all_of_them[-keep:])}, alone=True)
        except BaseException:
            self._doubtful = (*self._doubtful, at)
            raise
        doubtful, self._doubtful = self._doubtful, ()
        return (*doubtful, *all_of_them[:-keep])

    def without(self, damaged: SavedAt, plan: ExecPlan) -> None:
        """Record that a checkpoint isn't whole any more: an earlier one counts."""
        left = tuple(one for one in self.checkpoints if one != damaged)
        self._write({"kind": "checkpoint", **self._all(plan, left)}, alone=True)

    def goes_on(self) -> None:
        """Record that it couldn't be saved, and goes on."""
        self._write({"kind": "goes on"})

    def ends_job(self, state: str, reason: str, results: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Record that the job is over, in which state, why if it failed, and what its sinks left (kept_results.py)."""
        left = {"results": results} if results else {}
        self._write({"kind": "over", "state": state, "reason": reason, **left})

    def _all(self, plan: ExecPlan, checkpoints: tuple[SavedAt, ...]) -> dict[str, Any]:
        """What matters where no change is under way."""
        told: dict[str, Any] = {"plan": plan.to_dict(), "incarnation": self.incarnation}
        if checkpoints:
            told["checkpoints"] = [[one.epoch, one.location] for one in checkpoints]
        if self.began is not None:
            told["began"] = self.began
        if self.left:
            told["left"] = list(self.left)
        if self.paused:
            told["paused"] = True
        if self.secret:
            told["secret"] = self.secret.hex()
        if self.open_stop is not None:
            told["stop"] = [self.open_stop.location, self.open_stop.saved]
        return told

    def _write(self, entry: dict[str, Any], *, alone: bool = False) -> None:
        with self._lock:
            if self._store is not None:
                self._store.append(json.dumps(entry), alone=alone)
            self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        here = self.open_change
        match entry["kind"]:
            case "started":
                self.incarnation = entry["incarnation"]
            case "begin":
                change = plan_change(ExecPlan.from_dict(entry["old"]), ExecPlan.from_dict(entry["new"]))
                self.plan, self.open_change = change.old, OpenChange(change, entry["batch"])
            case "moved" if here is not None:
                self.open_change = OpenChange(here.change, here.batch, entry["count"])
            case "undo" if here is not None:
                self.open_change = OpenChange(here.change, here.batch, here.moved, entry["count"])
            case "end" | "checkpoint" as kind:
                self.plan, self.open_change = ExecPlan.from_dict(entry["plan"]), None
                self.open_stop = OpenStop(*entry["stop"]) if "stop" in entry and kind == "end" else None
                self.began = entry.get("began", self.began)
                self.left = tuple(entry.get("left", ()))
                self.paused = entry.get("paused", False)
                self.secret, self.renewing = bytes.fromhex(entry.get("secret", "")), False
                self.checkpoints = tuple(SavedAt(*one) for one in entry.get("checkpoints", ()))
                self.incarnation = max(self.incarnation, entry["incarnation"])
            case "left":
                self.left = tuple(entry["nodes"])
            case "paused":
                self.paused = entry["paused"]
            case "secret":
                self.secret, self.renewing = bytes.fromhex(entry["secret"]), True
            case "stop":
                self.open_stop = OpenStop(entry["location"])
            case "saved" if self.open_stop is not None:
                self.open_stop = OpenStop(self.open_stop.location, saved=True)
            case "goes on":
                self.open_stop = None
            case "over":
                self.over = (entry["state"], entry["reason"])
                self.results = entry.get("results", {})
