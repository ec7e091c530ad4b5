"""Where new replicas run: native ones inside the PE first, GIL-bound ones as processes of their own.

A PE runs any number of native replicas on its threads, so it is filled before another one starts on
another node. A process has one GIL, so a second GIL-bound replica in it would only wait for the first. In running jobs
each replica has a PE of its own. A native one stays on its host while CPUs are idle there. The limit is then the one
thread of an operator, and another process has another thread. Once its process uses all CPUs, only another host counts.
Threads of a process may use several CPUs for a replica; a new one goes where at least one is free. A node is filled
up to the utilisation that replicas are sized for, which leaves capacity for bursts. Only when all nodes have reached
it, one is filled further, up to the share of its CPUs that may be used. Pure: the free CPUs follow from the measured
rates that the plan is made for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.node_placement import Demand, FreeNodes, Node, place

__all__ = ["Hosting", "load_of", "rehosted"]

LEAST = 0.5  # of what a replica will use: the room for which the last ones come to a node that is nearly full


class Hosting:
    """Free CPUs of nodes while replicas are placed.

    Args:
        plan: with the PEs and their nodes.
        nodes: that may be used; empty: all stays on one host, which is never full.
        used: {PE: CPUs that its replicas will use}.
        aim: share of a node's CPUs that is used by choice.
        busy: share of them that may be used if need be.
        shares: whether replicas may run beside others in one PE.
        most: PEs that there may be; None: any number.

    >>> hosting = Hosting(ExecPlan("t", ()), [Node("a", 2), Node("b", 2)], {"front": 1.0}, aim=0.8, busy=1.0)
    >>> hosting.host(["front"], 4, cpus=0.8, own_process=False), hosting.started
    (('front', 'pe0', 'pe0', 'front'), {'pe0': 'b'})
    """

    def __init__(
        self,
        plan: ExecPlan,
        nodes: Sequence[Node],
        used: Mapping[str, float],
        *,
        aim: float,
        busy: float,
        shares: bool = True,
        most: int | None = None,
    ) -> None:
        self._plan = plan
        self._home = nodes[0].name if nodes else ""
        usable = dict.fromkeys((aim, max(aim, busy)))
        self._free = [FreeNodes([replace(node, cpus=node.cpus * share) for node in nodes]) for share in usable]
        self._nodes = self._free[0].nodes
        self.started: dict[str, str] = {}  # new PE -> node
        self._native: dict[str, str] = {}  # node -> new PE for native replicas
        self._names = 0
        self._shares = shares
        self._left = float("inf") if most is None else max(0, most - len(plan.pes))
        for pe, cpus in used.items():
            if self.node_of(pe) in self._nodes:
                self._take(self.node_of(pe), Demand(cpus))

    def node_of(self, pe: str) -> str:
        """Return the node of a PE; one that isn't placed counts on the first node."""
        return self.started.get(pe) or self._plan.nodes.get(pe) or self._home

    def host(self, present: Sequence[str], replicas: int, cpus: float, *, own_process: bool) -> tuple[str, ...]:
        """Return the PE of each replica of a region; fewer than asked for if there is no room.

        Args:
            present: those of the replicas that are there.
            replicas: that there shall be.
            cpus: that each one will use.
            own_process: whether each needs a process of its own, for its Python token.
        """
        found = list(present[:replicas])
        while len(found) < replicas:
            pe = self._another(found, cpus, own_process=own_process)
            if pe is None:
                break
            found.append(pe)
        return tuple(found)

    def start(self, near: str, cpus: float, *, native: bool) -> str | None:
        """Return a PE that is new to a region, on a node with room: near another one, then anywhere.

        Args:
            near: a PE; its node, then its zone are tried first.
            cpus: that will be used.
            native: whether one that was started for another native region will do.
        """
        if not self._nodes:
            return self._fresh()
        for free in self._free:
            pe = self._started(free, near, Demand(cpus), native=native)
            if pe is not None:
                return pe
        return None

    def _another(self, present: Sequence[str], cpus: float, *, own_process: bool) -> str | None:
        own_process = own_process or not self._shares
        if not self._nodes:
            return self._fresh() if own_process else present[0]
        for free, demand in (*((free, Demand(cpus)) for free in self._free), (self._free[-1], Demand(cpus * LEAST))):
            pe = None if own_process else self._with_room(free, present, demand)
            pe = pe or self._started(free, present[0], demand, native=not own_process)
            if pe is not None:
                return pe
        return None

    def _started(self, free: FreeNodes, near: str, demand: Demand, *, native: bool) -> str | None:
        home, least = self.node_of(near), _least(demand)
        node: str | None = None
        if home in self._nodes:
            node = home if free.fits(home, least) else free.freest(least, self._nodes[home].zone)
        node = node or free.freest(least)
        if node is None:
            return None
        if native and node in self._native:
            self._take(node, demand)
            return self._native[node]
        pe = self._fresh()
        if pe is None:
            return None
        self._take(node, demand)
        self.started[pe] = node
        if native:
            self._native[node] = pe
        return pe

    def _with_room(self, free: FreeNodes, present: Sequence[str], demand: Demand) -> str | None:
        for pe in dict.fromkeys(present):
            node = self.node_of(pe)
            if node in self._nodes and free.fits(node, _least(demand)):
                self._take(node, demand)
                return pe
        return None

    def _take(self, node: str, demand: Demand) -> None:
        for free in self._free:
            free.take(node, demand)

    def _fresh(self) -> str | None:
        if self._left < 1:
            return None
        self._left -= 1
        while f"pe{self._names}" in self._plan.pes:
            self._names += 1
        self._names += 1
        return f"pe{self._names - 1}"


def _least(demand: Demand) -> Demand:
    """Return what a node has to have free: one thread runs a replica, though several would use more CPUs."""
    return Demand(min(demand.cpus, 1.0))


def load_of(plan: ExecPlan, cpu_each: Mapping[str, float]) -> dict[str, float]:
    """Return the CPUs that each PE will use: {region: CPUs of one replica}, shared by its pipelines."""
    used: dict[str, float] = {}
    for planned in plan.regions:
        each = cpu_each.get(planned.region.name, 0.0) / len(planned.pipelines)
        for pipeline in planned.pipelines:
            for pe in pipeline.pes:
                used[pe] = used.get(pe, 0.0) + each
    return used


def rehosted(plan: ExecPlan, nodes: Sequence[Node], used: Mapping[str, float], lost: Collection[str]) -> dict[str, str]:
    """Return the nodes of all elements once those that are lost have new ones; without room, over-booked ones.

    Args:
        plan: in force.
        nodes: that there are.
        used: {PE: CPUs that it uses}.
        lost: PEs whose nodes are gone.
    """
    found = place(plan, nodes, {pe: Demand(cpus) for pe, cpus in used.items()})
    kept = {pe: node for pe, node in plan.nodes.items() if pe in plan.pes and pe not in lost}
    hosts = kept | {pe: found.nodes[pe] for pe in lost if pe in found.nodes}
    free = {node.name: node.cpus for node in nodes}
    for pe, node in hosts.items():
        free[node] -= used.get(pe, 0.0)
    for pe in (pe for pe in lost if pe not in hosts):
        hosts[pe] = max(free, key=lambda node: free[node])
        free[hosts[pe]] -= used.get(pe, 0.0)
    return hosts
