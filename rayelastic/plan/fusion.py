"""Which PE hosts which operators.

By default all regions are fused into one. `pes` cuts between regions into contiguous pieces of the topological order,
so links only lead forward; `pes={operator: PE}` cuts inside regions, too. Knows no nodes and no load.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.order import Graph, topological_order
from rayelastic.plan.config import JobConfig
from rayelastic.plan.exec_plan import ExecPlan, Pipeline, Placement, RegionPlan
from rayelastic.plan.regions import Region, regions
from rayelastic.plan.replica_bounds import check_elastic, with_least


def plan_topology(graph: Graph, config: JobConfig | None = None) -> ExecPlan:
    """Plan how a topology starts: each region with one pipeline and one replica (J13), or the fewest that it may have.

    Args:
        graph: a topology.
        config: where to cut; JobConfig() fuses everything into one PE.

    Raises:
        ConfigError: more PEs than regions, or a PE or threading model of an unknown operator.
        GraphError: the graph has a cycle.
    """
    config = config or JobConfig()
    pes = config.pes
    if isinstance(pes, Mapping):
        _check_known(graph, pes, "pes")
    _check_known(graph, config.replicas, "replicas")
    if isinstance(config.threads.model, Mapping):
        _check_known(graph, config.threads.model, "threads")
    formed = regions(graph)
    order = topological_order(graph.operators)
    if isinstance(pes, Mapping):
        place = _pinned(graph.operators, order, pes)
        _check_kept(formed, place)
    else:
        place = _cut(formed, pes)
    edges = tuple(edge for name in order for edge in graph.operators[name].edges)
    plan = ExecPlan(
        graph.name,
        tuple(RegionPlan(region, tuple(_pipelines(region, place))) for region in formed),
        edges,
        Placement(config.threads.ray_cpus, spread=len(set(place.values())) > 1),
    )
    if config.goal is not None:
        check_elastic(plan, f"goal={config.goal}")
    return with_least(plan, config.replicas, config.elasticity.max_processes)


def _check_known(graph: Graph, named: Iterable[str], setting: str) -> None:
    for operator in named:
        if operator not in graph.operators:
            close = difflib.get_close_matches(str(operator), graph.operators, n=1)
            meant = f"Did you mean '{close[0]}'? " if close else ""
            raise ConfigError(
                f"JobConfig({setting}=...) names it, but topology '{graph.name}' has no such operator",
                operator=operator,
                hint=f"{meant}Use the name that the operator was declared with",
                code=ErrorCode.UNKNOWN_OPERATOR,
            )


def _pinned(operators: Mapping[str, OperatorSpec], order: list[str], pins: Mapping[str, int | str]) -> dict[str, str]:
    """Place operators: one that isn't pinned runs in the PE of its first input, a source in number 0."""
    place: dict[str, str] = {}
    for name in order:
        upstream = operators[name].upstream
        if name in pins:
            pe = pins[name]
            place[name] = pe if isinstance(pe, str) else f"pe{pe}"
        else:
            place[name] = place[upstream[0]] if upstream else "pe0"
    return place


def _check_kept(formed: Sequence[Region], place: Mapping[str, str]) -> None:
    for region in formed:
        apart = [name for name in region.operators if place[name] != place[region.operators[0]]]
        if region.kind.is_fixed and apart:
            head, what = region.operators[0], region.kind.value
            raise ConfigError(
                f"JobConfig(pes=...) puts it into {place[apart[0]]}, and '{head}' of its {what} into {place[head]}",
                operator=apart[0],
                hint=f"Name the first operator of the {what} only: those downstream follow it",
                code=ErrorCode.CONFLICTING_ARGUMENTS,
            )


def _cut(formed: Sequence[Region], pes: int) -> dict[str, str]:
    """Cut the regions into contiguous pieces."""
    if pes > len(formed):
        raise ConfigError(
            f"JobConfig(pes={pes}): the topology has {len(formed)} regions to distribute",
            hint=f"Pass pes={len(formed)} or less, or cut inside regions by {{operator: number}}",
            code=ErrorCode.OUT_OF_RANGE,
        )
    place: dict[str, str] = {}
    at = 0
    for number, taken in enumerate(balanced([len(region.operators) for region in formed], pes)):
        for region in formed[at : at + taken]:
            place.update(dict.fromkeys(region.operators, f"pe{number}"))
        at += taken
    return place


def balanced(weights: Sequence[int], parts: int) -> list[int]:
    """Cut a sequence into contiguous, non-empty parts whose heaviest is as light as can be.

    Args:
        weights: positive.
        parts: between 1 and the number of weights.

    Returns:
        How many weights each part takes; among the best cuts, one whose parts are close to equal.

    >>> balanced([1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 4)
    [3, 2, 3, 2]
    >>> balanced([1, 5, 1, 1], 3)
    [1, 1, 2]
    """
    low, high = max(weights), sum(weights)
    while low < high:
        middle = (low + high) // 2
        if _parts_from(weights, middle)[0] <= parts:
            high = middle
        else:
            low = middle + 1
    needed = _parts_from(weights, low)
    taken: list[int] = []
    at = 0
    for left in range(parts, 0, -1):
        ideal = sum(weights[at:]) / left
        end, load = at, 0
        last = len(weights) - (left - 1)  # the other parts need one each
        while end < last and load + weights[end] <= low:
            enough = load + weights[end] / 2 > ideal and needed[end] <= left - 1
            if end > at and enough:
                break
            load += weights[end]
            end += 1
        taken.append(end - at)
        at = end
    return taken


def _parts_from(weights: Sequence[int], capacity: int) -> list[int]:
    """Count, for each start, the parts of at most `capacity` that the rest needs; 0 behind the end."""
    needed = [0] * (len(weights) + 1)
    end, load = len(weights), 0
    for start in range(len(weights) - 1, -1, -1):
        load += weights[start]
        while load > capacity:
            end -= 1
            load -= weights[end]
        needed[start] = 1 + needed[end]
    return needed


def _pipelines(region: Region, place: Mapping[str, str]) -> Iterable[Pipeline]:
    """Start with one pipeline; pins inside the region cut it."""
    members: list[str] = []
    for name in region.operators:
        if members and place[members[-1]] != place[name]:
            yield Pipeline(tuple(members), (place[members[-1]],))
            members = []
        members.append(name)
    yield Pipeline(tuple(members), (place[members[-1]],))
