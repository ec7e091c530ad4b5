"""The graph that a plant runs: operators with costs, and the streams between them.

Only what costs time is known: no schemas, keys or functions. `topologies.shapes` has the four of Middleware'19 Fig. 8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rayelastic.topologies import shapes

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlantOperator:
    """What one operator costs.

    Args:
        name: unique in its graph.
        cost: ns of work per tuple, without calls, queues and copies.
        selectivity: tuples out per tuple in.
        payload: bytes of a tuple that it emits which a hop copies under deep copies, and passes by reference otherwise.
        record: bytes of a tuple that it emits which every hop copies.
        source: whether a thread of its own makes tuples here (operator thread, P08).
        weight: share of a source in the tuples of all sources, in any unit.
        needs_token: whether it runs under the Python token.
        locked: whether its own state has a lock that its callers take, as the counting sink of the papers.
    """

    name: str
    cost: float = 0.0
    selectivity: float = 1.0
    payload: int = 0
    record: int = 0
    source: bool = False
    weight: float = 1.0
    needs_token: bool = False
    locked: bool = False


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream between two operators, by number; `share` of the tuples that `tail` emits go to `head`."""

    tail: int
    head: int
    share: float = 1.0


@dataclass(frozen=True)
class PlantGraph:
    """Operators in topological order, sources among the first, and streams between them.

    Raises:
        ValueError: no source, a stream against the order, or an operator that nothing feeds.

    >>> graph = pipeline([10.0, 20.0])
    >>> [operator.name for operator in graph.operators]
    ['source', 'op0', 'op1', 'sink']
    >>> graph.rates.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    operators: tuple[PlantOperator, ...]
    streams: tuple[Stream, ...]

    def __post_init__(self) -> None:
        if not any(operator.source for operator in self.operators):
            raise ValueError("a graph without a source. Mark one of its operators with source=True")
        fed = {stream.head for stream in self.streams}
        for number, operator in enumerate(self.operators):
            if operator.source == (number in fed):
                wrong = "a source is fed by a stream" if operator.source else "nothing feeds it"
                raise ValueError(f"operator {operator.name!r}: {wrong}. Give streams from operators before it")
        for stream in self.streams:
            if not 0 <= stream.tail < stream.head < len(self.operators):
                raise ValueError(f"{stream}: not in topological order. Number upstream operators first")

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """Numbers of the sources."""
        return tuple(number for number, operator in enumerate(self.operators) if operator.source)

    @cached_property
    def incoming(self) -> tuple[tuple[Stream, ...], ...]:
        """Streams into each operator."""
        return self._by("head")

    @cached_property
    def outgoing(self) -> tuple[tuple[Stream, ...], ...]:
        """Streams out of each operator."""
        return self._by("tail")

    @cached_property
    def costs(self) -> Floats:
        """Costs of the operators, ns per tuple."""
        return np.array([operator.cost for operator in self.operators])

    @cached_property
    def rates(self) -> Floats:
        """Tuples that each operator takes (a source: makes) per tuple of all sources together."""
        rates = np.zeros(len(self.operators))
        total = sum(self.operators[number].weight for number in self.sources)
        for number, operator in enumerate(self.operators):
            if operator.source:
                rates[number] = operator.weight / total
            for stream in self.outgoing[number]:
                rates[stream.head] += rates[number] * operator.selectivity * stream.share
        return rates

    @cached_property
    def sinks(self) -> tuple[int, ...]:
        """Numbers of the operators that feed nothing."""
        return tuple(number for number, streams in enumerate(self.outgoing) if not streams)

    @property
    def upstream(self) -> dict[str, list[str]]:
        """The operators that feed each one that isn't a source, by name, as controllers are told."""
        names = [operator.name for operator in self.operators]
        return {names[at]: [names[one.tail] for one in into] for at, into in enumerate(self.incoming) if into}

    @property
    def widest(self) -> int:
        """Most streams into one operator; what a counting sink's lock is fought over by."""
        return max(len(streams) for streams in self.incoming)

    def with_costs(self, costs: Sequence[float]) -> PlantGraph:
        """Return the graph with other costs, ns per tuple, one for each operator."""
        operators = tuple(replace(o, cost=float(c)) for o, c in zip(self.operators, costs, strict=True))
        return PlantGraph(operators, self.streams)

    def flow(self, stream: Stream) -> float:
        """Return the tuples on a stream per tuple of all sources."""
        return float(self.rates[stream.tail]) * self.operators[stream.tail].selectivity * stream.share

    def _by(self, end: str) -> tuple[tuple[Stream, ...], ...]:
        found: list[list[Stream]] = [[] for _ in self.operators]
        for stream in self.streams:
            found[getattr(stream, end)].append(stream)
        return tuple(tuple(streams) for streams in found)


def pipeline(
    costs: Sequence[float], payload: int = 0, record: int = 0, source_cost: float = 0.0, sink_cost: float = 0.0
) -> PlantGraph:
    """Build source > op0 > ... > sink (Middleware'19 Fig. 8(a)); costs in ns per tuple, payload and record in bytes."""
    return shaped(shapes.pipeline(len(costs)), costs, payload, record, source_cost, sink_cost, locked=False)


def data_parallel(
    costs: Sequence[float], payload: int = 0, record: int = 0, source_cost: float = 0.0, sink_cost: float = 0.0
) -> PlantGraph:
    """Build a source that deals tuples to one worker per cost, and a sink with a lock (Middleware'19 Fig. 8(b))."""
    return shaped(shapes.data_parallel(len(costs)), costs, payload, record, source_cost, sink_cost)


def mixed(
    paths: Sequence[Sequence[float]],
    payload: int = 0,
    record: int = 0,
    source_cost: float = 0.0,
    sink_cost: float = 0.0,
) -> PlantGraph:
    """Build a source that deals tuples to pipelines of equal length, which end in one sink (Middleware'19 Fig. 8(c)).

    >>> mixed([[1.0, 2.0], [3.0, 4.0]]).rates.tolist()
    [1.0, 0.5, 0.5, 0.5, 0.5, 1.0]
    """
    costs = [cost for path in paths for cost in path]
    return shaped(shapes.mixed(len(paths), len(paths[0])), costs, payload, record, source_cost, sink_cost)


def bushy(
    depth: int, cost: float, payload: int = 0, record: int = 0, source_cost: float = 0.0, sink_cost: float = 0.0
) -> PlantGraph:
    """Build a tree that doubles at each level and joins again, tuples dealt out (Middleware'19 Fig. 8(d)).

    >>> len(bushy(5, 1.0).operators)
    82
    """
    shape = shapes.bushy(depth)
    return shaped(shape, [cost] * (len(shape) - 1), payload, record, source_cost, sink_cost)


def shaped(
    shape: shapes.Shape,
    costs: Sequence[float],
    payload: int = 0,
    record: int = 0,
    source_cost: float = 0.0,
    sink_cost: float = 0.0,
    *,
    locked: bool = True,
) -> PlantGraph:
    """Build a graph of a shape, whose operators deal their tuples out.

    Args:
        shape: for each operator behind the source those that feed it; the last one is the sink.
        costs: of each operator between source and sink, ns per tuple.
        payload: bytes of a tuple which a hop copies under deep copies.
        record: bytes of a tuple which every hop copies.
        source_cost: ns per tuple.
        sink_cost: the same of the sink.
        locked: whether the sink has a lock.
    """
    takers = Counter(tail for tails in shape for tail in tails)
    operators = (
        PlantOperator("source", source_cost, payload=payload, record=record, source=True),
        *(PlantOperator(f"op{at}", float(cost), payload=payload, record=record) for at, cost in enumerate(costs)),
        PlantOperator("sink", sink_cost, locked=locked),
    )
    return PlantGraph(
        operators,
        tuple(Stream(tail, head, 1.0 / takers[tail]) for head, tails in enumerate(shape, start=1) for tail in tails),
    )
