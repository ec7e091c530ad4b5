"""The local control loop of a PE: sample, observe, step, apply, journal (architecture, section 1).

    applied = scheduler.apply(controller.step(observe(previous, scheduler.sample(), host.cpu_usage())))

Must not know the controller's algorithms, and decides nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.cpu_budgets import CpuBudget, within_budget
from rayelastic.policy.element.decision import Controller, Decision
from rayelastic.policy.element.observation import Observation, OperatorObservation
from rayelastic.policy.element.settling import Settling
from rayelastic.runtime.loops.periodic_loop import PeriodicLoop, Still
from rayelastic.runtime.values.adaptation import Adaptation, Journal
from rayelastic.runtime.watch.event_log import tell
from rayelastic.runtime.watch.machine_load import CpuUse, MachineLoad

if TYPE_CHECKING:
    from rayelastic import _native

log = logging.getLogger(__name__)

PROFILER_RATE = 100.0  # snapshots a second, Middleware'19 section 3 (M02): the unit of CPU time
WARM_UP = 0.25  # of a period: the effects of a change are over by then
WAITING = 0.5  # of its time inside its function that an operator sleeps: more is load, as much as computing would be
FIRST_PERIOD = 0.1  # seconds; ten profiler snapshots of each thread: a short job has a second core while it runs
PERIOD_GROWTH = 1.25  # from one period to the next, until they are as long as configured
SEARCH_PERIOD = 0.4  # of a period, for a step of a search: a tried setting may be bad, and a machine's speed drifts
ENOUGH = 400  # incoming tuples that a shorter period has to see
FEW = 8  # incoming tuples: fewer show no rate, if a function takes that long for each
LONGEST = 20  # periods, until fewer tuples are accepted
PATIENCE = 3  # periods until a port that doesn't switch counts as unable to (M15); it switches with its next tuple


class Scheduler(Protocol):
    """The native scheduler as the loop sees it."""

    def sample(self) -> _native.Sample:
        """Return the counters since the start."""
        ...

    def apply(self, thread_count: int, models: Mapping[int, str] = ...) -> _native.InForce:
        """Apply the desired configuration; return what is in force."""
        ...


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """The settings of a loop.

    Args:
        pe: The PE.
        order: {operator: its number in the scheduler}, upstream before downstream.
        sources: Operators without an input.
        pinned: Operators whose threading model the user has fixed.
        period: Seconds between two decisions; the first ones are shorter.
        minimum_threads: The fewest.
        maximum_threads: The most.
        cpus: The CPUs that the process may use.
        job: The job's name, for the log.
        shared: Operators that a producer runs, too, when it finds their queue full.
        fed: Operators with input from other elements.
        paced: {operator that holds its input back to a rate: the sources upstream of it}.
    """

    pe: str
    order: Mapping[str, int]
    sources: frozenset[str]
    pinned: frozenset[str]
    period: float
    minimum_threads: int
    maximum_threads: int
    cpus: int
    job: str = ""
    shared: frozenset[str] = frozenset()
    fed: frozenset[str] = frozenset()
    paced: Mapping[str, frozenset[str]] = field(default_factory=dict)


def observe(
    settings: LoopSettings,
    before: _native.Sample,
    after: _native.Sample,
    seconds: float,
    *,
    at: float,
    cpu: CpuUse,
    adapted: bool = True,
    reluctant: frozenset[str] = frozenset(),
) -> Observation:
    """Make an observation of two samples.

    Args:
        settings: The loop's settings.
        before: The native sample at the start of the period.
        after: The native sample at its end.
        seconds: The time between the two.
        at: Seconds since the start, at the end.
        cpu: The CPU use in the period.
        adapted: Whether the last requested configuration is in force.
        reluctant: Operators that were to switch and didn't.
    """
    seconds = max(seconds, 1e-9)

    operators = []
    sleeps = []  # the sleeping time of each operator that mostly sleeps in its function
    for name, number in settings.order.items():
        then, now = before.operators[number], after.operators[number]
        source = name in settings.sources
        asleep = 0.0 if source or name in settings.paced else _asleep(then, now)
        if asleep > 0:
            sleeps.append(asleep)
        passed = now.tuples_out - then.tuples_out if source else now.tuples_in - then.tuples_in
        operators.append(
            OperatorObservation(
                name=name,
                model=ThreadingModel(now.model),
                switchable=not source and name not in settings.pinned and name not in reluctant and not now.final,
                rate=passed / seconds,
                samples=round((now.cpu_seconds - then.cpu_seconds + asleep) * PROFILER_RATE),
                queue_fill=min(1.0, now.queued / now.queue_capacity) if now.queue_capacity else 0.0,
                given=(now.tuples_out - then.tuples_out) / seconds,
                shared=name in settings.shared,
            )
        )
    # A sleeping thread needs no CPU: each such operator counts as having its own.
    cpus, sleeping = settings.cpus + len(sleeps), sum(sleeps) / seconds
    scheduler_time = max(after.scheduler_seconds - before.scheduler_seconds, 1e-9)
    thread_time = max(after.thread_seconds - before.thread_seconds, 1e-9)
    return Observation(
        time=at,
        period=seconds,
        throughput=sum(operator.rate for operator in operators),
        thread_count=after.thread_count,
        minimum_threads=settings.minimum_threads,
        maximum_threads=settings.maximum_threads,
        operators=tuple(operators),
        system_samples=round((after.engine_cpu_seconds - before.engine_cpu_seconds) * PROFILER_RATE),
        idle=min(1.0, (after.idle_seconds - before.idle_seconds) / scheduler_time),
        blocked=min(1.0, (after.blocked_seconds - before.blocked_seconds) / thread_time),
        token_wait=min(1.0, (after.gil_wait_seconds - before.gil_wait_seconds) / thread_time),
        source_wait=_source_wait(settings, before.operators, after.operators, seconds),
        cpu_count=cpus,
        own_cpu=cpu.own + sleeping,
        asleep=sleeping,
        sleepers=len(sleeps),
        host_cpu=min(1.0, (cpu.host * settings.cpus + sleeping) / cpus),
        waiting_cpu=cpu.waiting,
        thread_stuck=after.stuck,
        adapted=adapted,
    )


def cpu_seconds(sample: _native.Sample) -> float:
    """Return the seconds for which CPUs ran the threads of a scheduler, in operators and outside."""
    return sample.engine_cpu_seconds + sum(operator.cpu_seconds for operator in sample.operators)


def _asleep(before: _native.OperatorSample, after: _native.OperatorSample) -> float:
    """Return the seconds that an operator slept inside its function, if it mostly sleeps, for example in a request.

    A thread in there is as busy as one that computes, and another one would help; it only uses no CPU.
    """
    inside = after.inside_seconds - before.inside_seconds
    asleep = after.waited_seconds - before.waited_seconds
    return asleep if asleep >= WAITING * inside else 0.0


def _source_wait(
    settings: LoopSettings,
    before: Sequence[_native.OperatorSample],
    after: Sequence[_native.OperatorSample],
    seconds: float,
) -> float | None:
    """Return the share of the time in which the least waiting source waits inside its function, or is held to a rate.

    Time inside a function is CPU time or waiting. If CPUs are short, every function waits for one. A source waits for
    input only to the extent that it waits more than the other operators do. Sleeping operators don't wait for a CPU.
    """

    def working(number: int) -> float:
        return after[number].cpu_seconds - before[number].cpu_seconds

    def inside(number: int) -> float:
        return after[number].inside_seconds - before[number].inside_seconds

    def asleep(number: int) -> float:
        return after[number].waited_seconds - before[number].waited_seconds

    sources = [name for name in settings.sources if not after[settings.order[name]].final]
    others = [number for name, number in settings.order.items() if name not in settings.sources]
    worked = sum(map(working, others))
    awake = sum(map(inside, others)) - sum(map(asleep, others))
    stretch = max(1.0, awake / worked) if worked > 0 else 1.0
    held = [(up, asleep(settings.order[name])) for name, up in settings.paced.items()]
    waits = []
    for source in sources:
        number = settings.order[source]
        waits.append(max([inside(number) - stretch * working(number), *(idle for up, idle in held if source in up)]))
    if not settings.sources:
        waits = [idle for _, idle in held]
    return min(1.0, max(0.0, min(waits) / seconds)) if waits else None


class AdaptationLoop(PeriodicLoop):
    """Adapts one scheduler to its load, once per period, until it is stopped.

    Args:
        scheduler: The scheduler that it samples and configures.
        controller: Decides.
        settings: Periods, bounds and names.
        journal: Records each pass.
        clock: Returns seconds.
        learned: Called after each pass; saves what the controller found.
        trial_seconds: Returns the seconds of throughput that trials have cost; None: its controller doesn't measure it.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        controller: Controller,
        settings: LoopSettings,
        journal: Journal,
        *,
        clock: Callable[[], float] = time.monotonic,
        learned: Callable[[], None] | None = None,
        trial_seconds: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(f"adapt-{settings.pe}")
        self._scheduler = scheduler
        self._controller = controller
        self._settings = settings
        self.journal = journal
        self._clock = clock
        self._learned = learned
        self._trial_seconds = trial_seconds
        self._settling = Settling()
        self._outdated = threading.Event()
        self._number = 0
        self._wanted: Decision | None = None
        self._late: dict[str, int] = {}  # {operator: periods for which it should have switched}
        self.budget: CpuBudget | None = None  # set by the loop over hosts
        self.kin: tuple[int, ...] = ()  # likewise, processes of the job on this host that have no part in a budget

    def stop(self) -> None:
        """End it; the current configuration stays."""
        super().stop()
        self.journal.close()

    def hold(self, held: bool, why: Still = Still.PAUSED) -> None:
        """Pause the decisions from now on, or resume them, with nothing learned."""
        if not held:
            self._outdated.set()
        super().hold(held, why)

    def run(self) -> None:
        """Adapt until stopped. A controller that raises ends the adaptation, not the job."""
        started = self._clock()
        load = MachineLoad()  # in this thread, because it is a system call that the element's start needn't wait for
        before, since = self._scheduler.sample(), started
        period = min(FIRST_PERIOD, self._settings.period)
        while not self._stopped.wait(period):
            after, now = self._scheduler.sample(), self._clock()
            if self._still:
                before, since = after, now
                continue
            if self._shows_too_little(before, after, now - since):
                continue
            try:
                done = self.step(before, after, now - since, at=now - started, cpu=load.use(self.kin))
            except Exception:
                log.exception("adaptation of %s ends: its controller failed", self._settings.pe)
                return
            period = min(period * PERIOD_GROWTH, self._longest(done))
            if done.changed:
                if self._stopped.wait(period * WARM_UP):
                    return
                load.use(self.kin)  # a new window
                after, now = self._scheduler.sample(), self._clock()
            before, since = after, now

    def _shows_too_little(self, before: _native.Sample, after: _native.Sample, seconds: float) -> bool:
        """Return whether functions take so long for a tuple that the period shows no rate yet."""
        settings, tuples_seen, inside = self._settings, 0, 0.0
        for name, number in settings.order.items():
            then, now = before.operators[number], after.operators[number]
            source = name in settings.sources
            if source or name in settings.fed:
                tuples_seen += now.tuples_out - then.tuples_out if source else now.tuples_in - then.tuples_in
            if not source:
                inside = max(inside, now.inside_seconds - then.inside_seconds)
        if tuples_seen >= FEW or seconds >= LONGEST * settings.period:
            return False
        return inside >= WAITING * seconds

    def _longest(self, done: Adaptation) -> float:
        """Return the longest next period: a step of a search is shorter, if it shows enough tuples."""
        period = self._settings.period
        if not done.decision.soon:
            return period
        first = self._settings.sources | self._settings.fed
        given = sum(one.rate for one in done.observation.operators if one.name in first)
        return min(period, max(FIRST_PERIOD, SEARCH_PERIOD * period, ENOUGH / given if given > 0 else period))

    def step(
        self, before: _native.Sample, after: _native.Sample, seconds: float, *, at: float, cpu: CpuUse
    ) -> Adaptation:
        """Make one pass on two samples, and on the CPU use between them, and return it for the journal."""
        settings = self._settings
        fresh = self._outdated.is_set()
        if fresh:
            self._outdated.clear()
            self._controller.reset()
        pending, budget = self._pending(after), self.budget
        if budget is not None and budget.one_process:  # the use of the process is that of all of them
            cpu = replace(cpu, own=(cpu_seconds(after) - cpu_seconds(before)) / max(seconds, 1e-9))
        observation = observe(
            settings,
            before,
            after,
            seconds,
            at=at,
            cpu=cpu,
            adapted=not pending and (self._wanted is None or after.thread_count == self._wanted.thread_count),
            reluctant=frozenset(name for name, periods in self._late.items() if periods >= PATIENCE),
        )
        if budget is not None:
            observation = within_budget(observation, budget)
        decision = self._controller.step(observation)
        changes = decision.changes(observation)
        threads, models = observation.thread_count, {}
        if changes:
            numbers = {settings.order[name]: model.value for name, model in decision.models.items()}
            in_force = self._scheduler.apply(decision.thread_count, numbers)
            threads = in_force.thread_count
            models = {name: ThreadingModel(in_force.models[settings.order[name]]) for name in decision.models}
            self._wanted = decision
            self._late = dict.fromkeys(decision.models, 0)
        done = Adaptation(settings.pe, self._number, observation, decision, threads, models, fresh)
        self.journal.add(done)
        if changes:
            tell(
                "adapted",
                job=settings.job,
                pe=settings.pe,
                threads=threads,
                queues={name: model.value for name, model in models.items()},
                reason=decision.reason,
                reasons=[reason.as_dict() for reason in decision.reasons],
                rule=decision.rule,
            )
        self._settling.add(observation, changed=changes)
        self._number += 1
        if self._learned is not None:
            self._learned()
        return done

    def counters(self, threads: int) -> dict[str, Any]:
        """Return what the sample of a PE has of its adaptation.

        Args:
            threads: Scheduler threads in force.
        """
        settling = self._settling
        return {
            "adaptations": settling.changes,
            "adaptations_back": settling.returns,
            "settling_seconds": settling.seconds,
            "overshoot_threads": settling.overshoot(threads),
            "trial_seconds": self._trial_seconds() if self._trial_seconds is not None else 0.0,
        }

    def _pending(self, sample: _native.Sample) -> Sequence[str]:
        """Return the operators that were to switch and haven't yet, except those that count as unable to."""
        if self._wanted is None:
            return ()
        for name, model in self._wanted.models.items():
            if sample.operators[self._settings.order[name]].model == model.value:
                self._late.pop(name, None)
            elif name in self._late:
                self._late[name] += 1
        return [name for name, periods in self._late.items() if periods < PATIENCE]
