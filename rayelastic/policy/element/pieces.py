"""How queues cut a graph of operators into pieces, and where to cut for pieces of equal cost.

A piece is what one thread runs at a stretch. It begins with an operator that has a queue, or with a source, and has
all that follows inline up to the next queues. The cut is the bottom-up greedy one, optimal on trees: S. Kundu,
J. Misra, A Linear Tree Partitioning Algorithm, SIAM J. Computing 6(1), 1977. Must not know threads or throughput.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Meeting", "OperatorGraph"]


@dataclass(frozen=True, slots=True)
class Meeting:
    """An operator that several pieces submit to.

    Args:
        cost: of all that it calls, itself included; 0 if it has a queue.
        rate: tuples that it takes.
        pieces: that submit to it.
        queued: whether it has a queue.
    """

    cost: float
    rate: float
    pieces: int
    queued: bool


class OperatorGraph:
    """The operators of a PE in order, upstream before downstream.

    Args:
        operators: their names.
        upstream: {operator: those that feed it}; None: a chain in the order of the names.
        given: {operator: tuples/s that it emits}: inputs that meet share the work there in proportion; None: equally.
        shared: operators that whoever fills their queue runs, too: the work of both is divided evenly.

    >>> graph = OperatorGraph(["source", "a", "b", "c"])
    >>> graph.piece_costs({"source": 0.0, "a": 1.0, "b": 1.0, "c": 2.0}, frozenset({"c"}))
    {'source': 2.0, 'c': 2.0}
    """

    def __init__(
        self,
        operators: Sequence[str],
        upstream: Mapping[str, Sequence[str]] | None = None,
        given: Mapping[str, float] | None = None,
        shared: frozenset[str] = frozenset(),
    ) -> None:
        self.operators = tuple(operators)
        if upstream is None:
            upstream = {name: (before,) for before, name in zip(self.operators, self.operators[1:], strict=False)}
        inside = frozenset(self.operators)
        self._upstream = {name: tuple(up for up in upstream.get(name, ()) if up in inside) for name in self.operators}
        self._parts = {name: _parts(ups, given or {}) for name, ups in self._upstream.items()}
        self._downstream: dict[str, list[str]] = {name: [] for name in self.operators}
        for name in self.operators:
            for up in self._upstream[name]:
                self._downstream[up].append(name)
        self.shared = shared
        self.sources = tuple(name for name in self.operators if not self._upstream[name])
        self.joins = frozenset(name for name in self.operators if len(self._upstream[name]) > 1)
        self._heads_of: tuple[frozenset[str], Mapping[str, Mapping[str, float]]] | None = None

    def heads(self, queued: frozenset[str]) -> Mapping[str, Mapping[str, float]]:
        """Return {operator: {head of a piece: part of the operator's work that is done in it}}."""
        if self._heads_of is not None and self._heads_of[0] == queued:
            return self._heads_of[1]
        heads: dict[str, dict[str, float]] = {}
        for name in self.operators:
            ups = self._upstream[name]
            if not ups or name in queued:
                heads[name] = {name: 1.0}
                continue
            if len(ups) == 1:  # all of it: a piece shares what is said of its head
                heads[name] = heads[ups[0]]
                continue
            heads[name] = {}
            for up in ups:
                for head, part in heads[up].items():
                    heads[name][head] = heads[name].get(head, 0.0) + part * self._parts[name][up]
        self._heads_of = (queued, heads)
        return heads

    def piece_costs(self, costs: Mapping[str, float], queued: frozenset[str]) -> dict[str, float]:
        """Return {head: cost of the piece}.

        >>> costs = {"source": 1.0, "parse": 2.0, "count": 3.0}
        >>> OperatorGraph(list(costs)).piece_costs(costs, frozenset({"parse"}))
        {'source': 1.0, 'parse': 5.0}
        >>> OperatorGraph(list(costs), shared=frozenset({"parse", "count"})).piece_costs(costs, frozenset({"parse"}))
        {'source': 3.0, 'parse': 3.0}
        """
        pieces: dict[str, float] = {}
        every = self.heads(queued)
        before: Mapping[str, float] = {}
        for name, heads in every.items():
            if heads is not before:
                before, single = heads, len(heads) == 1
                head = next(iter(heads))
                part = heads[head]
            if single:
                pieces[head] = pieces.get(head, 0.0) + part * costs[name]
                continue
            for head, part in heads.items():
                pieces[head] = pieces.get(head, 0.0) + part * costs[name]
        straight = self._straight(queued) if self.shared else frozenset()
        for name in self.operators:
            if name in queued and name in straight:
                fillers = {head for up in self._upstream[name] for head in every[up]}
                if len(fillers) == 1 and pieces[name] > pieces[filler := fillers.pop()]:
                    pieces[name] = pieces[filler] = (pieces[name] + pieces[filler]) / 2
        return pieces

    def _straight(self, queued: frozenset[str]) -> frozenset[str]:
        """Return the shared operators behind which nothing that is shared has a queue."""
        straight: set[str] = set()
        for name in reversed(self.operators):
            if name in self.shared and all(
                down not in queued and down in straight for down in self._downstream[name] if down in self.shared
            ):
                straight.add(name)
        return frozenset(straight)

    def crossings(self, rates: Mapping[str, float], queued: frozenset[str]) -> dict[str, float]:
        """Return {head: tuples that its piece puts into queues or takes out of one}, each counted half on either side.

        >>> graph = OperatorGraph(["source", "a", "b"])
        >>> graph.crossings({"source": 1.0, "a": 1.0, "b": 1.0}, frozenset({"b"}))
        {'source': 0.5, 'b': 0.5}
        """
        crossings: dict[str, float] = {}
        heads = self.heads(queued)
        for name in self.operators:
            if name not in queued:
                continue
            half = rates.get(name, 0.0) / 2
            for up in self._upstream[name]:
                for head, part in heads[up].items():
                    crossings[head] = crossings.get(head, 0.0) + half * part * self._parts[name][up]
            crossings[name] = crossings.get(name, 0.0) + half
        return crossings

    def meetings(self, costs: Mapping[str, float], rates: Mapping[str, float], queued: frozenset[str]) -> list[Meeting]:
        """Return the operators that several pieces submit to, which they do one at a time.

        >>> graph = OperatorGraph(["source", "a", "b", "sink"], {"a": ["source"], "b": ["source"], "sink": ["a", "b"]})
        >>> costs = {"source": 0.0, "a": 2.0, "b": 2.0, "sink": 1.0}
        >>> graph.meetings(costs, {"sink": 4.0}, frozenset({"a", "b"}))
        [Meeting(cost=1.0, rate=4.0, pieces=2, queued=False)]
        """
        heads, weight = self.heads(queued), self._weights(costs, queued)
        found = []
        for name in self.operators:
            if name in self.joins:
                pieces = len(frozenset().union(*(heads[up] for up in self._upstream[name])))
                if pieces > 1:
                    cost = 0.0 if name in queued else weight[name]
                    found.append(Meeting(cost, rates.get(name, 0.0), pieces, name in queued))
        return found

    def split(self, costs: Mapping[str, float], queued: frozenset[str], may: Callable[[str], bool]) -> str | None:
        """Return the operator whose queue divides the costliest piece most evenly; None: it can't be divided.

        >>> graph = OperatorGraph(["source", "a", "b", "c"])
        >>> graph.split({"source": 0.0, "a": 1.0, "b": 3.0, "c": 2.0}, frozenset({"b"}), lambda name: name != "source")
        'c'
        """
        pieces, heads = self.piece_costs(costs, queued), self.heads(queued)
        costliest = max(pieces, key=pieces.__getitem__)
        weight = self._weights(costs, queued)
        inside = [name for name in self.operators if name not in queued and costliest in heads[name] and may(name)]
        inside = [name for name in inside if 0 < weight[name] < pieces[costliest]]
        return min(inside, key=lambda name: abs(weight[name] - pieces[costliest] / 2), default=None)

    def _weights(self, costs: Mapping[str, float], queued: frozenset[str]) -> dict[str, float]:
        """Return {operator: cost of all that it calls, itself included}."""
        weight: dict[str, float] = {}
        for name in reversed(self.operators):
            following = self._downstream[name]
            if len(following) == 1:
                down = following[0]
                inline = 0.0 if down in queued else weight[down] * self._parts[down][name]
            else:
                inline = sum([weight[down] * self._parts[down][name] for down in following if down not in queued])
            weight[name] = costs[name] + inline
        return weight

    def cut(
        self, costs: Mapping[str, float], most: float, may: Callable[[str], bool], fixed: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        """Return the fewest queues, found greedily, that leave no piece more expensive than `most`, where possible.

        Args:
            costs: cost of each operator.
            most: the most that a piece shall cost, in the same unit.
            may: whether an operator can have a queue.
            fixed: operators that have one in any case.

        >>> graph = OperatorGraph(["source", "a", "b", "c"])
        >>> sorted(graph.cut({"source": 0.0, "a": 1.0, "b": 1.0, "c": 2.0}, 2.0, lambda name: name != "source"))
        ['c']
        """
        queued = set(fixed)
        weight: dict[str, float] = {}  # of an operator and those inline behind it
        for name in reversed(self.operators):
            following = self._downstream[name]
            if len(following) < 2:  # nearly all operators: nothing to sort
                total = costs[name]
                for down in following:
                    if down in queued:
                        continue
                    part = weight[down] * self._parts[down][name]
                    total += part
                    if total > most and may(down):
                        queued.add(down)
                        total -= part
                weight[name] = total
                continue
            inline = [down for down in following if down not in queued]
            parts = {down: weight[down] * self._parts[down][name] for down in inline}
            total = costs[name] + sum(parts.values())
            if total > most:
                for down in sorted(inline, key=lambda down: -parts[down]):  # stable: ties in the order of the graph
                    if total <= most:
                        break
                    if may(down):
                        queued.add(down)
                        total -= parts[down]
            weight[name] = total
        return frozenset(queued)


def _parts(upstream: Sequence[str], given: Mapping[str, float]) -> dict[str, float]:
    """Return the share of each upstream operator in the tuples of an operator: by what they emit, or equally."""
    total = sum(given.get(up, 0.0) for up in upstream)
    if len(upstream) < 2 or total <= 0:
        return dict.fromkeys(upstream, 1.0 / max(1, len(upstream)))
    return {up: given.get(up, 0.0) / total for up in upstream}
