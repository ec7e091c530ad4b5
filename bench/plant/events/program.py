"""A graph under a placement of queues, as the arrays that the event loop runs: one program of steps for each piece.

A *piece* is a source or a queued operator and all that it calls without a queue. Its program is what a thread does with
a run of its head's tuples, in this order: work, locks of operators that several streams feed, the Python token, and
pushes into queues. Must not know time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.plant.graph import PlantGraph

WORK, LOCK, UNLOCK, PUSH = range(4)  # kinds of steps
TOKEN = 0  # number of the token's lock; 1 + n is that of operator n's producers

QUEUE_RECORDS = 1024  # that a queue holds
RUN_RECORDS = 256  # that a run has, and a quarter of a queue
RUN_WORK = 250e3  # ns of work that a run may be
RUNS = 4  # runs that a queue holds

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Program:
    """Pieces of a graph; those of sources come first, then one for each queue.

    Args:
        heads: operators that head the pieces.
        sources: how many of the pieces are those of sources.
        start: first step of each piece, and the end of the last one.
        kind: of each step: WORK, LOCK, UNLOCK or PUSH.
        what: the lock of a LOCK or UNLOCK, the queue of a PUSH, -1 of a WORK.
        amount: ns of a WORK, tuples of a PUSH, for each tuple of the head.
        taken: tuples that each operator takes in each piece, for each tuple of its head; pieces by operators.
        run: tuples that a run of each piece may have.
        rate: tuples/s that each source is given; 0: as many as are taken.
        next_port: the only queue that a piece pushes to, by queue; -1: none, or several.
        ahead: the same, where no more goes there than comes in, and nothing else does.
        token: whether the head of a piece needs the token.
        locks: how many locks there are, those of queues' consumers left out.
    """

    heads: Numbers
    sources: int
    start: Numbers
    kind: Numbers
    what: Numbers
    amount: Floats
    taken: Floats
    run: Numbers
    rate: Floats
    next_port: Numbers
    ahead: Numbers
    token: Numbers
    locks: int


def program(graph: PlantGraph, queued: frozenset[int], paced: Mapping[int, float]) -> Program:
    """Return the pieces of a graph.

    Args:
        graph: what runs.
        queued: numbers of the operators with a queue in front.
        paced: {number of a source: tuples/s that it is given}; the others give what is taken.

    >>> from bench.plant.graph import pipeline
    >>> cut = program(pipeline([10.0, 20.0, 30.0]), frozenset({2}), {})
    >>> cut.heads.tolist(), cut.kind.tolist(), [round(ns) for ns in cut.amount]
    ([0, 2], [0, 3, 0], [10, 1, 50])
    """
    heads = [*graph.sources, *sorted(queued)]
    ports = {head: number for number, head in enumerate(sorted(queued))}
    walks = [_Walk(graph, ports, head) for head in heads]
    start = np.cumsum([0, *(len(walk.steps) for walk in walks)])
    steps = [step for walk in walks for step in walk.steps]
    behind = walks[len(graph.sources) :]
    return Program(
        heads=np.array(heads, np.int64),
        sources=len(graph.sources),
        start=start.astype(np.int64),
        kind=np.array([kind for kind, _, _ in steps], np.int64),
        what=np.array([what for _, what, _ in steps], np.int64),
        amount=np.array([amount for _, _, amount in steps], np.float64),
        taken=np.array([walk.taken for walk in walks]),
        run=np.array([walk.run_records for walk in walks], np.int64),
        rate=np.array([paced.get(source, 0.0) for source in graph.sources], np.float64),
        next_port=np.array([walk.only_port for walk in behind], np.int64),
        ahead=np.array([walk.only_port if walk.bounded else -1 for walk in behind], np.int64),
        token=np.array([graph.operators[head].needs_token for head in heads], np.int64),
        locks=1 + len(graph.operators),
    )


class _Walk:
    """What a thread does with a tuple of one head."""

    def __init__(self, graph: PlantGraph, ports: Mapping[int, int], head: int) -> None:
        self._graph = graph
        self._ports = ports
        self.steps: list[tuple[int, int, float]] = []
        self.taken = np.zeros(len(graph.operators))
        self.only_port, self.bounded = self._way(head)
        self._visit(head, 1.0)

    @property
    def run_records(self) -> int:
        work = sum(amount for kind, _, amount in self.steps if kind == WORK)
        most = max([1.0, *(amount for kind, _, amount in self.steps if kind == PUSH)])
        return max(1, int(min(RUN_RECORDS / most, RUN_WORK / max(work, 1e-3))))

    def _visit(self, number: int, amount: float) -> None:
        operator = self._graph.operators[number]
        self.taken[number] += amount
        token = [TOKEN] if operator.needs_token else []
        for lock in token:
            self.steps.append((LOCK, lock, 0.0))
        self._work(amount * operator.cost)
        for lock in token:
            self.steps.append((UNLOCK, lock, 0.0))
        for stream in self._graph.outgoing[number]:
            out = amount * operator.selectivity * stream.share
            lock = 1 + stream.head
            shared = len(self._graph.incoming[stream.head]) > 1
            if shared:
                self.steps.append((LOCK, lock, 0.0))
            if stream.head in self._ports:
                self.steps.append((PUSH, self._ports[stream.head], out))
            else:
                self._visit(stream.head, out)
            if shared:
                self.steps.append((UNLOCK, lock, 0.0))

    def _work(self, ns: float) -> None:
        if self.steps and self.steps[-1][0] == WORK:
            ns += self.steps.pop()[2]
        self.steps.append((WORK, -1, ns))

    def _way(self, number: int) -> tuple[int, bool]:
        """Return the only queue behind an operator, and whether its room says how much may be taken."""
        bounded = True
        while len(self._graph.outgoing[number]) == 1:
            (stream,) = self._graph.outgoing[number]
            bounded = bounded and self._graph.operators[number].selectivity * stream.share <= 1
            number = stream.head
            shared = len(self._graph.incoming[number]) > 1
            if number in self._ports:
                return self._ports[number], bounded and not shared
            bounded = bounded and not shared
        return -1, False
