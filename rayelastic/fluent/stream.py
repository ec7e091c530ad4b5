"""Streams: their methods declare operators, and write only into their topology. `key_by` and `union` declare none."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from types import GenericAlias
from typing import Any, ClassVar, NoReturn, cast

from rayelastic.connectors.call.declaration import print as printing
from rayelastic.connectors.ends import sink_operator
from rayelastic.errors import ErrorCode, GraphError
from rayelastic.fluent.actions import ActionMethods
from rayelastic.fluent.base import streams_of, taken
from rayelastic.fluent.columns import ColumnMethods
from rayelastic.fluent.declarations import Declarations, declare
from rayelastic.fluent.functions import ErrorChoice, FunctionMethods
from rayelastic.fluent.joining import CrossMethods, JoinMethods
from rayelastic.fluent.keyed import KeyedMethods
from rayelastic.fluent.naming import named
from rayelastic.fluent.passages import PassageMethods
from rayelastic.fluent.stages import StageMethods
from rayelastic.fluent.streams import Streams
from rayelastic.fluent.tables import TableMethods, TotalMethods
from rayelastic.fluent.windowed import WindowedStream
from rayelastic.graph.operators.aligned import length_of
from rayelastic.graph.operators.columns import First, check_count, first_of_each
from rayelastic.graph.operators.composition import class_operator
from rayelastic.graph.operators.joins.merge import merge_by_time
from rayelastic.graph.operators.windows import Framing, session, window
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import Lifetime, Seconds
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.declaration import NewOperator, declaring
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_class import definition_of
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.ordering import OrderChoice
from rayelastic.graph.spec.ports import LATE, stream_name

__all__ = ["KeyedStream", "Stream", "SunkStream", "TimelyStream", "WindowedStream", "apply"]


class Stream(
    FunctionMethods["Stream"],
    ColumnMethods["Stream"],
    TableMethods["Stream"],
    StageMethods["Stream"],
    PassageMethods["Stream"],
    CrossMethods["Stream"],
    ActionMethods["Stream"],
):
    """Tuples of one schema, in order, from one operator or a union of several.

    Attributes:
        topology: The stream's topology.
        inputs: Names of the streams that it unites: 'operator', or 'operator/port' (see ports.stream_name).
        schema: The schema of its tuples.
        keys: Names of the key fields; none unless it comes from key_by.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("words")
    >>> lines = topology.source(rel.rows([("to be",), ("or not",)], schema={"line": str}))
    >>> words = lines.flat_map(lambda t: t.line.split(), schema={"word": str})
    >>> words.filter(lambda t: len(t.word) > 2).print()
    <sink print>
    >>> words.sink(rel.list(), name="out")
    <sink out>
    >>> len(rel.run(topology)["out"])
    Record(word='not')
    4
    """

    __slots__ = ()
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)  # Stream[T], KeyedStream[T, K]: see stream.pyi

    def key_by(self, *fields: str | Callable[[Any], Any]) -> KeyedStream:
        """Set the fields that key the next operator's state: names, or ``lambda t: t.user``. Or `group_by`.

        Raises:
            GraphError: No field, or an unknown one.
        """
        up = self._upstream.keyed(fields)
        return KeyedStream(self.topology, up.inputs, up.schema, up.keys)

    group_by = groupby = key_on = key_by

    @named
    def take(self, count: int, *, name: str = "") -> Stream:
        """Keep the first tuples only; after key_by the first of each key. `limit` and `head` are other names of it.

        The source is still read to its end. `rel.interval`, `rel.generate` and `rel.sequence` stop if nothing else
        reads them. They also do upstream of `map`, `select` and the like, `throttle` and `delay`.

        Args:
            count: How many, 0 or more.
            name: The operator's name; 'take' by default.

        Raises:
            GraphError: An invalid number.

        >>> from rayelastic import testing
        >>> testing.collect(lambda s: s.take(2), [(5,), (7,), (9,)], {"n": int})
        [(5,), (7,)]
        """
        with NewOperator(name, self.topology.operators):
            check_count(count)
        if self.keys:
            return self._declare(first_of_each(self._upstream, name, count))
        return cast(Stream, Stream(self.topology, self.inputs, self.schema).apply(First(count), name=name))

    limit = head = take

    @named
    def print(self, *, name: str = "") -> SunkStream:
        """Print each tuple on standard output: ``sink`` with ``rel.print()``. ``inspect`` prints tuples that flow on.

        Args:
            name: The operator's name; 'print' by default.
        """
        return self.sink(printing(), name=name)

    def union(self, *others: Stream) -> Stream:
        """Unite the stream with `others` of its schema. Each keeps its own order; there is none between them.

        Raises:
            GraphError: Another schema or topology, not a stream, or the same one twice.

        >>> from rayelastic import testing
        >>> testing.collect(lambda s: s.union(s.filter(lambda t: t.n > 1)), [(1,)], {"n": int})
        [(1,)]
        """
        inputs = self.inputs
        with declaring(self._upstream.called, caller_location()):
            if not others:
                raise GraphError("union needs another stream", hint="Write a.union(b)", code=ErrorCode.MISSING_ARGUMENT)
            for other in others:
                self._check_unites(other)
                for name in other.inputs:
                    if name in inputs:
                        problem = f"union has '{name}' twice"
                        raise GraphError(problem, hint="Unite each stream once", code=ErrorCode.DUPLICATE_STREAM)
                inputs += other.inputs
        return Stream(self.topology, inputs, self.schema)

    def _check_unites(self, other: object) -> None:
        if not isinstance(other, Stream):
            problem = f"union needs streams, not {shown(other)}"
            raise GraphError(problem, hint="Write a.union(b)", code=ErrorCode.NOT_A_STREAM)
        if other.topology is not self.topology:
            problem = f"union with '{other._upstream.called}' of another topology, '{other.topology.name}'"
            raise GraphError(problem, hint=f"Declare both in '{self.topology.name}'", code=ErrorCode.OTHER_TOPOLOGY)
        if not self.schema.same_fields(other.schema):
            schemas = f"'{self._upstream.called}' has {self.schema}, '{other._upstream.called}' has {other.schema}"
            hint = "Map one of them to the schema of the other"
            raise GraphError(f"union of different schemas: {schemas}", hint=hint, code=ErrorCode.SCHEMA_MISMATCH)

    @named
    def apply(
        self,
        operator: Any,
        *,
        name: str = "",
        on_error: ErrorChoice = "fail",
        ordered: OrderChoice = None,
        **others: Stream,
    ) -> Any:
        """Send the tuples to an operator of a class that is decorated with @rel.operator.

        Arguments and errors as of ``Topology.apply``. This stream is the first input port, `others` are the rest.

        Returns:
            As Topology.apply, which also lists the errors.

        >>> numbers.apply(Pairs())  # doctest: +SKIP
        <Stream of Pairs: Record(sum: int64)>
        """
        with NewOperator(name, self.topology.operators):
            first = next(iter(definition_of(operator).inputs))
            if first in others:
                problem, hint = f"its input port '{first}' has two streams", "Unite them first: a.union(b).apply(...)"
                raise GraphError(problem, hint=hint, code=ErrorCode.DUPLICATE_STREAM)
        return apply(self.topology, name, operator, {first: self, **others}, on_error, ordered)

    @named
    def sink(self, sink: Any, *, name: str = "") -> SunkStream:
        """Send the tuples out; no operator can follow.

        Args:
            sink: Such as rel.parquet(path), rel.csv(path), rel.call(fn), rel.list(), rel.count(), rel.arrow().
            name: The operator's name, by which `run` returns its results.

        Raises:
            GraphError: Not a sink, or the name is taken or invalid.
            SinkError: It can't be written.
        """
        spec = sink_operator(self._upstream, name, sink)
        declare(self.topology, spec)
        return SunkStream(name)

    def window(
        self,
        length: dt.timedelta | None = None,
        /,
        *,
        count: int | None = None,
        seconds: Seconds | None = None,
        days: int | None = None,
        slide: Seconds | None = None,
        rest: bool | None = None,
        within: Seconds | None = None,
        assign: Callable[[Any], Iterable[tuple[Any, Any]]] | None = None,
        lateness: Seconds | None = None,
        clock: bool = False,
        align_to: object = None,
        zone: str | None = None,
        ttl: Lifetime | None = None,
    ) -> WindowedStream[TimelyStream]:
        """Assign the tuples of each key (of the whole stream without a key_by before) to windows.

        Args:
            length: A timedelta: as `seconds`.
            count: The number of tuples in a window, which is emitted when it is full.
            seconds: Or the length of a window in event time, also a timedelta. Windows start at multiples of `slide`,
                and are emitted when the watermark has passed their end.
            days: Or the length of a window in whole days of a zone, from midnight to midnight. A day with a clock
                change has 23 or 25 hours.
            slide: Tuples, seconds or days between the starts of two windows; their length by default. If it is shorter,
                windows overlap; if it is longer, tuples between windows are left out.
            rest: Of windows by count. Whether the remaining tuples of a key are emitted in an incomplete window when
                the input ends; true by default if windows don't overlap.
            within: With count, also emit a batch so long after its first tuple, in event time, or by the clock if the
                stream has none. Batches are folded, reduced or processed.
            assign: Or a function from a tuple to its windows: pairs of start and end, of the type of the event time.
                Each ends after its tuples. Such windows are folded, reduced or processed.
            lateness: Of windows by event time. Seconds of event time after its first result in which a window still
                accepts tuples, and emits a new result for each. A field `corrected` marks results that replace an
                earlier one. The output has no event time until you assign one.
            clock: Of windows by time: whether they follow the clock, without late tuples. `start` and `end` are then
                seconds since 1970. Such windows are folded, reduced or processed.
            align_to: With seconds: a time at which a window starts, of the type of the event time; 1970 by default.
                With days: a date on which one starts; a Monday by default, so that seven days are a week.
            ttl: Of windows by count of keys. Seconds, or a timedelta, without a tuple of a key after which its window
                is dropped. The next tuple begins a new one. None: never. As for ``map``.
            zone: The zone of the days, such as 'Europe/Berlin'; by default that of the event time, else UTC.

        Raises:
            GraphError: None or several of count, seconds, days and assign; too small; no event time; an unknown zone.

        >>> import rayelastic as rel
        >>> from rayelastic import testing
        >>> moving = lambda s: s.window(count=3, slide=1).aggregate(mean=rel.mean("n"))
        >>> testing.collect(moving, [(0,), (1,), (2,), (3,)], {"n": int})
        [(1.0,), (2.0,)]
        """
        if length is not None:
            with declaring(self._upstream.called, caller_location()):
                seconds = length_of(length, seconds)
        wanted = Framing(
            seconds=seconds, days=days, align_to=align_to, zone=zone, count=count, slide=slide, rest=rest,
            within=within, assign=assign, lateness=lateness, clock=clock, ttl=ttl,
        )  # fmt: skip
        return WindowedStream(self, window(self._upstream, wanted), self._declare_timely)

    def session(
        self, gap: Seconds | Callable[[Any], Seconds], *, lateness: Seconds | None = None, clock: bool = False
    ) -> WindowedStream[TimelyStream]:
        """Assign the tuples of each key to sessions: each is at most `gap` after the one before, in event time.

        Args:
            gap: Seconds, or a timedelta. Or a function of a tuple: how long it keeps its session open. Such sessions
                are folded, reduced or processed.
            lateness: As for ``window``, of aggregated sessions. A late tuple may merge two sessions; the new result
                then replaces all results that it overlaps with.
            clock: As for ``window``.

        Raises:
            GraphError: No gap, or no event time.

        >>> import rayelastic as rel
        >>> from rayelastic import testing
        >>> visits = lambda s: s.event_time("at").session(gap=60).aggregate(clicks=rel.count())
        >>> testing.collect(visits, [(0,), (20,), (500,)], {"at": int})
        [(0, 80, 2), (500, 560, 1)]
        """
        return WindowedStream(self, session(self._upstream, gap, lateness, clock), self._declare_timely)

    @named
    def merge_by_time(self, *others: Stream, name: str = "") -> TimelyStream:
        """Unite streams of one schema in the order of their event times; at equal times, in the order of the arguments.

        A tuple waits until all streams have reached its time. Late ones go to `.late()`.

        Args:
            others: Streams with the same schema and event time.
            name: The operator's name; 'merge_by_time' by default.

        Raises:
            GraphError: Another schema or topology, or no common event time.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("sorted")
        >>> odd = topology.source(rel.rows([(1,), (5,), (9,)], schema={"at": int})).event_time("at")
        >>> even = topology.source(rel.rows([(2,), (4,)], schema={"at": int}), name="even").event_time("at", name="t2")
        >>> odd.merge_by_time(even, name="all").sink(rel.list(), name="out")
        <sink out>
        >>> [t.at for t in rel.run(topology)["out"]]
        [1, 2, 4, 5, 9]
        """
        with NewOperator(name, self.topology.operators):
            for other in others:
                self._check_unites(other)
        ups = (self._upstream, *(other._upstream for other in others))
        return self._declare_timely(merge_by_time(name, ups))

    def _declare_timely(self, spec: OperatorSpec) -> TimelyStream:
        stream = self._declare(spec)
        return TimelyStream(stream.topology, stream.inputs, stream.schema, spec)

    def _at(
        self, topology: Declarations, inputs: tuple[str, ...], schema: Schema, keys: tuple[str, ...] = ()
    ) -> Stream:
        return KeyedStream(topology, inputs, schema, keys) if keys else Stream(topology, inputs, schema)


class KeyedStream(TotalMethods, KeyedMethods[Stream], JoinMethods[Stream], Stream):
    """A stream with the fields that key the next operator's state.

    Attributes:
        keys: Names of the key fields.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> orders = [("a", 1), ("b", 2), ("a", 3)]
    >>> testing.collect(lambda s: s.key_by("user").aggregate(n=rel.count()), orders, {"user": str, "price": int})
    [('a', 2), ('b', 1)]
    >>> testing.collect(lambda s: s.group_by("user").take(1), orders, {"user": str, "price": int})
    [('a', 1), ('b', 2)]
    """

    __slots__ = ("keys",)

    def __init__(self, topology: Declarations, inputs: tuple[str, ...], schema: Schema, keys: tuple[str, ...]) -> None:
        super().__init__(topology, inputs, schema)
        self.keys = keys


class TimelyStream(Stream):
    """The stream of an operator that drops late tuples, or sends them to `.late()`."""

    __slots__ = ("_spec",)

    def __init__(self, topology: Declarations, inputs: tuple[str, ...], schema: Schema, spec: OperatorSpec) -> None:
        super().__init__(topology, inputs, schema)
        self._spec = spec

    def late(self) -> Stream:
        """Return the stream of the late tuples, unchanged; it needs no consumer.

        Raises:
            GraphError: The operator follows a count, so no tuple is late.
        """
        if not any(port.name == LATE for port in self._spec.outputs):
            raise GraphError(
                "a window by count has no late tuples",
                operator=self._spec.name,
                location=caller_location(),
                hint="Leave .late() out, or use windows by event time",
                code=ErrorCode.UNSUPPORTED_WINDOW,
            )
        assert self._spec.input_schema is not None
        return Stream(self.topology, (stream_name(self._spec.name, LATE),), self._spec.input_schema)


class SunkStream:
    """The result of a sink: no operator can follow it, and its errors say so."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> NoReturn:
        if hasattr(KeyedStream, attribute) and not attribute.startswith("_"):
            raise GraphError(
                f"a sink has no output, so .{attribute}(...) can't follow it",
                operator=self.name,
                location=caller_location(),
                hint="Call both on the stream before: it may have several consumers",
                code=ErrorCode.NO_OUTPUT,
            )
        raise AttributeError(attribute)

    def __repr__(self) -> str:
        return f"<sink {self.name}>"


def apply(
    topology: Declarations,
    name: str,
    operator: Any,
    streams: Mapping[str, object],
    on_error: object = OnError.FAIL,
    ordered: object = None,
) -> Stream | Streams[Stream] | SunkStream:
    """See ``Topology.apply``."""
    with NewOperator(name, topology.operators):
        inputs = {port: taken(topology, port, stream) for port, stream in streams.items()}
    spec = class_operator(name, operator, inputs, topology.operators, topology.compiler, on_error, ordered)
    declare(topology, spec)
    streams_by_port = {port: Stream(topology, *parts) for port, parts in streams_of(spec).items()}
    if not streams_by_port:
        return SunkStream(name)
    few = len(streams_by_port) == 1 + (spec.on_error is OnError.DIVERT)
    return next(iter(streams_by_port.values())) if few else Streams(name, streams_by_port)
