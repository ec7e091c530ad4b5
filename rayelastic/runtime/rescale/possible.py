"""The plans that a running job can change to, and the one that leaves a node. Pure: knows plans and nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.plan.node_placement import FreeNodes, Node, place
from rayelastic.plan.plan_change import PlanChange, plan_change, predecessors
from rayelastic.plan.routing import keeps_replicas

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan


def checked_change(now: ExecPlan, wanted: ExecPlan, elastic: Collection[str], nodes: Sequence[Node]) -> PlanChange:
    """Return the change from one plan to another.

    Args:
        now: The plan in force.
        wanted: Another one.
        elastic: Names of the regions that can have another number of replicas.
        nodes: The existing nodes.

    Raises:
        ConfigError: A running job can't change to it at once; the message names the region and a hint.
    """
    try:
        change = plan_change(now, wanted)
    except ValueError as error:
        raise ConfigError(
            f"{error}", hint="Make the plan of job.plan(), by its with_... methods", code=ErrorCode.BAD_CHANGE
        ) from None
    for part in change.regions:
        planned = wanted.region(part.region)
        first = planned.region.operators[0]
        if any(len(set(pipeline.pes)) < len(pipeline.pes) for pipeline in planned.pipelines):
            raise ConfigError(
                f"two replicas of its region {part.region} would share a PE",
                operator=first,
                hint="Name another one for each, such as plan.fresh_pes(2)",
                code=ErrorCode.BAD_CHANGE,
            )
        if planned.region.kind.is_fixed and len(planned.pipelines) > 1:
            raise ConfigError(
                f"its region {part.region} is {planned.region.kind.value}, which isn't cut",
                operator=first,
                code=ErrorCode.FIXED_REGION,
            )
        if not part.moved and not (part.started or part.stopped):
            continue
        if part.region not in elastic:
            raise keeps_replicas(now.region(part.region))
        if not change.is_live:
            raise ConfigError(
                f"region {part.region} would change replicas while operators move",
                operator=first,
                hint="Make one change after the other",
                code=ErrorCode.BAD_CHANGE,
            )
    names = {node.name for node in nodes}
    if strange := sorted({node for pe, node in wanted.nodes.items() if pe in wanted.pes and node not in names}):
        raise ConfigError(
            f"there is no node {', '.join(strange)}",
            hint=f"There are {', '.join(sorted(names))}",
            code=ErrorCode.UNKNOWN_NODE,
        )
    return change


def plan_without(plan: ExecPlan, node: str, nodes: Sequence[Node]) -> ExecPlan:
    """Return the plan with nothing on a node any more; the other nodes have room, or are overcommitted.

    Args:
        plan: The plan with the nodes of its PEs.
        node: The node to leave.
        nodes: The existing nodes, including this one.

    Raises:
        ConfigError: An unknown node, or the only one.

    >>> from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
    >>> from rayelastic.plan.regions import Region, RegionKind
    >>> region = Region("r0", RegionKind.PIPELINE, ("parse",))
    >>> plan = ExecPlan("words", (RegionPlan(region, (Pipeline(("parse",), ("pe0",)),)),), nodes={"pe0": "a"})
    >>> dict(plan_without(plan, "a", [Node("a", 2), Node("b", 2)]).nodes)
    {'pe0': 'b'}
    """
    others = [other for other in nodes if other.name != node]
    if len(others) == len(nodes):
        known = ", ".join(sorted(other.name for other in nodes))
        raise ConfigError(f"the job mustn't use node {node!r}", hint=f"It may use {known}", code=ErrorCode.UNKNOWN_NODE)
    if not others:
        raise ConfigError(
            f"the cluster has no node but {node!r}",
            hint="Add one, or stop the job into a snapshot",
            code=ErrorCode.NO_ROOM,
        )
    staying = {pe: at for pe, at in plan.nodes.items() if at != node and pe in plan.pes}
    placement = place(plan.with_nodes(staying), others, {})
    free = FreeNodes([replace(other, cpus=0.0) for other in others])
    at = {**placement.nodes, **staying}
    for home in at.values():
        free.cpus[home] -= 1.0
    for pe in placement.homeless:  # every CPU is used: overcommit rather than fail
        if pe not in at:
            at[pe] = max(free.cpus, key=lambda name: free.cpus[name])
            free.cpus[at[pe]] -= 1.0
    return plan.with_nodes({pe: at[pe] for pe in plan.pes})


def with_homes(now: ExecPlan, wanted: ExecPlan) -> ExecPlan:
    """Return the new plan with a node for each PE; by default, that of its operators before.

    Args:
        now: The plan in force, placed.
        wanted: Another one, with as many replicas.
    """
    nodes = {}
    owners = predecessors(now, wanted)
    for pe in wanted.pes:
        before = next(iter(owners[pe].values()))
        home = wanted.nodes.get(pe) or now.nodes.get(pe) or now.nodes.get(before)
        if home is not None:
            nodes[pe] = home
    return wanted.with_nodes(nodes)
