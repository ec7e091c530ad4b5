"""What a coordinator has to remember of changes of plan, so that another one can go on where it died.

Lines of JSON, in a file or in memory, each written through before what it tells is done. Must not know what a change
does.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from rayelastic.errors import JobExistsError
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.plan_change import PlanChange, plan_change

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ChangeJournal", "OpenChange"]


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


class ChangeJournal:
    """The changes of one job.

    Args:
        path: of the file, which is read if it is there, and is this one's alone until `close`; None: memory.

    Raises:
        JobExistsError: another coordinator of the job has it.

    >>> journal = ChangeJournal()
    >>> journal.plan is None, journal.open_change is None
    (True, True)
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file: IO[str] | None = None
        self.plan: ExecPlan | None = None
        self.open_change: OpenChange | None = None
        self.incarnation = 0
        if path is None:
            return
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the process, however that ends
        except OSError as error:
            self._file.close()
            raise JobExistsError(
                f"another coordinator has the journal {path}", way_out="A job has one coordinator: attach to it"
            ) from error
        self._file.seek(0)
        told = self._file.read()
        whole = told[: told.rfind("\n") + 1]
        if whole != told:  # of one that died while it wrote: it hasn't done what it was to tell
            self._file.truncate(len(whole.encode()))
        for line in whole.splitlines():
            self._take(json.loads(line))

    def close(self) -> None:
        """Lets another coordinator have the file."""
        if self._file is not None:
            self._file.close()

    def started(self) -> int:
        """Notes that a coordinator begins; returns the number of its incarnation, higher than all before."""
        self._write({"kind": "started", "incarnation": self.incarnation + 1})
        return self.incarnation

    def begin(self, change: PlanChange, batch: int) -> None:
        """Notes what is about to be done."""
        self._write({"kind": "begin", "old": change.old.to_dict(), "new": change.new.to_dict(), "batch": batch})

    def moved(self, count: int) -> None:
        """Notes that so many batches belong to their new owners, whatever happens."""
        self._write({"kind": "moved", "count": count})

    def undo(self, count: int) -> None:
        """Notes that the change has been given up, and how many batches belong to their old owners again."""
        self._write({"kind": "undo", "count": count})

    def end(self, plan: ExecPlan) -> None:
        """Notes that nothing is under way, and which plan is in force."""
        self._write({"kind": "end", "plan": plan.to_dict()})

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())
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
            case "end":
                self.plan, self.open_change = ExecPlan.from_dict(entry["plan"]), None
