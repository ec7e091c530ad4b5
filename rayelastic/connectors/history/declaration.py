"""History, then live: a bounded source and another one that continues it, described as one source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, overload

from rayelastic.connectors.description import Source
from rayelastic.connectors.ends import source_description
from rayelastic.connectors.typed import SourceOf
from rayelastic.errors import ErrorCode, GraphError, SchemaError
from rayelastic.graph.records.schema import Field, Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.operator_spec import Lane, SourceDescription
from rayelastic.graph.spec.user_objects import is_object

__all__ = ["HISTORY", "LIVE", "History", "HistorySource", "HistoryThenLive", "history", "object_of"]

T = TypeVar("T")

HISTORY, LIVE = "history", "live"  # the parts, as a position names them


@dataclass(frozen=True, slots=True)
class HistorySource(Source[Any]):
    """A bounded source, and the source whose tuples follow its last one.

    Args:
        history: The bounded source.
        live: The source that continues it.
        schema: The schema of both.
        instance: The user's object of one of them, if it has one.
    """

    kind: ClassVar[str] = "history, then live"
    object_field = "instance"

    history: Source[Any]
    live: Source[Any]
    schema: Schema
    instance: Any = field(default=None, repr=False)

    @property
    def parts(self) -> tuple[Source[Any], Source[Any]]:
        """Return both sources."""
        return self.history, self.live

    @property
    def lane(self) -> Lane:
        """The execution mode: Python if one of them needs it."""
        return next((part.lane for part in self.parts if part.lane.needs_python), self.live.lane)

    @property
    def reason(self) -> str:
        """Describe both for `explain()`."""
        first, live = (f"{part.kind} ({part.reason})" for part in self.parts)
        return f"first {first}, then {live}"

    @property
    def is_endless(self) -> bool:
        """Whether the live source never ends by itself."""
        return self.live.is_endless

    @property
    def has_splits(self) -> bool:
        """Whether a part of one of them has a watermark of its own."""
        return any(part.has_splits for part in self.parts)

    @property
    def seeks(self) -> bool:  # type: ignore[override]  # of both
        """Whether both begin at any position at once."""
        return all(part.seeks for part in self.parts)

    @property
    def is_called_again(self) -> bool:  # type: ignore[override]  # of both
        """Whether one of them calls the user's function again for each start."""
        return any(part.is_called_again for part in self.parts)

    @property
    def omits_unread(self) -> bool:  # type: ignore[override]  # of both
        """Whether one of them leaves fields without values that nobody reads."""
        return any(part.omits_unread for part in self.parts)

    @property
    def restart_seconds(self) -> float:
        """The longest time until one of them emits new rows after a restart."""
        return max(part.restart_seconds for part in self.parts)

    @property
    def side_sources(self) -> Mapping[str, SourceDescription]:
        """Return the side sources of the one that has any, by port."""
        return {**self.history.side_sources, **self.live.side_sources}

    def input_at(self, position: object, rows: int) -> tuple[Source[Any], int]:
        """Return the part that a position is in, and the rows emitted of it."""
        match position:
            case {"part": "history", "input": {"position": own}}:
                return self.history.input_at(own, rows)
            case {"part": "live", "input": {"position": own}, "rows": int(before)}:
                return self.live.input_at(own, rows - before)
        return self, rows

    def check(self, operator: str) -> None:
        """Raise an error that names the operator if one can't be read, or they can't be combined."""
        for part in self.parts:
            part.check(operator)
        if self.history.side_sources and self.live.side_sources:
            raise GraphError(
                "both sources divert bad rows, and a stream has one output for them",
                hint="Pass on_bad_row='skip' to one of them",
                code=ErrorCode.CONFLICTING_ARGUMENTS,
            )


@dataclass(frozen=True, slots=True)
class HistoryThenLive(SourceOf[T]):
    """The result of `history(...).then(...)`: the sources, which are checked when an operator is made of them."""

    first: object
    live: object

    def as_source(self, operator: str) -> SourceDescription:
        """Describe both sources as one."""
        first, live = _part(self.first, operator, "rel.history"), _part(self.live, operator, "then")
        if first.is_endless and not first.may_end:
            raise GraphError(
                f"rel.history({first.kind}) never ends, so the live source would never begin",
                hint="Pass stop='end' to rel.kafka, a count to rel.generate, or files",
                code=ErrorCode.CONFLICTING_ARGUMENTS,
            )
        _check_fields(first.schema, live.schema)
        objects = [own for part in (first, live) if (own := object_of(part)) is not None]
        if len(objects) > 1:
            raise GraphError(
                "both sources of rel.history(...).then(...) have an object of a class",
                hint="Pass a function to one of them",
                code=ErrorCode.CONFLICTING_ARGUMENTS,
            )
        return HistorySource(first, live, live.schema, *objects)


@dataclass(frozen=True, slots=True)
class History(SourceOf[T]):
    """The result of `history`: a bounded source that a live one is to continue."""

    source: object

    @overload
    def then(self, live: SourceOf[T]) -> HistoryThenLive[T]: ...

    @overload
    def then(self, live: object) -> HistoryThenLive[Any]: ...

    def then(self, live: Any) -> HistoryThenLive[Any]:
        """Continue with another source once all tuples of the history are emitted.

        Args:
            live: Any source with the same fields: a topic, or another bounded source. It begins where its own arguments
                say. `start='latest'` and `start='committed'` of `rel.kafka` mean the offsets when the job starts, so
                messages that arrive while the history is read are read after it.
        """
        return HistoryThenLive(self.source, live)

    def as_source(self, operator: str) -> SourceDescription:  # noqa: ARG002  (the error names it)
        """Raise GraphError: it isn't complete."""
        raise GraphError(
            "rel.history(...) needs the source that continues it",
            hint="Write rel.history(rel.parquet(path, Event)).then(rel.kafka(brokers, topic, Event))",
            code=ErrorCode.NOT_A_SOURCE,
        )


@overload
def history(source: SourceOf[T]) -> History[T]: ...


@overload
def history(source: object) -> History[Any]: ...


def history(source: Any) -> History[Any]:
    """Read a bounded source to its end, and then a live one, as one source of one job.

    A checkpoint has the position in the part that is being read, so no tuple is lost or doubled between them. Event
    time continues: the history's watermark remains in force until the live source's tuples advance it.

    Args:
        source: A bounded source: files, tables, rows, a topic with `stop='end'`. Both sources need the same fields, so
            pass the same class as their schema.

    Raises:
        GraphError: At the declaration, if the source never ends.
        SchemaError: At the declaration, if the fields differ.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("both")
    >>> both = rel.history(rel.rows([(1,), (2,)], {"n": int})).then(rel.rows([(3,)], {"n": int}))
    >>> topology.source(both, name="n").sink(rel.list(), name="out")
    <sink out>
    >>> [t.n for t in rel.run(topology)["out"]]
    [1, 2, 3]
    """
    return History(source)


def _part(source: object, operator: str, where: str) -> Source[Any]:
    described = source_description(source, operator)
    if not isinstance(described, Source) or described.is_fed or hasattr(described, "for_pe"):
        raise GraphError(
            f"{where}({shown(source)}): its rows are pushed from outside the job",
            hint="Write it to Parquet, and pass rel.parquet",
            code=ErrorCode.NOT_A_SOURCE,
        )
    return described


def object_of(part: Source[Any]) -> Any:
    """Return the user's object of a source; None if it has none, or a function."""
    own = getattr(part, part.object_field) if part.object_field else None
    return own if own is not None and is_object(own) else None


def _check_fields(first: Schema, live: Schema) -> None:
    if first.holds_objects:
        raise SchemaError(
            f"{first} has Python objects, which rel.history doesn't emit",
            hint="Declare types for its fields",
            code=ErrorCode.UNSUPPORTED_TYPE,
        )
    if first.same_fields(live):
        return
    pairs = [(first.find(name), live.find(name)) for name in dict.fromkeys((*first.names, *live.names))]
    differing = [f"'{one or 'none'}' and '{other or 'none'}'" for one, other in pairs if _form(one) != _form(other)]
    raise SchemaError(
        "the history and the live source have different fields: "
        + ("; ".join(differing) or f"{', '.join(first.names)} and {', '.join(live.names)}, in this order"),
        hint="Pass the same class as schema= of both",
        code=ErrorCode.SCHEMA_MISMATCH,
    )


def _form(column: Field | None) -> object:
    return column and (column.format, column.nullable)
