"""A simulated PE: plays period after period, is observed, and takes decisions, like a real one.

What it tells comes from `steady_state`, with noise on the throughput, profiler samples drawn as a 100 Hz profiler draws
them (M02), and a warm-up after each change. Seeded: equal arguments give equal runs. Must not know any controller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.plant.constants import Machine, PerformanceConstants
from bench.plant.graph import Floats, PlantGraph
from bench.plant.load_script import STEADY, LoadScript
from bench.plant.segments import Models, Segments, segments
from bench.plant.steady_state import Limit, SteadyState, steady_state
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation, OperatorObservation

MINIMUM_THREADS = 2  # P33 for operators of one input port


@dataclass(frozen=True, slots=True)
class PlantSettings:
    """How a plant is run and seen.

    Args:
        period: s between observations.
        noise: standard deviation of the logarithm of a period's throughput; 0.05 is 5 %.
        seed: of noise and profiler samples.
        threads: scheduler threads at the start; None: the fewest.
        minimum_threads: the fewest that are allowed.
        maximum_threads: the most that are allowed; None: the logical processors of the machine.
        exact_profile: tell each operator's cost without sampling.
    """

    period: float = 5.0
    noise: float = 0.0
    seed: int = 0
    threads: int | None = None
    minimum_threads: int = MINIMUM_THREADS
    maximum_threads: int | None = None
    exact_profile: bool = False


class Plant:
    """One PE on a simulated machine; all operators begin manual (M01).

    Args:
        graph: what it runs.
        machine: on what.
        constants: in which engine.
        script: what happens to it.
        settings: how it is run and seen.

    >>> from bench.plant.constants import ENGINE, LAPTOP
    >>> from bench.plant.graph import pipeline
    >>> plant = Plant(pipeline([1000.0] * 8), LAPTOP, ENGINE)
    >>> alone = plant.play().throughput
    >>> plant.apply(Decision(2, {"op4": ThreadingModel.DYNAMIC}))
    >>> plant.play().throughput / alone > 1.8
    True
    """

    def __init__(
        self,
        graph: PlantGraph,
        machine: Machine,
        constants: PerformanceConstants,
        script: LoadScript = STEADY,
        settings: PlantSettings | None = None,
    ) -> None:
        self.settings = settings or PlantSettings()
        self.machine = machine
        self.constants = constants
        self.script = script
        self.time = 0.0
        self.thread_count = self._within(self.settings.threads or self.settings.minimum_threads)
        self.models: Models = tuple(ThreadingModel.MANUAL for _ in graph.operators)
        self._graphs = [graph if phase.costs is None else graph.with_costs(phase.costs) for phase in script.phases]
        self._numbers = {operator.name: number for number, operator in enumerate(graph.operators)}
        self._random = np.random.default_rng(self.settings.seed)
        self._states: dict[tuple[int, int], SteadyState] = {}
        self._cuts: dict[int, Segments] = {}
        self._before = 0.0  # tuples/s until the last change
        self._warming = 0.0  # s until its effect shows
        self._switching = 0.0  # s until all ports have switched

    @property
    def graph(self) -> PlantGraph:
        """The graph with the costs of the present phase."""
        return self._graphs[self.script.number_at(self.time)]

    @property
    def maximum_threads(self) -> int:
        """The most threads that are allowed."""
        return self.settings.maximum_threads or self.machine.cpus

    @property
    def queues(self) -> int:
        """Operators with a queue in front."""
        return sum(1 for model in self.models if model is not ThreadingModel.MANUAL)

    @property
    def placement(self) -> Models:
        """The threading model of each operator."""
        return self.models

    @property
    def others(self) -> float:
        """CPUs that other processes keep busy in the present phase."""
        return self.script.phases[self.script.number_at(self.time)].others

    @property
    def true_rate(self) -> float:
        """Tuples/s of the sources that the present configuration gives, without noise."""
        return self.state().rate

    @property
    def tuples_per_source_tuple(self) -> float:
        """Tuples that all operators take for each one of the sources."""
        return float(self.graph.rates.sum())

    def apply(self, decision: Decision) -> None:
        """Bring about what is desired; KeyError for an operator that isn't there, ValueError for a source."""
        threads = self._within(decision.thread_count)
        models = list(self.models)
        for name, model in decision.models.items():
            number = self._numbers[name]
            if self.graph.operators[number].source:
                raise ValueError(f"operator {name!r} is a source: it has no threading model")
            models[number] = model
        wanted = tuple(models)
        if threads == self.thread_count and wanted == self.models:
            return
        self._before = self._state(self.script.number_at(self.time)).rate
        self._warming = self.constants.warm_up
        if wanted != self.models:
            self.models = wanted
            self._switching = self.constants.switch
            self._cuts.clear()
            self._states.clear()
        self.thread_count = threads

    def play(self) -> Observation:
        """Let a period pass and return what is seen of it."""
        start, end = self.time, self.time + self.settings.period
        tuples = 0.0
        number = self.script.number_at(start)
        for begin, until, phase, _ in self.script.between(start, end):
            number = phase
            rate = self._state(phase).rate
            warming = min(self._warming, until - begin)
            self._warming -= warming
            tuples += (until - begin - warming) * rate + warming * min(self._before, rate)
        self.time = end
        adapted = self._switching <= 0
        self._switching -= self.settings.period
        noise = float(np.exp(self.settings.noise * self._random.standard_normal())) if self.settings.noise else 1.0
        return self._observation(number, noise * tuples / self.settings.period, adapted)

    def steady_rate(self, threads: int, models: Models) -> float:
        """Return the tuples/s of the sources that another configuration would give, without noise."""
        graph = self.graph
        return self._solve(graph, segments(graph, models), threads, self.script.number_at(self.time)).rate

    def state(self) -> SteadyState:
        """Return what the present configuration gives."""
        return self._state(self.script.number_at(self.time))

    def _within(self, threads: int) -> int:
        most = self.settings.maximum_threads or self.machine.cpus
        return max(1, min(max(threads, min(self.settings.minimum_threads, most)), most))

    def _state(self, phase: int) -> SteadyState:
        key = (phase, self.thread_count)
        if key not in self._states:
            self._states[key] = self._solve(self._graphs[phase], self._cut(phase), self.thread_count, phase)
        return self._states[key]

    def _cut(self, phase: int) -> Segments:
        if phase not in self._cuts:
            self._cuts[phase] = segments(self._graphs[phase], self.models)
        return self._cuts[phase]

    def _solve(self, graph: PlantGraph, cut: Segments, threads: int, phase: int) -> SteadyState:
        load = self.script.phases[phase]
        return steady_state(graph, cut, self.machine, self.constants, threads, load.others, load.offered)

    # --- what is seen ---

    def _observation(self, phase: int, rate: float, adapted: bool) -> Observation:
        graph, state, settings = self._graphs[phase], self._state(phase), self.settings
        others = self.script.phases[phase].others
        running = state.cpus + others
        own = state.cpus * min(1.0, self.machine.cpus / running) if running > 0 else 0.0
        samples, system = self._samples(graph, state, own)
        rates = (graph.rates * rate).tolist()
        fills = self._fills(phase, state)
        operators = tuple(
            OperatorObservation(operator.name, model, not operator.source, operator_rate, count, fills.get(number, 0.0))
            for number, (operator, model, operator_rate, count) in enumerate(
                zip(graph.operators, self.models, rates, samples, strict=True)
            )
        )
        waiting = state.threads - state.busy
        starved = state.limit is Limit.SOURCES
        blocked = 0.0 if starved else waiting * state.upstream
        scheduled = max(0.0, state.threads - len(graph.sources)) / state.threads
        return Observation(
            time=self.time,
            period=settings.period,
            throughput=sum(rates),
            thread_count=self.thread_count,
            minimum_threads=settings.minimum_threads,
            maximum_threads=self.maximum_threads,
            operators=operators,
            system_samples=system,
            idle=min(1.0, max(0.0, 1 - (state.busy + blocked) * scheduled / self.thread_count)),
            blocked=blocked / (len(graph.sources) + self.thread_count),
            token_wait=state.token_wait,
            source_wait=1 - max(state.usage[: len(graph.sources)].tolist()) if starved else 0.0,
            cpu_count=self.machine.cpus,
            own_cpu=own,
            host_cpu=min(1.0, running / self.machine.cpus),
            adapted=adapted,
        )

    def _samples(self, graph: PlantGraph, state: SteadyState, cpus: float) -> tuple[list[int], int]:
        """Return the samples of each operator, and those that fell outside of operators."""
        total = self.constants.profile_rate * self.settings.period * cpus
        work: Floats = graph.rates * (graph.costs + self.constants.call)
        all_work = float(work.sum())
        inside = min(1.0, (1 - state.overhead) * state.busy / state.cpus) if state.cpus > 0 else 0.0
        if all_work <= 0:
            return [0] * len(work), int(total)
        chances = np.append(work / all_work * inside, 1 - inside)
        drawn = np.rint(total * chances) if self.settings.exact_profile else None
        counts = drawn if drawn is not None else self._random.multinomial(int(total), chances / chances.sum())
        whole = [int(count) for count in counts]
        return whole[:-1], whole[-1]

    def _fills(self, phase: int, state: SteadyState) -> dict[int, float]:
        heads = self._cut(phase).heads
        return {head: float(fill) for head, fill in zip(heads, state.fill, strict=True)}
