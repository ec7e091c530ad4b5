"""A topology: the operators that a user declared, by name, and streams that come back. Knows no threads or plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, overload

from rayelastic.connectors.ends import source_operators
from rayelastic.connectors.memory.declaration import rows as rows_source
from rayelastic.connectors.typed import SourceOf
from rayelastic.errors import ErrorCode, GraphError
from rayelastic.fluent.declarations import Declarations, close_feedback, declare, open_feedback
from rayelastic.fluent.functions import ErrorChoice
from rayelastic.fluent.naming import named
from rayelastic.fluent.stream import Stream, apply
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import counted, shown
from rayelastic.graph.spec.declaration import NewOperator, declaring
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.ordering import OrderChoice

T = TypeVar("T")


class Feedback(Stream):
    """A stream that is consumed before it is produced: unite it or connect it to an operator's port, then close it.

    Attributes:
        name: The feedback's name, for messages.
        location: 'file.py:12' of its declaration.
        closed: Whether its input is connected.
    """

    __slots__ = ("closed", "location", "name")

    def __init__(self, topology: Declarations, name: str, schema: Schema, location: str) -> None:
        super().__init__(topology, (f"{name}/feedback",), schema)
        self.name = name
        self.location = location
        self.closed = False

    def close(self, stream: Stream) -> None:
        """Connect the stream that feeds it.

        Raises:
            GraphError: Another schema or topology, closed already, or no operator consumes it.
        """
        with declaring(self.name, caller_location()):
            self._check(stream)
        if not close_feedback(self.topology, self.name, self.inputs[0], stream.inputs):
            raise GraphError(
                "no operator reads this feedback",
                operator=self.name,
                location=caller_location(),
                hint="Unite it with the stream that enters the loop before closing it",
                code=ErrorCode.UNUSED_FEEDBACK,
            )
        self.closed = True

    def _check(self, stream: object) -> None:
        if self.closed:
            raise GraphError(
                "this feedback is closed already",
                hint="Unite the returning streams first",
                code=ErrorCode.CLOSED_FEEDBACK,
            )
        if not isinstance(stream, Stream) or isinstance(stream, Feedback):
            raise GraphError(
                f"{shown(stream)} isn't a stream that can return",
                hint="Pass the stream at the end of the loop",
                code=ErrorCode.NOT_A_STREAM,
            )
        if stream.topology is not self.topology:
            raise GraphError(
                "the returning stream is of another topology",
                hint=f"Declare it in '{self.topology.name}'",
                code=ErrorCode.OTHER_TOPOLOGY,
            )
        if not stream.schema.same_fields(self.schema):
            raise GraphError(
                f"the returning stream has {stream.schema} where {self.schema} is expected",
                hint="Map it to that schema",
                code=ErrorCode.SCHEMA_MISMATCH,
            )


class Topology(Declarations):
    """Streams and operators, with no degree of parallelism anywhere (J07).

    Args:
        name: The topology's name, and by default that of its jobs.
        compiler: Makes operator functions of Python functions.

    >>> from rayelastic.connectors import registry as connectors
    >>> topology = Topology("squares", compiler=None)  # no function in it, so nothing to compile
    >>> numbers = topology.source(connectors.sequence(10), name="numbers")
    >>> numbers.sink(connectors.list(), name="out")
    <sink out>
    >>> list(topology.operators)
    ['numbers', 'out']
    """

    @overload
    def source(self, source: SourceOf[T], *, name: str = "") -> Stream[T]: ...

    @overload
    def source(self, source: Any, *, name: str = "") -> Stream[Any]: ...

    @named
    def source(self, source: Any, *, name: str = "") -> Stream[Any]:
        """Declare a source of tuples.

        Args:
            source: Such as rel.text(paths), rel.csv(path), rel.parquet(path), rel.arrow(table), rel.rows(...).
            name: The operator's name; by default the source's, such as 'text'.

        Raises:
            GraphError: Not a source, or the name is taken or invalid.
            SourceError: It can't be read.
            SchemaError: It has a field that records can't hold.
        """
        operators = source_operators(name, source, self.operators)
        declare(self, *operators)
        schema = operators[-1].output_schema
        assert schema is not None
        return Stream(self, operators[-1].streams, schema)

    def from_collection(self, rows: Iterable[Any], schema: Any = None, *, name: str = "") -> Stream[Any]:
        """Declare rows that are at hand as a source: `.source(rel.rows(rows, schema))`, as Flink calls it.

        Args:
            rows: of rel.rows.
            schema: likewise.
            name: of the operator; by default 'rows'.

        >>> import rayelastic as rel
        >>> rel.Topology("numbers").from_collection([1, 2]).schema.names
        ('value',)
        """
        return self.source(rows_source(rows, schema), **({"name": name} if name else {}))

    @named
    def feedback(self, like: Stream[Any] | object, *, name: str = "") -> Feedback:
        """Make a feedback stream, to be consumed before it is produced.

        Consume it where the loop begins, by union or at its own input port. Then connect its input with its `close`.
        Tuples that enter the loop wait while it is full; it ends when no tuple is left in it.

        Args:
            like: A stream of the same schema, or a schema (see Schema.of).
            name: The feedback's name.

        Raises:
            GraphError: The name is taken or invalid.
            SchemaError: The schema can't be laid out.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("halves")
        >>> numbers = topology.source(rel.rows([(8,), (5,)], schema={"n": int}), name="numbers")
        >>> again = topology.feedback(name="again", like=numbers)
        >>> parts = numbers.union(again).split(name="one", more=lambda t: t.n > 1)
        >>> again.close(parts.more.map(lambda t: (t.n // 2,), name="half", schema={"n": int}))
        >>> parts.rest.sink(rel.list(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        [Record(n=1), Record(n=1)]
        """
        with NewOperator(name, self.operators) as location:
            schema = like.schema if isinstance(like, Stream) else Schema.of(like)
            open_feedback(self, name, location)
        return Feedback(self, name, schema, location)

    @named
    def apply(
        self,
        operator: Any,
        *,
        name: str = "",
        on_error: ErrorChoice = "fail",
        ordered: OrderChoice = None,
        **streams: Stream,
    ) -> Any:
        """Declare an operator of a class that is decorated with @rel.operator.

        Args:
            operator: An instance of the class; it is copied.
            name: The operator's name; its class's by default.
            on_error: As for Stream.map, when `invoke` raises for a tuple.
            ordered: As for Stream.map, of an operator without state and with one input port.
            streams: input port = stream; partitioned stateful operators require a key_by on each.

        Returns:
            Its stream, or its streams by output port. An operator without outputs returns an object that nothing can
            follow.

        Raises:
            GraphError: Ports, streams or keys don't fit.
            SchemaError: A stream lacks a field that the operator requires.
            LaneError: The execution mode is unsupported.

        >>> import rayelastic as rel
        >>> @rel.operator(inputs={"n": rel.exactly(2)}, outputs={"out": {"sum": int}})
        ... class Pairs:
        ...     def invoke(self, pair):
        ...         yield (pair[0].value + pair[1].value,)
        >>> topology = rel.Topology("pairs")
        >>> topology.apply(Pairs(), n=topology.source(rel.sequence(4), name="numbers")).sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [(1,), (5,)]
        """
        return apply(self, name, operator, streams, on_error, ordered)

    def __repr__(self) -> str:
        return f"<Topology {self.name}: {counted(len(self.operators), 'operator')}>"
