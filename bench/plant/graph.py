"""The graph that a plant runs: operators with costs, and the streams between them.

Only what costs time is known: no schemas, keys or functions. The four shapes of Middleware'19 Fig. 8 are built here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["PlantGraph", "PlantOperator", "Stream", "bushy", "data_parallel", "mixed", "pipeline"]

Floats = NDArray[np.float64]

BUSHY_DEPTH = 5
BUSHY_OPERATORS = 82  # Middleware'19 Fig. 12, with source and sink


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
    return mixed([costs], payload, record, source_cost, sink_cost, locked=False)


def data_parallel(
    costs: Sequence[float], payload: int = 0, record: int = 0, source_cost: float = 0.0, sink_cost: float = 0.0
) -> PlantGraph:
    """Build a source that deals tuples to one worker per cost, and a sink with a lock (Middleware'19 Fig. 8(b))."""
    return mixed([[cost] for cost in costs], payload, record, source_cost, sink_cost)


def mixed(
    paths: Sequence[Sequence[float]],
    payload: int = 0,
    record: int = 0,
    source_cost: float = 0.0,
    sink_cost: float = 0.0,
    *,
    locked: bool = True,
) -> PlantGraph:
    """Build a source that deals tuples to pipelines, which end in one sink (Middleware'19 Fig. 8(c)).

    >>> mixed([[1.0, 2.0], [3.0, 4.0]]).rates.tolist()
    [1.0, 0.5, 0.5, 0.5, 0.5, 1.0]
    """
    operators = [PlantOperator("source", source_cost, payload=payload, record=record, source=True)]
    streams = []
    ends = []
    for path in paths:
        previous, share = 0, 1.0 / len(paths)
        for cost in path:
            name = f"op{len(operators) - 1}"
            operators.append(PlantOperator(name, float(cost), payload=payload, record=record))
            streams.append(Stream(previous, len(operators) - 1, share))
            previous, share = len(operators) - 1, 1.0
        ends.append(previous)
    operators.append(PlantOperator("sink", sink_cost, locked=locked))
    streams += [Stream(end, len(operators) - 1) for end in ends]
    return PlantGraph(tuple(operators), tuple(streams))


def bushy(
    depth: int, cost: float, payload: int = 0, record: int = 0, source_cost: float = 0.0, sink_cost: float = 0.0
) -> PlantGraph:
    """Build a tree that doubles at each level and joins again, tuples dealt out (Middleware'19 Fig. 8(d)).

    At depth 5 there are 82 operators, as in the figure: source and sink, 31 in the spreading tree, 15 in the joining
    one, and 34 in pipelines between them, of which the paper's text says nothing.

    >>> len(bushy(5, 1.0).operators)
    82
    """
    operators = [PlantOperator("source", source_cost, payload=payload, record=record, source=True)]
    streams: list[Stream] = []

    def add(tails: Sequence[int], share: float) -> int:
        operators.append(PlantOperator(f"op{len(operators) - 1}", cost, payload=payload, record=record))
        streams.extend(Stream(tail, len(operators) - 1, share) for tail in tails)
        return len(operators) - 1

    level = [add([0], 1.0)]
    for _ in range(depth - 1):
        level = [add([tail], 0.5) for tail in level for _ in range(2)]
    joining = 2 ** (depth - 1) - 1
    middle = BUSHY_OPERATORS - 1 - len(operators) - joining if depth == BUSHY_DEPTH else 0
    for number in range(middle):
        level[number % len(level)] = add([level[number % len(level)]], 1.0)
    while len(level) > 1:
        level = [add(level[at : at + 2], 1.0) for at in range(0, len(level), 2)]
    operators.append(PlantOperator("sink", sink_cost, locked=True))
    streams.append(Stream(level[0], len(operators) - 1))
    return PlantGraph(tuple(operators), tuple(streams))
