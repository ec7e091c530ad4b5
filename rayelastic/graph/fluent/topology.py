"""A topology: the operators that a user declared, by name. Knows no threads, plans or engines."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from rayelastic.graph.edges.ends import source_operators
from rayelastic.graph.edges.typed import SourceOf
from rayelastic.graph.fluent.declarations import Declarations, declare, open_feedback
from rayelastic.graph.fluent.feedback import Feedback
from rayelastic.graph.fluent.functions import ErrorChoice
from rayelastic.graph.fluent.naming import named
from rayelastic.graph.fluent.stream import Stream, apply
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import counted
from rayelastic.graph.spec.declaration import NewOperator

__all__ = ["Topology"]

T = TypeVar("T")


class Topology(Declarations):
    """Streams and operators, with no degree of parallelism anywhere (J07).

    Args:
        name: of the topology, and of its jobs by default.
        compiler: makes operator functions of Python functions.

    >>> from rayelastic.graph.edges import sinks, sources
    >>> topology = Topology("squares", compiler=None)  # no function in it, so nothing to compile
    >>> numbers = topology.source(sources.sequence(10), name="numbers")
    >>> numbers.sink(sinks.list(), name="out")
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
        """Declare where tuples come from.

        Args:
            source: such as rel.text(paths), rel.csv(path), rel.parquet(path), rel.arrow(table), rel.rows(...).
            name: of the operator; by default what made it, such as 'text'.

        Raises:
            GraphError: no source, or the name is taken or bad.
            SourceError: it can't be read.
            SchemaError: it has a field that records can't hold.
        """
        made = source_operators(name, source, self.operators)
        declare(self, *made)
        schema = made[-1].output_schema
        assert schema is not None
        return Stream(self, made[-1].streams, schema)

    @named
    def feedback(self, like: Stream[Any] | object, *, name: str = "") -> Feedback:
        """Make a stream that comes back from further down, to be taken before it is made.

        Take it where the loop begins, with union or as an input port of its own, then say what comes back with its
        `close`. What enters the loop waits while the loop is full; it ends when nothing goes round any more.

        Args:
            like: a stream of the same schema, or a schema (see Schema.of).
            name: of the feedback.

        Raises:
            GraphError: the name is taken or bad.
            SchemaError: the schema can't be laid out.

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
    def apply(self, operator: Any, *, name: str = "", on_error: ErrorChoice = "fail", **streams: Stream) -> Any:
        """Declare an operator of a class that @rel.operator made.

        Args:
            operator: an instance of the class; it is copied.
            name: of the operator; by default the name of its class.
            on_error: as of Stream.map, for what `invoke` raises for a tuple.
            streams: input port = stream; partitioned stateful operators want a key_by on each.

        Returns:
            Its stream; streams by output port if there are several; of one without output nothing can follow.

        Raises:
            GraphError: ports, streams or keys don't fit.
            SchemaError: a stream lacks a field that the operator wants.
            LaneError: the lane can't be had.
        """
        return apply(self, name, operator, streams, on_error)

    def __repr__(self) -> str:
        return f"<Topology {self.name}: {counted(len(self.operators), 'operator')}>"
