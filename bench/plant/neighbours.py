"""Several PEs on one simulated host, each with a controller that knows nothing of the others.

    ./dev bench plant/neighbours --cores 4 16 64 --jobs 2 4 --apart 0 60 --of jobs job

Of several jobs, or of one, whose coordinator shares out the CPUs (`CpuBudgets`). Each sees the CPUs that the others
keep busy, as on a real host, and the kernel shares what there is fairly among threads that can run. A job's fair share
is the best rate of one that has an equal part of the CPUs for itself. Seeded: the same options give the same numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from bench.harness import arguments_of
from bench.plant.best_static import best_static
from bench.plant.constants import ENGINE, Machine
from bench.plant.graph import PlantGraph, pipeline
from bench.plant.load_script import LoadPhase, LoadScript
from bench.plant.plant import Plant, PlantSettings
from rayelastic.policy.element.cpu_budgets import CpuBudget, CpuBudgets, within_budget
from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity

OPERATORS, COST = 30, 2000.0  # ns; dear enough for any number of threads
LAST = 100  # periods in which nothing should change any more
FAIR = 0.8  # of a job's share
OF = ("jobs", "job")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What one of several jobs came to.

    Args:
        threads: scheduler threads at the end.
        share: mean rate over the last `LAST` periods, by its fair share.
        changes: in those periods.
    """

    threads: int
    share: float
    changes: int

    def __str__(self) -> str:
        return f"{self.threads} threads, {self.share:.2f} of its share, {self.changes} late changes"


class _Tenant(Plant):
    """A plant whose neighbours' CPUs are told from outside, period by period."""

    def beside(self, others: float) -> None:
        """Let others keep so many CPUs busy from now on."""
        if others != self.others:
            self.script = LoadScript((LoadPhase(others=others),))
            self._states.clear()

    @property
    def wanted(self) -> float:
        """CPUs that its threads would keep busy if they had them."""
        return self.state().cpus


def neighbours(
    cores: int,
    jobs: int,
    apart: int = 0,
    periods: int = 260,
    noise: float = 0.05,
    seed: int = 1,
    *,
    one_job: bool = False,
) -> tuple[Neighbour, ...]:
    """Run several equal jobs on one host and return what each came to.

    Args:
        cores: of the host.
        jobs: how many.
        apart: periods between the start of one and of the next.
        periods: from the start of the last one.
        noise: standard deviation of the logarithm of a period's throughput.
        seed: of noise and profiler samples.
        one_job: whether they are elements of one job, so that its coordinator shares out the CPUs.
    """
    graph = pipeline([COST] * OPERATORS)
    machine = Machine("host", cores=cores)
    tenants = [
        _Tenant(
            graph, machine, ENGINE, settings=PlantSettings(noise=noise, seed=100 * seed + number, minimum_threads=1)
        )
        for number in range(jobs)
    ]
    controllers = [GuidedMultiLevelElasticity() for _ in range(jobs)]
    rates: list[list[float]] = [[] for _ in range(jobs)]
    changed: list[list[bool]] = [[] for _ in range(jobs)]
    budgets, used = CpuBudgets(cores), [0.0] * jobs
    for period in range(apart * (jobs - 1) + periods):
        running = [number for number in range(jobs) if period >= number * apart]
        wanted = {number: tenants[number].wanted for number in running}
        parts = budgets.step({str(number): used[number] for number in running}) if one_job else {}
        before, used = used, [0.0] * jobs
        for number in running:
            tenant = tenants[number]
            tenant.beside(sum(wanted.values()) - wanted[number])
            seen = tenant.play()
            used[number] = seen.own_cpu
            rates[number].append(seen.throughput / tenant.tuples_per_source_tuple)
            if parts:
                seen = within_budget(seen, CpuBudget(parts[str(number)], cores, sum(before) - before[number]))
            decision = controllers[number].step(seen)
            tenant.apply(decision)
            changed[number].append(decision.changes(seen))
    fair = _fair_rate(graph, cores, jobs)
    return tuple(
        Neighbour(tenant.thread_count, sum(rate[-LAST:]) / LAST / fair, sum(changes[-LAST:]))
        for tenant, rate, changes in zip(tenants, rates, changed, strict=True)
    )


def _fair_rate(graph: PlantGraph, cores: int, jobs: int) -> float:
    part = Machine("part", cores=max(1, cores // jobs))
    return best_static(Plant(graph, part, ENGINE, settings=PlantSettings(minimum_threads=1))).rate


def main(arguments: Sequence[str]) -> int:
    parser = arguments_of("plant/neighbours", __doc__)
    parser.add_argument("--cores", type=int, nargs="+", default=[4, 16, 64], help="of the host (4 16 64)")
    parser.add_argument("--jobs", type=int, nargs="+", default=[2, 4], help="on it (2 4)")
    parser.add_argument("--apart", type=int, nargs="+", default=[0, 60], help="periods between two starts (0 60)")
    parser.add_argument(
        "--of", choices=OF, nargs="+", default=list(OF), help="several jobs, elements of one job (both)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of noise (1)")
    options = parser.parse_args(arguments)
    good = True
    for of, cores, jobs, apart in product(options.of, options.cores, options.jobs, options.apart):
        found = neighbours(cores, jobs, apart, seed=options.seed, one_job=of == "job")
        fair = all(one.share >= FAIR and one.changes == 0 for one in found)
        good = good and fair
        told = "; ".join(str(one) for one in found)
        what = f"{jobs} elements of a job" if of == "job" else f"{jobs} jobs"
        print(f"{cores:>3} cores, {what} {apart:>2} periods apart: {told}{'' if fair else '  NOT FAIR'}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
