"""How a topology runs, as an immutable value: regions, their pipelines and replicas, PEs, links, nodes.

Joker sections 3.2 and 3.3 (J13-J15): a region is cut into pipelines, and all of them are replicated together. Plans are
compared and printed by tests, kept in journals, and changed by making another one; who applies them is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.graph.spec.ports import IN, OUT, operator_of, port_of
from rayelastic.plan.hash_ring import FORMER_PARTITIONS, PARTITIONS
from rayelastic.plan.plan_parts import Pipeline, Placement, PlanLink, RegionPlan, shared
from rayelastic.plan.plan_svg import plan_svg
from rayelastic.plan.plan_text import counted, plan_text
from rayelastic.plan.regions import Region, RegionKind

__all__ = ["ExecPlan", "Pipeline", "Placement", "PlanLink", "RegionPlan"]


@dataclass(frozen=True, slots=True)
class ExecPlan:
    """What runs where.

    Args:
        topology: name of the topology.
        regions: in topological order.
        edges: (stream, where it leads to), in topological order of the latter: ('words', 'counts'), or with ports where
            there are several: ('split/odd', 'join/right').
        placement: hint for the nodes.
        nodes: {PE: node}, as far as they are placed.
        epoch: of the routing tables; every change that is carried out has a higher one.

    >>> from rayelastic.plan.regions import Region, RegionKind
    >>> region = Region("r0", RegionKind.DATA_PARALLEL, ("parse", "count"), ("word",))
    >>> planned = RegionPlan(region, (Pipeline(("parse", "count"), ("pe0",)),))
    >>> plan = ExecPlan("words", (planned,), edges=(("parse", "count"),))
    >>> wide = plan.with_split("r0", "count").with_replicas("r0", 3)
    >>> wide.region("r0").threads
    6
    >>> wide.with_replicas("r0", 1).with_merge("r0", "count") == plan
    True
    """

    topology: str
    regions: tuple[RegionPlan, ...]
    edges: tuple[tuple[str, str], ...] = ()
    placement: Placement = Placement(cpus=0.25, spread=False)  # noqa: RUF009  (it is frozen)
    nodes: Mapping[str, str] = field(default_factory=dict)
    epoch: int = 0
    _derived: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def _repr_html_(self) -> str:
        """How notebooks show it."""
        return f'<div style="overflow:auto">{plan_svg(self)}</div>'

    # --- what follows from it ---------------------------------------------------------------------------------------

    @property
    def pes(self) -> Mapping[str, tuple[str, ...]]:
        """{PE: its operators in topological order}; in the order of their first operator."""
        found: dict[str, tuple[str, ...]] | None = self._derived.get("pes")
        if found is None:
            named: dict[str, dict[str, None]] = {}
            for planned in self.regions:
                for pipeline in planned.pipelines:
                    for pe in dict.fromkeys(pipeline.pes):
                        named.setdefault(pe, {}).update(dict.fromkeys(pipeline.operators))
            found = self._derived["pes"] = {pe: tuple(names) for pe, names in named.items()}
        return found

    @property
    def links(self) -> tuple[PlanLink, ...]:
        """Streams that leave a PE, in topological order of their consumers."""
        found: tuple[PlanLink, ...] | None = self._derived.get("links")
        if found is None:
            found = self._derived["links"] = tuple(self._links(self.edges))
        return found

    def links_of(self, regions: Container[str]) -> tuple[PlanLink, ...]:
        """Return the links that start or end in some regions, in the same order; cheaper than all of a large plan."""
        names = {o: planned.region.name for planned in self.regions for o in planned.region.operators}
        return tuple(
            self._links(
                (a, b) for a, b in self.edges if names[operator_of(a)] in regions or names[operator_of(b)] in regions
            )
        )

    @property
    def threads(self) -> int:
        """How many pipeline replicas there are."""
        return sum(planned.threads for planned in self.regions)

    @property
    def partitions(self) -> int:
        """How many partitions the keys of each region have; a job keeps their number."""
        return self.regions[0].partitions if self.regions else PARTITIONS

    def region(self, name: str) -> RegionPlan:
        """Return the plan of a region.

        Raises:
            ConfigError: there is no such region.
        """
        try:
            return self.regions[self._index[name]]
        except KeyError:
            raise ConfigError(
                f"topology '{self.topology}' has no region '{name}'",
                hint=f"Its regions are r0 to r{len(self.regions) - 1}",
                code=ErrorCode.UNKNOWN_REGION,
            ) from None

    def pipeline_of(self, operator: str) -> Pipeline:
        """Return the pipeline of an operator; KeyError if the plan doesn't have it."""
        if "pipelines" not in self._derived:
            self._derived["pipelines"] = {
                o: p for planned in self.regions for p in planned.pipelines for o in p.operators
            }
        found: Pipeline = self._derived["pipelines"][operator]
        return found

    def region_of(self, operator: str) -> RegionPlan:
        """Return the region of an operator; KeyError if the plan doesn't have it."""
        if "regions" not in self._derived:
            self._derived["regions"] = {
                o: planned.region.name for planned in self.regions for o in planned.region.operators
            }
        return self.region(self._derived["regions"][operator])

    def pe_of(self, operator: str, replica: int = 0) -> str:
        """Return the PE of a replica of an operator; KeyError if the plan doesn't have it."""
        return self.pipeline_of(operator).pes[replica]

    def senders(self, operator: str) -> tuple[str, ...]:
        """List the elements that the output of an operator leaves from; KeyError if the plan doesn't have it.

        One for each replica. But the outputs of stateless replicas are merged in the element of the first one.
        """
        planned, pes = self.region_of(operator), self.pipeline_of(operator).pes
        together = planned.region.kind is RegionKind.STATELESS and operator == planned.region.operators[-1]
        return pes[:1] if together else tuple(dict.fromkeys(pes))

    def streams_into(self, operator: str) -> tuple[tuple[str, str], ...]:
        """Return the edges that lead to an operator."""
        if "into" not in self._derived:
            into: dict[str, list[tuple[str, str]]] = {}
            for edge in self.edges:
                into.setdefault(operator_of(edge[1]), []).append(edge)
            self._derived["into"] = into
        return tuple(self._derived["into"].get(operator, ()))

    def united(self, operator: str) -> tuple[tuple[str, str], ...]:
        """Return the edges that meet where the first replica is, before replicas take turns; none: one place emits."""
        region = self.region_of(operator).region
        if operator != region.operators[0]:
            return ()
        edges = tuple(edge for edge in self.streams_into(operator) if region.is_in_turn_at(port_of(edge[1], IN)))
        alone = len(edges) == 1 and self.region_of(operator_of(edges[0][0])).region.kind.leaves_from_one_place
        return () if alone else edges

    def instances(self, pe: str) -> tuple[tuple[str, int], ...]:
        """List what a PE runs: (operator, replica), in topological order, replica by replica."""
        return tuple(
            (operator, replica)
            for planned in self.regions
            for replica in range(planned.replicas)
            for pipeline in planned.pipelines
            if pipeline.pes[replica] == pe
            for operator in pipeline.operators
        )

    def upstream(self, region: str) -> tuple[str, ...]:
        """Return the names of the regions that feed a region."""
        if "upstream" not in self._derived:
            feeding: dict[str, dict[str, None]] = {planned.region.name: {} for planned in self.regions}
            for source, target in self.edges:
                here, there = (self.region_of(operator_of(end)).region.name for end in (source, target))
                if here != there:
                    feeding[there][here] = None
            self._derived["upstream"] = {name: tuple(names) for name, names in feeding.items()}
        found: tuple[str, ...] = self._derived["upstream"][region]
        return found

    def fresh_pes(self, count: int) -> tuple[str, ...]:
        """Return names for new PEs: 'pe' and a number that no element of the plan has."""
        taken, number = self.pes, 0
        found: list[str] = []
        while len(found) < count:
            name = f"pe{number}"
            number += 1
            if name not in taken:
                found.append(name)
        return tuple(found)

    def _links(self, edges: Iterable[tuple[str, str]]) -> Iterator[PlanLink]:
        for stream, end in edges:
            source, target = operator_of(stream), operator_of(end)
            sending, taking = self.pipeline_of(source), self.pipeline_of(target)
            if self.region_of(source) is self.region_of(target):
                pairs = zip(sending.pes, taking.pes, strict=True)  # a replica keeps its keys from end to end (J12)
                ends = dict.fromkeys(pair for pair in pairs if pair[0] != pair[1])
            else:
                alone = len(taking.pes) == 1 or (stream, end) in self.united(target)
                to = taking.pes[:1] if alone else tuple(dict.fromkeys(taking.pes))
                ends = dict.fromkeys((a, b) for a in self.senders(source) for b in to if a != b)
            first = (sending.pe, taking.pe)
            for pair in ends:
                output, entry = port_of(stream, OUT), port_of(end, IN)
                yield PlanLink(source, target, *pair, further=pair != first, output=output, input=entry)

    # --- other plans made of it (J15) -------------------------------------------------------------------------------

    def with_split(self, region: str, at: str, pes: Sequence[str] | None = None) -> Self:
        """Cut a pipeline of a region in two, in all replicas. No key moves (J17).

        Args:
            region: name of the region.
            at: the operator that starts the new pipeline.
            pes: the PE of each replica of the new pipeline; None: where they are.

        Raises:
            ConfigError: no such operator in the region, or it starts a pipeline already.
        """
        planned = self.region(region)
        if planned.region.kind in (RegionKind.LOOP, RegionKind.STAGE):
            raise ConfigError(
                f"its region {region} is {'a loop' if planned.region.kind is RegionKind.LOOP else 'an elastic stage'}, "
                "which stays together",
                operator=at,
                hint="Split another region",
                code=ErrorCode.FIXED_REGION,
            )
        pipelines: list[Pipeline] = []
        for pipeline in planned.pipelines:
            cut = pipeline.operators.index(at) if at in pipeline.operators else 0
            if cut:
                there = pipeline.pes if pes is None else self._checked(pes, planned.replicas, at)
                pipelines.append(Pipeline(pipeline.operators[:cut], pipeline.pes))
                pipelines.append(Pipeline(pipeline.operators[cut:], there))
            else:
                pipelines.append(pipeline)
        if len(pipelines) == len(planned.pipelines):
            raise ConfigError(
                f"region {region} has no pipeline that starts with it",
                operator=at,
                hint=f"Name one of {', '.join(self._inner(planned)) or 'another region'}",
                code=ErrorCode.UNKNOWN_OPERATOR,
            )
        return self._with_region(replace(planned, pipelines=tuple(pipelines)))

    def with_merge(self, region: str, at: str) -> Self:
        """Join a pipeline to the one before it, where that one is, in all replicas.

        Args:
            region: name of the region.
            at: the operator that starts the pipeline that is to vanish.

        Raises:
            ConfigError: no such pipeline.
        """
        planned = self.region(region)
        if at not in planned.cuts:
            raise ConfigError(
                f"no pipeline of region {region} starts with it, but for the first",
                operator=at,
                hint=f"Name one of {', '.join(planned.cuts)}" if planned.cuts else "Split the region first",
                code=ErrorCode.UNKNOWN_OPERATOR,
            )
        number = planned.cuts.index(at)
        before, after = planned.pipelines[number : number + 2]
        joined = Pipeline(before.operators + after.operators, before.pes)
        pipelines = (*planned.pipelines[:number], joined, *planned.pipelines[number + 2 :])
        return self._with_region(replace(planned, pipelines=pipelines))

    def with_replicas(self, region: str, replicas: int, pes: Sequence[str] | None = None) -> Self:
        """Give a region another number of replicas, of all its pipelines (J15).

        Args:
            region: name of the region, which has to be data-parallel.
            replicas: 1 or more, at most the number of partitions.
            pes: the PE of each replica; None: the present ones stay, new ones go where the first is.

        Raises:
            ConfigError: the region can't be replicated, or not that often.
        """
        planned = self.region(region)
        first = planned.region.operators[0]
        if not planned.region.kind.is_replicable and replicas != 1:
            raise ConfigError(
                f"its region {region} is {planned.region.kind.value}, which can't be replicated",
                operator=first,
                hint="Regions with a keyed operator can be, and functions and classes without state: "
                "group the stream with key_by",
                code=ErrorCode.FIXED_REGION,
            )
        if not 1 <= replicas <= planned.partitions:
            raise ConfigError(
                f"{counted(replicas, 'replica')} of region {region}",
                operator=first,
                hint=f"Pass between 1 and {planned.partitions}, the number of partitions of its keys",
                code=ErrorCode.OUT_OF_RANGE,
            )
        pipelines = []
        for pipeline in planned.pipelines:
            if pes is not None:
                there = self._checked(pes, replicas, first)
            else:
                there = pipeline.pes[:replicas] + pipeline.pes[:1] * (replicas - len(pipeline.pes))
            pipelines.append(Pipeline(pipeline.operators, there))
        shares = planned.shares if replicas == planned.replicas else ()
        return self._with_region(replace(planned, pipelines=tuple(pipelines), shares=shares))

    def with_shares(self, region: str, shares: Sequence[int]) -> Self:
        """Give the replicas of a region other numbers of partitions of its keys; none: as many as every other.

        Raises:
            ConfigError: it has no keys, or they aren't all partitions, or a replica has none.
        """
        return self._with_region(shared(self.region(region), shares))

    def with_nodes(self, nodes: Mapping[str, str]) -> Self:
        """Place the PEs: {PE: node}."""
        return replace(self, nodes=dict(nodes))

    @property
    def _index(self) -> Mapping[str, int]:
        """The place of each region; the same in all plans that are made of this one."""
        found: dict[str, int] | None = self._derived.get("index")
        if found is None:
            found = self._derived["index"] = {planned.region.name: i for i, planned in enumerate(self.regions)}
        return found

    def _with_region(self, changed: RegionPlan) -> Self:
        at = self._index[changed.region.name]
        made = replace(self, regions=(*self.regions[:at], changed, *self.regions[at + 1 :]))
        made._derived["index"] = self._index
        return made

    def _checked(self, pes: Sequence[str], replicas: int, operator: str) -> tuple[str, ...]:
        if len(pes) != replicas:
            raise ConfigError(
                f"{counted(len(pes), 'PE')} for {counted(replicas, 'replica')}",
                operator=operator,
                hint="Name one for each replica",
                code=ErrorCode.OUT_OF_RANGE,
            )
        return tuple(pes)

    @staticmethod
    def _inner(planned: RegionPlan) -> list[str]:
        return [operator for pipeline in planned.pipelines for operator in pipeline.operators[1:]]

    # --- text and journal -------------------------------------------------------------------------------------------

    def text(self) -> str:
        """Write the plan down for people, in at most 80 columns where names allow it."""
        return plan_text(self)

    def to_json(self) -> str:
        """Write the plan down for programs."""
        return json.dumps(self.to_dict(), indent=2)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain dicts, lists, strings and numbers, with its PEs and links."""
        record = self.to_record()
        return {name: record[name] for name in ("topology", "epoch", "regions", "edges")} | {
            "pes": {pe: list(operators) for pe, operators in self.pes.items()},
            "links": [{"name": link.name, "from_pe": link.from_pe, "to_pe": link.to_pe} for link in self.links],
            **record,
        }

    def to_record(self) -> dict[str, Any]:
        """Return the same without what follows from it: links grow with the square of the replicas."""
        return {
            "topology": self.topology,
            "epoch": self.epoch,
            "partitions": self.partitions,
            "regions": [
                planned.region.to_dict()
                | {
                    "replicas": planned.replicas,
                    "pipelines": [{"operators": list(p.operators), "pes": list(p.pes)} for p in planned.pipelines],
                }
                | ({"shares": list(planned.shares)} if planned.shares else {})
                for planned in self.regions
            ],
            "edges": [list(edge) for edge in self.edges],
            "placement": {"cpus": self.placement.cpus, "spread": self.placement.spread},
            "nodes": dict(self.nodes),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the plan from the result of `to_record` or `to_dict`; what follows from it is computed again.

        A record without a number of partitions was written when all jobs had 271.
        """
        regions, partitions = [], values.get("partitions", FORMER_PARTITIONS)
        for told in values["regions"]:
            pipelines = tuple(Pipeline(tuple(p["operators"]), tuple(p["pes"])) for p in told["pipelines"])
            region = Region.from_dict(told, tuple(operator for p in pipelines for operator in p.operators))
            regions.append(RegionPlan(region, pipelines, tuple(told.get("shares", ())), partitions))
        return cls(
            values["topology"],
            tuple(regions),
            tuple((source, target) for source, target in values["edges"]),
            Placement(**values["placement"]),
            dict(values["nodes"]),
            values["epoch"],
        )
