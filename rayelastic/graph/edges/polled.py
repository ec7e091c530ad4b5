"""A source of a user's own: an object that is asked for rows, partition by partition, and says where it is.

What asks it lives in the runtime.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from rayelastic.errors import SourceError
from rayelastic.graph.edges.typed import Declared, N, Plain, SourceOf, Value
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.user_objects import LIFE, check_object

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Partition", "Partitions", "PolledSource", "polled"]

T = TypeVar("T")

IDLE = 0.1  # seconds
METHODS = ("partitions", "open")


class Partition(Protocol):
    """One part of a source, such as a file, a shard or a page of a service. It may also have `close()`."""

    position: Any
    """Where the next `poll` goes on: numbers, texts, lists and dictionaries of them, as JSON has them."""

    def poll(self) -> Iterable[Any] | pa.RecordBatch | None:
        """Give the next rows: tuples, or a RecordBatch. None at the moment: an empty list. No more for ever: None.

        It returns soon, at best within a second: the others are asked after it.
        """
        ...


class Partitions(Protocol):
    """A source of a user's own.

    It may also have `idle`: seconds until it is asked again when no partition had any rows; 0.1 if it hasn't.
    """

    def partitions(self) -> Iterable[str]:
        """Name the parts that there are. Asked again about once a second: new ones are begun."""
        ...

    def open(self, partition: str, position: Any, /) -> Partition:
        """Begin a part at a position that it had; None: at its start. The same rows come from there as before."""
        ...


@dataclass(frozen=True, slots=True)
class PolledSource(SourceOf[T]):
    """What a user's object gives when it is asked."""

    source: Partitions = field(repr=False)
    schema: Schema
    lane: Lane = Lane.PYTHON

    @property
    def reason(self) -> str:
        """Say what runs."""
        return f"{type(self.source).__name__} is asked for rows"

    @property
    def idle(self) -> float:
        """Seconds until it is asked again when there were no rows."""
        return float(getattr(self.source, "idle", IDLE))

    @property
    def has_splits(self) -> bool:
        """Return whether each of its partitions has an order of its own."""
        return True

    @property
    def is_endless(self) -> bool:
        """Whether it may never end: nobody knows before it does."""
        return True

    def check(self, operator: str) -> None:
        """Raise SourceError if it isn't what can be asked."""
        missing = [name for name in METHODS if not builtins.callable(getattr(self.source, name, None))]
        if missing or isinstance(self.source, type):
            what = "is a class" if isinstance(self.source, type) else f"has no {missing[0]}()"
            raise SourceError(
                f"rel.polled({shown(self.source)}): it {what}",
                operator=operator,
                hint="Give an object with partitions() and open(partition, position), see rel.polled",
            )
        check_object(self.source, LIFE, known=METHODS, error=SourceError)
        idle: object = getattr(self.source, "idle", IDLE)
        if not isinstance(idle, int | float) or isinstance(idle, bool) or not 0 <= idle < float("inf"):
            raise SourceError(f"idle is {shown(idle)}", operator=operator, hint="Give seconds, 0 or more")


@overload
def polled(source: Partitions, schema: type[N]) -> PolledSource[N]: ...


@overload
def polled(source: Partitions, schema: type[Plain]) -> PolledSource[Value[Plain]]: ...


@overload
def polled(source: Partitions, schema: type[Mapping[str, Any]]) -> PolledSource[Any]: ...


@overload
def polled(source: Partitions, schema: type[T]) -> PolledSource[T]: ...


@overload
def polled(source: Partitions, schema: Declared) -> PolledSource[Any]: ...


def polled(source: Partitions, schema: object) -> PolledSource[Any]:
    """Give what an object of yours gives when it is asked: a source with a position of its own.

    A job that goes on from a checkpoint or a snapshot opens each partition where it was. The partitions are asked in
    turn, by one thread; rows of one partition keep their order. The source ends when all partitions have ended and
    there are no new ones.

    Args:
        source: an object with two methods. `partitions()` names its parts. `open(partition, position)` gives an object
            for one of them, at a position that it had or None, its start; that one has `poll()`, which gives a list of
            tuples (empty: nothing at the moment; None: this part has ended) or a `pyarrow.RecordBatch`, and `position`,
            where the next poll goes on, of what JSON can hold. Optional: `close()` of a part; `idle` of the source,
            seconds until it is asked again when there was nothing (0.1); `initialize()` and `shutdown()` of the source,
            called before its first and behind its last other call.
        schema: of the tuples.

    Raises:
        SourceError: when the source is declared, if it hasn't got the methods.

    Example:
        >>> import rayelastic as rel
        >>> class Countdown:
        ...     def __init__(self, start):
        ...         self.position = start
        ...     def poll(self):
        ...         self.position -= 1
        ...         return [(self.position,)] if self.position >= 0 else None
        >>> class Countdowns:
        ...     def partitions(self):
        ...         return ["3"]
        ...     def open(self, partition, position):
        ...         return Countdown(int(partition) if position is None else position)
        >>> topology = rel.Topology("launch")
        >>> topology.source(rel.polled(Countdowns(), {"n": int}), name="numbers").sink(rel.list(), name="out")
        <sink out>
        >>> [t.n for t in rel.run(topology)["out"]]
        [2, 1, 0]
    """
    return PolledSource(source, Schema.of(schema))
