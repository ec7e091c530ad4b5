"""Move operators to other hosts where the CPUs of one are all in use: compiled and built-in ones too.

What a second process helps against decides where it has to be:

- Native operators run on threads, and a process has as many as its host has CPUs. So another process on the same
  host frees nothing for them: threads of this one can use what is idle there. Only another host counts.
- As long as their host has idle CPUs, no other host counts either: one operator's thread is the limit, or the load.
- An operator under the GIL of a full process is bound by something else than CPUs. `parting` moves it to a process of
  its own, here or elsewhere. Replicas add threads for one operator: `hosting` has them stay while CPUs are idle.

A link between hosts uses CPU at both ends for each tuple. A cut has to free more than that. Such a change costs a pause
of the whole job; whether that pays is not decided here. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.node_placement import Node
from rayelastic.policy.regions.actions import AdaptationAction
from rayelastic.policy.regions.loads import cpu_loads, host_use, is_movable, operator_loads
from rayelastic.policy.regions.parting import LEAST_GAIN, PARTINGS, Parting, Unit, applied, away, parted, units
from rayelastic.policy.regions.sizing import Sizing
from rayelastic.reasons import Code, Reason

__all__ = ["spread", "why_together"]

RULE = "another host where the CPUs of one don't suffice"
CUTS = 8  # of those that divide the load best: they are compared with the cost of their links


def spread(sizing: Sizing, nodes: Sequence[Node]) -> Parting | None:
    """Return the plan in which hosts whose CPUs are all in use have some of their operators elsewhere.

    Args:
        sizing: what is known, and the plan in force.
        nodes: that may be used.
    """
    found = _spread(sizing, nodes) if sizing.can.restarts else None
    return found if isinstance(found, Parting) else None


def why_together(sizing: Sizing, nodes: Sequence[Node]) -> tuple[Reason, ...]:
    """Return why operators stay in one process or on one host though sources wait for them.

    Args:
        sizing: what is known, and the plan in force.
        nodes: that may be used.
    """
    able = replace(sizing, can=replace(sizing.can, restarts=True))
    stays = () if sizing.can.restarts or sizing.can.together is None else (sizing.can.together,)
    if stays and (wanted := parted(able, nodes)) is not None:
        return Code.GIL_FULL_STAYS(operators=list(wanted.operators)), *stays
    found = _spread(able, nodes)
    if isinstance(found, Parting):
        return (Code.HOST_FULL_STAYS(operators=list(found.operators)), *stays) if stays else ()
    return () if found is None else (found,)


def _spread(sizing: Sizing, nodes: Sequence[Node]) -> Parting | Reason | None:
    """Return the plan, or why there is none; None if operators that may move have little of the load."""
    plan, homes = sizing.plan, _homes(sizing, nodes)
    if not sizing.held_back or not homes:
        return None
    if not (full := homes & sizing.full_nodes.keys()):
        return Code.HOST_HAS_ROOM(nodes=sorted(homes))
    if len(nodes) == 1:
        return Code.ONE_HOST(node=nodes[0].name)
    before, bound = host_use(plan, sizing, nodes), _longest(plan, sizing)
    worst = max(before[name] for name in full)
    found = max((_cuts(sizing, nodes, full, passes_on=on) for on in (True, False)), key=lambda cuts: -cuts.limit)
    room = sizing.offered / sizing.carried if sizing.carried > 0 else float("inf")
    limit = max(found.limit, bound)
    names = list(dict.fromkeys(found.moved))
    why = Code.HOST_FULL(nodes=sorted(full), operators=names)
    gain = min(worst / limit, room) - 1.0 if limit > 0 else 0.0
    if found.made and gain >= LEAST_GAIN:
        parting = Parting(found.plan, tuple(found.made), tuple(names), why, RULE, gain)
        tried = parting.shape in sizing.rejected.get(PARTINGS, ())
        return Code.TRIED_IN_VAIN(operators=names) if tried else parting
    if bound > (1.0 - LEAST_GAIN) * worst:
        return Code.ONE_THREAD()
    least = LEAST_GAIN * max(before[node.name] * node.cpus for node in nodes)
    if all((1.0 - before[node.name]) * node.cpus < least for node in nodes if node.name not in full):
        return Code.HOSTS_FULL()
    return Code.LINKS_TOO_MUCH()


@dataclass(slots=True)
class _Cuts:
    """A plan under way: what leads to it, the operators that move, and the use of its fullest host."""

    plan: ExecPlan
    made: list[AdaptationAction]
    moved: list[str]
    limit: float


def _cuts(sizing: Sizing, nodes: Sequence[Node], full: AbstractSet[str], *, passes_on: bool) -> _Cuts:
    """Cut operators away from the fullest host until that helps no more.

    Args:
        sizing: what is known, and the plan in force.
        nodes: that may be used.
        full: hosts whose CPUs are all in use.
        passes_on: whether a cut is made for all hosts that are left, as the next one will take from this one's.
    """
    found, involved, most = _Cuts(sizing.plan, [], [], 0.0), set(full), sizing.can.most_processes(nodes)
    use = host_use(found.plan, sizing, nodes)
    cpus = {node.name: node.cpus for node in nodes}
    while most is None or len(found.plan.pes) < most:
        home = max(involved, key=lambda name: use[name])
        left = sorted(use.keys() - involved, key=lambda name: (use[name] - 1.0) * cpus[name])
        if not left:
            break
        cut = _cut(found.plan, sizing, nodes, (home, left if passes_on else left[:1]), use[home])
        if cut is None:
            break
        found.plan, actions, names = cut
        found.made += actions
        found.moved += names
        use = host_use(found.plan, sizing, nodes)
        involved.add(left[0])
    found.limit = max(use[name] for name in involved)
    return found


def _homes(sizing: Sizing, nodes: Sequence[Node]) -> set[str]:
    """Return the hosts on which operators that may move have more of the load than a change has to gain."""
    plan, loads = sizing.plan, cpu_loads(sizing.plan, sizing)
    used, moving = dict.fromkeys((node.name for node in nodes), 0.0), dict.fromkeys((node.name for node in nodes), 0.0)
    for pe in plan.pes if nodes else ():
        home = plan.nodes.get(pe, nodes[0].name)
        used[home] += loads[pe]
        moving[home] += sum(unit.load for unit in units(plan, sizing, pe, whole=True))
    return {node for node in used if moving[node] > LEAST_GAIN * used[node]}


def _longest(plan: ExecPlan, sizing: Sizing) -> float:
    """Return the CPUs that the most expensive operator needs: one thread at a time runs it, wherever it is."""
    loads = (
        load
        for planned in plan.regions
        for pipeline in planned.pipelines
        for _, load in operator_loads(planned, pipeline, sizing.models, sizing.need)
    )
    return max(loads, default=0.0)


def _cut(
    plan: ExecPlan, sizing: Sizing, nodes: Sequence[Node], way: tuple[str, Sequence[str]], use: float
) -> tuple[ExecPlan, tuple[AdaptationAction, ...], list[str]] | None:
    """Return the plan with the later operators of a PE of one host in a new one on the first of others; None if none
    helps.
    """
    home, others = way
    [pe] = plan.fresh_pes(1)
    cpus = {node.name: node.cpus for node in nodes}
    room = sum(cpus[name] for name in others)
    found: list[tuple[float, int, ExecPlan, tuple[AdaptationAction, ...], list[str]]] = []
    for leaving in _evenest(plan, sizing, nodes, way, use):
        actions = away(plan, leaving, pe)
        if actions:
            made = applied(plan, actions, {pe: others[0]})
            after = host_use(made, sizing, nodes)
            busiest = max(after[home], sum(after[name] * cpus[name] for name in others) / room)
            found.append((busiest, len(found), made, actions, [unit.operator for unit in leaving]))
    if not found:
        return None
    busiest, _, made, actions, names = min(found)
    return (made, actions, names) if busiest <= (1.0 - LEAST_GAIN) * use else None


def _evenest(
    plan: ExecPlan, sizing: Sizing, nodes: Sequence[Node], way: tuple[str, Sequence[str]], use: float
) -> Iterator[list[Unit]]:
    """Yield the operators of a host from some one on to the end of their PE, the most even cuts of the load first."""
    home, others = way
    cpus, now = {node.name: node.cpus for node in nodes}, host_use(plan, sizing, nodes)
    there, room = sum(now[name] * cpus[name] for name in others), sum(cpus[name] for name in others)
    tails: list[tuple[float, int, list[Unit]]] = []
    for pe in plan.pes:
        if plan.nodes.get(pe, nodes[0].name) != home:
            continue
        movable, moved = list(units(plan, sizing, pe, whole=True)), 0.0
        for at in range(len(movable) - 1, -1, -1):
            first, moved = movable[at], moved + movable[at].load
            if first.operator != first.pipeline.operators[0] and not is_movable(first.planned, sizing.can):
                continue  # a region that is split gets no replicas
            busier = max(use - moved / cpus[home], (there + moved) / room)
            tails.append((busier, len(tails), movable[at:]))
    for _, _, leaving in sorted(tails, key=lambda tail: tail[:2])[:CUTS]:
        yield leaving
