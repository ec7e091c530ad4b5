"""Routers, gathers and taps of an elastic region: what each PE hosts of it, derived from a plan.

Joker section 3.2 (J11, J12): tuples are distributed to the replicas of a region by their keys, and nothing merges their
output. Stateless replicas receive tuples round-robin. Their output comes *home* to the element of the first one, which
restores the order, so that operators downstream don't know of replicas. If they have rules, each gets all of these.

Each element that feeds an elastic region has a router. Streams from several places, such as a union, meet at *home*
before stateless replicas take turns: there is their one router. An element that receives streams from others has a
gather, and each replica is followed by a tap. Knows neither who moves keys nor how.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.errors.invariants import invariant
from rayelastic.graph.spec.ports import IN, OUT, operator_of, port_of
from rayelastic.plan.exec_plan import ExecPlan, PlanLink, RegionPlan
from rayelastic.plan.hash_ring import HashRing
from rayelastic.plan.regions import RegionKind
from rayelastic.reasons import Code, Reason


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """An edge of the graph: a stream, and where it leads to. Without a stream: all that meet at the router there."""

    stream: str
    end: str

    @property
    def name(self) -> str:
        """'words->counts'."""
        return f"{self.stream}->{self.end}"

    @property
    def source(self) -> str:
        """The operator that emits it."""
        return operator_of(self.stream)

    @property
    def target(self) -> str:
        """The operator that takes it."""
        return operator_of(self.end)


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """A router in front of an elastic region.

    Args:
        edge: on which it stands.
        region: that it leads to.
        keys: fields by which it routes.
        ring: which replica owns which partition.
        local: the replica that is in the same PE; None if there is none.
        links: {replica: link}, of the others.
        in_turn: whether it deals out in turns instead.
        everywhere: whether each replica gets everything instead.
        streams: the edges that meet in it; its own one where it is alone.
    """

    edge: Edge
    region: str
    keys: tuple[str, ...]
    ring: HashRing
    local: int | None
    links: Mapping[int, PlanLink]
    in_turn: bool = False
    everywhere: bool = False
    streams: tuple[Edge, ...] = ()


@dataclass(frozen=True, slots=True)
class GatherPlan:
    """Where an edge comes in from other PEs, more and fewer of them.

    Args:
        edge: which.
        links: those that there are.
        local: whether it has a source in the same PE too, a replica of an elastic region.
        in_turn: whether it gathers the turns that replicas without state got; its edge leads home.
        any_order: whether it doesn't restore their order.
    """

    edge: Edge
    links: tuple[PlanLink, ...]
    local: bool
    in_turn: bool = False
    any_order: bool = False


@dataclass(frozen=True, slots=True)
class PERouting:
    """What a PE hosts of elastic regions.

    Args:
        routers: in front of regions.
        gathers: where streams come in.
        taps: {elastic region: the operator that ends it}, of the replicas here.
        links_out: from the end of a replica to an operator of a fixed region elsewhere.
        routed: edges that aren't plain connections or links.
    """

    routers: tuple[RouterPlan, ...] = ()
    gathers: tuple[GatherPlan, ...] = ()
    taps: Mapping[str, str] = field(default_factory=dict)
    links_out: tuple[PlanLink, ...] = ()
    routed: frozenset[Edge] = frozenset()


def routed_link(edge: Edge, from_pe: str, to_pe: str) -> PlanLink:
    """Return the link of an edge between two PEs; its name stays true whatever the plan becomes.

    >>> routed_link(Edge("words", "counts"), "pe0", "pe2").name
    'words->counts@pe0>pe2'
    """
    output, entry = port_of(edge.stream, OUT), port_of(edge.end, IN)
    return PlanLink(edge.source, edge.target, from_pe, to_pe, further=True, output=output, input=entry)


def why_fixed(planned: RegionPlan) -> Reason | None:
    """Return why a region can't get another number of replicas; None if it can."""
    return planned.region.why_fixed() or (None if planned.is_together else Code.PIPELINES_APART())


def keeps_replicas(planned: RegionPlan) -> ConfigError:
    """Return the error of a request for other replicas of a region that keeps those it has."""
    why = why_fixed(planned)
    return ConfigError(
        f"region {planned.region.name} keeps its replicas: {why or Code.FIXED_BY_CONFIG()}",
        operator=planned.region.operators[0],
        hint="topology.explain() shows which regions can have replicas"
        if why
        else "JobConfig(regions='manual') lets regions have other numbers of replicas",
        code=ErrorCode.FIXED_REGION,
    )


def elastic_regions(plan: ExecPlan) -> tuple[str, ...]:
    """Return the names of the regions that can get more replicas while the job runs."""
    return tuple(planned.region.name for planned in plan.regions if not why_fixed(planned))


@dataclass(slots=True)
class _Hosted:
    """What a PE hosts, while it is collected."""

    routers: list[RouterPlan] = field(default_factory=list)
    gathers: list[GatherPlan] = field(default_factory=list)
    taps: dict[str, str] = field(default_factory=dict)
    links_out: list[PlanLink] = field(default_factory=list)
    routed: set[Edge] = field(default_factory=set)


def routings_of(plan: ExecPlan, pes: Iterable[str], elastic: Collection[str]) -> dict[str, PERouting]:
    """Return {PE: what it hosts of elastic regions}.

    Args:
        plan: in force, or to be.
        pes: the PEs.
        elastic: names of the regions that may get another number of replicas.
    """
    found = {pe: _Hosted() for pe in pes}
    for edge in (Edge(stream, end) for stream, end in plan.edges):
        _add_edge(plan, edge, elastic, found)
    for planned in plan.regions:
        if planned.region.name in elastic:
            _add_region(plan, planned, found)
    for pe, hosted in found.items():
        edges = [gather.edge for gather in hosted.gathers]
        invariant(len(set(edges)) == len(edges), "an edge has one gather in a PE", pe)
    return {
        pe: PERouting(
            tuple(hosted.routers),
            tuple(hosted.gathers),
            hosted.taps,
            tuple(hosted.links_out),
            frozenset(hosted.routed),
        )
        for pe, hosted in found.items()
    }


def _add_edge(plan: ExecPlan, edge: Edge, elastic: Collection[str], found: Mapping[str, _Hosted]) -> None:
    upstream, downstream = plan.region_of(edge.source), plan.region_of(edge.target)
    leaves, enters = upstream.region.name in elastic, downstream.region.name in elastic
    if upstream is downstream or not (leaves or enters):
        return
    parts = leaves and upstream.region.kind is not RegionKind.STATELESS  # comes from any number of elements
    sending, taking = plan.senders(edge.source), plan.pipeline_of(edge.target).pes
    if united := enters and (edge.stream, edge.end) in plan.united(edge.target):
        taking = taking[:1]
    senders, takers = set(sending), set(taking)
    for pe in found.keys() & (senders | takers):
        hosted = found[pe]
        hosted.routed.add(edge)
        if pe in senders and enters and not united:
            hosted.routers.append(_router(edge, pe, downstream, taking))
        elif pe in senders and pe not in takers:
            hosted.links_out.append(routed_link(edge, pe, taking[0]))
        if pe in takers and (parts or pe not in senders):
            elsewhere = tuple(routed_link(edge, other, pe) for other in sending if other != pe)
            hosted.gathers.append(GatherPlan(edge, elsewhere, local=pe in senders))


def _add_region(plan: ExecPlan, planned: RegionPlan, found: Mapping[str, _Hosted]) -> None:
    region, pes = planned.region, planned.pipelines[-1].pes
    for pe in found.keys() & set(pes):
        found[pe].taps[region.name] = region.operators[-1]
    if region.kind is not RegionKind.STATELESS:
        return
    if streams := tuple(Edge(*edge) for edge in plan.united(region.operators[0])):
        entry, (first, *others) = Edge("", streams[0].end), planned.pipelines[0].pes
        if first in found:
            found[first].routers.append(_router(entry, first, planned, planned.pipelines[0].pes, streams))
        for pe in found.keys() & set(others) - {first}:
            found[pe].gathers.append(GatherPlan(entry, (routed_link(entry, first, pe),), local=False))
    edge, (first, *others) = home_edge(planned), pes
    if first in found:
        back = tuple(routed_link(edge, o, first) for o in others)
        found[first].gathers.append(GatherPlan(edge, back, True, in_turn=True, any_order=region.any_order))
    for pe in found.keys() & set(others) - {first}:
        found[pe].links_out.append(routed_link(edge, pe, first))


def _router(
    edge: Edge, pe: str, region: RegionPlan, taking: tuple[str, ...], streams: tuple[Edge, ...] = ()
) -> RouterPlan:
    local = taking.index(pe) if pe in taking else None
    links = {replica: routed_link(edge, pe, other) for replica, other in enumerate(taking) if other != pe}
    entry = port_of(edge.end, IN)
    keys, in_turn = region.region.keys_at(entry), region.region.is_in_turn_at(entry)
    everywhere = not in_turn and not keys  # the port of the rules
    reached = links.keys() if local is None else links.keys() | {local}
    invariant(reached == set(range(region.replicas)), "a router reaches each replica by one way", edge.name, reached)
    streams = streams or (edge,)
    return RouterPlan(edge, region.region.name, keys, region.ring, local, links, in_turn, everywhere, streams)


def home_edge(planned: RegionPlan) -> Edge:
    """Return the edge that takes the output of stateless replicas home: from each last operator to the first one's."""
    last = planned.region.operators[-1]
    return Edge(last, last)


def routers_of(plan: ExecPlan, region: str) -> Iterator[tuple[str, Edge]]:
    """Give the routers in front of a region: (PE, edge).

    Args:
        plan: in force.
        region: its name.
    """
    planned = plan.region(region)
    first = planned.region.operators[0]
    if united := plan.united(first):
        yield planned.pipelines[0].pe, Edge("", united[0][1])
    for edge in (Edge(stream, end) for stream, end in plan.streams_into(first) if (stream, end) not in united):
        for pe in plan.senders(edge.source):
            yield pe, edge


def exits_of(plan: ExecPlan, region: str) -> Iterator[Edge]:
    """Give the edges that leave a region.

    Args:
        plan: in force.
        region: its name.
    """
    planned = plan.region(region)
    if planned.region.kind is RegionKind.STATELESS:
        yield home_edge(planned)
        return
    last = planned.region.operators[-1]
    yield from (Edge(stream, end) for stream, end in plan.edges if operator_of(stream) == last)
