"""What streams can do beyond the core operators: stages of channels, and operators that are made of others.

Each is in a file of its own; these are their names, as methods of `Stream` and `KeyedStream`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from rayelastic.graph.aggregates import Emit
    from rayelastic.graph.composition import Streams
    from rayelastic.graph.event_time import Seconds
    from rayelastic.graph.keyed_stream import KeyedStream
    from rayelastic.graph.stream import Stream

__all__ = ["KeyedLibraryOperators", "LibraryOperators"]


class LibraryOperators:
    """Methods of every stream."""

    __slots__ = ()

    @property
    def _itself(self) -> Stream:
        return cast("Stream", self)

    def parallel(
        self,
        name: str,
        width: int,
        body: Callable[[Stream], Stream],
        *,
        by: str | Sequence[str] | None = None,
        order: bool = False,
    ) -> Stream:
        """Run operators in a fixed number of channels, for those who want it fixed.

        Args:
            name: of the stage: of the operator that deals tuples out; the operators of channel 0 are called 'NAME.0.x'.
            width: how many channels.
            body: from the stream of a channel to the stream that leaves it; it is called once, each channel has a copy.
            by: fields by whose hash tuples go to channels; those of key_by before by default. Operators with state of
                keys need them, and operators in front of these leave the fields as they are. None: in turn, to the next
                channel that has room. Other state than that of keys is each channel's own.
            order: whether what leaves the stage is in the order of what made it; the body is then a single chain.

        Raises:
            GraphError: the name is taken or bad, no such fields; the body gives no stream, or has sources, sinks, or
                state of other keys.

        Source: the data parallelism of Middleware'19 section 2 (`@parallel(width, partitionBy)`).

        >>> import rayelastic as rel
        >>> topology = rel.Topology("squares")
        >>> numbers = topology.source("numbers", rel.sequence(5))
        >>> squares = numbers.parallel("work", 3, lambda s: s.map("square", lambda t: t.value ** 2), order=True)
        >>> squares.sink("out", rel.list())
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [0, 1, 4, 9, 16]
        """
        from rayelastic.graph.channels import parallel

        return parallel(self._itself, name, width, body, by, order)

    def elastic(
        self, name: str, body: Callable[[Stream], Stream], *, most: int = 8, start: int = 1, order: bool = False
    ) -> Stream:
        """Run operators in as many channels, with a thread each, as make the stage take the most tuples a second.

        Args:
            name: of the stage: of the operator that deals tuples out; the operators of channel 0 are called 'NAME.0.x'.
            body: from the stream of a channel to the stream that leaves it; it is called once, each channel has a copy.
                Its operators are stateless.
            most: the most channels.
            start: channels at the start.
            order: whether what leaves the stage is in the order of what made it; the body is then a single chain.

        Raises:
            GraphError: as for ``parallel``; or an operator of the body keeps state.

        Source: the elastic operator of IPDPS'09; JobConfig(elasticity='off') leaves it at `start`.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("squares")
        >>> numbers = topology.source("numbers", rel.sequence(5))
        >>> squares = numbers.elastic("work", lambda s: s.map("square", lambda t: t.value ** 2), most=4, order=True)
        >>> squares.sink("out", rel.list())
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [0, 1, 4, 9, 16]
        """
        from rayelastic.graph.channels import elastic

        return elastic(self._itself, name, body, most, start, order)

    def elastic_split(self, name: str, ways: int, *, start: int = 1) -> Streams:
        """Give each tuple to one of several streams, as many of them as it takes to have none congested.

        What takes a stream has a thread and a queue of its own. A tuple goes to the next stream whose queue has room.

        Args:
            name: of the operator.
            ways: how many streams: `[0]`, `[1]`, .. of the result.
            start: streams that get tuples at the start.

        Raises:
            GraphError: the name is taken or bad, or no such numbers.

        Source: the ElasticLoadBalance operator; JobConfig(elasticity='off') leaves it at `start`.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("balanced")
        >>> parts = topology.source("numbers", rel.sequence(5)).elastic_split("parts", 2)
        >>> parts[0].union(parts[1]).sink("out", rel.count())
        <sink out>
        >>> rel.run(topology)["out"]
        5
        """
        from rayelastic.graph.channels import elastic_split

        return elastic_split(self._itself, name, ways, start)

    def throttle(self, name: str, *, per_second: float) -> Stream:
        """Pass tuples on no faster than so many a second, evenly; what comes faster waits, and holds its source back.

        Args:
            name: of the operator.
            per_second: tuples.

        Raises:
            GraphError: the name is taken or bad, or no such rate.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("slow")
        >>> topology.source("n", rel.sequence(100)).throttle("slow", per_second=1e4).sink("out", rel.count())
        <sink out>
        >>> rel.run(topology)["out"]
        100
        """
        from rayelastic.graph.pacing import throttle

        return throttle(self._itself, name, per_second)

    def delay(self, name: str, seconds: Seconds, *, most: int = 100_000) -> Stream:
        """Pass tuples on so many seconds after they came, by the clock, in order.

        Args:
            name: of the operator.
            seconds: or a timedelta.
            most: tuples that wait in memory; when there are more the source is held back.

        Raises:
            GraphError: the name is taken or bad, or no such time or number.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("later")
        >>> topology.source("n", rel.sequence(100)).delay("later", 0.01).sink("out", rel.count())
        <sink out>
        >>> rel.run(topology)["out"]
        100
        """
        from rayelastic.graph.pacing import delay

        return delay(self._itself, name, seconds, most)

    def switch(
        self,
        name: str,
        control: Stream,
        on: Callable[[Any], Any],
        *,
        start: bool = True,
        off: Literal["wait", "drop"] = "wait",
    ) -> Stream:
        """Let tuples pass while a switch is on, that another stream turns on and off.

        What waits is kept in memory, goes out in order when the switch is turned on, and at the end in any case.

        Args:
            name: of the operator.
            control: the other stream.
            on: of a tuple of that: whether the switch is on from now on.
            start: whether it is on at first.
            off: what happens to tuples meanwhile: 'wait' or 'drop'.

        Raises:
            GraphError: the name is taken or bad, no such stream, function or choice.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("switched")
        >>> turns = topology.source("turns", rel.rows([(False,)], schema={"on": bool}))
        >>> numbers = topology.source("numbers", rel.sequence(3))
        >>> numbers.switch("switch", turns, lambda t: t.on).sink("out", rel.list())
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [0, 1, 2]
        """
        from rayelastic.graph.gates import switch

        return switch(self._itself, name, control, on, start, off)

    def gate(self, name: str, control: Stream, *, most: int = 1, passes: Callable[[Any], int] | None = None) -> Stream:
        """Let tuples pass as others are done with: no more than `most` that another stream hasn't acknowledged.

        What waits is kept in memory, and goes out at the end in any case.

        Args:
            name: of the operator.
            control: acknowledges: each of its tuples lets one more pass.
            most: tuples that pass before the first acknowledgement.
            passes: of a tuple of `control`: instead, how many it lets pass.

        Raises:
            GraphError: the name is taken or bad, no such stream, function or number.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("gated")
        >>> done = topology.source("done", rel.sequence(2))
        >>> numbers = topology.source("numbers", rel.sequence(5))
        >>> numbers.gate("gate", done, most=2).sink("out", rel.list())
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [0, 1, 2, 3, 4]
        """
        from rayelastic.graph.gates import gate

        return gate(self._itself, name, control, most, passes)


class KeyedLibraryOperators:
    """Methods of streams with keys."""

    __slots__ = ()

    @property
    def _keyed(self) -> KeyedStream:
        return cast("KeyedStream", self)

    def scan(
        self, name: str, fn: Callable[[Any, Any], Any], start: Any, *, schema: object = None, ttl: Seconds | None = None
    ) -> Stream:
        """Give after each tuple what has come together of its key: `accumulated = fn(accumulated, t)`.

        In the python lane; ``map`` with state= does the same compiled, with a state that fn changes.

        Args:
            name: of the operator.
            fn: of what came together and the next tuple.
            start: the first `accumulated` of each key: a plain value, or a NamedTuple; copied.
            schema: of what fn gives, see Schema.of; that of `start` by default.
            ttl: as of ``map``: a key without tuples for so many seconds begins with `start` again.

        Returns:
            A stream of the key fields, then those of what came together; a plain value is called `value`.

        Raises:
            GraphError: the name is taken or bad, fn is no such function, or a field is called like a key.
            SchemaError: a record can't hold it.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("balances")
        >>> paid = topology.source("paid", rel.rows([("a", 2), ("b", 5), ("a", -1)], {"who": str, "sum": int}))
        >>> paid.key_by("who").scan("balance", lambda total, t: total + t.sum, 0).sink("out", rel.list())
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('a', 2), ('b', 5), ('a', 1)]
        """
        from rayelastic.graph.folds import scan

        return scan(self._keyed, name, fn, start, schema, ttl)

    def fold(self, name: str, fn: Callable[[Any, Any], Any], start: Any, *, schema: object = None) -> Stream:
        """Give what has come together of each key when the input has ended; arguments and errors as for ``scan``.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("longest")
        >>> words = topology.source("words", rel.rows([("a", "x"), ("a", "yy"), ("b", "z")], {"k": str, "word": str}))
        >>> words.key_by("k").fold("longest", lambda most, t: max(most, len(t.word)), 0).sink("out", rel.list())
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('a', 2), ('b', 1)]
        """
        from rayelastic.graph.folds import fold

        return fold(self._keyed, name, fn, start, schema)

    def reduce(
        self, name: str, fn: Callable[[Any, Any], Any], *, emit: str | Emit = "final", ttl: Seconds | None = None
    ) -> Stream:
        """Make one tuple of all of a key: `reduced = fn(reduced, t)`, the first one being its first tuple.

        Args:
            name: of the operator.
            fn: of two tuples; gives one of the same schema.
            emit: 'final': one tuple per key when the input has ended; 'update': what it is after each tuple.
            ttl: with emit='update', as of ``map``.

        Returns:
            A stream of the key fields, then the others; they come from the key's tuples as fn says.

        Raises:
            GraphError: the name is taken or bad, fn is no such function, there are no fields but keys, or ttl= with
                emit='final'.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("best")
        >>> rows = rel.rows([("a", 7, "x"), ("a", 5, "y")], {"k": str, "n": int, "of": str})
        >>> offers = topology.source("offers", rows)
        >>> offers.key_by("k").reduce("best", lambda best, t: t if t.n < best.n else best).sink("out", rel.list())
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('a', 5, 'y')]
        """
        from rayelastic.graph.folds import reduce

        return reduce(self._keyed, name, fn, emit, ttl)

    def enrich(
        self, name: str, table: Mapping[Any, Any], *, how: Literal["inner", "left"] = "inner", schema: object = None
    ) -> Stream:
        """Add to each tuple what a table has for its key.

        The table is shipped with the operator; for what changes, join a stream.

        Args:
            name: of the operator.
            table: {key: row}; a key is a tuple where there are several key fields; a row is a tuple, or a plain value.
            how: 'left': also give tuples whose key isn't in the table, with None.
            schema: of the rows, see Schema.of; that of the first row by default, where it is a NamedTuple or plain.

        Returns:
            A stream of the fields of this one, then those of the rows, called `NAME_table` where this one has the name.

        Raises:
            GraphError: the name is taken or bad, no table, or nobody knows the schema of its rows.
            SchemaError: a record can't hold the rows.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("named")
        >>> trades = topology.source("trades", rel.rows([("A", 9), ("B", 7)], schema={"symbol": str, "price": int}))
        >>> trades.key_by("symbol").enrich("named", {"A": "Acme"}, how="left").sink("out", rel.list())
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('A', 9, 'Acme'), ('B', 7, None)]
        """
        from rayelastic.graph.enrichment import enrich

        return enrich(self._keyed, name, table, how, schema)
