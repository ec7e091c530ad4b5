"""Joker's adaptation algorithm as the paper prints it: Algorithms 1 to 7 of section 4 (J21-J31).

It starts with one pipeline and one replica per region. In each period it resolves all bottlenecks by a split or one
more replica. In the next period it judges them by the throughput of the regions closest to the source, and keeps or
reverts them. It never shrinks.

It knows one host and no nodes. A new replica runs where the first does. If replicas can't share a PE,
it runs in one of its own, which the caller may place. Then pipelines aren't cut, as the local levels place queues.

Where algorithm and text differ, the text of section 4 decides. So metrics are updated in every period without a running
adaptation, whether the load changed or not. Algorithm 7 states this result, and the released source does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rayelastic.plan.exec_plan import ExecPlan, RegionPlan
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actions import (
    AdaptationAction,
    AdaptationDecision,
    RebalanceRegion,
    SplitPipeline,
    Verdict,
)
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.observation import (
    ObservationWindow,
    PipelineObservation,
    PlanObservation,
    RegionObservation,
)
from rayelastic.policy.regions.thresholds import ActionOrder, OrganicThresholds
from rayelastic.reasons import Code, Reason

Shape = tuple[tuple[str, ...], int]  # of a region: where it is cut, and how many replicas it has
Found = tuple[tuple[AdaptationAction, ...], dict[str, Shape]]  # actions, and the shape for each adapting pipeline


def split_utility(costs: Sequence[float], at: int) -> float:
    """Return the ratio of throughputs that a split promises: 1 / (overhead + the more expensive side) (4.2).

    Args:
        costs: of the operators of a pipeline.
        at: how many of them stay in the first pipeline.

    >>> round(split_utility([0.2, 0.1, 0.4], 1), 3), round(split_utility([0.2, 0.1, 0.4], 2), 3)
    (1.25, 1.429)
    """
    overhead = max(0.0, 1.0 - sum(costs))
    return 1.0 / (overhead + max(sum(costs[:at]), sum(costs[at:])))


def best_split(costs: Sequence[float]) -> int:
    """Return how many operators stay in the first pipeline when both sides are as equal as can be (Algorithm 3)."""
    return min(range(1, len(costs)), key=lambda at: abs(sum(costs[:at]) - sum(costs[at:])))


@dataclass(slots=True)
class _Region:
    """What is kept of a region: the variables R.* of the algorithms."""

    seen: RegionObservation  # R.T and R.C
    blacklist: dict[str, set[Shape]] = field(default_factory=dict)  # R.Blacklist[P], P by its first operator
    adapting: dict[str, Shape] = field(default_factory=dict)  # R.A with P.CFG
    actions: tuple[AdaptationAction, ...] = ()  # from R.CFGbase to R.CFG


class PaperAdaptation:
    """Algorithm 1.

    Args:
        thresholds: its constants.
        actuation: what of a plan can be changed; nothing else is asked for.
        window: makes one observation of several samples; None: each sample is one.
    """

    def __init__(
        self,
        thresholds: OrganicThresholds | None = None,
        actuation: Actuation | None = None,
        window: ObservationWindow | None = None,
    ) -> None:
        self._window = window
        self._t = thresholds or OrganicThresholds()
        self._can = actuation or Actuation()
        self.reset()

    def reset(self) -> None:
        """Forget all metrics and blacklists."""
        self._regions: dict[str, _Region] = {}
        self._adapting: list[str] = []
        self._missed: set[tuple[str, Shape]] = set()  # that were asked for, and undone once
        self._asked: ExecPlan | None = None
        self._most: int | None = None  # PEs
        self._stable = 0

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        """Take one period's averages and return the plan for the next one."""
        if self._window is not None:
            whole = self._window.add(seen)
            if whole is None:
                return AdaptationDecision(seen.plan, reasons=(Code.MEASURING_REGIONS(),), rule="Joker 4.1")
            seen = whole
        if not seen.adapted:
            return AdaptationDecision(seen.plan, reasons=(Code.NOT_IN_FORCE(),))
        self._most = self._can.most_processes(seen.nodes)
        if self._adapting and self._asked is not None and seen.plan.regions != self._asked.regions:
            for name in self._adapting:  # bad luck once; what couldn't be had twice isn't asked for under this load
                for pipeline, shape in self._regions[name].adapting.items():
                    if (pipeline, shape) in self._missed:
                        self._regions[name].blacklist.setdefault(pipeline, set()).add(shape)
                    self._missed ^= {(pipeline, shape)}
                self._regions[name].adapting, self._regions[name].actions = {}, ()
            self._adapting = []
            return AdaptationDecision(seen.plan, reasons=(Code.REGIONS_ROLLED_BACK(),))
        decision = self._evaluate(seen) if self._adapting else self._adapt(seen)
        self._asked = decision.plan
        return decision

    def _adapt(self, seen: PlanObservation) -> AdaptationDecision:
        for observed in seen.regions:
            self._update_metrics(observed)
        plan, reasons = seen.plan, list[Reason]()
        for planned in seen.plan.regions:  # in topological order, all bottlenecks at once (J21)
            resolved = self._resolve_if_bottleneck(planned, plan)
            if resolved is not None:
                plan, why = resolved
                reasons += why
                self._adapting.append(planned.region.name)
        if not self._adapting:
            self._stable += 1
            stable = (Code.STABLE(),) if self._stable >= self._t.stable_periods else ()  # J31
            return AdaptationDecision(seen.plan, reasons=(self._no_change(seen), *stable), rule="Joker Algorithm 1")
        self._stable = 0
        return AdaptationDecision(
            plan,
            Verdict.TRY,
            actions=self._actions(self._adapting),
            reasons=tuple(reasons),
            rule="Joker Algorithms 1-4",
            reset=True,
        )

    def _evaluate(self, seen: PlanObservation) -> AdaptationDecision:
        failed = self._non_resolved(seen)
        if failed is None:
            gains = tuple(self._gained(name, seen) for name in self._closest(seen.plan))
            for name in self._adapting:
                self._finalize(name, seen)
            self._adapting = []
            return AdaptationDecision(seen.plan, Verdict.KEEP, reasons=gains, rule="Joker Algorithm 5")
        gain = self._gained(failed, seen)
        plan, reverted = self._revert(failed, seen.plan)
        resolved = self._resolve_if_bottleneck(plan.region(failed), plan)
        if resolved is not None:  # A keeps the others; they are judged together next time
            plan, why = resolved
            reasons = gain, Code.NOT_WORTH_IT(), *why
            actions = self._actions([failed])
            return AdaptationDecision(plan, Verdict.REVERT, reverted, actions, reasons, "Joker Algorithm 6", reset=True)
        for name in reversed(self._adapting):
            if name != failed:
                plan, more = self._revert(name, plan)
                reverted += more
        self._adapting = []
        reasons = gain, Code.NOT_WORTH_IT(), Code.NOTHING_ELSE()
        return AdaptationDecision(plan, Verdict.REVERT, reverted, (), reasons, "Joker Algorithm 6", reset=True)

    # --- Algorithm 2 ------------------------------------------------------------------------------------------------

    def _resolve_if_bottleneck(self, planned: RegionPlan, plan: ExecPlan) -> tuple[ExecPlan, list[Reason]] | None:
        name = planned.region.name
        if planned.region.kind.is_fixed or name not in self._regions:
            return None  # source regions are excluded (J09)
        state = self._regions[name]
        bottlenecks = [p for p in state.seen.pipelines if p.utilisation > self._t.cpu_bottleneck]  # J22
        if not bottlenecks:
            return None
        found = None
        for candidate in self._candidates():
            found = candidate(planned, plan, bottlenecks)
            if found is not None:
                break
        if found is None:
            return None
        actions, adapting = found
        state.adapting, state.actions = adapting, actions
        for action in actions:
            plan = action.apply(plan)
        busiest = max(p.utilisation for p in bottlenecks)
        return plan, [Code.PIPELINE_BUSY(region=name, busy=busiest), *(action.reason for action in actions)]

    def _candidates(self) -> Sequence[Callable[[RegionPlan, ExecPlan, list[PipelineObservation]], Found | None]]:
        order = self._t.order if self._can.shares else ActionOrder.EXPAND_ONLY
        by_order: dict[ActionOrder, Sequence[Callable[..., Found | None]]] = {
            ActionOrder.SPLIT_FIRST: [self._split, self._expand],
            ActionOrder.EXPAND_FIRST: [self._expand, self._split],
            ActionOrder.SPLIT_ONLY: [self._split],
            ActionOrder.EXPAND_ONLY: [self._expand],
        }
        return by_order[order]

    def _split(self, planned: RegionPlan, plan: ExecPlan, bottlenecks: list[PipelineObservation]) -> Found | None:
        """Algorithm 3: split every bottleneck pipeline where it pays, or none (J24)."""
        actions: list[AdaptationAction] = []
        adapting: dict[str, Shape] = {}
        for pipeline in bottlenecks:
            if len(pipeline.operators) == 1:
                return None
            at = best_split(pipeline.costs)
            if split_utility(pipeline.costs, at) - 1.0 < self._t.split_gain:  # E5: the gain
                return None
            action = SplitPipeline(planned.region.name, pipeline.operators[at])
            first, shape = pipeline.operators[0], _shape(action.apply(plan).region(planned.region.name))
            if shape in self._blacklisted(planned, first):
                return None
            actions.append(action)
            adapting[first] = shape
        return tuple(actions), adapting

    def _expand(self, planned: RegionPlan, plan: ExecPlan, bottlenecks: list[PipelineObservation]) -> Found | None:
        """Algorithm 4: one more replica of a partitioned region (J26)."""
        _, most = self._can.bounds_of(planned.region.name, self._t.max_replicas)
        if planned.region.kind is not RegionKind.DATA_PARALLEL or planned.replicas >= most:
            return None
        if not self._can.replicates(planned):
            return None
        pes = None if self._can.shares else (*planned.pipelines[0].pes, *plan.fresh_pes(1))
        if pes is not None and self._most is not None and len(plan.pes) >= self._most:
            return None
        action = RebalanceRegion.of(plan, planned.region.name, planned.replicas + 1, pes)
        shape = (planned.cuts, planned.replicas + 1)
        if any(shape in self._blacklisted(planned, pipeline.operators[0]) for pipeline in bottlenecks):
            return None
        return (action,), {pipeline.operators[0]: shape for pipeline in bottlenecks}

    def _blacklisted(self, planned: RegionPlan, pipeline: str) -> set[Shape]:
        return self._regions[planned.region.name].blacklist.get(pipeline, set())

    # --- evaluation and control: section 4.3 ------------------------------------------------------------------------

    def _closest(self, plan: ExecPlan) -> list[str]:
        """Return the adapting regions with no other one upstream, whose throughput stands for the rest (J27)."""
        above: dict[str, set[str]] = {}
        for planned in plan.regions:
            name = planned.region.name
            above[name] = set()
            for feeding in plan.upstream(name):
                above[name] |= above[feeding] | {feeding}
        return [name for name in self._adapting if not above[name] & set(self._adapting)]

    def _gain(self, name: str, seen: PlanObservation) -> float:
        before = self._regions[name].seen.throughput
        return seen.of(name).throughput / before - 1.0 if before > 0 else 0.0

    def _non_resolved(self, seen: PlanObservation) -> str | None:
        closest = self._closest(seen.plan)
        return next((name for name in closest if self._gain(name, seen) <= self._t.throughput_gain), None)

    def _finalize(self, name: str, seen: PlanObservation) -> None:
        """Algorithm 5."""
        state = self._regions[name]
        for pipeline in state.adapting:
            state.blacklist.pop(pipeline, None)
        state.seen = seen.of(name)
        state.adapting, state.actions = {}, ()

    def _revert(self, name: str, plan: ExecPlan) -> tuple[ExecPlan, tuple[AdaptationAction, ...]]:
        """Algorithm 6."""
        state = self._regions[name]
        for pipeline, shape in state.adapting.items():
            state.blacklist.setdefault(pipeline, set()).add(shape)
        undone = tuple(reversed(state.actions))
        for action in undone:
            plan = action.revert(plan)
        state.adapting, state.actions = {}, ()
        return plan, undone

    def _update_metrics(self, observed: RegionObservation) -> None:
        """Algorithm 7: forget the blacklists of pipelines whose load changed (J29)."""
        state = self._regions.setdefault(observed.region, _Region(observed))
        before = {p.operators[0]: p for p in state.seen.pipelines}
        for pipeline in observed.pipelines:
            old = before.get(pipeline.operators[0])
            if old is not None and self._load_changed(old, pipeline):
                state.blacklist.pop(pipeline.operators[0], None)
        state.seen = observed

    def _load_changed(self, old: PipelineObservation, new: PipelineObservation) -> bool:
        pairs = ((old.taken[0], new.taken[0]), (old.utilisation, new.utilisation))
        return any(abs(after - before) > self._t.load_change * before for before, after in pairs)

    # --- words ------------------------------------------------------------------------------------------------------

    def _actions(self, names: Sequence[str]) -> tuple[AdaptationAction, ...]:
        return tuple(action for name in names for action in self._regions[name].actions)

    def _no_change(self, seen: PlanObservation) -> Reason:
        busy = {
            r.region: max((p.utilisation for p in r.pipelines), default=0.0)
            for r in seen.regions
            if not seen.plan.region(r.region).region.kind.is_fixed
        }
        over = [name for name, share in busy.items() if share > self._t.cpu_bottleneck]
        if over:
            return Code.NOTHING_LEFT(regions=over)
        return Code.PIPELINES_CALM(busy=max(busy.values(), default=0.0))

    def _gained(self, region: str, seen: PlanObservation) -> Reason:
        return Code.REGION_GAIN(region=region, gain=self._gain(region, seen))


def _shape(planned: RegionPlan) -> Shape:
    return planned.cuts, planned.replicas
