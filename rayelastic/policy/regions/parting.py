"""Move operators that compete for one GIL to separate processes, and merge them again: where replicas can't help.

A process has one GIL. Regions that can have replicas get replicas. If operators of the other regions need the GIL and
it is the bottleneck, the later ones move to a process of their own. The cut minimises the load of the busier of the two
processes (Joker's pipelines, with processes for threads). Such a change costs a pause of the whole job; whether that
pays is not decided here. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.node_placement import Node
from rayelastic.policy.regions.actions import AdaptationAction, MergePipelines, RebalanceRegion, SplitPipeline
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.hosting import Hosting, load_of
from rayelastic.policy.regions.model import RegionModel, Shape
from rayelastic.policy.regions.sizing import Sizing
from rayelastic.reasons import Code, Reason

__all__ = ["PARTINGS", "Parting", "joined", "parted", "token_loads", "why_together"]

PARTINGS = "processes"  # under which name partings are rejected, beside regions
LEAST_GAIN = 0.1  # relative, of what the busier process has to do


@dataclass(frozen=True, slots=True)
class Parting:
    """A plan with one process more or less.

    Args:
        plan: with the node of a new process.
        actions: that lead there.
        operators: that change their process and need the GIL.
        gain: relative throughput that it promises.
    """

    plan: ExecPlan
    actions: tuple[AdaptationAction, ...]
    operators: tuple[str, ...]
    gain: float = 0.0

    @property
    def shape(self) -> Shape:
        """How it is rejected."""
        return self.operators, 1


@dataclass(frozen=True, slots=True)
class _Unit:
    """An operator that needs the GIL and may change its process."""

    planned: RegionPlan
    pipeline: Pipeline
    operator: str
    load: float


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
            for _, load in _loads(planned, pipeline, models, need):
                for pe in pipeline.pes:
                    loads[pe] += load
    return loads


def parted(sizing: Sizing, nodes: Sequence[Node]) -> Parting | None:
    """Return the plan in which processes whose token is in too much demand have given some of their operators away.

    Args:
        sizing: what is known, and the plan in force.
        nodes: that may be used.
    """
    if not (sizing.can.restarts and sizing.held_back):
        return None
    plan, hosting = sizing.plan, _hosting(sizing, nodes)
    before = busiest = max(token_loads(plan, sizing.models, sizing.need).values(), default=0.0)
    made: list[AdaptationAction] = []
    moved: list[str] = []
    while busiest > sizing.thresholds.grow_above:  # as many as are that busy: one alone would change nothing
        loads = token_loads(plan, sizing.models, sizing.need)
        pe = max(loads, key=lambda name: loads[name])
        cut = _cut(plan, sizing, hosting, pe, loads[pe])
        if cut is None:
            break
        actions, moving = cut
        plan, made, moved = _applied(plan, actions, hosting.started), [*made, *actions], [*moved, *moving]
        busiest = max(token_loads(plan, sizing.models, sizing.need).values())
    room = sizing.offered / sizing.carried if sizing.carried > 0 else float("inf")
    found = Parting(plan, tuple(made), tuple(moved), min(before / busiest, room) - 1.0 if busiest > 0 else 0.0)
    if found.gain < LEAST_GAIN or found.shape in sizing.rejected.get(PARTINGS, ()):
        return None
    return found


def why_together(sizing: Sizing, nodes: Sequence[Node]) -> tuple[Reason, ...]:
    """Return why operators stay in one process though another one would help; nothing if none would.

    Args:
        sizing: what is known, and the plan in force.
        nodes: that may be used.
    """
    if sizing.can.restarts or sizing.can.together is None:
        return ()
    wanted = parted(replace(sizing, can=replace(sizing.can, restarts=True)), nodes)
    return () if wanted is None else (Code.GIL_FULL_STAYS(operators=list(wanted.operators)), sizing.can.together)


def joined(sizing: Sizing) -> Parting | None:
    """Return the plan in which what once went to a process of its own is back where its input comes from."""
    if not sizing.can.restarts or sizing.held_back:
        return None
    plan = sizing.plan
    for pe in reversed(tuple(plan.pes)):
        here = [(p, pipeline) for p in plan.regions for pipeline in p.pipelines if pe in pipeline.pes]
        if not all(_is_movable(planned, sizing.can) for planned, _ in here):
            continue
        actions = tuple(action for planned, pipeline in here for action in _back(plan, planned, pipeline))
        made = _applied(plan, actions, {})
        if pe in made.pes or not actions:
            continue
        busiest = max(token_loads(made, sizing.models, sizing.need).values())
        if busiest <= sizing.thresholds.shrink_below:
            names = tuple(name for planned, p in here for name in p.operators if name in planned.region.token_bound)
            return Parting(made, actions, names)
    return None


def _is_movable(planned: RegionPlan, can: Actuation) -> bool:
    return planned.replicas == 1 and not planned.region.kind.is_fixed and not can.replicates(planned)


def _loads(
    planned: RegionPlan, pipeline: Pipeline, models: Mapping[str, RegionModel], need: Mapping[str, float]
) -> Iterator[tuple[str, float]]:
    model = models.get(planned.region.name)
    if model is None:
        return
    rate = need.get(planned.region.name, 0.0) / planned.replicas
    for name, time in zip(planned.region.operators, model.times, strict=True):
        if name in pipeline.operators and name in planned.region.token_bound:
            yield name, rate * time


def _cut(
    plan: ExecPlan, sizing: Sizing, hosting: Hosting, pe: str, load: float
) -> tuple[tuple[AdaptationAction, ...], list[str]] | None:
    """Actions that move later operators of an element to a new one, and those that need the GIL; None if none helps."""
    units = list(_units(plan, sizing, pe))
    tails = [(sum(unit.load for unit in units[at:]), at) for at in range(len(units))]
    for busiest, at in sorted((max(load - moved, moved), at) for moved, at in tails):
        if busiest > (1.0 - LEAST_GAIN) * load:
            return None
        to = hosting.start(pe, sum(unit.load for unit in units[at:]), native=False)
        actions = _away(plan, units[at:], to) if to is not None else ()
        if actions:
            return actions, [unit.operator for unit in units[at:]]
    return None


def _units(plan: ExecPlan, sizing: Sizing, pe: str) -> Iterator[_Unit]:
    for planned in plan.regions:
        for pipeline in planned.pipelines if _is_movable(planned, sizing.can) else ():
            if pipeline.pe == pe:
                for name, load in _loads(planned, pipeline, sizing.models, sizing.need):
                    yield _Unit(planned, pipeline, name, load)


def _hosting(sizing: Sizing, nodes: Sequence[Node]) -> Hosting:
    t, can = sizing.thresholds, sizing.can
    used = load_of(sizing.plan, sizing.cpu_each({}))
    return Hosting(sizing.plan, nodes, used, aim=t.aim, busy=t.busy, most=can.most_processes(nodes))


def _away(plan: ExecPlan, units: Sequence[_Unit], to: str) -> tuple[AdaptationAction, ...]:
    """Return what brings operators, and what follows each in its pipeline, to another element; empty: no plan can
    say it.
    """
    made: list[AdaptationAction] = []
    for pipeline in dict.fromkeys(unit.pipeline for unit in units):
        first = next(unit for unit in units if unit.pipeline is pipeline)
        name = first.planned.region.name
        if first.operator != pipeline.operators[0]:
            made.append(SplitPipeline(name, first.operator, (to,)))
        elif len(first.planned.pipelines) == 1:
            made.append(RebalanceRegion.of(plan, name, 1, (to,)))
        elif pipeline is first.planned.pipelines[0]:
            return ()
        else:
            made += [
                MergePipelines(name, first.operator, pipeline.pes),
                SplitPipeline(name, first.operator, (to,)),
            ]
    return tuple(made)


def _back(plan: ExecPlan, planned: RegionPlan, pipeline: Pipeline) -> Iterator[AdaptationAction]:
    """Return what brings a pipeline to where its input comes from."""
    name = planned.region.name
    if pipeline is not planned.pipelines[0]:
        yield MergePipelines(name, pipeline.operators[0], pipeline.pes)
    elif len(planned.pipelines) == 1 and (feeding := plan.upstream(name)):
        yield RebalanceRegion.of(plan, name, 1, (plan.region(feeding[0]).pipelines[-1].pe,))


def _applied(plan: ExecPlan, actions: Sequence[AdaptationAction], started: Mapping[str, str]) -> ExecPlan:
    for action in actions:
        plan = action.apply(plan)
    return plan.with_nodes({pe: node for pe, node in {**plan.nodes, **started}.items() if pe in plan.pes})
