"""Streams: what users call methods on to declare operators. They only write into their topology.

Operators take their name first, because it keys metrics, state and plans; `key_by` and `union` have none, because they
only say how the next operator reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from rayelastic.errors import DeclarationError, GraphError
from rayelastic.graph.aggregates import (
    AggregateFunction,
    AggregateSpec,
    Aggregation,
    Emit,
    TopK,
    aggregated_schema,
    expanded,
)
from rayelastic.graph.dead_letters import ERRORS, OnError, dead_letters, on_error_of
from rayelastic.graph.declaration import LaneChoice, check_function, check_name, check_new, check_state, lane_of
from rayelastic.graph.library import LibraryOperators
from rayelastic.graph.location import caller_location
from rayelastic.graph.operator_spec import FunctionRequest, OperatorKind, OperatorSpec, SinkDescription, StateKind
from rayelastic.graph.ports import operator_of, side_ports, side_source, stream_name
from rayelastic.graph.schema import Schema
from rayelastic.graph.shown import shown
from rayelastic.graph.sinks import CountSink
from rayelastic.graph.time_to_live import check_updates, time_to_live

if TYPE_CHECKING:
    from rayelastic.graph.composition import Streams
    from rayelastic.graph.event_time import Seconds, TimeUnit
    from rayelastic.graph.keyed_stream import KeyedStream
    from rayelastic.graph.topology import Topology
    from rayelastic.graph.windows import TimelyStream, WindowedStream

ErrorChoice = OnError | Literal["fail", "skip", "divert"]
NO_SIDES: Mapping[str, object] = MappingProxyType({})


class Stream(LibraryOperators):
    """Tuples of one schema, in order, from one operator or from several united.

    Attributes:
        topology: the one that it belongs to.
        inputs: the names of the streams that it unites: 'operator', or 'operator/port' (see ports.stream_name).
        schema: of its tuples.
        keys: names of the key fields; none unless it comes from key_by.
    """

    __slots__ = ("inputs", "schema", "topology")
    keys: tuple[str, ...] = ()

    def __init__(self, topology: Topology, inputs: tuple[str, ...], schema: Schema) -> None:
        self.topology = topology
        self.inputs = inputs
        self.schema = schema

    def map(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        schema: object = None,
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
        sides: Mapping[str, object] = NO_SIDES,
    ) -> Stream:
        """Give one tuple for each.

        Args:
            name: of the operator.
            fn: of one tuple; returns a tuple of the new schema, or a plain value for records of one field `value`.
            schema: of what it gives, see Schema.of; found out by default.
            lane: 'auto', 'compiled', 'vectorised' or 'python'.
            on_error: what happens to a tuple on which fn raises: 'fail' fails the job, 'skip' leaves the tuple out,
                'divert' sends it to the stream `.errors` of the result, with fields `error` and `operator` added. What
                fn did to the state of a key before it raised stays.
            sides: {port: schema} of side outputs: where fn gives `rel.to(port, tuple)`, it goes to the stream
                `.side(port)` of the result.

        Raises:
            GraphError: the name is taken or bad, or fn is no function of one tuple.
            LaneError: the lane can't be had.
            SchemaError: what fn gives isn't known or can't be held by a record.
        """
        return self._operator(OperatorKind.MAP, name, fn, None, schema, lane, (), on_error, sides)

    def filter(
        self, name: str, fn: Callable[..., Any], *, lane: LaneChoice = "auto", on_error: ErrorChoice = "fail"
    ) -> Stream:
        """Keep the tuples for which fn is true. Arguments and errors as for ``map``."""
        return self._operator(OperatorKind.FILTER, name, fn, None, None, lane, (), on_error)

    def flat_map(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        schema: object = None,
        lane: LaneChoice = "auto",
        on_error: ErrorChoice = "fail",
        sides: Mapping[str, object] = NO_SIDES,
    ) -> Stream:
        """Give any number of tuples for each: fn yields them. Arguments and errors as for ``map``."""
        return self._operator(OperatorKind.FLAT_MAP, name, fn, None, schema, lane, (), on_error, sides)

    def key_by(self, *fields: str) -> KeyedStream:
        """Say by which fields the next operator keeps its state.

        Raises:
            GraphError: no field, or one that the schema doesn't have.
        """
        from rayelastic.graph.keyed_stream import KeyedStream

        with declaring(self._upstream, caller_location()):
            if not fields:
                raise GraphError("key_by needs a field", way_out=self.schema.suggestion(""))
            for name in fields:
                if name not in self.schema.names:
                    raise GraphError(
                        f"key_by({shown(name)}): {self.schema.name} has no such field",
                        way_out=self.schema.suggestion(name),
                    )
            if len(set(fields)) < len(fields):
                raise GraphError(f"key_by{fields!r} names a field twice", way_out="Name each field once")
        return KeyedStream(self.topology, self.inputs, self.schema, fields)

    def union(self, *others: Stream) -> Stream:
        """Unite streams of one schema; each keeps its own order, between them there is none.

        Raises:
            GraphError: another schema, another topology, no stream, or the same one twice.
        """
        inputs = self.inputs
        with declaring(self._upstream, caller_location()):
            if not others:
                raise GraphError("union needs another stream", way_out="Write a.union(b)")
            for other in others:
                self._check_unites(other)
                for name in other.inputs:
                    if name in inputs:
                        raise GraphError(f"union has '{name}' twice", way_out="Unite each stream once")
                inputs += other.inputs
        return Stream(self.topology, inputs, self.schema)

    def _check_unites(self, other: object) -> None:
        if not isinstance(other, Stream):
            raise GraphError(f"union needs streams, not {shown(other)}", way_out="Write a.union(b)")
        if other.topology is not self.topology:
            raise GraphError(
                f"union with '{other._upstream}' of another topology, '{other.topology.name}'",
                way_out=f"Declare both in '{self.topology.name}'",
            )
        if not self.schema.same_fields(other.schema):
            raise GraphError(
                f"union of different schemas: '{self._upstream}' gives {self.schema}, "
                f"'{other._upstream}' gives {other.schema}",
                way_out="Map one of them to the schema of the other",
            )

    def apply(self, name: str, operator: Any, *, on_error: ErrorChoice = "fail", **others: Stream) -> Any:
        """Give the tuples to an operator of a class that @rel.operator made.

        Args:
            name: of the operator.
            operator: an instance of the class; it is copied.
            on_error: as of `map`, for what `invoke` raises for a tuple.
            others: input port = stream, for all but the first port, which takes this stream.

        Returns:
            As Topology.apply, which also says what can be wrong.
        """
        from rayelastic.graph.composition import apply
        from rayelastic.graph.operator_class import definition_of

        location = caller_location()
        check_at(name, location)
        with declaring(name, location):
            first = next(iter(definition_of(operator).inputs))
            if first in others:
                raise GraphError(
                    f"its input port '{first}' gets two streams", way_out="Unite them first: a.union(b).apply(...)"
                )
        return apply(self.topology, name, operator, {first: self, **others}, on_error)

    def split(
        self,
        name: str,
        ways: int | None = None,
        *,
        by: Callable[..., Any] | None = None,
        lane: LaneChoice = "auto",
        **predicates: Callable[..., Any],
    ) -> Streams:
        """Give each tuple to one of several streams; each keeps their order.

        Args:
            name: of the operator.
            ways: how many streams: `[0]`, `[1]`, .. of the result. By the hash of the key behind key_by, else in turn.
            by: with `ways`, a function from a tuple to the number of its stream.
            lane: of the function or the predicates: 'auto', 'compiled' or 'python'.
            predicates: stream = predicate: a tuple goes to the first stream whose predicate holds, or to the stream
                `rest`, which need not be taken.

        Raises:
            GraphError: no streams, or bad names or functions.
            LaneError: the lane can't be had.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("parity")
        >>> parts = topology.source("n", rel.sequence(7)).split("parts", small=lambda t: t.value < 3)
        >>> parts.small.sink("small", rel.count()), parts.rest.sink("large", rel.count())
        (<sink small>, <sink large>)
        >>> result = rel.run(topology)
        >>> result["small"], result["large"]
        (3, 4)
        """
        from rayelastic.graph.splits import split

        return split(self, name, ways, by, lane, predicates)

    def sink(self, name: str, sink: Any) -> SunkStream:
        """Send the tuples out; nothing may come after it.

        Args:
            name: of the operator; results are given back by it.
            sink: such as rel.parquet(path), rel.csv(path), rel.call(fn), rel.list(), rel.count(), rel.arrow().

        Raises:
            GraphError: no sink, or the name is taken or bad.
            SinkError: it can't be written.
        """
        location = caller_location()
        check_at(name, location)
        with declaring(name, location):
            check_new(name, self.topology.operators)
            body = _sink_description(sink, name)
            body.check(name)
            spec = OperatorSpec(
                name, OperatorKind.SINK, self.inputs, self.schema, None, (), StateKind.STATEFUL, body, location
            )
        self.topology._add(spec)
        return SunkStream(name)

    def event_time(self, name: str, field: str, *, lateness: Seconds = 0, unit: TimeUnit | None = None) -> Stream:
        """Say which field tells when a tuple happened, for what comes after and goes by time.

        Tuples may come out of order by `lateness`: windows wait that long, in event time. What comes later than that
        goes to the side output of the window that it is too late for. Which tuples are late depends on their order
        alone, not on how the job runs.

        Args:
            name: of the operator.
            field: a datetime; an integer; or a float of seconds (to the microsecond). May not be null.
            lateness: seconds, or a timedelta.
            unit: of an integer field: 's' (the default), 'ms', 'us' or 'ns'.

        Raises:
            GraphError: the name is taken or bad; lateness is negative or finer than the field; no such unit.
            SchemaError: no such field, or it holds no times or nulls.
        """
        from rayelastic.graph.event_time import EventTime, time_of_field

        location = caller_location()
        check_at(name, location)
        with declaring(name, location):
            check_new(name, self.topology.operators)
            time = time_of_field(self.schema, field, unit)
            body = EventTime(time, time.ticks(lateness, "lateness", least=0))
            spec = OperatorSpec(
                name,
                OperatorKind.EVENT_TIME,
                self.inputs,
                self.schema,
                self.schema,
                (),
                StateKind.STATEFUL,
                body,
                location,
            )
        return self.topology._add(spec)

    def window(
        self,
        *,
        count: int | None = None,
        seconds: Seconds | None = None,
        slide: Seconds | None = None,
        rest: bool | None = None,
    ) -> WindowedStream:
        """Put the tuples of each key (of the whole stream where there is no key_by before) into windows.

        Args:
            count: tuples in a window; it is given when it is full.
            seconds: or: length of a window in event time, or a timedelta; windows start at multiples of `slide`, and
                are given when the watermark has passed their end.
            slide: tuples or seconds from the start of one window to that of the next; as long as a window by default.
                Shorter: windows overlap. Longer: tuples between windows are left out.
            rest: of windows by count: whether, when the input ends, tuples of a key that no window had are given in one
                more, which isn't full; true by default where windows don't overlap.

        Raises:
            GraphError: neither count nor seconds, or both; too small; no event time.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("moving")
        >>> numbers = topology.source("numbers", rel.sequence(6))
        >>> moving = numbers.window(count=3, slide=1).aggregate("moving", mean=rel.mean("value"))
        >>> moving.sink("out", rel.list())
        <sink out>
        >>> [t.mean for t in rel.run(topology)["out"]]
        [1.0, 2.0, 3.0, 4.0]
        """
        from rayelastic.graph.windows import count_window, time_window

        with declaring(self._upstream, caller_location()):
            if (count is None) == (seconds is None):
                raise GraphError(
                    "a window has a count or seconds", way_out="Write .window(count=...) or .window(seconds=...)"
                )
            if seconds is not None:
                if rest is not None:
                    raise GraphError("rest is for windows by count", way_out="Windows by time are all given at the end")
                return time_window(self, seconds, slide)
            return count_window(self, count, slide, rest)

    def session(self, *, gap: Seconds) -> WindowedStream:
        """Put the tuples of each key into sessions: those that are at most `gap` apart from the next, in event time.

        Args:
            gap: seconds, or a timedelta.

        Raises:
            GraphError: no gap, or no event time.
        """
        from rayelastic.graph.windows import session

        with declaring(self._upstream, caller_location()):
            return session(self, gap)

    def merge_by_time(self, name: str, *others: Stream) -> TimelyStream:
        """Unite streams of one schema in the order of their event times; those of equal times in the order given here.

        A tuple waits until all streams have come to its time. Those that come too late go to `.late()`.

        Args:
            name: of the operator.
            others: with the same schema and event time.

        Raises:
            GraphError: another schema or topology, or no event time that all have.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("sorted")
        >>> odd = topology.source("odd", rel.rows([(1,), (5,), (9,)], schema={"at": int})).event_time("t1", "at")
        >>> even = topology.source("even", rel.rows([(2,), (4,)], schema={"at": int})).event_time("t2", "at")
        >>> odd.merge_by_time("all", even).sink("out", rel.list())
        <sink out>
        >>> [t.at for t in rel.run(topology)["out"]]
        [1, 2, 4, 5, 9]
        """
        from rayelastic.graph.joins import merge_by_time

        return merge_by_time(name, (self, *others))

    def aggregate(
        self,
        name: str,
        /,
        emit: str | Emit = Emit.FINAL,
        *,
        ttl: Seconds | None = None,
        **aggregates: AggregateSpec | TopK,
    ) -> Stream:
        """Aggregate the tuples of each key, natively; all tuples together where there is no key_by before.

        Args:
            name: of the operator.
            emit: 'final': one tuple per key when the input has ended; 'update': the key's new values after each tuple.
            ttl: with emit='update' and keys, as of KeyedStream.map.
            aggregates: output field = rel.count(), or rel.sum, mean, weighted_mean, min, max, first, last, stddev,
                distinct, quantile or top_k of a field.

        Returns:
            A stream of the key fields and then the aggregates.

        Raises:
            GraphError: no aggregate, or one named like a key field; a time to live without keys or with emit='final'.
            SchemaError: unknown field, or a sum or mean of something that is no number.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("sizes")
        >>> rows = rel.rows([("a", 2), ("b", 5), ("a", 4)], schema={"word": str, "size": int})
        >>> words = topology.source("words", rows)
        >>> words.key_by("word").aggregate("by_word", mean=rel.mean("size")).sink("keyed", rel.list())
        <sink keyed>
        >>> words.aggregate("all", words=rel.distinct("word"), sizes=rel.sum("size")).sink("global", rel.list())
        <sink global>
        >>> result = rel.run(topology)
        >>> [tuple(t) for t in result["keyed"]], [tuple(t) for t in result["global"]]
        ([('a', 3.0), ('b', 5.0)], [(2, 11)])
        """
        location = caller_location()
        check_at(name, location)
        with declaring(name, location):
            check_new(name, self.topology.operators)
            try:
                when = Emit(emit)
            except ValueError:
                raise GraphError(f"emit={emit!r}", way_out="Choose 'final' or 'update'") from None
            wanted = expanded(aggregates)
            gives = aggregated_schema(name, self.schema, self.keys, wanted)
            body = Aggregation(tuple(wanted.items()), when)
            check_updates(ttl, when)
            lives = time_to_live(ttl, self, None if self.keys else "key_by(...)")
            state = StateKind.PARTITIONED if self.keys else StateKind.STATEFUL
            spec = OperatorSpec(
                name,
                OperatorKind.AGGREGATE,
                self.inputs,
                self.schema,
                gives,
                self.keys,
                state,
                body,
                location,
                ttl=lives,
            )
        return self.topology._add(spec)

    @property
    def errors(self) -> Stream:
        """The tuples on which the operator before failed, where it has on_error='divert'.

        Their fields are those that it takes, then `error` (what was raised) and `operator` (its name).

        Raises:
            GraphError: it diverts none.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("numbers")
        >>> texts = topology.source("texts", rel.rows([("1",), ("two",)], schema={"text": str}))
        >>> parsed = texts.map("parse", lambda t: int(t.text), schema=int, lane="python", on_error="divert")
        >>> parsed.sink("numbers", rel.list()), parsed.errors.sink("bad", rel.list())
        (<sink numbers>, <sink bad>)
        >>> [(t.text, t.error) for t in rel.run(topology)["bad"]]
        [('two', "ValueError: invalid literal for int() with base 10: 'two'")]
        """
        return self.side(ERRORS)

    def side(self, port: str) -> Stream:
        """Take a side output of the operator before, by the name of its port.

        Raises:
            GraphError: it has none of that name.
        """
        spec = self.topology.operators.get(operator_of(self.inputs[0]))
        further = spec.further_outputs if spec is not None else ()
        if spec is not None and port in getattr(spec.body, "side_sources", ()):
            beside = self.topology.operators[side_source(spec.name, port)]
            return Stream(self.topology, beside.streams, beside.output_schema or self.schema)
        found = next((one for one in further if one.name == port), None)
        if found is None or len(self.inputs) > 1:
            has = ", ".join(one.name for one in further)
            way_out = "Declare it with on_error='divert'" if port == ERRORS else "Declare it with sides={port: schema}"
            raise GraphError(
                f"it has no side output {port!r}",
                operator=self._upstream,
                location=caller_location(),
                way_out=f"It has {has}" if has else way_out,
            )
        return Stream(self.topology, (stream_name(operator_of(self.inputs[0]), port),), found.schema)

    @property
    def _upstream(self) -> str:
        return ", ".join(self.inputs)

    def _operator(
        self,
        kind: OperatorKind,
        name: str,
        function: Callable[..., Any],
        state: Callable[[], Any] | None,
        schema: object,
        lane: object,
        keys: tuple[str, ...] = (),
        on_error: object = OnError.FAIL,
        sides: Mapping[str, object] = NO_SIDES,
        ttl: Seconds | None = None,
    ) -> Stream:
        location = caller_location()
        check_at(name, location)
        with declaring(name, location):
            check_new(name, self.topology.operators)
            if state is not None:
                check_state(state)
            check_function(function, kind, state)
            lives = time_to_live(ttl, self, None if state is not None else "state=")
            output = None if schema is None else Schema.of(schema)
            policy = on_error_of(on_error)
            further = side_ports(sides)
            ports = tuple(port.name for port in further)
            request = FunctionRequest(
                name, kind, function, self.schema, output, keys, state, lane_of(lane), location, ports
            )
            compiled = self.topology.compiler.compile(request)
            gives = self.schema if kind is OperatorKind.FILTER else compiled.output_schema
            state_kind = StateKind.STATELESS if state is None else StateKind.PARTITIONED
            if policy is OnError.DIVERT:
                further += (dead_letters(self.schema),)
            spec = OperatorSpec(
                name, kind, self.inputs, self.schema, gives, keys, state_kind, compiled, location,
                further_outputs=further, on_error=policy, ttl=lives,
            )  # fmt: skip
        return self.topology._add(spec)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._upstream}: {self.schema}>"


class SunkStream:
    """What a sink gives back: nothing can come after it, and trying to says so."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> NoReturn:
        from rayelastic.graph.keyed_stream import KeyedStream

        if hasattr(KeyedStream, attribute) and not attribute.startswith("_"):
            raise GraphError(
                f"a sink has no output, so .{attribute}(...) can't follow it",
                operator=self.name,
                location=caller_location(),
                way_out="Call both on the stream before: it may have several consumers",
            )
        raise AttributeError(attribute)

    def __repr__(self) -> str:
        return f"<sink {self.name}>"


def check_at(name: object, location: str) -> None:
    """Check a new operator's name; the error tells where."""
    try:
        check_name(name)
    except GraphError as error:
        error.location = location
        raise


@contextmanager
def declaring(operator: str, location: str) -> Iterator[None]:
    """Let an error that rises inside tell the operator and the line."""
    try:
        yield
    except DeclarationError as error:
        error.at(operator, location)
        raise


def _sink_description(sink: Any, operator: str) -> SinkDescription:
    if isinstance(sink, AggregateSpec) and sink == AggregateSpec(AggregateFunction.COUNT):
        return CountSink()
    if hasattr(sink, "as_sink"):
        made: SinkDescription = sink.as_sink(operator)
        return made
    if not hasattr(sink, "check") or hasattr(sink, "schema"):
        raise GraphError(
            f"{shown(sink)} is no sink",
            way_out="Use rel.parquet(path), rel.csv(path), rel.call(fn), rel.list(), rel.count(), rel.arrow()",
        )
    described: SinkDescription = sink
    return described
