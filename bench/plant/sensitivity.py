"""Which constants of the policies matter: each is halved and doubled, and the same random graphs are played again.

    ./dev bench plant/sensitivity element --graphs 6 --cores 2 16
    ./dev bench plant/sensitivity loads --graphs 6 --cores 4 16
    ./dev bench plant/sensitivity regions --jobs 12

`element` plays from cold, by events, against the best; `loads` by a formula, while costs, demand and what others take
change (the figure is the mean of the rates); `regions` plays jobs on four nodes.

Seeded, so that a run differs from the usual one by its constant alone: one that changes no decision isn't felt.
`--fixed` plays the numbers that nobody can set, the constants of modules (fixed.py), in place of the thresholds.
Results are kept in build/sensitivity.json, from which `--table` writes them with what each constant is; `--only TEXT`
takes those whose names have it, and those that are known already aren't played again without `--again`.
"""

from __future__ import annotations

import argparse
import csv
import functools
import inspect
import io
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from bench.plant.cluster.job import SimulatedNode
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.random_jobs import random_job
from bench.plant.cluster.run import ClusterSimulation
from bench.plant.constants import ENGINE, LAPTOP
from bench.plant.events.graphs import random_graph
from bench.plant.fixed import FixedConstant, fixed_constants, having
from bench.plant.load_script import LoadPhase, LoadScript
from bench.plant.plant import Plant, PlantSettings
from bench.plant.play import play
from bench.plant.quality import quality
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity, GuidedThresholds
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds

RESULTS = Path(__file__).resolve().parents[2] / "build" / "sensitivity.json"
NOISE = 0.05  # of a period's throughput
PERIODS, PERIOD = 90, 5.0  # of a job; s
PHASE = 20  # periods of a load
DEMAND = 0.5  # of what a thread for each core gives with queues everywhere
LOADS = (0.3, 1.0, 0.5)  # of what is offered, a third of the periods each
OFFERED = 1e6  # tuples/s
NODES = [SimulatedNode(f"n{i}", 8) for i in range(4)]
FACTORS = {
    "search.step",
    "search.wide",
    "load.costlier",
    "load.costlier_elsewhere",
}  # above 1
COUNTS = 0.01  # relative difference of the mean that counts
SHOWS = 0.05  # the same of one graph
HEAD = ["constant", "value", "verdict", "other values: felt in, mean, worst", "what it is"]


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one graph or job.

    Args:
        value: share of the best rate, or of what was offered.
        effort: periods until the last change, or threads on average.
        trace: what was decided, in short.
    """

    value: float
    effort: float
    trace: str


@dataclass(frozen=True, slots=True)
class Felt:
    """What another value of a constant does.

    Args:
        name: of the constant, as in "search.growth.worse".
        usual: its value.
        value: the other one.
        played: graphs or jobs.
        differ: those where something else was decided.
        mean: mean of the relative differences of `Played.value`.
        worst: the least of them.
        effort: mean difference of `Played.effort`.
    """

    name: str
    usual: float
    value: float
    played: int
    differ: int
    mean: float
    worst: float
    effort: float

    @property
    def verdict(self) -> str:
        """In a word.

        >>> Felt("a", 1.0, 2.0, 10, 0, 0.0, 0.0, 0.0).verdict
        'not felt'
        >>> Felt("a", 1.0, 2.0, 10, 3, 0.001, -0.1, 0.0).verdict
        'matters'
        """
        if self.differ == 0:
            return "not felt"
        return "matters" if abs(self.mean) >= COUNTS or self.worst <= -SHOWS else "little"


# --- constants ------------------------------------------------------------------------------------------------------


def constants(thresholds: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield name and value of each number in a nest of dataclasses.

    >>> dict(constants(GuidedThresholds()))["search.growth.better"]
    0.08
    """
    for field in fields(thresholds):
        value = getattr(thresholds, field.name)
        if is_dataclass(value):
            yield from constants(value, f"{prefix}{field.name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{field.name}", value


def changed(thresholds: Any, name: str, value: float) -> Any:
    """Return the same with another value of one of its constants.

    >>> changed(GuidedThresholds(), "load.busy", 0.5).load.busy
    0.5
    """
    first, _, rest = name.partition(".")
    return replace(thresholds, **{first: changed(getattr(thresholds, first), rest, value) if rest else value})


def tried(name: str, value: float) -> list[float]:
    """Return the other values that are tried: half and twice; of a share, half way to nothing and half way to all.

    >>> tried("patience", 4), tried("patience", 1), tried("aim", 0.5), tried("doubts", 3.0), tried("saving.better", 0.0)
    ([2, 8], [2], [0.25, 0.75], [1.5, 6.0], [-0.02, 0.02])
    >>> tried("search.step", 2), tried("search.wide", 1.5), tried("load.costlier", 1.5)
    ([3], [1.25, 2.0], [1.25, 2.0])
    """
    if name in FACTORS:
        others = [1 + (value - 1) / 2, 1 + 2 * (value - 1)]
        return [other for other in map(int, others) if other > 1] if isinstance(value, int) else others
    if isinstance(value, int):
        return [other for other in (value // 2, 2 * value) if other > 0]
    if value == 0.0:
        return [-0.02, 0.02]
    return [value / 2, (1 + value) / 2 if 0 < value < 1 else 2 * value]


def meanings(thresholds: Any) -> dict[str, str]:
    """What the docstrings of a nest of dataclasses say of each constant; of a part, what they say of the whole."""
    found = {}
    for name, _ in constants(thresholds):
        holder, said = thresholds, ""
        for step in name.split("."):
            said = _said(type(holder), step) or said
            holder = getattr(holder, step)
        found[name] = said
    return found


def _said(kind: type, name: str) -> str:
    lines = inspect.cleandoc(kind.__doc__ or "").splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith(f"    {name}: ")]
    if not starts:
        return ""
    text = [lines[starts[0]].partition(": ")[2]]
    for line in lines[starts[0] + 1 :]:
        if not line.startswith("        "):
            break
        text.append(line.strip())
    return " ".join(text)


# --- playing --------------------------------------------------------------------------------------------------------


def element(graphs: int, cores: Sequence[int], seed: int) -> Callable[[Any], list[Played]]:
    """Play random graphs by events, from cold."""

    def play_all(thresholds: Any) -> list[Played]:
        found = [quality(n, seed, c, NOISE, thresholds=thresholds) for c in cores for n in range(graphs)]
        return [Played(one.share, one.settled, f"{one.found} {one.settled} {one.changes}") for one in found]

    return play_all


def loads(graphs: int, cores: Sequence[int], seed: int) -> Callable[[Any], list[Played]]:
    """Play random graphs by a formula, while their load changes."""

    def play_all(thresholds: Any) -> list[Played]:
        return [_loads(number, seed, count, thresholds) for count in cores for number in range(graphs)]

    return play_all


def _loads(number: int, seed: int, cores: int, thresholds: GuidedThresholds) -> Played:
    graph = random_graph(number, seed, cores).graph
    machine = replace(LAPTOP, name=f"{cores} cores", cores=cores)
    everywhere = tuple(ThreadingModel.MANUAL if one.source else ThreadingModel.DYNAMIC for one in graph.operators)
    most = Plant(graph, machine, ENGINE).steady_rate(cores, everywhere)
    dear = [cost if at in graph.sources else 3 * cost for at, cost in enumerate(graph.costs.tolist())]
    sources = len(graph.sources)
    usual = LoadPhase()
    said = [
        usual,
        replace(usual, costs=tuple(dear[:sources] + dear[sources:][::-1])),
        replace(usual, others=cores / 2),
        usual,
        replace(usual, offered=DEMAND * most),
        usual,
    ]
    phases = tuple(replace(phase, start=PHASE * PERIOD * at) for at, phase in enumerate(said))
    settings = PlantSettings(period=PERIOD, noise=NOISE, seed=1000 * seed + number)
    plant = Plant(graph, machine, ENGINE, LoadScript(phases), settings)
    journal = play(GuidedMultiLevelElasticity(graph.upstream, thresholds), plant, PHASE * len(phases))
    changes = " ".join(f"{one.time:g}:{one.threads},{one.queues}" for one in journal if one.changed)
    rate = statistics.mean(one.true_rate for one in journal)
    return Played(rate, statistics.mean(one.threads for one in journal), changes)


def regions(jobs: int, seed: int) -> Callable[[Any], list[Played]]:
    """Play random jobs on four nodes under a load that grows and shrinks."""

    def play_all(thresholds: Any) -> list[Played]:
        return [_job(seed * 1000 + number, thresholds) for number in range(jobs)]

    return play_all


def _job(number: int, thresholds: OrganicThresholds) -> Played:
    job = random_job(number)
    sources = [f"r{i}" for i, region in enumerate(job.regions) if not region.inputs]

    def load(time: float) -> Mapping[str, float]:
        part = min(int(time / PERIOD / PERIODS * len(LOADS)), len(LOADS) - 1)
        return dict.fromkeys(sources, LOADS[part] * OFFERED)

    policy = OrganicAdaptation(thresholds=thresholds)
    simulation = ClusterSimulation(
        ClusterPlant(job, NODES), policy, load, period=PERIOD, noise=NOISE, seed=number, settles=1
    )
    trace = simulation.run(PERIODS)
    shares = [step.throughput / step.offered for step in trace]
    said = " ".join(f"{step.time:g}:{step.decision.verdict.value}" for step in trace if step.decision.changes)
    return Played(statistics.mean(shares), statistics.mean(step.threads for step in trace), said)


def with_changed(name: str, runs: Callable[[Any], list[Played]], usual: Any, value: float) -> list[Played]:
    """Play with another value of a threshold."""
    return runs(changed(usual, name, value))


def with_fixed(constant: FixedConstant, runs: Callable[[Any], list[Played]], usual: Any, value: float) -> list[Played]:
    """Play with another value of a constant of a module."""
    with having(constant, value):
        return runs(usual)


def felt(name: str, usual: float, value: float, before: Sequence[Played], after: Sequence[Played]) -> Felt:
    """Compare what was played with the usual value and with another one."""
    gains = [new.value / old.value - 1 for old, new in zip(before, after, strict=True)]
    efforts = [new.effort - old.effort for old, new in zip(before, after, strict=True)]
    differ = sum(old.trace != new.trace for old, new in zip(before, after, strict=True))
    return Felt(name, usual, value, len(gains), differ, statistics.mean(gains), min(gains), statistics.mean(efforts))


# --- what is told ---------------------------------------------------------------------------------------------------


def table(kind: str, known: Mapping[str, Sequence[Felt]], thresholds: Any) -> str:
    """CSV: a line for each constant that was tried, with the mean and the worst difference of each other value.

    What each constant is stands in the table of `element` for `loads`, too.
    """
    said = meanings(thresholds)
    lines = [
        [f"`{name}`", f"{usual:g}", *row(found), said[name]]
        for name, usual in constants(thresholds)
        if (found := known.get(f"{kind} {name}"))
    ]
    return _csv([line[:-1] for line in [HEAD, *lines]] if kind == "loads" else [HEAD, *lines])


def fixed_table(kind: str, known: Mapping[str, Sequence[Felt]]) -> str:
    """Return the same of the constants of modules."""
    played = [(one, found) for one in fixed_constants() if (found := known.get(f"{kind} {one.label}"))]
    return _csv([HEAD, *([f"`{one.label}`", f"{one.value:g}", *row(found), one.meaning] for one, found in played)])


def _csv(lines: Sequence[Sequence[str]]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(lines)
    return written.getvalue()


def row(found: Sequence[Felt]) -> tuple[str, str]:
    """Return the verdict on a constant, and the mean and the worst difference of each other value."""
    others = "; ".join(
        f"{one.value:g}: {one.differ} of {one.played}, {one.mean:+.1%}, {one.worst:+.1%}" for one in found
    )
    return max((one.verdict for one in found), key=("not felt", "little", "matters").index), others


def kept() -> dict[str, list[Felt]]:
    """What was found so far: {kind and name: results}."""
    if not RESULTS.exists():
        return {}
    return {name: [Felt(**one) for one in found] for name, found in json.loads(RESULTS.read_text()).items()}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench plant/sensitivity", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "kind",
        choices=["element", "loads", "regions"],
        help="of one element, the same under changing loads, or of regions",
    )
    parser.add_argument("--graphs", type=int, default=6, help="random graphs for each number of cores (6)")
    parser.add_argument("--cores", type=int, nargs="+", default=[2, 16], help="of the machine (2 16)")
    parser.add_argument("--jobs", type=int, default=12, help="random jobs (12)")
    parser.add_argument("--seed", type=int, default=1, help="of graphs, jobs and noise (1)")
    parser.add_argument("--only", default="", help="only constants whose names have this")
    parser.add_argument("--fixed", action="store_true", help="constants of modules in place of thresholds")
    parser.add_argument("--again", action="store_true", help="also those that are known already")
    parser.add_argument("--table", action="store_true", help="play nothing; write what is known as CSV")
    options = parser.parse_args(arguments)
    usual: Any = OrganicThresholds() if options.kind == "regions" else GuidedThresholds()
    known = kept()
    if options.table:
        print(fixed_table(options.kind, known) if options.fixed else table(options.kind, known, usual), end="")
        return 0
    if options.kind == "regions":
        runs = regions(options.jobs, options.seed)
    else:
        kind = element if options.kind == "element" else loads
        runs = kind(options.graphs, options.cores, options.seed)
    # {name: (the usual value, others, how to play with another one)}
    every: dict[str, tuple[float, Sequence[float], Callable[[float], list[Played]]]] = {}
    if options.fixed:
        package = "rayelastic.policy.regions" if options.kind == "regions" else "rayelastic.policy.element.guided"
        for constant in fixed_constants():
            if constant.module.startswith(package):
                play_with = functools.partial(with_fixed, constant, runs, usual)
                every[constant.label] = constant.value, constant.others, play_with
    else:
        for name, value in constants(usual):
            every[name] = value, tried(name, value), functools.partial(with_changed, name, runs, usual)
    wanted = [
        name for name in every if options.only in name and (options.again or f"{options.kind} {name}" not in known)
    ]
    before = runs(usual) if wanted else []
    for name in wanted:
        value, others, played = every[name]
        found = [felt(name, value, other, before, played(other)) for other in others]
        known[f"{options.kind} {name}"] = found
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({name: [asdict(one) for one in felts] for name, felts in known.items()}))
        for one in found:
            said = f"differs in {one.differ} of {one.played}, mean {one.mean:+.1%}, worst {one.worst:+.1%}"
            print(f"{name:28} {value:g} -> {one.value:<6g} {said}, effort {one.effort:+.1f}: {one.verdict}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
