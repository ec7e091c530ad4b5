"""Streams: what users call methods on to declare operators. They only write into their topology.

Operators take their name first, because it keys metrics, state and plans; `key_by` and `union` have none, because they
only say how the next operator reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

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
from rayelastic.graph.declaration import LaneChoice, check_function, check_name, check_new, check_state, lane_of
from rayelastic.graph.location import caller_location
from rayelastic.graph.operator_spec import FunctionRequest, OperatorKind, OperatorSpec, SinkDescription, StateKind
from rayelastic.graph.schema import Schema
from rayelastic.graph.shown import shown
from rayelastic.graph.sinks import CountSink

if TYPE_CHECKING:
    from rayelastic.graph.topology import Topology

__all__ = ["KeyedStream", "Stream", "SunkStream"]


class Stream:
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

    def map(self, name: str, fn: Callable[..., Any], *, schema: object = None, lane: LaneChoice = "auto") -> Stream:
        """Give one tuple for each.

        Args:
            name: of the operator.
            fn: of one tuple; returns a tuple of the new schema, or a plain value for records of one field `value`.
            schema: of what it gives, see Schema.of; found out by default.
            lane: 'auto', 'compiled', 'vectorised' or 'python'.

        Raises:
            GraphError: the name is taken or bad, or fn is no function of one tuple.
            LaneError: the lane can't be had.
            SchemaError: what fn gives isn't known or can't be held by a record.
        """
        return self._operator(OperatorKind.MAP, name, fn, None, schema, lane)

    def filter(self, name: str, fn: Callable[..., Any], *, lane: LaneChoice = "auto") -> Stream:
        """Keep the tuples for which fn is true. Arguments and errors as for ``map``."""
        return self._operator(OperatorKind.FILTER, name, fn, None, None, lane)

    def flat_map(
        self, name: str, fn: Callable[..., Any], *, schema: object = None, lane: LaneChoice = "auto"
    ) -> Stream:
        """Give any number of tuples for each: fn yields them. Arguments and errors as for ``map``."""
        return self._operator(OperatorKind.FLAT_MAP, name, fn, None, schema, lane)

    def key_by(self, *fields: str) -> KeyedStream:
        """Say by which fields the next operator keeps its state.

        Raises:
            GraphError: no field, or one that the schema doesn't have.
        """
        with _declaring(self._upstream, caller_location()):
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
        with _declaring(self._upstream, caller_location()):
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

    def apply(self, name: str, operator: Any, **others: Stream) -> Any:
        """Give the tuples to an operator of a class that @rel.operator made.

        Args:
            name: of the operator.
            operator: an instance of the class; it is copied.
            others: input port = stream, for all but the first port, which takes this stream.

        Returns:
            As Topology.apply, which also says what can be wrong.
        """
        from rayelastic.graph.composition import apply
        from rayelastic.graph.operator_class import definition_of

        location = caller_location()
        check_at(name, location)
        with _declaring(name, location):
            first = next(iter(definition_of(operator).inputs))
            if first in others:
                raise GraphError(
                    f"its input port '{first}' gets two streams", way_out="Unite them first: a.union(b).apply(...)"
                )
        return apply(self.topology, name, operator, {first: self, **others})

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
        with _declaring(name, location):
            check_new(name, self.topology.operators)
            body = _sink_description(sink, name)
            body.check(name)
            spec = OperatorSpec(
                name, OperatorKind.SINK, self.inputs, self.schema, None, (), StateKind.STATEFUL, body, location
            )
        self.topology._add(spec)
        return SunkStream(name)

    def aggregate(self, name: str, /, emit: str | Emit = Emit.FINAL, **aggregates: AggregateSpec | TopK) -> Stream:
        """Aggregate the tuples of each key, natively; all tuples together where there is no key_by before.

        Args:
            name: of the operator.
            emit: 'final': one tuple per key when the input has ended; 'update': the key's new values after each tuple.
            aggregates: output field = rel.count(), or rel.sum, mean, weighted_mean, min, max, first, last, stddev,
                distinct, quantile or top_k of a field.

        Returns:
            A stream of the key fields and then the aggregates.

        Raises:
            GraphError: no aggregate, or one named like a key field.
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
        with _declaring(name, location):
            check_new(name, self.topology.operators)
            try:
                when = Emit(emit)
            except ValueError:
                raise GraphError(f"emit={emit!r}", way_out="Choose 'final' or 'update'") from None
            wanted = expanded(aggregates)
            gives = aggregated_schema(name, self.schema, self.keys, wanted)
            body = Aggregation(tuple(wanted.items()), when)
            state = StateKind.PARTITIONED if self.keys else StateKind.STATEFUL
            spec = OperatorSpec(
                name, OperatorKind.AGGREGATE, self.inputs, self.schema, gives, self.keys, state, body, location
            )
        return self.topology._add(spec)

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
    ) -> Stream:
        location = caller_location()
        check_at(name, location)
        with _declaring(name, location):
            check_new(name, self.topology.operators)
            if state is not None:
                check_state(state)
            check_function(function, kind, state)
            output = None if schema is None else Schema.of(schema)
            request = FunctionRequest(name, kind, function, self.schema, output, keys, state, lane_of(lane), location)
            compiled = self.topology.compiler.compile(request)
            gives = self.schema if kind is OperatorKind.FILTER else compiled.output_schema
            state_kind = StateKind.STATELESS if state is None else StateKind.PARTITIONED
            spec = OperatorSpec(name, kind, self.inputs, self.schema, gives, keys, state_kind, compiled, location)
        return self.topology._add(spec)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._upstream}: {self.schema}>"


class KeyedStream(Stream):
    """A stream with the fields by which the next operator keeps its state.

    Attributes:
        keys: names of the key fields.
    """

    __slots__ = ("keys",)

    def __init__(self, topology: Topology, inputs: tuple[str, ...], schema: Schema, keys: tuple[str, ...]) -> None:
        super().__init__(topology, inputs, schema)
        self.keys = keys

    def map(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        state: Callable[[], Any] | None = None,
        schema: object = None,
        lane: LaneChoice = "auto",
    ) -> Stream:
        """Give one tuple for each; with state= by a function of the tuple and the state of its key.

        Args:
            name: of the operator.
            fn: `fn(t)`, or `fn(t, s)` with state=.
            state: NamedTuple class with defaults, whose fields fn sets (fixed layout, can be compiled), or any callable
                without arguments that makes a key's first state (python lane).
            schema: of what it gives, see Schema.of; found out by default.
            lane: 'auto', 'compiled', 'vectorised' or 'python'.
        """
        return self._operator(OperatorKind.MAP, name, fn, state, schema, lane, self._keys_of(state))

    def filter(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        state: Callable[[], Any] | None = None,
        lane: LaneChoice = "auto",
    ) -> Stream:
        """Keep the tuples for which fn is true. Arguments as for ``map``."""
        return self._operator(OperatorKind.FILTER, name, fn, state, None, lane, self._keys_of(state))

    def flat_map(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        state: Callable[[], Any] | None = None,
        schema: object = None,
        lane: LaneChoice = "auto",
    ) -> Stream:
        """Give any number of tuples for each: fn yields them. Arguments as for ``map``."""
        return self._operator(OperatorKind.FLAT_MAP, name, fn, state, schema, lane, self._keys_of(state))

    def _keys_of(self, state: object) -> tuple[str, ...]:
        """Drop the keys where there is no state: such a function doesn't depend on them."""
        return () if state is None else self.keys


class SunkStream:
    """What a sink gives back: nothing can come after it, and trying to says so."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> NoReturn:
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
def _declaring(operator: str, location: str) -> Iterator[None]:
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
