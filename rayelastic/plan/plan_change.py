"""The difference between two plans, which a performer carries out.

Joker section 3.3 (J15-J17): only regions that differ pause. A split or a merge moves no key, and another number of
replicas moves as few partitions as possible. Knows neither who carries it out nor in which steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rayelastic.errors.invariants import invariant
from rayelastic.plan.exec_plan import ExecPlan, Pipeline, PlanLink, RegionPlan
from rayelastic.plan.hash_ring import HashRing
from rayelastic.plan.plan_text import counted


@dataclass(frozen=True, slots=True)
class PartitionMoves:
    """Partitions whose keys, state and queued tuples go from one replica of a region to another.

    Args:
        source: number of the replica that has them.
        target: number of the replica that gets them.
        partitions: their numbers, ascending.
    """

    source: int
    target: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Relocation:
    """Operators of a replica that go to another PE with all their keys.

    Args:
        replica: number of the replica, which stays.
        operators: in the order in which tuples pass them.
        from_pe: where they run.
        to_pe: where they are to run.
    """

    replica: int
    operators: tuple[str, ...]
    from_pe: str
    to_pe: str


@dataclass(frozen=True, slots=True)
class RegionChange:
    """What changes in one region.

    Args:
        region: its name.
        moved: partitions by (from replica, to replica), ordered by these.
        started: numbers of the replicas that start.
        stopped: numbers of the replicas that stop once their keys have moved.
        cuts: operators in front of which a pipeline is cut.
        joins: operators whose pipeline is joined to the one before.
        relocated: operators that change their PE.
    """

    region: str
    moved: tuple[PartitionMoves, ...] = ()
    started: tuple[int, ...] = ()
    stopped: tuple[int, ...] = ()
    cuts: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    relocated: tuple[Relocation, ...] = ()

    @property
    def moves_keys(self) -> bool:
        """Whether state has to be moved; without, the change is cheap (J17)."""
        return bool(self.moved or self.relocated)


@dataclass(frozen=True, slots=True)
class PlanChange:
    """The difference between the plan in force and the next one.

    Args:
        old: the plan in force.
        new: the next one, with its epoch.
        regions: those that differ, in topological order; all others go on undisturbed.
        started_pes: PEs that have to be there first.
        stopped_pes: PEs that are not needed any more.
        opened: links to open.
        closed: links to close.
        rehosted: (PE, its node, the node that it goes to).
    """

    old: ExecPlan
    new: ExecPlan
    regions: tuple[RegionChange, ...]
    started_pes: tuple[str, ...] = ()
    stopped_pes: tuple[str, ...] = ()
    opened: tuple[PlanLink, ...] = ()
    closed: tuple[PlanLink, ...] = ()
    rehosted: tuple[tuple[str, str, str], ...] = ()

    @property
    def epoch(self) -> int:
        """The epoch of the routing tables from then on."""
        return self.new.epoch

    @property
    def is_live(self) -> bool:
        """Whether it can be carried out while everything runs: nothing but numbers of replicas changes."""
        return not self.rehosted and not any(part.cuts or part.joins or part.relocated for part in self.regions)

    def text(self) -> str:
        """Write the change down for people, region by region."""
        lines = [f"{self.new.topology}: epoch {self.old.epoch} -> {self.epoch}"]
        for change in self.regions:
            lines += [f"  {line}" for line in _change_lines(change, self.old, self.new)]
        for verb, names in (("start", self.started_pes), ("stop", self.stopped_pes)):
            if names:
                lines.append(f"  {verb} {', '.join(names)}")
        lines += [f"  move {pe} from {here} to {there}" for pe, here, there in self.rehosted]
        for verb, links in (("open", self.opened), ("close", self.closed)):
            lines += [f"  {verb} {link.name}: {link.from_pe} -> {link.to_pe}" for link in links]
        return "\n".join(lines) + "\n"


def plan_change(old: ExecPlan, new: ExecPlan) -> PlanChange:
    """Return what has to be done to get from one plan to another; the new one gets the next epoch.

    Args:
        old: the plan in force.
        new: a plan of the same regions.

    Raises:
        ValueError: they are plans of different regions, or numbers of partitions.

    >>> from rayelastic.plan.regions import Region, RegionKind
    >>> region = Region("r0", RegionKind.DATA_PARALLEL, ("count",), ("word",))
    >>> plan = ExecPlan("words", (RegionPlan(region, (Pipeline(("count",), ("pe0",)),)),))
    >>> change = plan_change(plan, plan.with_replicas("r0", 2))
    >>> change.epoch, change.regions[0].started, len(change.regions[0].moved[0].partitions)
    (1, (1,), 2048)
    """
    if [planned.region for planned in old.regions] != [planned.region for planned in new.regions]:
        raise ValueError(f"plans of different regions: '{old.topology}' and '{new.topology}'")
    if old.partitions != new.partitions:
        raise ValueError(f"plans with {old.partitions} and {new.partitions} partitions of keys")
    differ = [(before, after) for before, after in zip(old.regions, new.regions, strict=True) if before != after]
    names = {before.region.name for before, _ in differ}
    before_links, after_links = dict.fromkeys(old.links_of(names)), dict.fromkeys(new.links_of(names))
    return PlanChange(
        old,
        replace(new, epoch=old.epoch + 1),
        tuple(_region_change(before, after) for before, after in differ),
        tuple(pe for pe in new.pes if pe not in old.pes),
        tuple(pe for pe in old.pes if pe not in new.pes),
        tuple(link for link in after_links if link not in before_links),
        tuple(link for link in before_links if link not in after_links),
        tuple(
            (pe, here, new.nodes[pe])
            for pe, here in old.nodes.items()
            if pe in new.pes and new.nodes.get(pe, here) != here
        ),
    )


def growth_steps(old: ExecPlan, new: ExecPlan) -> tuple[ExecPlan, ...]:
    """Return the plans of the steps of a change, the last of them the new plan.

    If several PEs start for regions with one replica, one of them comes first. It starts much sooner
    than all of them, doubles the capacity of the bottleneck, and works while the others start. All else is one step.

    Args:
        old: the plan in force.
        new: a plan of the same regions.

    >>> from rayelastic.plan.regions import Region, RegionKind
    >>> region = Region("r0", RegionKind.DATA_PARALLEL, ("count",), ("word",))
    >>> plan = ExecPlan("words", (RegionPlan(region, (Pipeline(("count",), ("pe0",)),)),))
    >>> steps = growth_steps(plan, plan.with_replicas("r0", 4, ("pe0", "pe1", "pe2", "pe3")))
    >>> [step.region("r0").replicas for step in steps]
    [2, 4]
    """
    change = plan_change(old, new)
    growing = [
        planned
        for planned in (new.region(part.region) for part in change.regions if part.started)
        if old.region(planned.region.name).replicas == 1
        and planned.is_together
        and planned.pipelines[0].pes[1] in change.started_pes
    ]
    if not growing or len(change.started_pes) == 1 or not change.is_live:
        return (new,)
    most = max(growing, key=lambda planned: planned.replicas)
    pes = most.pipelines[0].pes[:2]
    first = old.with_replicas(most.region.name, 2, pes)
    invariant(set(pes) <= new.pes.keys() and pes[0] in old.pes, "the first step starts one PE of the new plan", pes)
    nodes = {pe: node for pe, node in {**new.nodes, **old.nodes}.items() if pe in first.pes}
    return first.with_nodes(nodes), new


def predecessors(old: ExecPlan, new: ExecPlan) -> dict[str, dict[str, str]]:
    """Return {PE: {operator that it hosts: the PE that had its replica before}}.

    Args:
        old: the plan before.
        new: the plan from then on; its regions have as many replicas.

    Raises:
        ValueError: a region has another number of replicas.

    >>> from rayelastic.plan.regions import Region, RegionKind
    >>> region = Region("r0", RegionKind.PIPELINE, ("parse", "rate"))
    >>> plan = ExecPlan("words", (RegionPlan(region, (Pipeline(("parse", "rate"), ("pe0",)),)),))
    >>> predecessors(plan, plan.with_split("r0", "rate", ["pe1"]))
    {'pe0': {'parse': 'pe0'}, 'pe1': {'rate': 'pe0'}}
    """
    found: dict[str, dict[str, str]] = {}
    for before, after in zip(old.regions, new.regions, strict=True):
        if before.replicas != after.replicas:
            raise ValueError(f"region {after.region.name} has {after.replicas} replicas in place of {before.replicas}")
        for replica in range(after.replicas):
            for pipeline in after.pipelines:
                there = found.setdefault(pipeline.pes[replica], {})
                there.update((operator, old.pe_of(operator, replica)) for operator in pipeline.operators)
    return found


def foreign_keys(plan: ExecPlan) -> dict[str, dict[str, tuple[tuple[int, int], ...]]]:
    """Return {PE: {operator: hash ranges of the keys whose state other replicas have}}, where there are any.

    >>> from rayelastic.plan.regions import Region, RegionKind
    >>> region = Region("r0", RegionKind.DATA_PARALLEL, ("count",), ("word",))
    >>> plan = ExecPlan("words", (RegionPlan(region, (Pipeline(("count",), ("pe0",)),)),))
    >>> foreign_keys(plan), [*foreign_keys(plan.with_replicas("r0", 2, ["pe0", "pe1"]))]
    ({}, ['pe0', 'pe1'])
    """
    found: dict[str, dict[str, tuple[tuple[int, int], ...]]] = {}
    for planned in plan.regions:
        for pe in dict.fromkeys(pe for pipeline in planned.pipelines for pe in pipeline.pes):
            if ranges := planned.foreign_keys(pe):
                hosted = [o for pipeline in planned.pipelines if pe in pipeline.pes for o in pipeline.operators]
                found.setdefault(pe, {}).update(dict.fromkeys(hosted, ranges))
    return found


def _region_change(before: RegionPlan, after: RegionPlan) -> RegionChange:
    few, many = sorted((before.replicas, after.replicas))
    moved = tuple(_moved(before.ring, after.ring))
    owners = after.ring.owners
    invariant(lambda: _after(before.ring, moved) == owners, "the moves lead from one ring to the other", moved)
    return RegionChange(
        before.region.name,
        moved,
        started=tuple(range(few, many)) if after.replicas > before.replicas else (),
        stopped=tuple(range(few, many)) if after.replicas < before.replicas else (),
        cuts=tuple(cut for cut in after.cuts if cut not in before.cuts),
        joins=tuple(cut for cut in before.cuts if cut not in after.cuts),
        relocated=tuple(_relocated(before.pipelines, after.pipelines, few)),
    )


def _moved(before: HashRing, after: HashRing) -> Iterator[PartitionMoves]:
    for (source, target), partitions in sorted(before.moves(after).items()):
        invariant(source != target, "a partition that moves changes its replica", source)
        yield PartitionMoves(source, target, tuple(partitions))


def _after(ring: HashRing, moved: tuple[PartitionMoves, ...]) -> tuple[int, ...]:
    targets = {partition: moves.target for moves in moved for partition in moves.partitions}
    return tuple(targets.get(partition, owner) for partition, owner in enumerate(ring.owners))


def _relocated(before: tuple[Pipeline, ...], after: tuple[Pipeline, ...], replicas: int) -> Iterator[Relocation]:
    now = {operator: pipeline.pes for pipeline in after for operator in pipeline.operators}
    for replica in range(replicas):
        going: dict[tuple[str, str], list[str]] = {}
        for pipeline in before:
            for operator in pipeline.operators:
                here, there = pipeline.pes[replica], now[operator][replica]
                if here != there:
                    going.setdefault((here, there), []).append(operator)
        for (here, there), operators in going.items():
            yield Relocation(replica, tuple(operators), here, there)


def _change_lines(change: RegionChange, old: ExecPlan, new: ExecPlan) -> Iterator[str]:
    before, after = old.region(change.region), new.region(change.region)
    shapes = [f"{counted(len(p.pipelines), 'pipeline')} x {counted(p.replicas, 'replica')}" for p in (before, after)]
    yield f"{change.region}  {' -> '.join(dict.fromkeys(shapes))}"
    for verb, operators in (("cut before", change.cuts), ("join", change.joins)):
        if operators:
            yield f"    {verb} {', '.join(operators)}"
    for replica in change.started:
        yield f"    start replica {replica} in {', '.join(dict.fromkeys(p.pes[replica] for p in after.pipelines))}"
    for moves in change.moved:
        yield f"    move {counted(len(moves.partitions), 'partition')} from replica {moves.source} to {moves.target}"
    for replica in change.stopped:
        yield f"    stop replica {replica} in {', '.join(dict.fromkeys(p.pes[replica] for p in before.pipelines))}"
    for going in change.relocated:
        names = ", ".join(going.operators)
        yield f"    relocate {names} of replica {going.replica} from {going.from_pe} to {going.to_pe}"
