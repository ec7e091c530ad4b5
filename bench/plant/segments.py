"""What one thread runs at a time: a source or a queued operator, and everything that it calls without a queue.

A *segment* has one head. An operator without a queue that several segments call is run by each of them in its share,
under a lock: a port is never run by two threads at once (architecture, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.plant.graph import PlantGraph
from rayelastic.plan.settings.threads import ThreadingModel

Floats = NDArray[np.float64]
Models = tuple[ThreadingModel, ...]


@dataclass(frozen=True, slots=True)
class SharedPort:
    """A port that several segments submit to.

    Args:
        operator: its number.
        callers: segments that submit to it.
        rate: tuples per source tuple.
        work: ns of operators that run under its lock per tuple of it; 0 if it has a queue.
        calls: operators that run under its lock.
        pushes: tuples that those push into queues, per tuple of it; 1 if it has a queue itself.
    """

    operator: int
    callers: int
    rate: float
    work: float
    calls: float
    pushes: float


@dataclass(frozen=True, slots=True)
class Segments:
    """A placement of queues, as arrays with one entry per segment; all per tuple of all sources together.

    Args:
        heads: numbers of the operators that head them; sources first.
        models: of the heads; MANUAL for a source.
        work: ns of operators.
        calls: tuples that they take by direct call.
        pops: tuples that the head takes off its queue.
        pushes: tuples pushed into queues.
        copied: bytes of records pushed.
        payload: bytes of payloads pushed.
        token: ns of operators that need the Python token.
        token_calls: tuples that those take.
        upstream: for each segment the numbers of those that feed it.
        share: for each operator, the number of the only segment that runs it, or -1.
        shared: ports that several segments submit to.
    """

    heads: tuple[int, ...]
    models: Models
    work: Floats
    calls: Floats
    pops: Floats
    pushes: Floats
    copied: Floats
    payload: Floats
    token: Floats
    token_calls: Floats
    upstream: tuple[frozenset[int], ...]
    share: NDArray[np.int64]
    shared: tuple[SharedPort, ...]

    @property
    def sources(self) -> int:
        """Segments that a source's thread heads."""
        return sum(1 for model in self.models if model is ThreadingModel.MANUAL)

    @property
    def dedicated(self) -> int:
        """Segments with a thread of their own."""
        return sum(1 for model in self.models if model is ThreadingModel.DEDICATED)

    @property
    def queues(self) -> int:
        """Segments with a queue in front."""
        return len(self.heads) - self.sources


def segments(graph: PlantGraph, models: Models) -> Segments:
    """Cut a graph at its queues.

    Args:
        graph: what runs.
        models: the threading model of each operator; that of a source doesn't matter.

    >>> from bench.plant.graph import pipeline
    >>> manual, dynamic = ThreadingModel.MANUAL, ThreadingModel.DYNAMIC
    >>> cut = segments(pipeline([10.0, 20.0, 30.0]), (manual, manual, dynamic, manual, manual))
    >>> cut.heads, cut.work.tolist(), cut.pushes.tolist()
    ((0, 2), [10.0, 50.0], [1.0, 0.0])
    """
    return _Cut(graph, models).result()


class _Cut:
    """One pass over the operators, upstream before downstream."""

    def __init__(self, graph: PlantGraph, models: Models) -> None:
        self._graph = graph
        self._queued = [
            not operator.source and model is not ThreadingModel.MANUAL
            for operator, model in zip(graph.operators, models, strict=True)
        ]
        queued = [number for number, has in enumerate(self._queued) if has]
        self._heads = (*graph.sources, *queued)
        self._models = (*(ThreadingModel.MANUAL for _ in graph.sources), *(models[number] for number in queued))
        self._number = {head: at for at, head in enumerate(self._heads)}
        count = len(self._heads)
        names = ("work", "calls", "pops", "pushes", "copied", "payload", "token", "token_calls")
        self._sums = {name: [0.0] * count for name in names}
        self._upstream: list[set[int]] = [set() for _ in self._heads]

    def result(self) -> Segments:
        graph = self._graph
        runs: list[dict[int, float]] = []  # of each operator: {segment: share of its tuples}
        callers: list[set[int]] = []
        for number in range(len(graph.operators)):
            by, submitting = self._run_by(number, runs)
            runs.append(by)
            callers.append(submitting)
            self._account(number, by)
        share = [next(iter(by)) if len(by) == 1 else -1 for by in runs]
        shared = tuple(self._shared(number, len(by)) for number, by in enumerate(callers) if len(by) > 1)
        sums = {name: np.array(values) for name, values in self._sums.items()}
        upstream = tuple(frozenset(by) for by in self._upstream)
        return Segments(self._heads, self._models, **sums, upstream=upstream, share=np.array(share), shared=shared)

    def _run_by(self, number: int, runs: list[dict[int, float]]) -> tuple[dict[int, float], set[int]]:
        """Return the segments that run an operator, each with its share, and those that submit to it."""
        graph = self._graph
        if graph.operators[number].source:
            return {self._number[number]: 1.0}, set()
        incoming = graph.incoming[number]
        if len(incoming) == 1:
            by: dict[int, float] = runs[incoming[0].tail]
        else:
            by = {}
            total = sum(graph.flow(stream) for stream in incoming)
            for stream in incoming:
                part = graph.flow(stream) / total if total > 0 else 1.0 / len(incoming)
                for segment, share in runs[stream.tail].items():
                    by[segment] = by.get(segment, 0.0) + part * share
        if self._queued[number]:
            self._upstream[self._number[number]].update(by)
            return {self._number[number]: 1.0}, set(by)
        return by, set(by)

    def _account(self, number: int, by: dict[int, float]) -> None:
        graph, sums = self._graph, self._sums
        operator, rate = graph.operators[number], float(graph.rates[number])
        pushed = sum(graph.flow(stream) for stream in graph.outgoing[number] if self._queued[stream.head])
        head = operator.source or self._queued[number]
        for segment, share in by.items():
            sums["work"][segment] += share * rate * operator.cost
            if operator.needs_token:
                sums["token"][segment] += share * rate * operator.cost
                sums["token_calls"][segment] += share * rate
            if not head:
                sums["calls"][segment] += share * rate
            elif not operator.source:
                sums["pops"][segment] += rate
            sums["pushes"][segment] += share * pushed
            sums["copied"][segment] += share * pushed * operator.record
            sums["payload"][segment] += share * pushed * operator.payload

    def _shared(self, number: int, callers: int) -> SharedPort:
        rate = float(self._graph.rates[number])
        if self._queued[number]:
            return SharedPort(number, callers, rate, 0.0, 0.0, 1.0)
        work, calls, pushes = self._inline(number)
        return SharedPort(number, callers, rate, work, calls, pushes)

    def _inline(self, number: int) -> tuple[float, float, float]:
        """Return work, calls and pushes of an operator and of all that it calls, per tuple of it."""
        work, calls, pushes = 0.0, 0.0, 0.0
        todo = [(number, 1.0)]
        while todo:
            at, amount = todo.pop()
            operator = self._graph.operators[at]
            work += amount * operator.cost
            calls += amount
            for stream in self._graph.outgoing[at]:
                part = amount * operator.selectivity * stream.share
                if self._queued[stream.head]:
                    pushes += part
                else:
                    todo.append((stream.head, part))
        return work, calls, pushes
