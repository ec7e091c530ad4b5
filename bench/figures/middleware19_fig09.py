"""Middleware'19 Fig. 9: pipelines by number of operators and payload (C000-3 to C000-8)."""

from __future__ import annotations

from bench.figures.figure import Claim, Figure, Kind
from bench.figures.plants import making, skewed
from bench.figures.throughputs import Outcome, outcome
from bench.plant.constants import POWER8, XEON
from bench.plant.graph import pipeline


def figure(small: bool) -> Figure:
    found: dict[tuple[str, str, int, int], Outcome] = {}
    for machine in (XEON,) if small else (XEON, POWER8):
        for spread in ("balanced",) if small else ("balanced", "skewed"):
            for count in (100, 1000) if small else (100, 500, 1000):
                for payload in (1024, 16384) if small and count == 1000 else (128, 1024, 16384):
                    costs = [100 * machine.flop] * count if spread == "balanced" else skewed(count, machine.flop, 1)
                    case = f"{machine.name} {spread}\n{count} ops {payload} B"
                    graph = pipeline(costs, payload=payload, source_cost=making(payload))
                    found[machine.name, spread, count, payload] = outcome(case, graph, machine)
    if small:  # the case of Fig. 9(d)
        graph = pipeline(skewed(100, POWER8.flop, 1), payload=128, source_cost=making(128))
        case = f"{POWER8.name} skewed\n100 ops 128 B"
        found[POWER8.name, "skewed", 100, 128] = outcome(case, graph, POWER8)
    balanced = {key[2:]: one for key, one in found.items() if key[:2] == (XEON.name, "balanced")}
    light, large = balanced[100, 128], balanced[100, 16384]
    gains = {key: one.over_thread_count for key, one in found.items()}
    most = max(gains.values())
    printed = max(one.paper / one.thread_count for one in found.values())
    ratios = {key: one.ours_queues / one.operators for key, one in balanced.items()}
    last = found[POWER8.name, "skewed", 100, 128]
    claims = (
        Claim(
            "C000-3",
            "up to 22x over thread-count elasticity at 16 KiB",
            f"paper variant up to {printed:.1f}x, ours up to {most:.1f}x",
            0.75 <= printed / 22 <= 1.25 and most >= printed and max(gains, key=gains.__getitem__)[3] == 16384,
            Kind.FITTED,
            "the machine's memory bandwidth is fitted to the 22x",
        ),
        Claim(
            "C000-4",
            "100 operators, 128 B: no gain, more than 80 % of operators stay dynamic",
            f"{light.over_thread_count:.2f}x ours, {light.paper / light.thread_count:.2f}x paper variant; dynamic "
            f"{light.ours_queues / light.operators:.0%} and {light.paper_queues / light.operators:.0%}",
            light.over_thread_count < 1.25 and light.ours_queues / light.operators > 0.8,
            remark="ours needs fewer queues for the same throughput",
        ),
        Claim(
            "C000-5",
            "1,000 operators, 1,024 B: more than 3x",
            f"{balanced[1000, 1024].over_thread_count:.1f}x",
            balanced[1000, 1024].over_thread_count > 3,
        ),
        Claim(
            "C000-6",
            "16 KiB: thread-count elasticity below manual, multi-level about manual",
            f"{large.thread_count / large.manual:.2f} and {large.ours / large.manual:.2f} of manual",
            large.thread_count < large.manual and large.ours >= 0.95 * large.manual,
        ),
        Claim(
            "C000-7",
            "the share of dynamic operators falls with payload and with the number of operators",
            ", ".join(f"{count} ops {payload} B: {share:.0%}" for (count, payload), share in ratios.items()),
            ratios[100, 16384] <= ratios[100, 128] and ratios[1000, 1024] <= ratios[100, 1024],
        ),
        Claim(
            "C000-8",
            "100 operators, 128 B: threads from 88 to 46 at equal throughput (Fig. 9d)",
            f"{last.thread_count_threads} to {last.ours_threads} threads at {last.over_thread_count:.2f}x, with "
            f"{last.ours_queues} of {last.operators} queues",
            last.ours_threads < 0.75 * last.thread_count_threads and last.over_thread_count > 0.95,
            remark="Ten operators do nearly all the work. The simulated curve of thread-count elasticity peaks at "
            f"{last.thread_count_threads} threads, where the paper's rules stay",
        ),
    )
    outcomes = list(found.values())

    rows = [one.row() for one in outcomes]
    return Figure("middleware19_fig09", rows, claims)
