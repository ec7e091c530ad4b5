"""The coordinator's journal of plan changes, so that another coordinator can continue after a crash.

Lines of JSON, in a store that outlives the process or in memory. Each is durable before its action is done. Must not
know what a change does.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rayelastic.errors.invariants import invariant
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.plan_change import PlanChange, plan_change

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class OpenChange:
    """A change that has begun and neither ended nor been undone.

    Args:
        change: The change.
        batch: The most partitions that migrate together.
        moved: The number of batches with a new owner.
        undoing: It is being undone, and this many batches have their old owner again.
    """

    change: PlanChange
    batch: int
    moved: int = 0
    undoing: int | None = None

    def __post_init__(self) -> None:
        moves = [-(-len(moves.partitions) // self.batch) for part in self.change.regions for moves in part.moved]
        invariant(0 <= self.moved <= sum(moves), "no more batches have moved than there are", self.moved)
        invariant(0 <= (self.undoing or 0) <= self.moved, "what hasn't moved isn't moved back", self.undoing)


@dataclass(frozen=True, slots=True)
class OpenStop:
    """A job that is being stopped with a savepoint.

    Args:
        location: The savepoint's location.
        saved: It is complete, and only the sources are still to be ended.
    """

    location: str
    saved: bool = False


@dataclass(frozen=True, slots=True)
class SavedAt:
    """A complete checkpoint.

    Args:
        checkpoint: Its id.
        location: Its location.
        copies: {node whose disk has a share of it: the node with the second copy, or empty}; empty: every node sees it.
    """

    checkpoint: int
    location: str
    copies: Mapping[str, str] = field(default_factory=dict)

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes whose disks have files of it."""
        return frozenset(node for node in (*self.copies, *self.copies.values()) if node)


class JournalStore(Protocol):
    """Stores lines durably, whatever happens to the writing process."""

    def lines(self) -> list[str]:
        """Return the stored lines, in order."""
        ...

    def append(self, line: str, *, alone: bool) -> None:
        """Add a line; it is durable when this returns, and may be stored or not when this raises.

        Args:
            line: The text.
            alone: The lines before it are obsolete.

        Raises:
            JobExistsError: Another coordinator of the job has added one meanwhile.
        """
        ...

    def close(self) -> None:
        """Release it for another coordinator."""
        ...


class ChangeJournal:
    """The changes of one job.

    Args:
        store: The lines to read and to append to; None: memory.

    Raises:
        JobExistsError: Another coordinator of the job writes there.

    >>> journal = ChangeJournal()
    >>> journal.plan is None, journal.open_change is None, journal.over is None
    (True, True, True)
    """

    def __init__(self, store: JournalStore | None = None) -> None:
        self._store = store
        self._lock = threading.Lock()
        self.plan: ExecPlan | None = None
        self.began: float | None = None  # the job's start, in seconds since 1970
        self.open_change: OpenChange | None = None
        self.open_stop: OpenStop | None = None
        self.checkpoints: tuple[SavedAt, ...] = ()  # complete ones that are kept, the newest last
        self._doubtful: tuple[SavedAt, ...] = ()  # those whose line may not have been written
        self.left: tuple[str, ...] = ()  # nodes
        self.paused = False  # whether its elasticity is paused
        self.secret = b""  # the renewed secret of its elements; empty: the job's first one
        self.renewing = False  # whether some of its elements may still have the previous one
        self.over: tuple[str, str] | None = None
        self.results: Mapping[str, Mapping[str, Any]] = {}
        self.incarnation = 0
        for line in store.lines() if store is not None else ():
            self._take(json.loads(line))

    @property
    def outlives(self) -> bool:
        """Whether the journal outlives this process."""
        return self._store is not None

    def close(self) -> None:
        """Release the store for another coordinator."""
        if self._store is not None:
            self._store.close()

    def started(self) -> int:
        """Record that a coordinator starts; return the number of its incarnation, higher than all before."""
        self._write({"kind": "started", "incarnation": self.incarnation + 1})
        return self.incarnation

    def begin(self, change: PlanChange, batch: int) -> None:
        """Record the next change."""
        self._write({"kind": "begin", "old": change.old.to_record(), "new": change.new.to_record(), "batch": batch})

    def moved(self, count: int) -> None:
        """Record that so many batches belong to their new owners, whatever happens."""
        self._write({"kind": "moved", "count": count})

    def undo(self, count: int) -> None:
        """Record that the change is being undone, and how many batches belong to their old owners again."""
        self._write({"kind": "undo", "count": count})

    def end(self, plan: ExecPlan, began: float | None = None) -> None:
        """Record that no change is open, and the plan in force.

        Args:
            plan: The plan in force.
            began: The job's start, in seconds since 1970, if it has just started.
        """
        self.began = self.began if began is None else began
        if self.over is None:
            self._write({"kind": "end", **self._all(plan, self.checkpoints), **self._stop()}, alone=True)

    def leaves(self, nodes: tuple[str, ...]) -> None:
        """Record the nodes that the job has left for good."""
        self._write({"kind": "left", "nodes": list(nodes)})

    def pauses(self, paused: bool) -> None:
        """Record that adaptation is paused or resumed."""
        self._write({"kind": "paused", "paused": paused})

    def renews(self, secret: bytes) -> None:
        """Record the new secret of the job's elements, before those with the old one end."""
        self._write({"kind": "secret", "secret": secret.hex()})

    def stops(self, location: str) -> None:
        """Record that the job is about to be held, and saved there."""
        self._write({"kind": "stop", "location": location})

    def saved(self) -> None:
        """Record that it is saved, so that it ends where it is held."""
        self._write({"kind": "saved"})

    def checkpointed(self, at: SavedAt, plan: ExecPlan, keep: int) -> tuple[SavedAt, ...]:
        """Record that a checkpoint is complete, under the plan in force, and that the job continues.

        Args:
            at: The checkpoint.
            plan: The plan in force.
            keep: The number of checkpoints to keep.

        Returns:
            Those that aren't kept any more. They include those for which this raised, which may have been recorded
            nevertheless, and so had to stay.
        """
        invariant(all(one.checkpoint < at.checkpoint for one in self.checkpoints), "ids of checkpoints grow", at)
        invariant(keep > 0, "the last checkpoint is kept", keep)
        all_of_them = (*self.checkpoints, at)
        try:
            whole = {**self._all(plan, all_of_them[-keep:]), **self._under_way()}
            self._write({"kind": "checkpoint", **whole}, alone=True)
        except BaseException:
            self._doubtful = (*self._doubtful, at)
            raise
        doubtful, self._doubtful = self._doubtful, ()
        return (*doubtful, *all_of_them[:-keep])

    def without(self, damaged: SavedAt, plan: ExecPlan) -> None:
        """Record that a checkpoint is damaged, so that an earlier one is restored."""
        left = tuple(checkpoint for checkpoint in self.checkpoints if checkpoint != damaged)
        whole = {**self._all(plan, left), **self._under_way(), **self._stop()}
        self._write({"kind": "checkpoint", **whole}, alone=True)

    def resumes(self) -> None:
        """Record that it couldn't be saved, and continues."""
        self._write({"kind": "goes on"})

    def ends_job(self, state: str, reason: str, results: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Record that the job is over, its state, why it failed if it did, and its sinks' results (kept_results.py)."""
        left = {"results": results} if results else {}
        self._write({"kind": "over", "state": state, "reason": reason, **left})

    def _all(self, plan: ExecPlan, checkpoints: tuple[SavedAt, ...]) -> dict[str, Any]:
        """Return all that matters while nothing is under way."""
        entry: dict[str, Any] = {"plan": plan.to_record(), "incarnation": self.incarnation}
        if checkpoints:
            entry["checkpoints"] = [
                [one.checkpoint, one.location, *([dict(one.copies)] if one.copies else [])] for one in checkpoints
            ]
        if self.began is not None:
            entry["began"] = self.began
        if self.left:
            entry["left"] = list(self.left)
        if self.paused:
            entry["paused"] = True
        if self.secret:
            entry["secret"] = self.secret.hex()
        return entry

    def _under_way(self) -> dict[str, Any]:
        """Return the open change, and whether a new secret is under way: a checkpoint ends neither."""
        entry: dict[str, Any] = {"renewing": True} if self.renewing else {}
        if (here := self.open_change) is not None:
            old, new = here.change.old.to_record(), here.change.new.to_record()
            progress = {"batch": here.batch, "moved": here.moved, "undoing": here.undoing}
            entry["change"] = {"old": old, "new": new, **progress}
        return entry

    def _stop(self) -> dict[str, Any]:
        return {} if (stop := self.open_stop) is None else {"stop": [stop.location, stop.saved]}

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
                self.open_change = _open_change(entry)
                self.plan = self.open_change.change.old
            case "moved" if here is not None:
                self.open_change = OpenChange(here.change, here.batch, entry["count"])
            case "undo" if here is not None:
                self.open_change = OpenChange(here.change, here.batch, here.moved, entry["count"])
            case "end" | "checkpoint":
                self.plan = ExecPlan.from_dict(entry["plan"])
                self.open_change = _open_change(entry["change"]) if "change" in entry else None
                self.open_stop = OpenStop(*entry["stop"]) if "stop" in entry else None
                self.began = entry.get("began", self.began)
                self.left = tuple(entry.get("left", ()))
                self.paused = entry.get("paused", False)
                self.secret, self.renewing = bytes.fromhex(entry.get("secret", "")), entry.get("renewing", False)
                self.checkpoints = tuple(SavedAt(*saved) for saved in entry.get("checkpoints", ()))
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


def _open_change(entry: dict[str, Any]) -> OpenChange:
    change = plan_change(ExecPlan.from_dict(entry["old"]), ExecPlan.from_dict(entry["new"]))
    return OpenChange(change, entry["batch"], entry.get("moved", 0), entry.get("undoing"))
