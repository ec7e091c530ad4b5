"""On which node each PE goes: by free CPUs, memory and zone, neighbours close, few moves.

Joker runs on one host; several hosts need this (J33). The search is greedy: it tries the nodes of an element's
neighbours first, then the freest node of their zones, then the freest of all. It is linear in elements and links, with
a heap of free nodes per zone, so that a thousand nodes cost milliseconds. Knows no load: the caller passes the demand
of each element and the resources of each node.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rayelastic.graph.spec.ports import operator_of
from rayelastic.plan.exec_plan import ExecPlan


@dataclass(frozen=True, slots=True)
class Node:
    """A machine that can host PEs.

    Args:
        name: unique in the cluster.
        cpus: CPUs for this job, its own use included.
        memory: bytes for this job, its own use included.
        zone: nodes of one zone are near each other.
    """

    name: str
    cpus: float
    memory: float = float("inf")
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a PE needs of its node.

    Args:
        cpus: CPUs that it keeps busy, or is about to.
        memory: bytes of its state and queues.
    """

    cpus: float = 1.0
    memory: float = 0.0


@dataclass(frozen=True, slots=True)
class NodePlacement:
    """Where everything goes.

    Args:
        nodes: {PE: node}, in the order of the plan.
        moved: PEs that were on another node before.
        homeless: those that no node has room for.
    """

    nodes: Mapping[str, str]
    moved: tuple[str, ...] = ()
    homeless: tuple[str, ...] = ()


class FreeNodes:
    """Free resources of nodes during a placement; finds the freest node in logarithmic time.

    Args:
        nodes: at equal merit the first ones are taken.

    >>> free = FreeNodes([Node("a", 2), Node("b", 3, zone="x")])
    >>> free.freest(Demand(cpus=2))
    'b'
    >>> free.take("b", Demand(cpus=2.5))
    >>> free.freest(Demand(cpus=1)), free.freest(Demand(cpus=1), zone="x")
    ('a', None)
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.rank = {node.name: i for i, node in enumerate(nodes)}
        self.cpus = {node.name: node.cpus for node in nodes}
        self.memory = {node.name: node.memory for node in nodes}
        self._heaps: dict[str | None, list[tuple[float, int, str]]] = {None: []}
        for node in nodes:
            for zone in (None, node.zone):
                self._heaps.setdefault(zone, []).append((-node.cpus, self.rank[node.name], node.name))
        for heap in self._heaps.values():
            heapq.heapify(heap)

    def fits(self, node: str, demand: Demand) -> bool:
        """Return whether a node has room."""
        return demand.cpus <= self.cpus[node] + _ROUNDING and demand.memory <= self.memory[node]

    def take(self, node: str, demand: Demand) -> None:
        """Use some of a node, or more than it has."""
        self.cpus[node] -= demand.cpus
        self.memory[node] -= demand.memory

    def give_back(self, node: str, demand: Demand) -> None:
        """Use less of a node."""
        self.cpus[node] += demand.cpus
        self.memory[node] += demand.memory
        for zone in (None, self.nodes[node].zone):  # it has more room than its entries say
            heapq.heappush(self._heaps[zone], (-self.cpus[node], self.rank[node], node))

    def freest(self, demand: Demand, zone: str | None = None) -> str | None:
        """Return the node with most free CPUs that has room, in a zone or anywhere; None if there is none."""
        heap, too_little_memory, found = self._heaps.get(zone, []), [], None
        while heap:
            free, rank, node = heap[0]
            if -free != self.cpus[node]:  # out of date
                heapq.heapreplace(heap, (-self.cpus[node], rank, node))
                continue
            if self.fits(node, demand):
                found = node
                break
            if -free + _ROUNDING < demand.cpus:
                break  # no other has more CPUs
            too_little_memory.append(heapq.heappop(heap))
        for entry in too_little_memory:
            heapq.heappush(heap, entry)
        return found


def place(
    plan: ExecPlan,
    nodes: Sequence[Node],
    demands: Mapping[str, Demand],
    *,
    moves: int = 0,
) -> NodePlacement:
    """Place the PEs of a plan.

    An element stays where the plan has it, unless that node is gone or lacks resources. Of the elements that could join
    more of their neighbours, at most `moves` do.

    Args:
        plan: with the present nodes of its PEs.
        nodes: those that are there; at equal merit the first ones are taken.
        demands: {PE: what it needs}; Demand() for those that aren't named.
        moves: how many may move without having to.

    >>> from rayelastic.plan.exec_plan import Pipeline, RegionPlan
    >>> from rayelastic.plan.regions import Region, RegionKind
    >>> region = Region("r0", RegionKind.DATA_PARALLEL, ("count",), ("word",))
    >>> plan = ExecPlan("words", (RegionPlan(region, (Pipeline(("count",), ("pe0", "pe1", "pe2")),)),))
    >>> dict(place(plan, [Node("a", cpus=2), Node("b", cpus=1)], {}).nodes)
    {'pe0': 'a', 'pe1': 'a', 'pe2': 'b'}
    """
    return _Search(plan, nodes, demands).run(moves)


class _Search:
    """One run of `place`."""

    def __init__(self, plan: ExecPlan, nodes: Sequence[Node], demands: Mapping[str, Demand]) -> None:
        self.plan = plan
        self.free = FreeNodes(nodes)
        self.demands = demands
        self.at: dict[str, str] = {}
        self.neighbours: dict[str, dict[str, int]] = {}

    def run(self, moves: int) -> NodePlacement:
        before = {pe: node for pe, node in self.plan.nodes.items() if pe in self.plan.pes}
        for pe in self.plan.pes:  # those that can stay do, in the order of the plan
            node = before.get(pe, "")
            if node in self.free.nodes and self._fits(pe, node):
                self._put(pe, node)
        homeless = []
        wanting = set(self.plan.pes) if moves > 0 else {pe for pe in self.plan.pes if pe not in self.at}
        self.neighbours = _neighbours(self.plan, wanting)
        for pe in self.plan.pes:
            if pe in self.at:
                continue
            found = self._best(pe)
            if found is None:
                homeless.append(pe)
            else:
                self._put(pe, found)
        self._gather(moves)
        nodes = {pe: self.at[pe] for pe in self.plan.pes if pe in self.at}
        moved = tuple(pe for pe, node in nodes.items() if before.get(pe, node) != node)
        return NodePlacement(nodes, moved, tuple(homeless))

    def _gather(self, moves: int) -> None:
        """Bring elements to the node where most of their neighbours are, if it has room."""
        for pe in self.plan.pes:
            if moves <= 0:
                return
            here = self.at.get(pe)
            near = self._near(pe)
            for node, count in near:
                if here is None or node == here or count <= dict(near).get(here, 0) or not self._fits(pe, node):
                    continue
                self._take(pe)
                self._put(pe, node)
                moves -= 1
                break

    def _near(self, pe: str) -> list[tuple[str, int]]:
        """Return the nodes of its neighbours with how many are there, most first."""
        counts: dict[str, int] = {}
        for other, links in self.neighbours.get(pe, {}).items():
            if other in self.at:
                counts[self.at[other]] = counts.get(self.at[other], 0) + links
        return sorted(counts.items(), key=lambda item: (-item[1], self.free.rank[item[0]]))

    def _best(self, pe: str) -> str | None:
        near = [node for node, _ in self._near(pe)]
        for node in near:
            if self._fits(pe, node):
                return node
        for zone in dict.fromkeys(self.free.nodes[node].zone for node in near):
            found = self.free.freest(self._demand(pe), zone)
            if found is not None:
                return found
        return self.free.freest(self._demand(pe))

    def _demand(self, pe: str) -> Demand:
        return self.demands.get(pe, _ONE)

    def _fits(self, pe: str, node: str) -> bool:
        return self.free.fits(node, self._demand(pe))

    def _put(self, pe: str, node: str) -> None:
        self.at[pe] = node
        self.free.take(node, self._demand(pe))

    def _take(self, pe: str) -> None:
        self.free.give_back(self.at.pop(pe), self._demand(pe))


_ONE = Demand()
_ROUNDING = 1e-9  # CPUs


def _neighbours(plan: ExecPlan, wanting: set[str]) -> dict[str, dict[str, int]]:
    """Count the streams between each PE that wants it and others."""
    found: dict[str, dict[str, int]] = {}
    for here, there in _talking(plan, wanting):
        for a, b in ((here, there), (there, here)):
            if a in wanting:
                near = found.setdefault(a, {})
                near[b] = near.get(b, 0) + 1
    return found


def _talking(plan: ExecPlan, wanting: set[str]) -> Iterator[tuple[str, str]]:
    for stream, end in plan.edges if wanting else ():
        source, target = operator_of(stream), operator_of(end)
        sending, taking = plan.pipeline_of(source), plan.pipeline_of(target)
        if plan.region_of(source) is plan.region_of(target):
            pairs = dict.fromkeys(zip(sending.pes, taking.pes, strict=True))
        else:
            senders, takers = dict.fromkeys(sending.pes), dict.fromkeys(taking.pes)
            pairs = dict.fromkeys((a, b) for a in senders if a in wanting for b in takers)
            pairs |= dict.fromkeys((a, b) for b in takers if b in wanting for a in senders)
        yield from (pair for pair in pairs if pair[0] != pair[1])
