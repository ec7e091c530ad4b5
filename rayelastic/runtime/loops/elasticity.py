"""Selects the controller of a PE, and its bounds. Must not know what controllers do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rayelastic.graph.operators.channels import channel_heads
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.plan.config import JobConfig
from rayelastic.plan.settings.elasticity import Algorithm
from rayelastic.plan.settings.paper import PaperElasticity
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Controller, Decision
from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity
from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.policy.published import published
from rayelastic.runtime.config import state_directory
from rayelastic.runtime.loops.adaptation_loop import AdaptationLoop, LoopSettings, Scheduler
from rayelastic.runtime.loops.earlier_runs import EarlierRuns, key_of
from rayelastic.runtime.values.adaptation import Adaptation, Journal, Setting, read_journal
from rayelastic.runtime.values.specs import PESpec
from rayelastic.runtime.watch.machine_load import available_cpus

RUN_WORK = 0.025  # s; a run longer than a period would be counted in one of several


def controller_for(
    elasticity: Algorithm,
    upstream: Mapping[str, tuple[str, ...]],
    earlier: Configuration | None = None,
    paper: PaperElasticity | None = None,
) -> Controller | None:
    """Return a fresh controller, or None if elasticity is off.

    Args:
        elasticity: The algorithm.
        upstream: {operator: those that feed it}.
        earlier: The best configuration of an earlier run.
        paper: Parameters of the papers' elasticity.

    >>> controller_for(Algorithm.OFF, {}) is None
    True
    """
    match elasticity:
        case Algorithm.MULTI_LEVEL:
            return GuidedMultiLevelElasticity(upstream, earlier=earlier)
        case Algorithm.PAPER:
            controller: Controller = published("multi_level").controller_of(paper or PaperElasticity())
            return controller
        case Algorithm.OFF:
            return None


def adaptation_loop(
    spec: PESpec,
    scheduler: Scheduler,
    ids: Mapping[str, int],
    pinned: frozenset[str],
    shared: frozenset[str] = frozenset(),
) -> AdaptationLoop | None:
    """Return the loop of a PE; None if there is nothing to adapt.

    Args:
        spec: The PE.
        scheduler: Its scheduler.
        ids: {operator: its number in the scheduler}, upstream before downstream.
        pinned: Operators whose threading model is fixed.
        shared: Operators that a producer runs, too, when their queue is full.
    """
    config, elasticity = spec.config, spec.config.elasticity
    upstream = {operator.name: operator.upstream for operator in spec.operators}
    algorithm = Algorithm(elasticity.algorithm)
    cpus = available_cpus()
    runs = EarlierRuns(state_directory() / "best", key_of(spec, cpus)) if elasticity.remember else None
    earlier = runs.best() if runs is not None and algorithm is Algorithm.MULTI_LEVEL else None
    controller = controller_for(algorithm, upstream, earlier, elasticity.paper)
    if controller is None or _all_set(config, pinned, ids):
        return None
    sources = frozenset(operator.name for operator in spec.operators if operator.is_source)
    settings = LoopSettings(
        pe=spec.pe,
        order=ids,
        sources=sources,
        pinned=pinned,
        period=elasticity.thread_period,
        minimum_threads=config.threads.count or 1,
        maximum_threads=config.threads.count or config.threads.max or cpus,
        cpus=cpus,
        job=spec.job,
        shared=shared,
        fed=frozenset(name for name, feeding in upstream.items() if not ids.keys() & set(feeding)) - sources,
        paced=paced_sources(spec.operators, ids),
    )
    path = Path(elasticity.journal.format(pe=spec.pe)) if elasticity.journal is not None else None
    journal = Journal(Setting(algorithm, upstream, elasticity.thread_period, earlier, elasticity.paper), path)
    cost = (lambda: controller.trial_seconds) if isinstance(controller, GuidedMultiLevelElasticity) else None
    learned = _learned(controller, runs)
    return AdaptationLoop(scheduler, controller, settings, journal, learned=learned, trial_seconds=cost)


def paced_sources(operators: Sequence[OperatorSpec], order: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return {operator that holds its input back to a rate: the sources upstream of it}.

    Args:
        operators: Those of the PE.
        order: Their names, upstream before downstream.
    """
    by_name = {operator.name: operator for operator in operators}
    sources: dict[str, frozenset[str]] = {}
    for name in order:
        spec = by_name[name]
        above = (sources.get(up, frozenset()) for up in spec.upstream)
        sources[name] = frozenset({name}) if spec.is_source else frozenset().union(*above)
    return {name: sources[name] for name in sources if by_name[name].body.paces}


def run_work(config: JobConfig, pinned: frozenset[str], operators: Collection[object]) -> float:
    """Return the longest run without queues, in seconds of work; 0: unlimited, because no controller observes it."""
    nobody = Algorithm(config.elasticity.algorithm) is Algorithm.OFF or _all_set(config, pinned, operators)
    return 0.0 if nobody else RUN_WORK


def _learned(controller: Controller, runs: EarlierRuns | None) -> Callable[[], None] | None:
    """Return a function that saves the best configuration so far for later runs."""
    if runs is None or not isinstance(controller, GuidedMultiLevelElasticity):
        return None
    return lambda: runs.keep(controller.best)


def replay(path: Path) -> Iterator[tuple[Adaptation, Decision]]:
    """Yield each recorded pass with a fresh controller's decision on the same observation: the same, byte for byte.

    Args:
        path: The path of a journal.

    Raises:
        ConfigError: It isn't a journal.
    """
    setting, adaptations = read_journal(path)
    controller = controller_for(setting.elasticity, setting.upstream, setting.earlier, setting.paper)
    assert controller is not None
    for adaptation in adaptations:
        if adaptation.fresh:
            controller.reset()
        yield adaptation, controller.step(adaptation.observation)


def _all_set(config: JobConfig, pinned: frozenset[str], operators: Collection[object]) -> bool:
    return config.threads.count is not None and len(pinned) == len(operators)


def pinned_models(operators: Sequence[OperatorSpec], config: JobConfig) -> dict[str, ThreadingModel]:
    """Return the fixed threading models: those that the user has set, and those of elastic channels.

    An elastic channel has its own thread (S01, L01), unless the user sets another model.
    """
    heads = channel_heads({operator.name: operator for operator in operators})
    models = {name: ThreadingModel.DEDICATED for channels in heads.values() for names in channels for name in names}
    for operator in operators:
        if (model := config.threads.model_of(operator.name)) is not None:
            models[operator.name] = model
    return models
