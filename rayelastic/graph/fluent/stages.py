"""Methods of every stream that deal tuples out: to streams of their own, or to the channels of a stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rayelastic.errors import GraphError
from rayelastic.graph.fluent.base import StreamBase, StreamT
from rayelastic.graph.fluent.declarations import declare, drafted
from rayelastic.graph.fluent.naming import named
from rayelastic.graph.fluent.streams import Streams
from rayelastic.graph.operators.channels import Section, elastic, elastic_split, parallel
from rayelastic.graph.operators.splits import split
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.declaration import LaneChoice, binds
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["StageMethods"]


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
        """Run operators in a fixed number of channels, for those who want it fixed.

        Args:
            width: how many channels.
            body: from the stream of a channel to the stream that leaves it; it is called once, each channel has a copy.
            name: of the stage: of the operator that deals tuples out; the operators of channel 0 are called 'NAME.0.x'.
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
        """Run operators in as many channels, with a thread each, as make the stage take the most tuples a second.

        Args:
            body: from the stream of a channel to the stream that leaves it; it is called once, each channel has a copy.
                Its operators are stateless.
            name: of the stage: of the operator that deals tuples out; the operators of channel 0 are called 'NAME.0.x'.
            most: the most channels.
            start: channels at the start.
            order: whether what leaves the stage is in the order of what made it; the body is then a single chain.

        Raises:
            GraphError: as for ``parallel``; or an operator of the body keeps state.

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
        """Give each tuple to one of several streams, as many of them as it takes to have none congested.

        What takes a stream has a thread and a queue of its own. A tuple goes to the next stream whose queue has room.

        Args:
            ways: how many streams: `[0]`, `[1]`, .. of the result.
            name: of the operator; by default 'elastic_split'.
            start: streams that get tuples at the start.

        Raises:
            GraphError: the name is taken or bad, or no such numbers.

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
        ways: int | None = None,
        *,
        name: str = "",
        by: Callable[..., Any] | None = None,
        lane: LaneChoice = "auto",
        **predicates: Callable[..., Any],
    ) -> Streams[StreamT]:
        """Give each tuple to one of several streams; each keeps their order.

        Args:
            ways: how many streams: `[0]`, `[1]`, .. of the result. By the hash of the key behind key_by, else in turn.
            name: of the operator; by default 'split'.
            by: with `ways`, a function from a tuple to the number of its stream.
            lane: of the function or the predicates: 'auto', 'compiled' or 'python'.
            predicates: stream = predicate: a tuple goes to the first stream whose predicate holds, or to the stream
                `rest`, which need not be taken.

        Raises:
            GraphError: no streams, or bad names or functions.
            LaneError: the lane can't be had.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("parity")
        >>> parts = topology.source(rel.sequence(7), name="n").split(name="parts", small=lambda t: t.value < 3)
        >>> parts.small.sink(rel.count(), name="small"), parts.rest.sink(rel.count(), name="large")
        (<sink small>, <sink large>)
        >>> result = rel.run(topology)
        >>> result["small"], result["large"]
        (3, 4)
        """
        return self._declare_several(split(self._upstream, name, ways, by, lane, predicates))

    def _drafted(self, body: Callable[[StreamT], StreamT]) -> Callable[[Upstream], Section]:
        """Give what declares a body in a draft of the topology, behind the stream of a channel."""

        def section(up: Upstream) -> Section:
            _check_body(body)
            draft = drafted(self.topology, up.operators)
            made: object = body(self._at(draft, up.inputs, up.schema, up.keys))
            if not isinstance(made, StreamBase) or made.topology is not draft:
                raise GraphError(
                    f"the body of the stage gave {shown(made)}",
                    hint="Return the stream that its last operator gives",
                )
            inside = tuple(one for one in draft.operators.values() if one.name not in up.operators)
            return Section(inside, made.inputs, made.schema)

        return section

    def _declare_stage(self, stage: Section) -> StreamT:
        declare(self.topology, *stage.operators)
        return self._at(self.topology, stage.inputs, stage.schema)


def _check_body(body: object) -> None:
    if not callable(body) or not binds(body, (None,)):
        raise GraphError(
            f"the body of a stage is a function from a stream to a stream, not {shown(body)}",
            hint="Write lambda s: s.map(function)",
        )
