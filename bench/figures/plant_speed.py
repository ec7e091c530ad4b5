"""How long the simulation itself takes: 1,000 s of a PE with 1,000 operators, by processor time."""

from __future__ import annotations

import time
from typing import Any

from bench.figures.figure import Claim, Figure, Kind, Row
from bench.figures.plants import PERIOD, manual, ours, paper, plant, thread_count
from bench.plant.constants import XEON
from bench.plant.graph import pipeline
from bench.plant.play import play

SECONDS, OPERATORS = 1000.0, 1000
TARGET = 2.0  # s


def figure(small: bool) -> Figure:
    graph = pipeline([100 * XEON.flop] * OPERATORS, payload=1024)
    took = {}
    controllers = {"manual": manual()}
    if not small:
        controllers |= {"thread count": thread_count(), "paper": paper(), "ours": ours(graph)}
    for name, controller in controllers.items():
        started = time.process_time()
        play(controller, plant(graph, XEON), round(SECONDS / PERIOD))
        took[name] = time.process_time() - started
    claim = Claim(
        "ours-3",
        "1,000 s of a 1,000-operator PE in under 2 s",
        ", ".join(f"{name} {seconds:.1f} s" for name, seconds in took.items()) + " with periods of 5 s",
        took["manual"] < TARGET,
        Kind.MEASURED,
        "processor time of the plant (manual); the others have their controllers' on top",
    )
    rows: list[Row] = [{"controller": name, "seconds": seconds} for name, seconds in took.items()]

    def draw(canvas: Any) -> None:
        canvas.subplots().bar(list(took), list(took.values()))

    return Figure("plant_speed", "1,000 s of 1,000 operators, seconds", rows, (claim,), draw, Kind.MEASURED, (5, 4))
