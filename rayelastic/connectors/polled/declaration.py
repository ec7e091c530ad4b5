"""A source of a user's own: the runtime polls its partitions for rows, and saves their positions."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, overload

from rayelastic.connectors.description import Source
from rayelastic.connectors.typed import Declared, N, Plain, Value
from rayelastic.errors import ErrorCode, SourceError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.user_objects import LIFE, check_object

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

IDLE = 0.1  # seconds
METHODS = ("partitions", "open")


class Partition(Protocol):
    """One part of a source, such as a file, a shard or a page of a service. It may also have `close()`."""

    position: Any
    """Where the next `poll` goes on: numbers, texts, lists and dictionaries of them, as JSON has them."""

    def poll(self) -> Iterable[Any] | pa.RecordBatch | None:
        """Return the next rows: tuples, or a RecordBatch. An empty list: none at the moment. None: it has ended.

        It should return within a second, because the same thread polls the other partitions.
        """
        ...


class Partitions(Protocol):
    """A source of a user's own.

    It may also have `idle`: the seconds between polls while no partition has rows, 0.1 by default.
    """

    def partitions(self) -> Iterable[str]:
        """Name the partitions. The runtime calls it about once a second and opens new ones."""
        ...

    def open(self, partition: str, position: Any, /) -> Partition:
        """Open a partition at a saved position, or at its start for None. It must return the same rows as before."""
        ...


@dataclass(frozen=True, slots=True)
class PolledSource(Source[T]):
    """The result of `polled`: a user's object that the runtime polls."""

    kind: ClassVar[str] = "what an object is asked for"
    may_end: ClassVar[bool] = True

    source: Partitions = field(repr=False)
    schema: Schema
    lane: Lane = Lane.PYTHON
    object_field = "source"

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"{type(self.source).__name__} is asked for rows"

    @property
    def idle(self) -> float:
        """Seconds between polls while there are no rows."""
        return float(getattr(self.source, "idle", IDLE))

    @property
    def has_splits(self) -> bool:
        """Return whether each of its partitions has an order of its own."""
        return True

    @property
    def is_endless(self) -> bool:
        """Whether it may never end, which isn't known before it does."""
        return True

    def check(self, operator: str) -> None:
        """Raise SourceError if it lacks the methods of a polled source."""
        missing = [name for name in METHODS if not builtins.callable(getattr(self.source, name, None))]
        if missing or isinstance(self.source, type):
            what = "is a class" if isinstance(self.source, type) else f"has no {missing[0]}()"
            raise SourceError(
                f"rel.polled({shown(self.source)}): it {what}",
                operator=operator,
                hint="Pass an object with partitions() and open(partition, position), see rel.polled",
                code=ErrorCode.MISSING_METHOD,
            )
        check_object(self.source, LIFE, known=METHODS, error=SourceError)
        idle: object = getattr(self.source, "idle", IDLE)
        if not isinstance(idle, int | float) or isinstance(idle, bool) or not 0 <= idle < float("inf"):
            raise SourceError(
                f"idle={shown(idle)} is invalid",
                operator=operator,
                hint="Pass seconds, 0 or more",
                code=ErrorCode.OUT_OF_RANGE,
            )


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
    """Make a source of an object of yours, which is polled and can restore its position.

    When a job restores a checkpoint or savepoint, it opens each partition at its saved position. One thread polls the
    partitions in turn; rows of one partition keep their order. The source ends when all partitions have ended and there
    are no new ones.

    Args:
        source: An object with two methods. `partitions()` names its parts. `open(partition, position)` returns an
            object for one of them, at a saved position or, for None, at its start. That object has `poll()`, which
            returns a list of tuples or a `pyarrow.RecordBatch` (empty: nothing at the moment; None: the partition has
            ended). It also has `position`, where the next poll continues, a value that JSON can hold. Optional are
            `close()` of a partition and, of the source, `idle`, `initialize()` and `shutdown()`. `idle` is the seconds
            between polls without rows (0.1). The other two are called before its first and after its last other call.
        schema: The schema of the tuples.

    Raises:
        SourceError: At the declaration, if it lacks the methods.

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
