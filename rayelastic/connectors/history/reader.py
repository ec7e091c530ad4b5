"""Reads a bounded source and then the one that continues it: both are made by their own readers, and run as one.

A checkpoint has the part that is read and its position. In the history it also has the position at which the live
source will begin, if that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.connectors.history.declaration import HISTORY, LIVE, object_of
from rayelastic.connectors.inputs import Input
from rayelastic.connectors.source import SourceOperator, fed_by_tuples
from rayelastic.errors import ErrorCode, SourceError, StateError

if TYPE_CHECKING:
    from rayelastic.connectors.description import Source
    from rayelastic.connectors.files.bad_rows import Dropped
    from rayelastic.connectors.history.declaration import HistorySource
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["history_source"]


def history_source(
    make: Callable[[OperatorSpec, _native.Schema], SourceOperator],
    spec: OperatorSpec,
    schema: _native.Schema,
    body: HistorySource,
) -> SourceOperator:
    """Make a source of the tuples of two, one after the other.

    Args:
        make: Makes the operator of one of them.
        spec: The source.
        schema: The schema of its tuples.
        body: Its description.
    """

    def part(of: Source[Any]) -> SourceOperator:
        if object_of(of) is not None:
            of = replace(of, **{of.object_field: body.instance})  # type: ignore[type-var]  # a dataclass
        alone = replace(spec, body=of, unread=spec.unread if of.omits_unread else ())
        made = make(alone, schema)
        return made if made.tuples is None else fed_by_tuples(made, alone, schema)

    reader = _Reader(part(body.history), part(body.live), spec)
    native = _native.Operator.succession(
        spec.name,
        reader.history.native,
        reader.live.native,
        body.history.has_splits,
        body.live.has_splits,
        reader.succession,
    )
    reader.operator = SourceOperator(
        native,
        feed=reader.feed,
        left_out=_DroppedOfBoth(reader.history.left_out, reader.live.left_out),
        seek=reader.seek,
        position=reader.position,
        watch=reader.watch,
        complete=reader.complete,
        lag=reader.lag,
        stop=reader.stop,
        problem=reader.history.problem,
        files=reader.history.files,
    )
    return reader.operator


@dataclass(frozen=True, slots=True)
class _DroppedOfBoth:
    """The rows that two sources dropped because they aren't of their schema."""

    history: Dropped
    live: Dropped

    @property
    def count(self) -> int:
        """Their number."""
        return self.history.count + self.live.count

    @property
    def first(self) -> Sequence[str]:
        """The first of them."""
        return [*self.history.first, *self.live.first]


class _Reader:
    """Decides which of two sources is read, and where.

    Args:
        history: The bounded source.
        live: The source that continues it.
        spec: The operator.
    """

    operator: SourceOperator

    def __init__(self, history: SourceOperator, live: SourceOperator, spec: OperatorSpec) -> None:
        self.history, self.live = history, live
        self.succession = _native.Succession()
        self._spec = spec
        self._before = 0  # rows of the history that were emitted in earlier runs
        self._again = 0  # rows that it emits again in this run, which are dropped

    def seek(self, position: int, saved: Input | None) -> int:
        """Begin at the saved position of a part; return the number of rows that it emits again.

        Raises:
            StateError: The saved data isn't a position.
        """
        try:
            at: Any = saved.position if saved is not None else None
            part, own = at["part"], Input(**at["input"])
            reserved = at["reserved"]
            self._before = int(at["rows"]) if part == LIVE else position
        except (KeyError, TypeError, ValueError):
            raise StateError("its position in the snapshot is damaged", code=ErrorCode.DAMAGED_POSITION) from None
        if part == LIVE:
            again = self.live.seek(position - self._before, own)
            self.succession.begin(True, again)
            return again
        self._again = self.history.seek(position, own)
        self.succession.begin(False, self._again)
        if reserved is not None:
            self.live.seek(0, Input(own.kind, position=reserved))
        return self._again

    def position(self, emitted: int) -> object:
        """Return the part after so many rows in this run, and the position in it, for JSON."""
        if (of_live := self._of_live(emitted)) is None:
            source, of_part, reserved = self.history, emitted, self.live.position(0)
        else:
            source, of_part, reserved = self.live, of_live, None
            self.operator.files = self.live.files  # those of the history may change now
        own = asdict(Input("", place=source.place(), position=source.position(of_part)))
        return {
            "part": HISTORY if of_live is None else LIVE,
            "rows": self._before + emitted - of_part,
            "input": own,
            "reserved": reserved,
        }

    def _of_live(self, emitted: int) -> int | None:
        """Return the rows of this run that are the live source's; None: the history is read."""
        seam = self.succession.seam
        return None if seam is None else max(0, emitted - max(0, seam - self._again))

    def watch(self, emitted: Callable[[], int], name: str) -> None:
        """Register a callback that returns the rows emitted in this run with both."""
        self.history.watch(emitted, name)
        self.live.watch(lambda: self._of_live(emitted()) or 0, name)
        try:
            self.live.reserve()
        except SourceError as error:
            raise error.at(self._spec.name, self._spec.location) from error.__cause__

    def complete(self, position: object) -> None:
        """Pass the position of a complete checkpoint on to the part that it is in."""
        at: Any = position
        if at is None:
            self.history.complete(None)
            self.live.complete(None)
        else:
            (self.history if at["part"] == HISTORY else self.live).complete(at["input"]["position"])

    def lag(self) -> tuple[int, float] | None:
        """Return the lag of the part that is read."""
        return (self.history if self.succession.seam is None else self.live).lag()

    def stop(self) -> None:
        """Make both end soon."""
        self.succession.interrupt()
        self.history.stop()
        self.live.stop()

    def feed(self) -> None:
        """Have the readers read, the live source's once the history has ended."""
        if self.succession.seam is None and self.history.feed is not None:
            self.history.feed()
        if self.succession.wait() and self.live.feed is not None:
            self.operator.problem = self.live.problem
            self.live.feed()
