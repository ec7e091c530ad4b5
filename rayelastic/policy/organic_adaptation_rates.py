"""Organic adaptation by true rates: the default. Joker's actions and profitability (section 4), DS2's arithmetic.

How it differs from the paper's algorithm, and why:

- It works out the shapes that the offered load needs and jumps there, all regions at once, then measures (J32).
- It shrinks too, after a longer delay than it grows, and never while a source is held back.
- It decides on averages over periods; between the utilisation it sizes for and those at which it acts lies what noise
  moves, so that constant load changes nothing.
- A change has to earn its own measured cost; one that doesn't give what was expected is reverted and rejected until the
  load changes, and the next best shape is tried (4.3).
- It waits, for a bounded time, until local levels have settled, and has them reset after a change.
- It knows nodes: replicas go where there is room, token-bound ones as processes, and if there is none it asks for more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rayelastic.plan.exec_plan import ExecPlan, RegionPlan
from rayelastic.plan.node_placement import Demand, place
from rayelastic.plan.plan_text import counted
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.organic_adaptation_actions import (
    AdaptationAction,
    AdaptationDecision,
    MergePipelines,
    NodeRequest,
    RebalanceRegion,
    SplitPipeline,
    Verdict,
)
from rayelastic.policy.organic_adaptation_hosting import Hosting, load_of
from rayelastic.policy.organic_adaptation_learning import Known
from rayelastic.policy.organic_adaptation_model import RegionModel, Shape, affordable, demands, shape_of, shapes, widest
from rayelastic.policy.organic_adaptation_thresholds import OrganicThresholds
from rayelastic.policy.region_observation import PlanObservation

__all__ = ["RateAdaptation"]

TRIES = 2  # rejected shapes after which a region counts as one that doesn't get better
NEGLIGIBLE = 1e-3  # CPUs


@dataclass(frozen=True, slots=True)
class _Trial:
    """A change that is to be judged."""

    before: ExecPlan
    actions: tuple[AdaptationAction, ...]
    shapes: Mapping[str, Shape]  # of the regions that change
    offered: float  # tuples/s of all sources, when it was decided
    carried: float
    gain: float  # expected, relative
    grows: bool


@dataclass(frozen=True, slots=True)
class _Needs:
    """What the load asks for, worked out once per period."""

    plan: ExecPlan
    models: Mapping[str, RegionModel]
    need: Mapping[str, float]  # tuples/s of each region
    carried: float
    offered: float
    possible: float  # of what is offered, tuples/s that can be carried

    def use(self, name: str) -> float:
        """Return the utilisation that a region would have in its present shape."""
        capacity = self.models[name].capacity(shape_of(self.plan.region(name)))
        return self.need[name] / capacity if capacity > 0 else 0.0


class RateAdaptation:
    """Sizes regions by what their operators could process.

    Args:
        thresholds: its constants.
    """

    def __init__(self, thresholds: OrganicThresholds | None = None) -> None:
        self._t = thresholds or OrganicThresholds()
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._known = Known(self._t)
        self._trial: _Trial | None = None
        self._rejected: dict[str, set[Shape]] = {}
        self._costs = {"split": self._t.split_cost, "merge": self._t.split_cost, "rebalance": self._t.rebalance_cost}
        self._age = self._waited = self._grow = self._shrink = self._stable = 0

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        """Take one period's averages and return the plan for the next one."""
        if not seen.adapted:
            return self._hold(seen, "the plan that was asked for is not in force yet")
        lost = self._replace_lost(seen)
        if lost is not None:
            return lost
        self._age += 1
        self._charge(seen)
        if self._age <= self._t.warm_up:
            return self._hold(seen, "warming up after the change")
        self._known.learn(seen)
        if self._known.load_changed:
            self._rejected.clear()
        if self._age < self._t.warm_up + self._t.verify:
            return self._hold(seen, "measuring")
        if not seen.settled and self._waited < self._t.settle_periods:
            self._waited += 1
            return self._hold(
                seen, f"local levels have not settled, {self._waited} of {self._t.settle_periods} periods"
            )
        if self._trial is not None:
            return self._judge(seen)
        if self._known.doubtful:
            return self._hold(seen, "the load seems to change")
        return self._decide(seen)

    # --- deciding ---------------------------------------------------------------------------------------------------

    def _decide(self, seen: PlanObservation) -> AdaptationDecision:
        needs = self._needs(seen)
        sized = [
            p for p in seen.plan.regions if p.region.kind is not RegionKind.SOURCE and p.region.name in needs.models
        ]
        tokens = self._token_use(needs)
        short = [p for p in sized if needs.use(p.region.name) > self._t.grow_above]
        wanted = {p.region.name: shape for p in short if (shape := self._shape(needs, p, grow=True)) is not None}
        if wanted:  # when something changes, those near the mark go along, rather than one by one later
            near = [p for p in sized if self._near <= needs.use(p.region.name) <= self._t.grow_above]
            wanted |= {p.region.name: shape for p in near if (shape := self._shape(needs, p, grow=True)) is not None}
        crowded = max(tokens.values(), default=0.0) > self._t.grow_above and self._movable(needs, tokens)
        self._grow = self._grow + 1 if wanted or crowded else 0
        if self._grow >= self._t.grow_periods:
            return self._change(seen, needs, wanted, grows=True)
        less = {} if wanted or self._held_back(needs) else self._smaller(needs, sized)
        self._shrink = self._shrink + 1 if less else 0
        if self._shrink >= self._t.shrink_periods:
            return self._change(seen, needs, less, grows=False)
        self._stable += 1
        return self._hold(
            seen, self._why_not(needs, short, bool(wanted) or bool(crowded), less), self._request(seen, needs)
        )

    def _needs(self, seen: PlanObservation) -> _Needs:
        models = self._known.models()
        offered = self._known.offered
        most: dict[str, float] = {}
        for planned in seen.plan.regions:
            name = planned.region.name
            if name in models:
                most[name] = self._most(models[name], planned)
        cpus = sum(node.cpus for node in seen.nodes) * self._t.busy if seen.nodes else float("inf")
        possible = affordable(seen.plan, models, offered, most, cpus)
        return _Needs(
            seen.plan,
            models,
            demands(seen.plan, models, possible),
            self._known.carried,
            sum(offered.values()),
            sum(possible.values()),
        )

    def _most(self, model: RegionModel, planned: RegionPlan) -> float:
        if planned.region.kind is RegionKind.SOURCE or len(self._rejected.get(planned.region.name, ())) >= TRIES:
            return model.capacity(shape_of(planned))
        return widest(model, shape_of(planned), self._replicas_allowed(planned))

    def _replicas_allowed(self, planned: RegionPlan) -> int:
        return self._t.max_replicas if planned.region.kind is RegionKind.DATA_PARALLEL else 1

    def _shape(self, needs: _Needs, planned: RegionPlan, *, grow: bool) -> Shape | None:
        """Return the best shape that carries the need at the utilisation to aim for, and wasn't rejected."""
        name, now = planned.region.name, shape_of(planned)
        model = needs.models[name]
        rejected = self._rejected.get(name, set())
        if grow and len(rejected) >= TRIES:
            return None
        allowed = self._replicas_allowed(planned)
        # A region that will be the limit can't be kept below full use.
        capacity = min(needs.need[name] / self._t.aim, widest(model, now, allowed))
        for shape in shapes(model, now, capacity * (1.0 - NEGLIGIBLE), allowed):
            if shape in rejected or shape == now:
                continue
            if grow and model.capacity(shape) <= model.capacity(now):
                continue
            return shape
        return None

    def _smaller(self, needs: _Needs, sized: list[RegionPlan]) -> dict[str, Shape]:
        found: dict[str, Shape] = {}
        for planned in sized:
            name, now = planned.region.name, shape_of(planned)
            if planned.threads == 1:
                continue
            enough = next(
                shapes(needs.models[name], now, needs.need[name] / self._t.shrink_below, planned.replicas), None
            )
            if enough is None or _threads(enough) >= planned.threads:
                continue
            shape = self._shape(needs, planned, grow=False)
            if shape is not None and _threads(shape) < planned.threads:
                found[name] = shape
        return found

    @property
    def _near(self) -> float:
        return (self._t.aim + self._t.grow_above) / 2

    def _held_back(self, needs: _Needs) -> bool:
        return needs.carried < self._t.carried * needs.offered

    # --- changing ---------------------------------------------------------------------------------------------------

    def _change(
        self, seen: PlanObservation, needs: _Needs, wanted: Mapping[str, Shape], *, grows: bool
    ) -> AdaptationDecision:
        final = {name: wanted.get(name, shape_of(needs.plan.region(name))) for name in needs.models}
        each = {name: needs.need[name] * m.cpu(final[name]) / final[name][1] for name, m in needs.models.items()}
        hosting = Hosting(needs.plan, seen.nodes, load_of(_shrunk(needs.plan, wanted), each), self._t.busy)
        plan, actions, missing = needs.plan, [], 0.0
        for name, shape in wanted.items():
            made, lacking = self._actions(plan, name, shape, hosting, each[name])
            missing += lacking
            for action in made:
                plan = action.apply(plan)
            actions += made
        for action in self._apart(needs, plan, hosting, each) if grows else ():
            plan = action.apply(plan)
            actions.append(action)
        self._grow = self._shrink = 0
        request = NodeRequest(missing, reason=f"{missing:.1f} CPUs for replicas have no room") if missing else None
        request = request or self._request(seen, needs)
        cost = max((self._costs[action.kind] for action in actions), default=0.0)
        gain = self._gain(needs, plan) if grows else 1.0 - plan.threads / needs.plan.threads
        what = f"{needs.offered:.4g} tuples/s offered, {needs.carried:.4g} carried"
        if not actions:
            return self._hold(seen, f"{what}; no node has room", request)
        words = ", ".join(action.text() for action in actions)
        if gain * self._t.payback < cost:
            return self._hold(
                seen, f"{what}; {words} would gain {gain:.0%} and cost {cost:.1f} s: not worth it", request
            )
        nodes = {pe: node for pe, node in {**plan.nodes, **hosting.started}.items() if pe in plan.pes}
        plan = plan.with_nodes(nodes)
        shaped = {name: shape_of(plan.region(name)) for name in dict.fromkeys(action.region for action in actions)}
        self._trial = _Trial(needs.plan, tuple(actions), shaped, needs.offered, needs.carried, gain, grows)
        self._started(plan)
        return AdaptationDecision(
            plan,
            Verdict.TRY,
            actions=tuple(actions),
            reason=f"{what}; {words}: {'expected gain' if grows else 'threads saved'} {gain:.0%}, cost {cost:.1f} s",
            rule="Joker 4.2, 4.5 (J32); DS2" if grows else "shrink with hysteresis",
            reset=True,
            request=request,
        )

    def _actions(
        self, plan: ExecPlan, name: str, shape: Shape, hosting: Hosting, cpus: float
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
        if len({pipeline.pes for pipeline in planned.pipelines}) > 1:  # pinned apart: replicas stay where the first is
            return [*made, RebalanceRegion(name, replicas, planned.replicas)], 0.0
        present = planned.pipelines[0].pes
        pes = hosting.host(present, replicas, cpus, own_process=bool(planned.region.token_bound))
        if pes == present:
            return made, (replicas - len(pes)) * cpus
        return [*made, RebalanceRegion.of(plan, name, len(pes), pes)], (replicas - len(pes)) * cpus

    def _token_use(self, needs: _Needs) -> dict[str, float]:
        """Return how much of each process's Python token would be used, where several regions share it."""
        use: dict[str, float] = {}
        sharing: dict[str, int] = {}
        for planned in needs.plan.regions:
            model = needs.models.get(planned.region.name)
            if model is None or not planned.region.token_bound:
                continue
            for pe in planned.pipelines[0].pes:
                use[pe] = use.get(pe, 0.0) + needs.need[planned.region.name] * model.token_time / planned.replicas
                sharing[pe] = sharing.get(pe, 0) + 1
        return {pe: share for pe, share in use.items() if sharing[pe] > 1}

    def _movable(self, needs: _Needs, tokens: Mapping[str, float]) -> bool:
        crowded = {pe for pe, use in tokens.items() if use > self._t.grow_above}
        return any(
            p.region.token_bound and p.region.kind is not RegionKind.SOURCE and crowded & set(p.pipelines[0].pes)
            for p in needs.plan.regions
        )

    def _apart(
        self, needs: _Needs, plan: ExecPlan, hosting: Hosting, each: Mapping[str, float]
    ) -> list[AdaptationAction]:
        """Move token-bound replicas out of processes whose token is in too much demand; the first one stays."""
        use = self._token_use(_Needs(plan, needs.models, needs.need, 0.0, 0.0, 0.0))
        owner: set[str] = set()
        made: list[AdaptationAction] = []
        for planned in plan.regions:
            name, present = planned.region.name, planned.pipelines[0].pes
            if not planned.region.token_bound or name not in needs.models:
                continue
            pes = list(present)
            for replica, pe in enumerate(present):
                mine = needs.need[name] * needs.models[name].token_time / planned.replicas
                if planned.region.kind is RegionKind.SOURCE or pe not in owner or use.get(pe, 0.0) <= self._t.aim:
                    owner.add(pe)
                    continue
                started = hosting.start(pe, each[name], native=False)
                if started is not None:
                    use[pe] -= mine
                    pes[replica] = started
                    owner.add(started)
            if tuple(pes) != present:
                made.append(RebalanceRegion.of(plan, name, len(pes), tuple(pes)))
        return made

    def _gain(self, needs: _Needs, plan: ExecPlan) -> float:
        """Return what a plan promises: more throughput, or at least room for it."""
        room = 1.0
        for name, model in needs.models.items():
            if plan.region(name).region.kind is not RegionKind.SOURCE and needs.need[name] > 0:
                room = min(room, model.capacity(shape_of(plan.region(name))) / needs.need[name])
        promised = room * needs.possible / needs.carried - 1.0 if needs.carried > 0 else 1.0
        return max(promised, self._t.grow_above - self._t.aim)

    # --- judging: section 4.3 ---------------------------------------------------------------------------------------

    def _judge(self, seen: PlanObservation) -> AdaptationDecision:
        trial = self._trial
        assert trial is not None
        self._trial = None
        needs = self._needs(seen)
        before = trial.carried / trial.offered if trial.offered > 0 else 1.0
        after = needs.carried / needs.offered if needs.offered > 0 else 1.0
        gain = after / before - 1.0 if before > 0 else 0.0  # relative to what was offered then and now
        if trial.grows:
            good = after >= self._t.carried or gain >= min(self._t.throughput_gain, trial.gain / 2)
        else:
            good = after >= self._t.carried * min(1.0, before)
        measured = f"{needs.carried:.4g} of {needs.offered:.4g} tuples/s, {gain:+.0%}"
        if good:
            return AdaptationDecision(seen.plan, Verdict.KEEP, reason=f"{measured}: kept", rule="Joker 4.3")
        plan = seen.plan
        undone = tuple(reversed(trial.actions))
        for action in undone:
            plan = action.revert(plan)
        for name, shape in trial.shapes.items():
            self._rejected.setdefault(name, set()).add(shape)
        nodes = {pe: node for pe, node in {**seen.plan.nodes, **trial.before.nodes}.items() if pe in plan.pes}
        self._started(plan)
        return AdaptationDecision(
            plan.with_nodes(nodes),
            Verdict.REVERT,
            undone,
            reason=f"{measured}: less than expected, reverted and rejected until the load changes",
            rule="Joker 4.3",
            reset=True,
        )

    def _started(self, plan: ExecPlan) -> None:
        """Another plan comes into force: what was measured belongs to the old one."""
        self._known.forget(plan)
        self._age = self._waited = self._stable = 0

    def _charge(self, seen: PlanObservation) -> None:
        """Remember what the last change cost, by its dearest kind of action."""
        if seen.cost is None or self._trial is None:
            return
        kinds = {action.kind for action in self._trial.actions}
        kind = "rebalance" if "rebalance" in kinds else next(iter(sorted(kinds)))
        self._costs[kind] += self._t.cost_weight * (seen.cost - self._costs[kind])

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _replace_lost(self, seen: PlanObservation) -> AdaptationDecision | None:
        there = {node.name for node in seen.nodes}
        lost = [pe for pe, node in seen.plan.nodes.items() if pe in seen.plan.pes and node not in there]
        if not seen.nodes or not lost:
            return None
        needs = self._needs(seen)
        each = {
            name: needs.need[name] * model.cpu(shape_of(needs.plan.region(name))) / needs.plan.region(name).replicas
            for name, model in needs.models.items()
        }
        room = {node.name: node.cpus for node in seen.nodes}
        used = load_of(seen.plan, each)
        found = place(seen.plan, seen.nodes, {pe: Demand(min(cpus, max(room.values()))) for pe, cpus in used.items()})
        homeless = [pe for pe in found.homeless if pe in lost]
        nodes = {**{pe: node for pe, node in seen.plan.nodes.items() if pe not in lost}}
        nodes |= {pe: found.nodes[pe] for pe in lost if pe in found.nodes}
        request = None
        if homeless:
            cpus = sum(used.get(pe, 1.0) for pe in homeless)
            request = NodeRequest(cpus, reason=f"{counted(len(homeless), 'processing element')} without a node")
        if nodes == dict(seen.plan.nodes):
            return self._hold(seen, f"{', '.join(lost)} lost their nodes, and no other has room", request)
        self._started(seen.plan)
        self._trial = None
        gone = ", ".join(sorted({seen.plan.nodes[pe] for pe in lost}))
        return AdaptationDecision(
            seen.plan.with_nodes(nodes),
            Verdict.PLACE,
            reason=f"{gone} is gone: {', '.join(f'{pe} to {nodes[pe]}' for pe in lost if pe not in homeless)}",
            rule="placement",
            reset=True,
            request=request,
        )

    def _request(self, seen: PlanObservation, needs: _Needs) -> NodeRequest | None:
        """Ask for machines where the load needs more CPUs than there are."""
        if not seen.nodes or needs.offered <= 0:
            return None
        there = sum(node.cpus for node in seen.nodes) * self._t.busy
        offered = self._known.offered
        most = {p.region.name: self._most(m, p) for p in seen.plan.regions if (m := needs.models.get(p.region.name))}
        unbounded = affordable(seen.plan, needs.models, offered, most, float("inf"))
        need = demands(seen.plan, needs.models, unbounded)
        cpus = sum(need[name] * m.cpu(shape_of(seen.plan.region(name))) for name, m in needs.models.items())
        if cpus <= there + NEGLIGIBLE:
            return None
        return NodeRequest(cpus - there, reason=f"the load needs {cpus:.1f} CPUs, and {there:.1f} may be used")

    # --- words ------------------------------------------------------------------------------------------------------

    def _hold(self, seen: PlanObservation, reason: str, request: NodeRequest | None = None) -> AdaptationDecision:
        stable = "; stable" if self._stable >= self._t.stable_periods else ""  # J31
        return AdaptationDecision(seen.plan, reason=reason + stable, request=request)

    def _why_not(self, needs: _Needs, short: list[RegionPlan], growing: bool, less: Mapping[str, Shape]) -> str:
        use = {p.region.name: needs.use(p.region.name) for p in needs.plan.regions if p.region.name in needs.models}
        regions = {n: u for n, u in use.items() if needs.plan.region(n).region.kind is not RegionKind.SOURCE}
        busiest = max(regions, key=lambda name: regions[name], default="")
        what = f"{needs.carried:.4g} of {needs.offered:.4g} tuples/s"
        if growing:
            return f"{what}; {busiest} needs {regions.get(busiest, 0.0):.0%}: more, if it lasts"
        if less:
            return f"{what}; less would do for {', '.join(less)}, if it lasts"
        if short:
            return f"{what}; {', '.join(p.region.name for p in short)} can't be made faster"
        return f"{what}; {busiest} is the busiest at {regions.get(busiest, 0.0):.0%}"


def _threads(shape: Shape) -> int:
    return (len(shape[0]) + 1) * shape[1]


def _shrunk(plan: ExecPlan, wanted: Mapping[str, Shape]) -> ExecPlan:
    """The plan with the replicas that stop taken away, to see what is free."""
    for name, (_, replicas) in wanted.items():
        if replicas < plan.region(name).replicas:
            plan = plan.with_replicas(name, replicas)
    return plan
