"""What a plan asks of the GIL of each PE and of the CPUs of each host, by what is known of regions. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rayelastic.graph.spec.ports import operator_of
from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.node_placement import Node
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.model import RegionModel
from rayelastic.policy.regions.sizing import Sizing

__all__ = ["cpu_loads", "host_use", "is_movable", "moves_whole", "operator_loads", "token_loads"]


def token_loads(plan: ExecPlan, models: Mapping[str, RegionModel], need: Mapping[str, float]) -> dict[str, float]:
    """Return the CPU time under the GIL that each PE needs per second; it can use at most 1.

    Args:
        plan: in force.
        models: of its regions.
        need: {region: tuples/s}.
    """
    loads: dict[str, float] = dict.fromkeys(plan.pes, 0.0)
    for planned in plan.regions:
        for pipeline in planned.pipelines:
            for name, load in operator_loads(planned, pipeline, models, need):
                for pe in pipeline.pes if name in planned.region.token_bound else ():
                    loads[pe] += load
    return loads


def cpu_loads(plan: ExecPlan, sizing: Sizing) -> dict[str, float]:
    """Return the CPUs that each PE needs for its operators and for the ends of its links.

    Args:
        plan: any that could be in force.
        sizing: what is known of its regions.
    """
    loads: dict[str, float] = dict.fromkeys(plan.pes, 0.0)
    for planned in plan.regions:
        model, rate = sizing.models.get(planned.region.name), sizing.need.get(planned.region.name, 0.0)
        outside = model.spread * model.overhead * rate / planned.replicas if model is not None else 0.0
        for pipeline in planned.pipelines:
            here = sum(load for _, load in operator_loads(planned, pipeline, sizing.models, sizing.need))
            for pe in pipeline.pes:
                loads[pe] += here + outside
    for source, target in plan.edges:
        sending, taking = operator_of(source), operator_of(target)
        leaves, arrives = plan.pipeline_of(sending).pes, plan.pipeline_of(taking).pes
        if leaves == arrives:
            continue
        tuples = _taken(plan, sizing, taking) / len(plan.streams_into(taking))
        for pes in (leaves, arrives):
            for pe in pes:
                loads[pe] += tuples * sizing.can.link_seconds(sending) / len(pes)
    return loads


def host_use(plan: ExecPlan, sizing: Sizing, nodes: Sequence[Node]) -> dict[str, float]:
    """Return the share of its CPUs that each host needs; a PE without a node counts on the first one."""
    needed = dict.fromkeys((node.name for node in nodes), 0.0)
    for pe, load in cpu_loads(plan, sizing).items() if nodes else ():
        node = plan.nodes.get(pe, nodes[0].name)
        needed[node] = needed.get(node, 0.0) + load
    return {node.name: needed[node.name] / node.cpus for node in nodes}


def operator_loads(
    planned: RegionPlan, pipeline: Pipeline, models: Mapping[str, RegionModel], need: Mapping[str, float]
) -> Iterator[tuple[str, float]]:
    """Yield each operator of a pipeline with the CPUs that one replica of it needs."""
    model = models.get(planned.region.name)
    if model is None:
        return
    rate = need.get(planned.region.name, 0.0) / planned.replicas
    for name, time in zip(planned.region.operators, model.cpu_times, strict=True):
        if name in pipeline.operators:
            yield name, rate * time


def is_movable(planned: RegionPlan, can: Actuation) -> bool:
    """Tell whether operators of a region go to other PEs where they lack something: where replicas can't help."""
    return planned.replicas == 1 and not planned.region.kind.is_fixed and not can.replicates(planned)


def moves_whole(planned: RegionPlan, can: Actuation) -> bool:
    """Tell whether a region that may have replicas has one, and could go to another host without being split."""
    return planned.replicas == 1 and len(planned.pipelines) == 1 and can.replicates(planned)


def _taken(plan: ExecPlan, sizing: Sizing, operator: str) -> float:
    """Return the tuples/s that an operator takes."""
    region = plan.region_of(operator).region
    model, rate = sizing.models.get(region.name), sizing.need.get(region.name, 0.0)
    if model is None or not model.passes:
        return rate
    return rate * model.passes[region.operators.index(operator)]
