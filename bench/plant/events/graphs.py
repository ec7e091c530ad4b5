"""Random graphs for the plant by events: what jobs look like, drawn by number and seed.

Pipelines, fans, joins, mixtures of them; costs that are even, skewed, or one operator's; filters and flat_maps; sources
that are given so many tuples/s; Python operators that need the token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.plant.graph import PlantGraph, PlantOperator, Stream

SHAPES = ("pipeline", "fan", "join", "mixed")


@dataclass(frozen=True, slots=True)
class EventGraph:
    """A graph that was drawn.

    Args:
        name: its shape, and what is special about it.
        graph: the operators.
        paced: {number of a source: tuples/s that it is given}.
    """

    name: str
    graph: PlantGraph
    paced: Mapping[int, float]


def random_graph(number: int, seed: int, cores: int) -> EventGraph:
    """Return one of the graphs of a seed; the same arguments give the same graph.

    Args:
        number: which one; shapes take turns.
        seed: of all of them.
        cores: of the machine; rates that sources are given are a share of what it could do.

    >>> random_graph(0, 1, 2) == random_graph(0, 1, 2)
    True
    """
    draw = np.random.default_rng((seed, number))
    shape = SHAPES[number % len(SHAPES)]
    special = str(draw.choice(["", "", "", "filter", "flat_map", "token", "paced"]))
    builder = _Builder(draw)
    getattr(builder, shape)()
    costs = _costs(draw, len(builder.operators) - builder.sources)
    operators = [
        PlantOperator(
            f"op{at}" if at >= builder.sources else f"source{at}",
            cost=float(costs[at - builder.sources]) if at >= builder.sources else float(draw.uniform(5, 100)),
            source=at < builder.sources,
        )
        for at in range(len(builder.operators))
    ]
    inner = list(range(builder.sources, len(operators) - 1))
    if special in ("filter", "flat_map"):
        at = int(draw.choice(inner[: max(1, len(inner) // 2)]))
        factor = 10 ** draw.uniform(-2, -0.5) if special == "filter" else 10 ** draw.uniform(0.5, 1.5)
        operators[at] = PlantOperator(operators[at].name, operators[at].cost, selectivity=float(factor))
    if special == "token":
        for at in draw.choice(inner, size=min(len(inner), int(draw.integers(1, 4))), replace=False):
            operators[at] = PlantOperator(operators[at].name, operators[at].cost + 500.0, needs_token=True)
    graph = PlantGraph(tuple(operators), tuple(builder.streams))
    work = float((graph.rates * graph.costs).sum())
    most = 1e9 * cores / work
    paced = {}
    if special == "paced":
        paced = {source: float(most * draw.uniform(0.1, 0.8) / builder.sources) for source in graph.sources}
    elif builder.sources > 1:
        paced = {1: float(most * draw.uniform(0.02, 0.3) / 2)}
    return EventGraph(" ".join(word for word in (shape, special) if word), graph, paced)


def _costs(draw: np.random.Generator, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return ns per tuple: even, skewed, or one that has most of it."""
    scale = 10 ** draw.uniform(1.3, 4.3)
    kind = draw.integers(4)
    if kind == 0:
        return np.full(count, scale)
    if kind == 1:
        return scale * np.exp(draw.normal(0, 0.7, count))
    if kind == 2:
        return scale * np.exp(draw.normal(0, 1.5, count))
    costs = scale * np.exp(draw.normal(0, 0.4, count))
    costs[draw.integers(count)] += costs.sum() * draw.uniform(0.3, 1.5)
    return np.asarray(costs)


class _Builder:
    """Streams between numbered operators; sources come first."""

    def __init__(self, draw: np.random.Generator) -> None:
        self._draw = draw
        self.sources = 1
        self.operators = [0]
        self.streams: list[Stream] = []

    def pipeline(self) -> None:
        self._chain(0, int(self._draw.integers(4, 40)))

    def fan(self) -> None:
        """Deal tuples to branches, unequally, which meet at a sink."""
        self._fan(self._chain(0, int(self._draw.integers(1, 4))), together=True)

    def join(self) -> None:
        """Let two sources meet, and go on from there."""
        self.sources = 2
        self.operators = [0, 1]
        ends = [self._chain(source, int(self._draw.integers(1, 8))) for source in (0, 1)]
        self._chain(self._meet(ends), int(self._draw.integers(2, 12)))

    def mixed(self) -> None:
        """Fan out, meet, go on, and do it again, or let branches end where they are."""
        at = self._chain(0, int(self._draw.integers(1, 6)))
        at = self._fan(at, together=True)
        at = self._chain(at, int(self._draw.integers(1, 8)))
        if self._draw.random() < 0.5:
            self._fan(at, together=False)

    def _fan(self, at: int, *, together: bool) -> int:
        width = int(self._draw.integers(2, 9))
        shares = self._draw.dirichlet(np.full(width, 3.0)) if self._draw.random() < 0.7 else np.ones(width)
        ends = []
        for share in shares:
            first = self._next([(at, float(share))])
            ends.append(self._chain(first, int(self._draw.integers(0, 5))))
        return self._meet(ends) if together else ends[0]

    def _meet(self, ends: list[int]) -> int:
        return self._next([(end, 1.0) for end in ends])

    def _chain(self, at: int, length: int) -> int:
        for _ in range(length):
            at = self._next([(at, 1.0)])
        return at

    def _next(self, tails: list[tuple[int, float]]) -> int:
        number = len(self.operators)
        self.operators.append(number)
        self.streams += [Stream(tail, number, share) for tail, share in tails]
        return number
