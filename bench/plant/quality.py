"""How near elasticity comes to the best static configuration, on random graphs played by events.

    ./dev bench plant/quality --graphs 20 --cores 2 4 --seed 1

For each graph: the controller from cold, then what it found against the best of a search on the same plant. Seeded:
the same options give the same numbers.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bench.harness import arguments_of
from bench.plant.events.graphs import random_graph
from bench.plant.events.plant import EventPlant, EventSettings
from bench.plant.events.search import compared_with_best
from bench.plant.play import play
from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity, GuidedThresholds

PERIODS = 60  # from cold
QUIET = 40  # periods after which a change is one too many
NEAR = 0.95


@dataclass(frozen=True, slots=True)
class Quality:
    """What elasticity reached on one graph.

    Args:
        name: of the graph.
        number: of the graph.
        cores: of the machine.
        share: rate of what was found by that of the best.
        settled: periods until the last change, of the first `PERIODS`.
        changes: changes in the `QUIET` periods after those.
        found: threads and queues that were found.
        best: those of the best.
        looked: configurations that the search for it looked at.
    """

    name: str
    number: int
    cores: int
    share: float
    settled: int
    changes: int
    found: tuple[int, int]
    best: tuple[int, int]
    looked: int

    def __str__(self) -> str:
        return (
            f"{self.cores:>3} cores  {self.number:>4} {self.name:<18} {self.share:6.3f} of the best; found "
            f"{self.found[0]:>2} threads, {self.found[1]:>2} queues; best {self.best[0]:>2}, {self.best[1]:>2}; "
            f"last change in period {self.settled:>2}, then {self.changes}"
        )


def quality(
    number: int, seed: int, cores: int, noise: float, *, deaf: bool = False, thresholds: GuidedThresholds | None = None
) -> Quality:
    """Run the controller on one random graph and compare what it found with the best.

    Args:
        number: of the graph.
        seed: of the graphs, and of noise.
        cores: of the machine.
        noise: standard deviation of the logarithm of a period's throughput.
        deaf: cut the loop off from its scheduler, which has to show.
        thresholds: constants of the controller.
    """
    drawn = random_graph(number, seed, cores)
    settings = EventSettings(cores, drawn.paced, noise=noise, seed=1000 * seed + number, deaf=deaf)
    plant = EventPlant(drawn.graph, settings)
    names = [operator.name for operator in drawn.graph.operators]
    upstream = {names[at]: [names[one.tail] for one in into] for at, into in enumerate(drawn.graph.incoming) if into}
    controller = GuidedMultiLevelElasticity(upstream, thresholds)
    journal = play(controller, plant, PERIODS)
    found = plant.configuration
    changes = sum(one.changed for one in play(controller, plant, QUIET))
    compared = compared_with_best(plant, found)
    best = compared.best
    return Quality(
        drawn.name,
        number,
        cores,
        compared.share,
        journal.settling_periods(),
        changes,
        (found.threads, len(found.queued)),
        (best.threads, len(best.queued)),
        compared.looked,
    )


def summary(found: Sequence[Quality]) -> str:
    """Return the figures of several graphs in words."""
    shares = [one.share for one in found]
    settled = sorted(one.settled for one in found)
    near = sum(share >= NEAR for share in shares) / len(shares)
    quiet = sum(one.changes == 0 for one in found) / len(found)
    return (
        f"{len(found)} graphs: {near:.0%} within {1 - NEAR:.0%} of the best, median {statistics.median(shares):.3f}, "
        f"worst {min(shares):.3f}; last change in period {statistics.median(settled):.0f} (median), "
        f"{settled[int(0.95 * (len(settled) - 1))]} (95 %); none in {QUIET} periods after {PERIODS}: {quiet:.0%}"
    )


def main(arguments: Sequence[str]) -> int:
    parser = arguments_of("plant/quality", __doc__)
    parser.add_argument("--graphs", type=int, default=20, help="random graphs for each number of cores (20)")
    parser.add_argument("--cores", type=int, nargs="+", default=[2, 4, 16, 64], help="of the machine (2 4 16 64)")
    parser.add_argument("--seed", type=int, default=1, help="of graphs and noise (1)")
    parser.add_argument("--noise", type=float, default=0.05, help="of a period's throughput (0.05)")
    parser.add_argument("--first", type=int, default=0, help="number of the first graph (0)")
    parser.add_argument("--deaf", action="store_true", help="cut the loop off from its scheduler, to see that it shows")
    options = parser.parse_args(arguments)
    everything = []
    for cores in options.cores:
        found = []
        for number in range(options.first, options.first + options.graphs):
            found.append(quality(number, options.seed, cores, options.noise, deaf=options.deaf))
            print(found[-1], flush=True)
        everything += found
        print(f"{cores} cores, {summary(found)}", flush=True)
    if len(options.cores) > 1:
        print(f"all, {summary(everything)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
