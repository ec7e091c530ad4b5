"""Move operators that compete for one GIL to separate processes, and merge what is apart: where replicas can't help.

A process has one GIL. Regions that can have replicas get replicas. If operators of the other regions need the GIL and
it is the bottleneck, the later ones move to a process of their own. The cut minimises the load of the busier of the two
processes (Joker's pipelines, with processes for threads). Such a change costs a pause of the whole job; whether that
pays is not decided here. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.node_placement import Node
from rayelastic.policy.regions.actions import AdaptationAction, MergePipelines, RebalanceRegion, SplitPipeline
from rayelastic.policy.regions.hosting import Hosting, load_of
from rayelastic.policy.regions.loads import host_use, is_movable, moves_whole, operator_loads, token_loads
from rayelastic.policy.regions.model import Shape
from rayelastic.policy.regions.sizing import Sizing
from rayelastic.reasons import Code, Reason

__all__ = ["PARTINGS", "Parting", "applied", "away", "joined", "parted", "units"]

PARTINGS = "processes"  # under which name partings are rejected, beside regions
LEAST_GAIN = 0.1  # relative, of what the busier process has to do


@dataclass(frozen=True, slots=True)
class Parting:
    """A plan with one process more or less.

    Args:
        plan: with the node of a new process.
        actions: that lead there.
        operators: that change their process; of those that compete for a GIL, the ones that need it.
        why: what is full now and the operators that leave it, or return.
        rule: by which they do.
        gain: relative throughput that it promises.
    """

    plan: ExecPlan
    actions: tuple[AdaptationAction, ...]
    operators: tuple[str, ...]
    why: Reason
    rule: str = "a process for each GIL that is needed"
    gain: float = 0.0

    @property
    def shape(self) -> Shape:
        """How it is rejected."""
        return self.operators, 1


@dataclass(frozen=True, slots=True)
class Unit:
    """An operator that may change its process.

    Args:
        planned: its region.
        pipeline: that it is in.
        operator: its name.
        load: CPUs that it needs.
    """

    planned: RegionPlan
    pipeline: Pipeline
    operator: str
    load: float


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
        plan, made, moved = applied(plan, actions, hosting.started), [*made, *actions], [*moved, *moving]
        busiest = max(token_loads(plan, sizing.models, sizing.need).values())
    room = sizing.offered / sizing.carried if sizing.carried > 0 else float("inf")
    gain = min(before / busiest, room) - 1.0 if busiest > 0 else 0.0
    found = Parting(plan, tuple(made), tuple(moved), Code.GIL_FULL(operators=moved), gain=gain)
    if found.gain < LEAST_GAIN or found.shape in sizing.rejected.get(PARTINGS, ()):
        return None
    return found


def joined(sizing: Sizing, nodes: Sequence[Node]) -> Parting | None:
    """Return the plan in which what once went to a process of its own is back where its input comes from.

    Args:
        sizing: what is known, and the plan in force.
        nodes: that may be used.
    """
    if not sizing.can.restarts or sizing.held_back or len(sizing.plan.pes) == 1:
        return None
    plan, now = sizing.plan, host_use(sizing.plan, sizing, nodes)
    for pe in reversed(tuple(plan.pes)):
        here = [(p, pipeline) for p in plan.regions for pipeline in p.pipelines if pe in pipeline.pes]
        if not all(is_movable(planned, sizing.can) or moves_whole(planned, sizing.can) for planned, _ in here):
            continue
        actions = tuple(action for planned, pipeline in here for action in _back(plan, planned, pipeline))
        made = applied(plan, actions, {})
        if pe in made.pes or not actions:
            continue
        fuller = [use for node, use in host_use(made, sizing, nodes).items() if use > now[node]]
        busiest = max([*token_loads(made, sizing.models, sizing.need).values(), *fuller])
        if busiest <= sizing.thresholds.shrink_below:
            moved = [name for planned, p in here for name in p.operators]
            bound = [name for planned, p in here for name in p.operators if name in planned.region.token_bound]
            return Parting(made, actions, tuple(bound or moved), Code.BACK_TOGETHER(operators=bound or moved))
    return None


def _cut(
    plan: ExecPlan, sizing: Sizing, hosting: Hosting, pe: str, load: float
) -> tuple[tuple[AdaptationAction, ...], list[str]] | None:
    """Actions that move later operators of an element to a new one, and those that need the GIL; None if none helps."""
    movable = [unit for unit in units(plan, sizing, pe) if unit.operator in unit.planned.region.token_bound]
    tails = [(sum(unit.load for unit in movable[at:]), at) for at in range(len(movable))]
    for busiest, at in sorted((max(load - moved, moved), at) for moved, at in tails):
        if busiest > (1.0 - LEAST_GAIN) * load:
            return None
        to = hosting.start(pe, sum(unit.load for unit in movable[at:]), native=False)
        actions = away(plan, movable[at:], to) if to is not None else ()
        if actions:
            return actions, [unit.operator for unit in movable[at:]]
    return None


def units(plan: ExecPlan, sizing: Sizing, pe: str, *, whole: bool = False) -> Iterator[Unit]:
    """Yield the operators of a PE that may go to another one, in topological order.

    Args:
        plan: in force.
        sizing: what is known.
        pe: where they are.
        whole: those of regions as well that may only go as a whole, since they could have replicas.
    """
    for planned in plan.regions:
        movable = is_movable(planned, sizing.can) or (whole and moves_whole(planned, sizing.can))
        for pipeline in planned.pipelines if movable else ():
            if pipeline.pe == pe:
                for name, load in operator_loads(planned, pipeline, sizing.models, sizing.need):
                    yield Unit(planned, pipeline, name, load)


def _hosting(sizing: Sizing, nodes: Sequence[Node]) -> Hosting:
    t, can = sizing.thresholds, sizing.can
    used = load_of(sizing.plan, sizing.cpu_each({}))
    return Hosting(sizing.plan, nodes, used, aim=t.aim, busy=t.busy, most=can.most_processes(nodes))


def away(plan: ExecPlan, units: Sequence[Unit], to: str) -> tuple[AdaptationAction, ...]:
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


def applied(plan: ExecPlan, actions: Sequence[AdaptationAction], started: Mapping[str, str]) -> ExecPlan:
    """Return the plan after some actions, with the nodes of the PEs that they start: {PE: node}."""
    for action in actions:
        plan = action.apply(plan)
    return plan.with_nodes({pe: node for pe, node in {**plan.nodes, **started}.items() if pe in plan.pes})
