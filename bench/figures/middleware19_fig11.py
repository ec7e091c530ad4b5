"""Middleware'19 Fig. 11: ten pipelines side by side (C000-10)."""

from __future__ import annotations

from bench.figures.figure import Claim, Figure
from bench.figures.plants import making
from bench.figures.throughputs import outcome
from bench.plant.constants import POWER8, XEON
from bench.plant.graph import mixed


def figure(small: bool) -> Figure:
    found = {}
    for machine in (XEON,) if small else (XEON, POWER8):
        for depth in (50,) if small else (50, 100):
            for payload in (128, 16384) if small else (128, 1024, 16384):
                graph = mixed([[100 * machine.flop] * depth] * 10, payload=payload, source_cost=making(payload))
                found[machine.name, depth, payload] = outcome(
                    f"{machine.name}\n10 x {depth} {payload} B", graph, machine
                )
    small_payload = [one.over_thread_count for key, one in found.items() if key[2] == 128]
    large_payload = [one.over_thread_count for key, one in found.items() if key[2] == 16384]
    claim = Claim(
        "C000-10",
        "the same trends as a pipeline: the gain rises with the payload, from a few hundred bytes on",
        f"{min(small_payload):.1f} to {max(small_payload):.1f}x at 128 B, "
        f"{min(large_payload):.1f} to {max(large_payload):.1f}x at 16 KiB",
        min(large_payload) > max(small_payload),
    )
    outcomes = list(found.values())

    rows = [one.row() for one in outcomes]
    return Figure("middleware19_fig11", rows, (claim,))
