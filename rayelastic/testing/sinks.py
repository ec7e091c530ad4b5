"""Checks whether an object for `rel.call` keeps the guarantees of its sink, wherever its process dies.

The object goes through the calls of docs/reference/calls_of_objects.md as a job makes them. A history is one sequence
of calls. In some, its process is killed after each call and at each line of its methods. The next process restores the
last complete checkpoint and is killed early as well. Checkpoints are aborted, and commits come late. In each history
the visible rows are compared with the rows of the complete checkpoints.
"""

from __future__ import annotations

import functools
import itertools
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import cloudpickle

from rayelastic.compile.lanes.python_lane import error_text
from rayelastic.connectors.call.declaration import CallSink, commits
from rayelastic.graph.spec.user_objects import FLUSH, INITIALIZE, SHUTDOWN, method_of
from rayelastic.testing.verify import VerificationError

__all__ = ["SinkReport", "check_sink"]

CHECKPOINTS = 3  # in a history, besides the last one
EARLY = 4  # the second process is killed after fewer calls, or not at all
SKIPPED = 1000  # numbers that are skipped when a coordinator dies


@dataclass(frozen=True, slots=True)
class SinkReport:
    """The result of a check.

    Args:
        histories: how many.
        exactly_once: whether each row was to be visible once; otherwise at least once.

    >>> SinkReport(histories=12, exactly_once=True).histories
    12
    """

    histories: int
    exactly_once: bool


def check_sink(
    make: Callable[[Path], Any],
    read: Callable[[Path], Iterable[Any]],
    rows: Sequence[Any],
    expected: Sequence[Any] | None = None,
    *,
    numbered: bool = False,
) -> SinkReport:
    """Check that an object for `rel.call` loses and doubles nothing, wherever its process is killed.

    An object with `prepare`, `commit` and `abort` has to show each row once, and only when its checkpoint is complete.
    Any other object has to show each row at least once, those before a `flush()` from then on.

    Args:
        make: Returns a new object, as you declare it; its argument is a new folder for each history. If the object
            writes elsewhere, use the name of the folder for a table or a prefix.
        read: Returns the visible rows there, one value for each row, in any order.
        rows: The arguments of the object's calls: eight or so, all different.
        expected: The values that `read` returns for them; by default the rows themselves.
        numbered: The object is called with an epoch and a number as well, as by `rel.call(..., numbered=True)`.

    Returns:
        The result of the check.

    Raises:
        SinkError: The object is rejected at its declaration.
        VerificationError: The message names the first violated rule, and the history up to there.

    >>> class Lines:
    ...     def __init__(self, folder):
    ...         self.folder, self.lines = folder, []
    ...     def __call__(self, line):
    ...         self.lines.append(line)
    ...     def prepare(self, epoch):
    ...         (self.folder / f"{epoch}.hidden").write_text(" ".join(self.lines))
    ...         self.lines = []
    ...     def commit(self, epoch):
    ...         for file in self.folder.glob("*.hidden"):
    ...             if int(file.stem) <= epoch:
    ...                 file.rename(file.with_suffix(".txt"))
    ...     def abort(self):
    ...         for file in self.folder.glob("*.hidden"):
    ...             file.unlink()
    >>> def read(folder):
    ...     return [line for file in folder.glob("*.txt") for line in file.read_text().split()]
    >>> check_sink(Lines, read, rows=list("abcdefgh")).exactly_once
    True
    """
    wanted = [*(rows if expected is None else expected)]
    if len(wanted) != len(rows) or max(Counter(map(repr, wanted)).values(), default=2) > 1:
        raise ValueError("check_sink needs different rows, and one expected value for each of them")
    with tempfile.TemporaryDirectory(prefix="check-sink-") as root:
        numbers = itertools.count(1)
        exact = False

        def history(variant: str, call: int = 0, line: int = 0, again: int = 0) -> _History:
            nonlocal exact
            place = Path(root) / f"history_{next(numbers)}"
            place.mkdir()
            tried = _History(place, make(place), read, rows, wanted, numbered, variant, (call, again), line)
            tried.run()
            exact = tried.exact
            return tried

        for variant in _VARIANTS:
            clean = history(variant)
            for call in range(1, clean.calls + 1):
                history(variant, call=call, again=call % EARLY)
            for line in range(1, clean.lines + 1):
                history(variant, line=line)
        return SinkReport(next(numbers) - 1, exact)


PLAIN, ABANDONED, LATE = "", "a checkpoint is abandoned", "commits come late"
_VARIANTS = (PLAIN, ABANDONED, LATE)


class _KilledError(BaseException):
    """Kills the process of the object."""


@dataclass(slots=True)
class _History:
    """One sequence of calls to the end of the rows.

    Args:
        place: The object's destination.
        made: The object.
        read: Returns the visible rows there.
        rows: The arguments of its calls.
        wanted: The visible value of each row.
        numbered: Whether it is called with numbers.
        variant: What happens to checkpoints.
        kills: Calls after which the first process is killed, and the second; 0: it isn't.
        line: The line of the object's own methods at which the first process is killed; 0: it isn't.
    """

    place: Path
    made: Any
    read: Callable[[Path], Iterable[Any]]
    rows: Sequence[Any]
    wanted: Sequence[Any]
    numbered: bool
    variant: str
    kills: tuple[int, int]
    line: int
    exact: bool = False
    calls: int = 0  # of the process
    lines: int = 0  # that the process has run
    told: list[str] = field(default_factory=list)
    number: int = 0  # the last used one
    complete: tuple[int, int] = (0, 0)  # the number of the last complete checkpoint, and the rows before it
    shown: int = 0  # rows that must be visible
    process: int = 0

    def run(self) -> None:
        """Go through it to its end, and compare."""
        CallSink(self.made, self.numbered).check("sink")
        self.exact = commits(self.made)
        try:
            pristine = cloudpickle.dumps(self.made)
        except Exception as error:
            raise VerificationError(f"it can't be sent to another process: {error_text(error)}") from error
        while True:
            self.process, self.calls, self.lines = self.process + 1, 0, 0
            try:
                self._live(cloudpickle.loads(pristine))
            except _KilledError:
                self.told.append("the process is killed")
                self.number += SKIPPED if self.process > 1 else 0
                continue
            break
        self.shown = len(self.rows)
        self._compare("at the end")

    def _live(self, own: Any) -> None:
        """Run one process: from its start to the end of the rows, or until it is killed."""
        initialize, flush, shutdown = (method_of(own, name) for name in (INITIALIZE, FLUSH, SHUTDOWN))
        if initialize is not None:
            self._call(own, "initialize()", initialize)
        number, start = self.complete
        if self.exact:
            if number:
                self._call(own, f"commit({number})", lambda: own.commit(number))
            self._call(own, "abort()", own.abort)
            self.shown = start
            self._compare("after abort() of a start")
        step = max(1, len(self.rows) // (CHECKPOINTS + 1))
        due = 0  # prepared and complete, not committed yet
        for at in range(start, len(self.rows)):
            call = (self.rows[at], self.number + 1, at) if self.numbered else (self.rows[at],)
            self._call(own, f"row {at}", functools.partial(own, *call))
            if due:
                self._commit(own, due, late=True)
                due = 0
            if (at + 1) % step == 0 and at + 1 < len(self.rows):
                due = self._checkpoint(own, flush, at + 1)
                if due and self.variant != LATE:
                    self._commit(own, due)
                    due = 0
        if last := self._checkpoint(own, flush, len(self.rows), ends=True):
            self._commit(own, last)
        if shutdown is not None:
            self._call(own, "shutdown()", shutdown)

    def _checkpoint(self, own: Any, flush: Callable[[], Any] | None, rows: int, *, ends: bool = False) -> int:
        """Prepare a checkpoint; return its number if it is complete and has to be committed."""
        self.number += 1
        number = self.number
        if flush is not None:
            self._call(own, "flush()", flush)
        if self.exact:
            self._call(own, f"prepare({number})", lambda: own.prepare(number))
        if self.variant == ABANDONED and not ends and number % 2 == 0:
            self.told.append(f"checkpoint {number} is abandoned")
            return 0
        self.complete = number, rows
        self.told.append(f"checkpoint {number} is complete")
        self._may_die()
        if not self.exact:
            self.shown = rows if flush is not None else self.shown
            self._compare("after flush()")
        return number if self.exact else 0

    def _commit(self, own: Any, number: int, *, late: bool = False) -> None:
        for _ in range(2):  # it may come twice
            self._call(own, f"commit({number})", lambda: own.commit(number), beside=late)
            self.shown = self.complete[1]
            self._compare(f"after commit({number})")

    def _call(self, own: Any, name: str, call: Callable[[], Any], *, beside: bool = False) -> None:
        self.told.append(name)
        raised: list[BaseException] = []

        def traced() -> None:
            before = sys.gettrace()
            sys.settrace(self._trace(_codes(own)))
            try:
                call()
            except BaseException as error:
                raised.append(error)
            finally:
                sys.settrace(before)

        if beside:
            thread = threading.Thread(target=traced)
            thread.start()
            thread.join()
        else:
            traced()
        if raised and not isinstance(raised[0], _KilledError):
            raise self._broken(f"{name} raised {error_text(raised[0])}") from raised[0]
        if raised:
            raise raised[0]
        if not any((*self.kills, self.line)):  # with kills, the history is the same up to there
            self._compare(f"after {name}")
        self._may_die()

    def _may_die(self) -> None:
        self.calls += 1
        if self.process <= len(self.kills) and self.kills[self.process - 1] == self.calls:
            raise _KilledError

    def _trace(self, codes: frozenset[CodeType]) -> Callable[[FrameType, str, Any], Any]:
        def line(_frame: FrameType, event: str, _argument: Any) -> Any:
            if event == "line":
                self.lines += 1
                if self.process == 1 and self.lines == self.line:
                    raise _KilledError
            return line

        return lambda frame, _event, _argument: line if frame.f_code in codes else None

    # -- the visible rows --------------------------------------------------------------------------------------------

    def _compare(self, when: str) -> None:
        """Raise VerificationError unless all required rows are visible, and no forbidden one."""
        seen = Counter(map(repr, self.read(self.place)))
        hidden = self.complete[1] if self.exact else len(self.rows)
        names = [repr(value) for value in self.wanted]
        if unknown := next((value for value in seen if value not in names), None):
            raise self._broken(f"{when} readers see {unknown}, which is none of the rows")
        if early := next((value for value in names[hidden:] if value in seen), None):
            raise self._broken(f"{when} readers see {early}, whose checkpoint isn't complete")
        if twice := next((value for value, times in seen.items() if self.exact and times > 1), None):
            raise self._broken(f"{when} readers see {twice} {seen[twice]} times")
        if missing := next((value for value in names[: self.shown] if value not in seen), None):
            raise self._broken(f"{when} readers don't see {missing}")

    def _broken(self, what: str) -> VerificationError:
        variant = f" ({self.variant})" if self.variant else ""
        return VerificationError(f"{what}. History{variant}: {', '.join(_shortened(self.told))}")


def _codes(own: Any) -> frozenset[CodeType]:
    found = (vars(cls).values() for cls in type(own).__mro__)
    functions = (getattr(one, "__func__", one) for one in itertools.chain.from_iterable(found))
    return frozenset(one.__code__ for one in functions if hasattr(one, "__code__"))


def _shortened(told: Sequence[str]) -> Iterator[str]:
    """Yield the calls of a history, runs of rows in one."""
    for is_row, group in itertools.groupby(told, lambda one: one.startswith("row ")):
        names = [*group]
        if is_row and len(names) > 1:
            yield f"rows {names[0][4:]} to {names[-1][4:]}"
        else:
            yield from names
