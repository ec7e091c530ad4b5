"""Methods of every stream that distribute tuples: over several streams, or over the channels of a stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.fluent.base import StreamBase, StreamT
from rayelastic.fluent.declarations import declare, drafted
from rayelastic.fluent.naming import named
from rayelastic.fluent.streams import Streams
from rayelastic.graph.operators.channels import Section, elastic, elastic_split, parallel
from rayelastic.graph.operators.splits import split
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.declaration import LaneChoice, binds
from rayelastic.graph.spec.upstream import Upstream


class StageMethods(StreamBase[StreamT]):
    """Splits, and stages of channels."""

    __slots__ = ()

    @named
    def parallel(
        self,
        width: int,
        body: Callable[[StreamT], StreamT],
        *,
        name: str = "",
        by: str | Sequence[str] | None = None,
        order: bool = False,
    ) -> StreamT:
        """Run operators in a fixed number of channels, if you want it fixed.

        Args:
            width: The number of channels.
            body: A function from the stream of a channel to its output stream; it is called once, each channel has a
                copy.
            name: The name of the stage and of its splitter; the operators of channel 0 are named 'NAME.0.x'.
            by: Fields whose hash assigns tuples to channels; by default the keys of a key_by before. Operators with
                keyed state need them, and operators upstream of these don't change the fields. None: round-robin, to
                the next channel that has room. State that isn't keyed belongs to its channel.
            order: Whether the output is in the order of the input; the body is then a single chain.

        Raises:
            GraphError: The name is taken or invalid, or an unknown field. The body doesn't return a stream, or has
                sources, sinks, or state of other keys.

        Source: the data parallelism of Middleware'19 section 2 (`@parallel(width, partitionBy)`).

        >>> import rayelastic as rel
        >>> topology = rel.Topology("squares")
        >>> numbers = topology.source(rel.sequence(5), name="numbers")
        >>> squares = numbers.parallel(3, lambda s: s.map(lambda t: t.value ** 2), order=True)
        >>> squares.sink(rel.list(), name="out")
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [0, 1, 4, 9, 16]
        """
        return self._declare_stage(parallel(self._upstream, name, width, self._drafted(body), by, order))

    @named
    def elastic(
        self, body: Callable[[StreamT], StreamT], *, name: str = "", most: int = 8, start: int = 1, order: bool = False
    ) -> StreamT:
        """Run operators in an elastic number of channels, each with a thread: the number with the highest throughput.

        Args:
            body: A function from the stream of a channel to its output stream; it is called once, each channel has a
                copy. Its operators are stateless.
            name: The name of the stage and of its splitter; the operators of channel 0 are named 'NAME.0.x'.
            most: The highest number of channels.
            start: The number of channels at the start.
            order: Whether the output is in the order of the input; the body is then a single chain.

        Raises:
            GraphError: As for ``parallel``, or an operator of the body keeps state.

        Source: the elastic operator of IPDPS'09; JobConfig(elasticity='off') leaves it at `start`.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("squares")
        >>> numbers = topology.source(rel.sequence(5), name="numbers")
        >>> squares = numbers.elastic(lambda s: s.map(lambda t: t.value ** 2), most=4, order=True)
        >>> squares.sink(rel.list(), name="out")
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [0, 1, 4, 9, 16]
        """
        return self._declare_stage(elastic(self._upstream, name, self._drafted(body), most, start, order))

    @named
    def elastic_split(self, ways: int, *, name: str = "", start: int = 1) -> Streams[StreamT]:
        """Send each tuple to one of several streams, using as many of them as avoid congestion.

        Each stream's consumer has its own thread and queue. A tuple goes to the next stream whose queue has room.

        Args:
            ways: The number of streams: `[0]`, `[1]`, .. of the result.
            name: The operator's name; 'elastic_split' by default.
            start: The number of streams in use at the start.

        Raises:
            GraphError: The name is taken or invalid, or an invalid number.

        Source: the ElasticLoadBalance operator; JobConfig(elasticity='off') leaves it at `start`.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("balanced")
        >>> parts = topology.source(rel.sequence(5), name="numbers").elastic_split(2, name="parts")
        >>> parts[0].union(parts[1]).sink(rel.count(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        5
        """
        return self._declare_several(elastic_split(self._upstream, name, ways, start))

    @named
    def split(
        self,
        ways: int | Callable[..., Any] | None = None,
        *,
        name: str = "",
        by: Callable[..., Any] | None = None,
        lane: LaneChoice = "auto",
        **predicates: Callable[..., Any],
    ) -> Streams[StreamT]:
        """Send each tuple to one of several streams; each stream is in order.

        Args:
            ways: The number of streams: `[0]`, `[1]`, .. of the result. By the hash of the key after key_by, otherwise
                round-robin. Or a predicate: as of ``branch``.
            name: The operator's name; 'split' by default.
            by: With `ways`, a function from a tuple to the number of its stream.
            lane: The execution mode of the function or the predicates: 'auto', 'compiled' or 'python'.
            predicates: stream = predicate: a tuple goes to the first stream whose predicate holds, otherwise to the
                stream `rest`, which needs no consumer.

        Raises:
            GraphError: No streams, or invalid names or functions.
            LaneError: The execution mode is unsupported.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("parity")
        >>> parts = topology.source(rel.sequence(7), name="n").split(name="parts", small=lambda t: t.value < 3)
        >>> parts.small.sink(rel.count(), name="small"), parts.rest.sink(rel.count(), name="large")
        (<sink small>, <sink large>)
        >>> result = rel.run(topology)
        >>> result["small"], result["large"]
        (3, 4)
        """
        if not callable(ways):
            return self._declare_several(split(self._upstream, name, ways, by, lane, predicates))
        parts = self._declare_several(split(self._upstream, name, None, by, lane, {"trues": ways, **predicates}))
        return Streams(name, {"trues": parts["trues"], "falses": parts["rest"]})

    def _drafted(self, body: Callable[[StreamT], StreamT]) -> Callable[[Upstream], Section]:
        """Return a function that declares a body in a draft of the topology, on the stream of a channel."""

        def section(up: Upstream) -> Section:
            _check_body(body)
            draft = drafted(self.topology, up.operators)
            leaving: object = body(self._at(draft, up.inputs, up.schema, up.keys))
            if not isinstance(leaving, StreamBase) or leaving.topology is not draft:
                raise GraphError(
                    f"the body of the stage returned {shown(leaving)}",
                    hint="Return the stream of its last operator",
                    code=ErrorCode.NOT_A_STREAM,
                )
            inside = tuple(spec for spec in draft.operators.values() if spec.name not in up.operators)
            return Section(inside, leaving.inputs, leaving.schema)

        return section

    def _declare_stage(self, stage: Section) -> StreamT:
        declare(self.topology, *stage.operators)
        return self._at(self.topology, stage.inputs, stage.schema)


def _check_body(body: object) -> None:
    if not callable(body) or not binds(body, (None,)):
        raise GraphError(
            f"the body of a stage is a function from a stream to a stream, not {shown(body)}",
            hint="Write lambda s: s.map(function)",
            code=ErrorCode.NOT_A_FUNCTION,
        )
