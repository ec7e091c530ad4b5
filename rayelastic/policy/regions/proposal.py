"""From wanted shapes to actions on a plan, as far as nodes have room. Decides neither shapes nor whether they pay."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.node_placement import Node
from rayelastic.policy.regions.actions import (
    AdaptationAction,
    MergePipelines,
    NodeRequest,
    RebalanceRegion,
    SplitPipeline,
)
from rayelastic.policy.regions.hosting import Hosting, load_of
from rayelastic.policy.regions.model import Shape, shape_of
from rayelastic.policy.regions.sizing import Sizing
from rayelastic.reasons import Code

__all__ = ["Proposal", "next_node", "propose"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan that could be next.

    Args:
        plan: with the nodes of new PEs.
        actions: that lead there.
        request: for the machines that replicas found no room on.
    """

    plan: ExecPlan
    actions: tuple[AdaptationAction, ...]
    request: NodeRequest | None = None

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of the regions that change."""
        return {action.region: shape_of(self.plan.region(action.region)) for action in self.actions}


def propose(
    sizing: Sizing, wanted: Mapping[str, Shape], nodes: Sequence[Node], relieve: Collection[str] = ()
) -> Proposal:
    """Return the plan with the wanted shapes, or as much of it as there is room for.

    Args:
        sizing: what is known, and the plan in force.
        wanted: {region: shape}.
        nodes: empty: one host without bounds.
        relieve: nodes that are too full, from which replicas shall go elsewhere.
    """
    most = sizing.can.most_processes(nodes)
    possible, each = _within(sizing, wanted, most), sizing.cpu_each(wanted)
    missing = sum((shape[1] - possible[name][1]) * each[name] for name, shape in wanted.items())
    wanted, each = possible, sizing.cpu_each(possible)
    plan = sizing.plan
    for name, (_, replicas) in wanted.items():  # what stops makes room first
        if replicas < plan.region(name).replicas:
            plan = plan.with_replicas(name, replicas)
    used = load_of(plan, each)
    may_take = [node for node in nodes if node.name not in relieve] or nodes
    hosting = Hosting(
        sizing.plan,
        may_take,
        used,
        aim=sizing.thresholds.aim,
        busy=sizing.thresholds.busy,
        shares=sizing.can.shares,
        most=most,
    )
    plan = sizing.plan
    actions: list[AdaptationAction] = []
    for name, shape in wanted.items():
        made, lacking = _shaped(plan, name, shape, hosting, each[name])
        missing += lacking
        for action in made:
            plan = action.apply(plan)
        actions += made
    if sizing.can.moves:
        for action in _relieved(sizing, plan, hosting, {n: sizing.full_nodes[n] for n in relieve}, wanted):
            plan = action.apply(plan)
            actions.append(action)
        for action in _apart(sizing, plan, hosting, each):
            plan = action.apply(plan)
            actions.append(action)
    tried = {action.region for action in actions} & wanted.keys()
    vain = {name for name in tried if shape_of(plan.region(name)) in sizing.rejected.get(name, ())}
    if vain:  # there is room only for what was tried in vain
        return propose(sizing, {name: shape for name, shape in wanted.items() if name not in vain}, nodes, relieve)
    placed = {pe: node for pe, node in {**plan.nodes, **hosting.started}.items() if pe in plan.pes}
    request = NodeRequest(Code.NO_ROOM_FOR_CPUS(cpus=missing), missing) if missing else None
    return Proposal(plan.with_nodes(placed), tuple(actions), request or sizing.request)


def next_node(sizing: Sizing, wanted: Mapping[str, Shape], nodes: Sequence[Node]) -> str | None:
    """Return the node of the first PE that a growth starts; empty: any; None: it starts none.

    Args:
        sizing: what is known, and the plan in force.
        wanted: {region: shape}.
        nodes: empty: one host without bounds.
    """
    if not wanted:
        return None
    plan = propose(sizing, wanted, nodes).plan
    return next((plan.nodes.get(pe, "") for pe in plan.pes if pe not in sizing.plan.pes), None)


def _within(sizing: Sizing, wanted: Mapping[str, Shape], most: int | None) -> dict[str, Shape]:
    """Return the shapes with no more processes than there may be: of how many come depends what each takes of its
    node.
    """
    left = float("inf") if most is None else max(0, most - len(sizing.plan.pes))
    found: dict[str, Shape] = {}
    for name, (cuts, replicas) in wanted.items():
        planned = sizing.plan.region(name)
        if planned.region.token_bound or not sizing.can.shares:
            more = min(replicas - planned.replicas, left)
            left -= max(0, more)
            replicas = planned.replicas + int(more)
        found[name] = cuts, replicas
    return found


def _shaped(
    plan: ExecPlan, name: str, shape: Shape, hosting: Hosting, cpus: float
) -> tuple[list[AdaptationAction], float]:
    """Return what leads to a shape, as far as there is room, and the CPUs that are missing."""
    planned = plan.region(name)
    cuts, replicas = shape
    made: list[AdaptationAction] = [
        MergePipelines(name, pipeline.operators[0], pipeline.pes)
        for pipeline in planned.pipelines[1:]
        if pipeline.operators[0] not in cuts
    ]
    made += [SplitPipeline(name, cut) for cut in cuts if cut not in planned.cuts]
    if replicas == planned.replicas:
        return made, 0.0
    if not planned.is_together:  # pinned apart: new replicas go where the first is
        return [*made, RebalanceRegion(name, replicas, planned.replicas, previous_shares=planned.shares)], 0.0
    present = planned.pipelines[0].pes
    pes = hosting.host(present, replicas, cpus, own_process=bool(planned.region.token_bound))
    lacking = (replicas - len(pes)) * cpus
    if pes == present:
        return made, lacking
    return [*made, RebalanceRegion.of(plan, name, len(pes), pes)], lacking


def _relieved(
    sizing: Sizing, plan: ExecPlan, hosting: Hosting, full: Mapping[str, float], wanted: Mapping[str, Shape]
) -> list[AdaptationAction]:
    """Move replicas from nodes that are too full to others, the last ones first, until what is left fits."""
    over = {node: -sizing.thresholds.aim * cpus for node, cpus in full.items()}
    homes = {
        name: [plan.nodes.get(pe, "") for pe in plan.region(name).pipelines[0].pes] for name in sizing.replica_cpus
    }
    for name, cpus in sizing.replica_cpus.items():
        for node, cpu in zip(homes[name], cpus, strict=False):
            if node in over:
                over[node] += cpu
    made: list[AdaptationAction] = []
    for planned in reversed(plan.regions):
        name = planned.region.name
        if name in wanted or name not in homes or not planned.is_together or planned.region.kind.is_fixed:
            continue
        pes = list(planned.pipelines[0].pes)
        for replica in reversed(range(len(pes))):
            cpu = sizing.replica_cpus[name][replica]
            if over.get(homes[name][replica], 0.0) <= 0:
                continue
            started = hosting.start(pes[replica], cpu, native=not planned.region.token_bound)
            if started is not None:
                over[homes[name][replica]] -= cpu
                pes[replica] = started
        if tuple(pes) != planned.pipelines[0].pes:
            made.append(RebalanceRegion.of(plan, name, len(pes), tuple(pes)))
    return made


def _apart(sizing: Sizing, plan: ExecPlan, hosting: Hosting, each: Mapping[str, float]) -> list[AdaptationAction]:
    """Move token-bound replicas out of processes whose token is in too much demand; the first one stays."""
    use = sizing.token_use(plan)
    if max(use.values(), default=0.0) <= sizing.thresholds.grow_above:
        return []
    owned: set[str] = set()
    made: list[AdaptationAction] = []
    for planned in plan.regions:
        name, present = planned.region.name, planned.pipelines[0].pes
        if not planned.region.token_bound or name not in sizing.models:
            continue
        mine = sizing.need[name] * sizing.models[name].token_time / planned.replicas
        pes = list(present)
        for replica, pe in enumerate(present):
            stays = planned.region.kind.is_fixed or pe not in owned
            if stays or use.get(pe, 0.0) <= sizing.thresholds.aim:
                owned.add(pe)
                continue
            started = hosting.start(pe, each[name], native=False)
            if started is not None:
                use[pe] -= mine
                pes[replica] = started
                owned.add(started)
        if tuple(pes) != present:
            made.append(RebalanceRegion.of(plan, name, len(pes), tuple(pes)))
    return made
