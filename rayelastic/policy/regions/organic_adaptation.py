"""Organic adaptation (Joker section 4) by true rates, with DS2's arithmetic: pipelines and replicas of each region.

How it differs from the paper's algorithm, and why:
- It computes the shapes that the offered load needs and jumps there, all regions at once, then measures (J32).
- It shrinks too, after a longer delay than it grows, and never under back-pressure on a source.
- It decides on averages over periods, with a hysteresis wider than the measurement noise, so that constant load changes
  nothing.
- A change has to earn its own measured cost. One that gains less than expected is reverted, and rejected until the load
  changes; then the next best shape is tried (4.3).
- It waits, for a bounded time, until local levels have settled, if they can help, and has them reset after a change.
- It knows nodes: replicas run where CPUs are free, GIL-bound ones as processes. If none are free, it requests nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.policy.regions.actions import AdaptationDecision, NodeRequest, Verdict, reasons_of
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.goal.latency import LatencyAim
from rayelastic.policy.regions.hosting import load_of, rehosted
from rayelastic.policy.regions.learning import Known
from rayelastic.policy.regions.model import Shape, shape_of
from rayelastic.policy.regions.observation import PlanObservation
from rayelastic.policy.regions.parting import PARTINGS, Parting, joined, parted
from rayelastic.policy.regions.proposal import next_node, propose
from rayelastic.policy.regions.sharing.shares import ANY, MOST_SHARINGS, Sharing, shared_out, sharing_of
from rayelastic.policy.regions.sizing import Sizing
from rayelastic.policy.regions.spreading import spread, why_together
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.policy.regions.tried.costs import SHARE, Costs
from rayelastic.policy.regions.tried.earlier import Earlier
from rayelastic.policy.regions.tried.rejections import Rejections, Reversals
from rayelastic.policy.regions.tried.trial import Carried, Fewer, Trial
from rayelastic.reasons import Code, Reason

__all__ = ["OrganicAdaptation"]


class OrganicAdaptation:
    """Sizes regions by what their operators could process.

    Args:
        thresholds: its constants.
        actuation: what of a plan can be changed; nothing else is asked for.
        latency: what decides on the utilisation to size for, in place of the one of the thresholds.
        earlier: what paid in an earlier run.
    """

    def __init__(
        self,
        *,
        thresholds: OrganicThresholds | None = None,
        actuation: Actuation | None = None,
        latency: LatencyAim | None = None,
        earlier: Earlier | None = None,
    ) -> None:
        self._t = thresholds or OrganicThresholds()
        self._earlier = self.learned = earlier or Earlier()  # learned: for a later run
        self._latency = latency
        self._can = actuation or Actuation()
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._known = Known(self._t)
        self._trial: Trial | None = None
        self._plan: ExecPlan | None = None  # in force, or asked for
        self._rejected = Rejections(self._t.reject_periods)
        self._reversals = Reversals(self._t.shrink_periods)
        self._calm_need: dict[str, float] = {}  # {region: most tuples/s} since less suffices
        self._missed: set[tuple[str, Shape]] = set()  # that were asked for, and undone once
        self._sharings: dict[tuple[str, Shape], int] = {}  # times that partitions moved, and it was worth it
        self._paid_at = 0.0  # tuples/s that were carried when something was learned
        self._in_vain: set[str] = set()  # nodes whose relief didn't help
        self._costs = Costs(self._t, self._can.going_on)
        self._fewer: Fewer | None = None  # replicas that may carry as much: to be tried next
        self._age = self._waited = self._starved = self._doubts = self._grow = self._shrink = self._stable = 0

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        """Take one period's averages and return the plan for the next one."""
        if seen.bounds is not None:
            self._can = replace(self._can, bounds=seen.bounds)
        if not seen.adapted:
            return self._hold(seen, Code.NOT_IN_FORCE())
        unasked = self._plan is not None and seen.plan.regions != self._plan.regions
        if unasked:
            self._undone(seen.plan)
            self._started(seen.plan)
        self._plan = seen.plan
        if (lost := self._replace_lost(seen)) is not None:
            return lost
        if unasked:
            return self._hold(seen, Code.REGIONS_ROLLED_BACK())
        self._age += 1
        self._rejected.tick()
        self._reversals.tick()
        if seen.cost is not None and self._trial is not None:
            self._costs.charge(self._trial, seen.cost)
        if self._age <= self._t.warm_up:
            return self._hold(seen, Code.WARMING_UP())
        if self._trial and seen.waits_for_cpus > self._t.others and self._starved < self._t.settle_periods:
            self._age -= 1
            self._starved += 1
            return self._hold(seen, seen.starving, Code.NOT_JUDGED(periods=self._starved, most=self._t.settle_periods))
        self._known.learn(seen)
        if self._latency is not None:
            self._latency.see(seen.latencies)
        if self._known.load_changed:
            self._rejected.load_changed()
            self._in_vain, self._fewer = set(), None
        if self._trial and self._known.stands and self._waited < self._t.settle_periods:
            self._waited += 1
            self._age = self._t.warm_up
            self._known.forget(seen.plan)
            waited = Code.NOT_JUDGED(periods=self._waited, most=self._t.settle_periods)
            return self._hold(seen, Code.NOTHING_MADE(), waited)
        if self._age < self._t.warm_up + self._t.verify:
            return self._prepared(seen, Code.MEASURING_REGIONS())
        unsettled = not seen.settled and self._waited < self._t.settle_periods
        if unsettled and (self._trial is not None or not self._sizing(seen).lacks_tokens_alone):
            self._waited += 1
            return self._prepared(seen, Code.LOCAL_UNSETTLED(periods=self._waited, most=self._t.settle_periods))
        if self._trial is not None:
            return self._judge(seen)
        self._doubts = self._doubts + 1 if self._known.doubtful else 0
        if 0 < self._doubts <= self._t.shift_periods:  # a change is known by then: what goes on to and fro is noise
            return self._hold(seen, Code.LOAD_MAY_CHANGE())
        return self._decide(seen)

    # --- deciding ---------------------------------------------------------------------------------------------------

    def _sizing(self, seen: PlanObservation) -> Sizing:
        can = self._rejected.bounded(self._can, self._t.max_replicas)
        return Sizing.of(seen.plan, self._known, seen.nodes, self._rejected.shapes, self._t, can)

    def _carried(self, sizing: Sizing) -> Carried:
        return Carried(sizing.carried, sizing.offered, self._known.passed, self._known.stands)

    def _aimed(self, sizing: Sizing) -> Sizing:
        """Return the same for the utilisation that the latency goal needs; unless back-pressure is what delays
        tuples.
        """
        if self._latency is None or sizing.held_back or self._latency.decide() == self._t.aim:
            return sizing
        self._t = self._t.aiming(self._latency.aim)
        return replace(sizing, thresholds=self._t)

    def _decide(self, seen: PlanObservation) -> AdaptationDecision:
        sizing = self._aimed(self._sizing(seen))
        if bound := sizing.out_of_bounds():
            return self._bound(seen, sizing, bound)
        if (fewer := self._fewer) is not None:
            self._fewer = None
            return self._change(seen, sizing, fewer.shapes, [], grows=False, fewer=fewer)
        wanted = sizing.larger(stable=self._stable >= self._t.stable_periods)
        wanted = self._earlier.raised(wanted, sizing, guessed=self._known.guesses)
        relieve, crowded = [], False
        if self._can.moves:
            relieve = [node for node in sizing.full_nodes if node not in self._in_vain] if sizing.held_back else []
            crowded = sizing.crowded()
        parting = None
        if not (wanted or relieve or crowded):
            parting = parted(sizing, seen.nodes) or spread(sizing, seen.nodes)
        sharing = shared_out(sizing, wanted, stable=self._stable >= self._t.stable_periods)
        self._grow = self._grow + 1 if wanted or relieve or crowded or parting or sharing else 0
        known = self._earlier.reasons(wanted, parting.operators if parting is not None else ())
        if self._grow >= (1 if known else self._t.grow_periods):
            if sharing is not None:
                return self._share(seen, sizing, sharing)
            if parting is not None:
                return self._part(seen, sizing, parting, grows=True)
            return self._change(seen, sizing, wanted, relieve, grows=True)
        if not self._shrink:
            self._calm_need = {}
        self._calm_need = {name: max(rate, self._calm_need.get(name, 0.0)) for name, rate in sizing.need.items()}
        calm = replace(sizing, need=self._calm_need)  # down to the most that was needed meanwhile, no further
        less = {} if self._grow or sizing.held_back else calm.smaller()
        joining = joined(calm, seen.nodes) if not (self._grow or less) else None
        self._shrink = self._shrink + 1 if less or joining else 0
        if self._shrink and self._shrink >= self._reversals.wait(tuple(less) or (PARTINGS,)):
            if joining is not None:
                return self._part(seen, calm, joining, grows=False)
            return self._change(seen, calm, less, [], grows=False)
        self._stable += 1
        held = self._hold(seen, *self._why_not(seen, sizing, less), request=sizing.request)
        return replace(held, soon_on=next_node(sizing, wanted, seen.nodes) or "") if self._grow else held

    def _change(
        self,
        seen: PlanObservation,
        sizing: Sizing,
        wanted: Mapping[str, Shape],
        relieve: list[str],
        *,
        grows: bool,
        fewer: Fewer | None = None,
    ) -> AdaptationDecision:
        proposal = propose(sizing, wanted, seen.nodes, relieve)
        self._grow = self._shrink = 0
        what = self._rates(sizing)
        if not proposal.actions:
            if (sharing := shared_out(sizing, ())) is not None:
                return self._share(seen, sizing, sharing)
            return self._hold(seen, *what, Code.NO_ROOM(), request=proposal.request)
        if grows:
            what = [*self._earlier.reasons(proposal.shapes), *what, *sizing.named]
        elif fewer is not None:
            what.append(Code.FEWER_REPLICAS_MAY_DO())
        cost = self._costs.of([action.kind for action in proposal.actions])
        gain = sizing.gain(proposal.plan) if grows else 1.0 - proposal.plan.threads / seen.plan.threads
        worth = (Code.GAIN if grows else Code.SAVES_THREADS)(gain=gain, cost=cost)
        why = *what, *reasons_of(proposal.actions), worth
        if gain * self._t.payback < cost:
            return self._hold(seen, *why, Code.NOT_WORTH_IT(), request=proposal.request)
        self._notes(tuple(wanted) if fewer is None else (), grows=grows)
        now, relieved = self._carried(sizing), tuple(relieve)
        self._trial = Trial(seen.plan, proposal.actions, proposal.shapes, now, gain, grows, relieved, fewer=fewer)
        self._started(proposal.plan)
        return AdaptationDecision(
            proposal.plan,
            Verdict.TRY,
            actions=proposal.actions,
            reasons=why,
            rule="Joker 4.2, 4.5 (J32); DS2" if grows else "as many as pay" if fewer else "less is enough for long",
            reset=True,
            request=proposal.request,
        )

    def _bound(self, seen: PlanObservation, sizing: Sizing, bound: Mapping[str, Shape]) -> AdaptationDecision:
        """Goes to the bounds of this time, whether that pays or not: users know of a load before it comes."""
        proposal = propose(sizing, bound, seen.nodes)
        if not proposal.actions:
            return self._hold(seen, Code.BOUNDS_NO_ROOM(regions=list(bound)), request=proposal.request)
        self._grow = self._shrink = 0
        self._started(proposal.plan)
        held = self._hold(seen, *reasons_of(proposal.actions), Code.BOUNDS(), request=proposal.request)
        bounded = replace(held, plan=proposal.plan, actions=proposal.actions)
        return replace(bounded, verdict=Verdict.BOUND, rule="JobConfig(replicas=...)", reset=True)

    def _share(
        self, seen: PlanObservation, sizing: Sizing, sharing: Sharing, grown: Trial | None = None
    ) -> AdaptationDecision:
        """Asks for partitions at other replicas: no replica more, and what moves is little.

        Replicas that a growth has added may be on slower nodes: it is judged once each has as much as it can do.
        """
        self._grow = self._shrink = 0
        cost = self._costs.of([SHARE])
        why = _offered(sizing), Code.UNEVEN(), *reasons_of(sharing.actions), Code.GAIN(gain=sharing.gain, cost=cost)
        if sharing.gain * self._t.payback < cost:
            return self._hold(seen, *why, Code.NOT_WORTH_IT())
        names = tuple(action.region for action in sharing.actions)
        now = self._carried(sizing)
        if grown is not None:
            self._trial = replace(grown, actions=(*grown.actions, *sharing.actions), shared=names)
        else:
            self._trial = Trial(seen.plan, sharing.actions, {}, now, sharing.gain, grows=True, shared=names)
        self._started(sharing.plan)
        return _change_to(sharing, why, "as many keys as each replica can take")

    def _part(self, seen: PlanObservation, sizing: Sizing, parting: Parting, *, grows: bool) -> AdaptationDecision:
        """Asks for operators in other processes, if that pays for the pause of all."""
        self._grow = self._shrink = 0
        cost = self._costs.of([PARTINGS])
        gain = parting.gain if grows else 1.0 - len(parting.plan.pes) / len(seen.plan.pes)
        known = self._earlier.reasons({}, parting.operators) if grows else []
        worth = (Code.GAIN if grows else Code.SAVES_PROCESSES)(gain=gain, cost=cost)
        why = *known, _offered(sizing), parting.why, worth
        if gain * self._t.payback < cost:
            return self._hold(seen, *why, Code.NOT_WORTH_IT())
        self._notes((PARTINGS,), grows=grows)
        self._trial = Trial(seen.plan, parting.actions, {}, self._carried(sizing), gain, grows, parting=parting)
        self._started(parting.plan)
        return _change_to(parting, why, parting.rule)

    def _notes(self, regions: tuple[str, ...], *, grows: bool) -> None:
        if grows:
            self._reversals.grew(regions)
        else:
            self._reversals.shrank(regions)

    # --- judging: section 4.3 ---------------------------------------------------------------------------------------

    def _judge(self, seen: PlanObservation) -> AdaptationDecision:
        trial, self._trial = self._trial, None
        assert trial is not None
        now = self._carried(sizing := self._sizing(seen))
        if trial.shapes and trial.grows and not trial.shared and now.share < self._t.carried:
            sharing = shared_out(sizing, ())
            if sharing is not None and trial.would_be_good(now, sharing.gain, self._t):
                return self._share(seen, sizing, sharing, trial)
        measured = _offered(sizing), Code.GAINED(gain=trial.gained(now))
        apart, good = trial.parting.operators if trial.parting is not None else (), trial.is_good(now, self._t)
        if trial.fewer is not None or seen.waits_for_cpus > self._t.others:
            self._fewer = trial.halved(now, self._t, good=good)
        if good:
            for name, (_, replicas) in trial.shapes.items() if trial.fewer is not None else ():
                self._rejected.enough(name, replicas)
            for name in (*trial.shapes, PARTINGS) if trial.grows else ():
                self._rejected.kept(name)
            less = 0 < self._t.carried * self._paid_at <= sizing.carried  # as much with fewer is learned, too
            if trial.grows or less:
                self.learned = self.learned.kept(trial.shapes, apart if trial.grows else ())
                self._paid_at = max(self._paid_at, sizing.carried)
            for name in trial.shared:
                shared = name, shape_of(seen.plan.region(name))
                self._sharings[shared] = self._sharings.get(shared, 0) + 1
                if self._sharings[shared] % MOST_SHARINGS == 0:
                    self._rejected.add(sharing_of(name), shared[1])
                of_region = sum(times for (region, _), times in self._sharings.items() if region == name)
                if of_region % (2 * MOST_SHARINGS) == 0:
                    self._rejected.add(sharing_of(name), ANY)
            why = *measured, Code.REPLICAS_KEPT()
            return AdaptationDecision(seen.plan, Verdict.KEEP, reasons=why, rule="Joker 4.3")
        plan = seen.plan
        undone = tuple(reversed(trial.actions))
        for action in undone:
            plan = action.revert(plan)
        self._in_vain |= set(trial.relieved)
        self._earlier, self.learned = (one.undone(trial.shapes, apart) for one in (self._earlier, self.learned))
        for name, shape in trial.shapes.items() if trial.fewer is None else ():
            if shape != shape_of(trial.before.region(name)):
                self._rejected.add(name, shape)
        if trial.parting is not None:
            self._rejected.add(PARTINGS, trial.parting.shape)
        for name in trial.shared:
            self._rejected.add(sharing_of(name), shape_of(seen.plan.region(name)))
        nodes = {pe: node for pe, node in {**seen.plan.nodes, **trial.before.nodes}.items() if pe in plan.pes}
        self._started(plan)
        return AdaptationDecision(
            plan.with_nodes(nodes),
            Verdict.REVERT,
            undone,
            reasons=(*measured, Code.REPLICAS_REVERTED()),
            rule="Joker 4.3",
            reset=True,
        )

    def _undone(self, plan: ExecPlan) -> None:
        """Count a change that isn't in force: once it may have been bad luck, twice it is a rule."""
        shapes = self._trial.shapes if self._trial is not None else {}
        if self._trial is not None and self._trial.parting is not None:
            self._rejected.add(PARTINGS, self._trial.parting.shape)
        for name in self._trial.shared if self._trial is not None else ():
            self._rejected.add(sharing_of(name), shape_of(plan.region(name)))
        for missed in [(name, shape) for name, shape in shapes.items() if shape != shape_of(plan.region(name))]:
            if missed in self._missed:
                self._rejected.add(*missed)
            self._missed ^= {missed}
        self._trial = None

    def _started(self, plan: ExecPlan) -> None:
        """Another plan comes into force: what was measured belongs to the old one."""
        self._plan = plan
        self._known.forget(plan)
        if self._latency is not None:
            self._latency.forget()
        self._age = self._waited = self._starved = self._doubts = self._stable = 0

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _replace_lost(self, seen: PlanObservation) -> AdaptationDecision | None:
        there = {node.name for node in seen.nodes}
        lost = [pe for pe, node in seen.plan.nodes.items() if pe in seen.plan.pes and node not in there]
        if not seen.nodes or not lost:
            return None
        sizing = self._sizing(seen)
        nodes = rehosted(seen.plan, seen.nodes, load_of(seen.plan, sizing.cpu_each({})), lost)
        self._started(seen.plan)
        self._trial = None
        gone = [Code.NODE_LOST(node=node) for node in sorted({seen.plan.nodes[pe] for pe in lost})]
        return AdaptationDecision(
            seen.plan.with_nodes(nodes),
            Verdict.PLACE,
            reasons=(*gone, *(Code.PE_MOVES(pe=pe, node=nodes[pe]) for pe in lost)),
            rule="placement",
            reset=True,
            request=sizing.request,
        )

    # --- reasons ----------------------------------------------------------------------------------------------------

    def _hold(self, seen: PlanObservation, *reasons: Reason, request: NodeRequest | None = None) -> AdaptationDecision:
        stable = (Code.STABLE(),) if self._stable >= self._t.stable_periods else ()  # J31
        return AdaptationDecision(seen.plan, reasons=(*reasons, *stable), request=request, grows_soon=self._grow > 0)

    def _prepared(self, seen: PlanObservation, reason: Reason) -> AdaptationDecision:
        """Hold, and name early where a process would be wanted by what is known so far: it takes seconds to start."""
        sizing, held = self._sizing(seen), self._hold(seen, reason)
        node = next_node(sizing, sizing.larger(), seen.nodes) if self._trial is None else None
        return held if node is None else replace(held, grows_soon=True, soon_on=node)

    def _rates(self, sizing: Sizing) -> list[Reason]:
        return [_offered(sizing), *([self._latency.reason] if self._latency is not None else [])]

    def _why_not(self, seen: PlanObservation, sizing: Sizing, less: Mapping[str, Shape]) -> list[Reason]:
        use = {planned.region.name: sizing.use(planned.region.name) for planned in sizing.sized}
        busiest = max(use, key=lambda name: use[name], default="")
        what = self._rates(sizing)
        if self._grow:
            return [*what, Code.NEEDS_MORE(region=busiest, use=use.get(busiest, 0.0)), *sizing.named]
        if less:
            return [*what, Code.LESS_WOULD_DO(regions=list(less))]
        together = why_together(sizing, seen.nodes)
        stuck = [p.region.name for p in sizing.short(stable=self._stable > self._t.stable_periods)]
        if stuck:
            return [*what, Code.CANT_GROW(regions=stuck), *sizing.hot, *together]
        starving = [seen.starving] if sizing.held_back and seen.waits_for_cpus > self._t.others else []
        most = [Code.BUSIEST(region=busiest, use=use[busiest])] if use else []
        return [*what, *most, *together, *starving]


def _change_to(wanted: Sharing | Parting, why: tuple[Reason, ...], rule: str) -> AdaptationDecision:
    return AdaptationDecision(wanted.plan, Verdict.TRY, actions=wanted.actions, reasons=why, rule=rule, reset=True)


def _offered(sizing: Sizing) -> Reason:
    return Code.RATES(offered=sizing.offered, carried=sizing.carried)
