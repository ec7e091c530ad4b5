"""Thread count and queues together, guided by what the profiler knows: the default controller of a PE.

It has the structure of Middleware'19 section 3.2 (more threads, and queues for that many). It differs in five points:

- Measured costs determine the queues and the range of thread counts, instead of groups and bisection.
- Sequential tests decide, instead of a threshold of 5 %.
- The CPUs that other processes use bound the threads, instead of a stop at 80 %.
- The best configuration of each load is remembered.
- The number of threads follows the demand when threads are idle.

Must not know how any of it is measured or carried out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.guided.estimate import Configuration, Estimate, Profile
from rayelastic.policy.element.guided.load import LoadThresholds, Saturation, saturation_of
from rayelastic.policy.element.guided.load_watch import Demand, DemandSign, OtherProcesses, TupleCost
from rayelastic.policy.element.guided.measurement import MeasurementThresholds, Series, Shift, Verdict, noise_of
from rayelastic.policy.element.guided.memory import Memory, Remembered
from rayelastic.policy.element.guided.pace import Work
from rayelastic.policy.element.guided.search import ConfigurationSearch
from rayelastic.policy.element.guided.trial import Bounds, Purpose, SearchThresholds, Trial, thread_limits
from rayelastic.policy.element.guided.trial_costs import TrialCosts, TrialCostThresholds
from rayelastic.policy.element.observation import Observation
from rayelastic.policy.element.pieces import OperatorGraph
from rayelastic.reasons import Code, Reason

__all__ = ["GuidedMultiLevelElasticity", "GuidedThresholds", "Phase"]


class Phase(Enum):
    """What the controller is doing."""

    WARMING_UP = "nothing has been measured"
    MEASURING = "the best configuration is measured"
    ON_TRIAL = "another configuration is on trial"
    BACKING_OFF = "only what promises much is tried while a backlog is worked off"
    HOLDING = "the best configuration has been found, the demand is met, or trials have cost too much"


@dataclass(frozen=True, slots=True)
class GuidedThresholds:
    """Constants of the guided controller.

    Args:
        search: constants of the search.
        tests: constants of its tests.
        load: constants that classify the load.
        costs: constants of the bound on what trials cost.
        first_samples: profiler samples that are waited for at the start, at most twice the periods of a trial.
        patience: periods in which what was asked for may be late before what is in force counts (P25, bounded).
        minor: relative difference of throughput up to which the load is the old one, or one that is remembered.
        memory: settled samples that are kept.
        backlog: most periods in which sources count as working off a backlog, from when a demand that was met grows.
    """

    search: SearchThresholds = field(default_factory=SearchThresholds)
    tests: MeasurementThresholds = field(default_factory=MeasurementThresholds)
    load: LoadThresholds = field(default_factory=LoadThresholds)
    costs: TrialCostThresholds = field(default_factory=TrialCostThresholds)
    first_samples: int = 100
    patience: int = 3
    minor: float = 0.1
    memory: int = 30
    backlog: int = 30


class GuidedMultiLevelElasticity:
    """Finds threads and queues in a few moves, verifies each by measurement, and then stays.

    Args:
        upstream: {operator: those that feed it}; None: a chain in the order of the observations.
        thresholds: its constants.
        earlier: what was best in an earlier run, which is tried first; None: nothing is known.

    >>> from rayelastic.policy.element.observation import OperatorObservation
    >>> operators = (OperatorObservation("source", switchable=False, rate=1e4, samples=0),
    ...              OperatorObservation("a", rate=1e4, samples=250), OperatorObservation("b", rate=1e4, samples=250))
    >>> seen = Observation(time=5, period=5, throughput=3e4, thread_count=1, maximum_threads=4, operators=operators,
    ...                    cpu_count=4, own_cpu=1.0)
    >>> controller = GuidedMultiLevelElasticity()
    >>> controller.step(seen).models
    {}
    >>> controller.step(seen).models
    {'b': <ThreadingModel.DYNAMIC: 'dynamic'>}
    """

    def __init__(
        self,
        upstream: Mapping[str, Sequence[str]] | None = None,
        thresholds: GuidedThresholds | None = None,
        earlier: Configuration | None = None,
    ) -> None:
        self._upstream = upstream
        self._thresholds = thresholds or GuidedThresholds()
        self._budget: int | None = None  # a bound, and nothing that was learned
        self._costs = TrialCosts(self._thresholds.costs)  # whatever is forgotten, trials have cost that
        self.reset()
        self._earlier: Configuration | None = earlier

    @property
    def best(self) -> Configuration | None:
        """The best configuration so far; None before one was compared with another, and while the demand is met."""
        search = self._search
        return search.best if search is not None and len(search.measured) > 1 else None

    @property
    def phase(self) -> Phase:
        """What it is doing."""
        return self._phase

    @property
    def trial_seconds(self) -> float:
        """Seconds of throughput that trials have cost so far."""
        return self._costs.lost

    def reset(self) -> None:
        """Forget everything, as after a change of regions."""
        self._graph: OperatorGraph | None = None
        self._profile = Profile()
        self._recent = Profile()
        self._calm = Work()  # since it has settled
        self._since: list[Observation] = []  # those that lean to one side, the last ones
        self._memory = Memory()
        self._search: ConfigurationSearch | None = None
        self._phase = Phase.WARMING_UP
        self._settled = Series()  # what it gives while the phase is holding
        self._behind = 0  # periods in which a backlog may still be worked off
        self._shift = Shift()
        self._cost = TupleCost()
        self._others = OtherProcesses()
        self._demand = Demand()
        self._late = 0
        self._earlier = None

    def step(self, observation: Observation) -> Decision:
        """Return what shall be in force in the next period."""
        if not observation.adapted and self._late < self._thresholds.patience:
            self._late += 1
            return Decision.keep(observation, Code.NOT_IN_FORCE(), rule="PLDI'17 4.2.3 (P25)")
        self._late = 0
        graph = self._graph_of(observation)
        self._profile.add(observation, graph.sources)
        self._recent.add(observation, graph.sources)
        decision = self._keep_to_budget(observation) or self._make_room(observation)
        decision = decision or self._follow(observation, graph)
        if decision is None:
            settled = self._phase is Phase.HOLDING and self._search is not None
            decision = self._watch(observation) if settled else self._search_step(observation)
        if not (self._shift.suspicious or self._cost.leaning):
            self._recent = Profile()
        return replace(decision, soon=self._phase in (Phase.MEASURING, Phase.ON_TRIAL))

    # --- what bounds the threads: the budget, CPUs that others use, and demand ---

    def _keep_to_budget(self, observation: Observation) -> Decision | None:
        """Search anew within other CPUs than before; siblings that were taken for others have their own parts now."""
        budget, before = observation.budget, self._budget
        if budget == before:
            return None
        self._budget, self._others = budget, OtherProcesses()
        now = _in_force(observation)
        start = Configuration(min(now.threads, self._limits(observation)[1]), now.queued)
        why = Code.CPU_BUDGET(cpus=budget) if budget is not None else Code.NO_CPU_BUDGET()
        return self._begin(observation, start, (why,), "fair shares")

    def _make_room(self, observation: Observation) -> Decision | None:
        """Give way to other processes, and come back (P32, C004-3; instead of a stop at 80 % of the host)."""
        why = self._others.changed(observation, self._thresholds.load)
        if why is None:
            return None
        now = _in_force(observation)
        start = Configuration(min(now.threads, self._bounds(observation).maximum), now.queued)
        return self._begin(observation, start, (why,), "PLDI'17 4.2.3 (P32)")

    def _follow(self, observation: Observation, graph: OperatorGraph) -> Decision | None:
        """Follow a demand that leaves threads idle: throughput says nothing then, idle time does (C001-2)."""
        load, demand = self._thresholds.load, self._demand
        state, why = saturation_of(observation, graph, load)
        best = max((s.throughput for s in self._search.measured.values()), default=0.0) if self._search else 0.0
        trying = self._search is not None and self._search.trial is not None
        if trying and state is Saturation.SLACK and 0 < observation.throughput < best * (1 - self._thresholds.minor):
            state, why = Saturation.UNSURE, (*why, Code.FASTER_BEFORE())
        sign = demand.take(state, load)
        self._behind = 0 if demand.met else max(0, self._behind - 1)
        if sign is DemandSign.UNMET:
            self._behind = self._thresholds.backlog
            return self._begin(observation, _in_force(observation), (Code.DEMAND_UNMET(), *why), "C001-2")
        if not demand.met:  # a period without tuples can't be measured
            return Decision.keep(observation, *why, rule="no tuples") if observation.throughput <= 0 else None
        if sign is DemandSign.MET:
            self._search = None
        self._phase = Phase.HOLDING
        minimum, maximum = self._limits(observation)
        busy = observation.thread_count * (1 - observation.idle)
        need = min(max(minimum, math.ceil(busy / load.headroom)), maximum)
        if need < observation.thread_count and demand.slack >= load.confirm:
            demand.slack = 0
            few = Code.THREADS_BUSY(busy=busy, threads=observation.thread_count)
            return Decision(need, {}, (few, *why), "C001-2")
        return Decision.keep(observation, Code.DEMAND_MET(), *why, rule="C001-2")

    # --- search ---

    def _begin(
        self,
        observation: Observation,
        start: Configuration,
        why: tuple[Reason, ...],
        rule: str,
        since: Series | None = None,
    ) -> Decision:
        """Begin a search under a new load, at what was best under such a load before, if any."""
        thresholds = self._thresholds
        if self._recent.known:
            self._profile = self._recent
        self._recent, self._shift, self._cost, self._phase = Profile(), Shift(), TupleCost(), Phase.MEASURING
        self._search = ConfigurationSearch(start, thresholds.search, thresholds.tests)
        if since is not None:
            self._search.measured[start] = since
        elif start == _in_force(observation) and observation.throughput > 0:
            self._search.add(start, observation.throughput)
        if start in self._search.measured:
            now = self._remembered(start, self._search.measured[start])
            known = self._memory.like(now, self._limits(observation)[1])
            if known is not None:
                more = known.series.throughput / now.series.throughput  # if the load is the same
                promised = max(1.0, more) if more > 1 - thresholds.minor else None
                trial = Trial(known.best, Purpose.RECALL, Code.BEST_BEFORE(setting=known.best.counts), promised)
                return self._try(observation, self._search, trial, (*why, trial.why), rule)
        return _ask(observation, start, why, rule)

    def _search_step(self, observation: Observation) -> Decision:
        now = _in_force(observation)
        if self._search is None:
            self._search = ConfigurationSearch(now, self._thresholds.search, self._thresholds.tests)
        tuples = observation.throughput * observation.period
        if self._cost.changed(now, observation.samples, tuples, self._thresholds.load):
            return self._begin(observation, now, (Code.COST_CHANGED(),), "C001-2")
        seen = Code.MEASURED(rate=observation.throughput, setting=now.counts)
        if self._cost.leaning:  # one sample of another load is no gain and no loss
            return Decision.keep(observation, seen, Code.COST_MAY_HAVE_CHANGED(), rule="C001-2")
        search, bounds = self._search, self._bounds(observation)
        if search.trial is not None and now != search.trial.configuration:
            search.cannot(now)  # a port or a thread that didn't follow: what is in force counts
        elif search.trial is None and now != search.best:
            search.best = now
        search.add(now, observation.throughput)
        self._phase = Phase.MEASURING
        if search.trial is not None:
            self._costs.add(observation, search.measured.get(search.best))
            purpose = search.trial.purpose
            verdict, seen = search.judge(bounds)
            if verdict is Verdict.OPEN:
                self._phase = Phase.ON_TRIAL
                return Decision.keep(observation, seen, rule=f"ratio test of {purpose.value}")
            bounds = bounds.explained(search.explanations)  # with what was learned of hops
            if verdict is Verdict.ACCEPT and purpose is Purpose.RECALL and self._met_again(search):
                return self._settle(observation, search, seen, Code.AS_REMEMBERED())
        if search.trial is None and len(search.measured) == 1 and self._met_again(search):
            return self._settle(observation, search, seen, Code.AS_REMEMBERED())
        recall = self._as_in_an_earlier_run(now, bounds)
        if recall is not None:
            return self._try(observation, search, recall, (seen, recall.why))
        if self._too_early(search):
            return _ask(observation, search.best, (seen, Code.MEASURING(setting=search.best.counts)), "baseline")
        withheld = self._withheld(observation)
        trial = search.propose(bounds, only_what_pays=withheld is not None)
        if trial is None and self._behind:
            self._phase = Phase.BACKING_OFF
            return _ask(observation, search.best, (seen, Code.BEHIND()), "no trial that doesn't pay")
        if trial is None:
            return self._settle(observation, search, seen, withheld or Code.NO_BETTER())
        if search.needs_baseline(trial):
            return _ask(observation, search.best, (seen, Code.BASELINE(setting=search.best.counts)), "baseline")
        return self._try(observation, search, trial, (seen, Code.TRYING(setting=trial.configuration.counts), trial.why))

    def _try(
        self,
        observation: Observation,
        search: ConfigurationSearch,
        trial: Trial,
        why: tuple[Reason, ...],
        rule: str | None = None,
    ) -> Decision:
        search.start(trial)
        self._phase = Phase.ON_TRIAL
        return _ask(observation, trial.configuration, why, rule or f"trial of {trial.purpose.value}")

    def _withheld(self, observation: Observation) -> Reason | None:
        """Return why only what promises much may be tried; None: anything may."""
        if self._behind:
            return Code.BEHIND()
        share, most = self._costs.share(observation), self._costs.thresholds.most
        return Code.TRIALS_COST(share=share, most=most) if share > most else None

    def _as_in_an_earlier_run(self, now: Configuration, bounds: Bounds) -> Trial | None:
        """Return what was best in an earlier run as the first trial, as far as it is allowed now."""
        earlier, self._earlier = self._earlier, None
        if earlier is None:
            return None
        threads = min(max(earlier.threads, bounds.minimum), bounds.maximum)
        configuration = Configuration(threads, earlier.queued & bounds.movable | bounds.fixed)
        if configuration == now:
            return None
        return Trial(configuration, Purpose.RECALL, Code.BEST_EARLIER(setting=configuration.counts))

    def _too_early(self, search: ConfigurationSearch) -> bool:
        if len(search.measured) > 1:
            return False
        periods = len(search.measured[search.best].values) if search.best in search.measured else 0
        first = self._thresholds.tests.fewest
        few = 0 < self._profile.total < self._thresholds.first_samples
        return periods < first or (few and periods < 2 * first)

    def _met_again(self, search: ConfigurationSearch) -> bool:
        now = self._remembered(search.best, search.measured[search.best])
        return self._memory.met(now, self._thresholds.minor)

    def _settle(self, observation: Observation, search: ConfigurationSearch, *why: Reason) -> Decision:
        self._phase = Phase.HOLDING
        self._settled = Series(list(search.measured[search.best].values))
        self._shift, self._calm, self._since = Shift(), Work(), []
        self._memory.keep(self._remembered(search.best, self._settled))
        return _ask(observation, search.best, (*why, Code.SETTLED(setting=search.best.counts)), "settled")

    # --- settled ---

    def _watch(self, observation: Observation) -> Decision:
        """Stay, unless the load changed (cumulative sums instead of PLDI'17's `changeInLoad`; E3)."""
        search, settled = self._search, self._settled
        assert search is not None
        now = _in_force(observation)
        rate, setting = observation.throughput, now.counts
        tests = self._thresholds.tests
        if now != search.best:  # the request isn't in force, or something else changed it
            search.best, self._settled = now, Series()
            self._settled.add(observation.throughput, search.noise, tests)
            self._shift, self._calm, self._since = Shift(), Work(), []
            seen = Code.MEASURED(rate=rate, setting=setting)
            return Decision.keep(observation, seen, Code.CHANGED_BY_OTHERS(), rule="in force")
        seen = Code.EXPECTED(rate=rate, setting=setting, expected=settled.throughput)
        noise = noise_of([*search.measured.values(), settled], tests, cautious=True)
        changed = self._shift.add(observation.throughput, settled, noise, tests)
        if self._shift.suspicious:
            self._since.append(observation)
        else:
            self._calm.add(observation)
            self._since.clear()
        if not changed:
            if not self._shift.suspicious and len(settled.values) < self._thresholds.memory:
                settled.add(observation.throughput, search.noise, tests)
            return Decision.keep(observation, seen, Code.SETTLED(setting=setting), rule="settled")
        since = Series(self._shift.since)
        doubt = noise * math.hypot(len(settled.values) ** -0.5, len(since.values) ** -0.5)  # what is best may be lucky
        if abs(since.mean - settled.mean) < self._thresholds.minor + doubt:
            self._shift, self._since = Shift(), []
            self._settled = Series([*settled.values, *since.values][-self._thresholds.memory :])
            return Decision.keep(observation, seen, Code.LOAD_CHANGED_LITTLE(), rule="cumulative sums")
        new = Series()
        for value in since.values[-self._thresholds.load.confirm :]:  # what leaned before may have been noise,
            new.add(math.exp(value), noise, tests)  # and the first of these too
        if self._same_work():
            self._shift, self._settled, self._since = Shift(), new, []
            return Decision.keep(observation, seen, Code.SAME_WORK(), rule="cumulative sums (M14)")
        return self._begin(observation, now, (seen, Code.LOAD_CHANGED()), "cumulative sums (M14)", new)

    def _same_work(self) -> bool:
        """Return whether what leans is the same work at another pace; the last period, too: the first may not be."""
        lately = Work.of(self._since), Work.of(self._since[-1:])
        return all(self._calm.goes_on_as(now) for now in lately)

    # --- what is known ---

    def _graph_of(self, observation: Observation) -> OperatorGraph:
        names = tuple(operator.name for operator in observation.operators)
        if self._graph is None or self._graph.operators != names:
            self._graph = OperatorGraph(names, self._upstream, shared=_shared(observation))
        return self._graph

    def _remembered(self, best: Configuration, series: Series) -> Remembered:
        return Remembered.of(best, series, self._others.cpus, self._profile, self._budget)

    def _limits(self, observation: Observation) -> tuple[int, int]:
        return thread_limits(observation, self._others.cpus)

    def _bounds(self, observation: Observation) -> Bounds:
        estimate = None
        if self._profile.known and self._graph is not None and any(o.switchable for o in observation.operators):
            explanations = self._search.explanations if self._search is not None else ()
            shared = self._graph.shared
            graph = OperatorGraph(self._graph.operators, self._upstream, self._profile.given, shared)
            estimate = Estimate(self._profile, graph, explanations[0] if explanations else None)
        return Bounds.of(observation, self._others.cpus, estimate)


def _shared(observation: Observation) -> frozenset[str]:
    return frozenset(operator.name for operator in observation.operators if operator.shared)


def _in_force(observation: Observation) -> Configuration:
    return Configuration(observation.thread_count, observation.queued)


def _ask(observation: Observation, wanted: Configuration, reasons: tuple[Reason, ...], rule: str) -> Decision:
    models = {}
    for operator in observation.operators:  # in their order: a set has none that is the same in every run
        queued = operator.name in wanted.queued
        if operator.switchable and queued != (operator.model is ThreadingModel.DYNAMIC):
            models[operator.name] = ThreadingModel.DYNAMIC if queued else ThreadingModel.MANUAL
    return Decision(wanted.threads, models, reasons, rule)
