"""What descriptions of sources and sinks have in common. Knows neither readers nor writers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from rayelastic.connectors.files.locations import file_edges
from rayelastic.connectors.files.paths import Paths, check_writable, expanded, single
from rayelastic.connectors.typed import SourceOf
from rayelastic.errors import ErrorCode, SinkError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import Form, plain_form
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane, OperatorSpec, SinkDescription, SourceDescription

T = TypeVar("T")

OBJECTS = frozenset({DataType.OBJECT})
EDGE_ROWS = 100  # of rows in memory, which identify them
TREES = frozenset({DataType.LIST, DataType.STRUCT, DataType.MAP})


class Content(NamedTuple):
    """The content of a file, or rows in memory: its size, the size of the edges to hash, and what reads a range."""

    size: int
    edge: int
    between: Callable[[int, int], bytes]


class Source(SourceDescription, SourceOf[T]):
    """A description of a source: a value that can be shipped and restarted.

    Attributes:
        kind: What it reads, as snapshots and messages name it.
        unit: What the sizes of its contents count.
        seeks: Whether it begins at any position at once.
        is_called_again: Whether it calls the user's function again for each start.
        may_end: Whether it may end although it is endless, which isn't known before it does.
    """

    __slots__ = ()
    kind: ClassVar[str] = "Python tuples"
    unit: ClassVar[str] = "bytes"
    seeks: ClassVar[bool] = False
    is_called_again: ClassVar[bool] = False
    may_end: ClassVar[bool] = False

    def contents(self) -> Sequence[Content]:
        """Return the files, or the rows in memory, in which positions are valid; none if a function makes the rows."""
        return ()

    def input_at(self, position: object, rows: int) -> tuple[Source[Any], int]:  # noqa: ARG002  (of most, one)
        """Return the description of what it reads at a saved position, and the rows that were emitted of that."""
        return self, rows

    def is_shorter_than(self, position: int) -> bool:  # noqa: ARG002  (most learn it when they read)
        """Return whether it is known to have fewer rows."""
        return False

    @property
    def restart_seconds(self) -> float:
        """The longest time until a restarted source emits new rows."""
        return 0.0 if self.seeks else math.inf


class FileSource(Source[T]):
    """A source of files, each of which has a watermark of its own unless their times follow each other."""

    __slots__ = ()
    if TYPE_CHECKING:
        paths: tuple[str, ...]
        time_ordered: bool

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        expanded(self.paths, operator, directories=False)

    def contents(self) -> Sequence[Content]:
        """Return the files."""
        return [Content(*file_edges(path)) for path in self.paths]

    @property
    def has_splits(self) -> bool:
        """Whether each file has a watermark of its own."""
        return len(self.paths) > 1 and not self.time_ordered


class Sink(SinkDescription):
    """A description of a sink.

    Attributes:
        unsupported: The types of fields that it can't write.
        shows_rows: Whether it shows rows outside the job when a checkpoint is complete.
    """

    __slots__ = ()
    unsupported: ClassVar[frozenset[DataType]] = frozenset()
    shows_rows: ClassVar[bool] = True

    def check_schema(self, schema: Schema) -> None:
        """Raise SinkError for a field that it can't write."""
        for column in schema.fields:
            form = plain_form(column.format)
            if not self.unsupported.isdisjoint(_kinds(form)):
                raise SinkError(
                    f"field '{column.name}' of {schema.name} is {form.shown}, which {type(self).__name__} can't write",
                    hint="Map it to a type that it writes, such as str, or leave it out",
                    code=ErrorCode.UNSUPPORTED_TYPE,
                )


@dataclass(frozen=True, slots=True)
class FileSink(Sink):
    """Writes files: one file, or part files into a directory if the path has no suffix."""

    unsupported: ClassVar[frozenset[DataType]] = OBJECTS

    path: str
    lane: Lane = Lane.BUILT_IN
    reason: str = ""

    def check(self, operator: str) -> None:
        """Raise SinkError if nothing can be written there."""
        check_writable(self.path, operator)


@dataclass(frozen=True, slots=True)
class Files(SourceOf[T]):
    """Paths of a format: a source or a sink, depending on where they are used.

    Args:
        paths: As the user writes them.
        function: The name of the user's function.
        source: Looks the files up, and describes the source of an operator.
        sink: Describes the sink of a location.
    """

    paths: Paths
    function: str
    source: Callable[[str], SourceDescription] = field(repr=False)
    sink: Callable[[str], FileSink] = field(repr=False)

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up, and infer the schema if none was declared."""
        return self.source(operator)

    def as_sink(self, operator: str) -> SinkDescription:
        """Make the sink that writes to the path."""
        return self.sink(single(self.paths, operator, self.function))


def is_called_again(spec: OperatorSpec) -> bool:
    """Return whether an operator is a source that calls the user's function again for each start."""
    return isinstance(spec.body, Source) and spec.body.is_called_again


def restart_seconds(spec: OperatorSpec) -> float:
    """Return the longest time that a restarted source needs until it emits new rows, in seconds."""
    return spec.body.restart_seconds if isinstance(spec.body, Source) else math.inf


def _kinds(form: Form) -> Iterator[DataType]:
    """Yield the types of a form and of all its parts."""
    yield form.kind
    for _, part, _ in form.parts:
        yield from _kinds(part)
