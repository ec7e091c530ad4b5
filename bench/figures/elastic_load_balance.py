"""The five graphs of ElasticLoadBalance's page: tuples of three costs, bursty cost and rate (C001-1, C001-2)."""

from __future__ import annotations

import statistics

from bench.figures.figure import Claim, Figure, Kind, Row
from bench.plant.constants import PAPER_ENGINE, SERVER16
from bench.plant.graph import data_parallel
from bench.plant.load_script import STEADY, LoadPhase, LoadScript
from bench.plant.plant import Plant, PlantSettings
from bench.plant.play import Journal, play
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.stage.channel_width import ChannelWidthElasticity

CHANNELS = 32
PERIOD = 5.0  # s; L04
EXPENSIVE, MEDIUM, CHEAP = 10_000, 1000, 1  # multiplications per tuple
CHEAP_NOISE = 0.08  # "significant noise" where overhead dominates
NOISE = 0.02
DEAR_FROM, CHEAP_AGAIN = 80.0, 220.0  # s; bursty cost


def _costs(multiplies: int) -> tuple[float, ...]:
    return (0.0, *[multiplies * SERVER16.flop] * CHANNELS, 0.0)


def _run(multiplies: int, script: LoadScript = STEADY, noise: float = NOISE, periods: int = 80) -> Journal:
    graph = data_parallel(_costs(multiplies)[1:-1], payload=64)
    settings = PlantSettings(PERIOD, noise, 1, minimum_threads=1, maximum_threads=CHANNELS)
    on = Plant(graph, SERVER16, PAPER_ENGINE, script, settings)
    on.apply(Decision(1, {o.name: ThreadingModel.DYNAMIC for o in graph.operators[1:-1]}))
    return play(ChannelWidthElasticity(), on, periods)


def figure(_small: bool) -> Figure:
    bursty_cost = LoadScript(
        (LoadPhase(), LoadPhase(DEAR_FROM, _costs(EXPENSIVE)), LoadPhase(CHEAP_AGAIN, _costs(CHEAP)))
    )
    bursty_rate = LoadScript(
        (LoadPhase(), LoadPhase(150.0, offered=0.0), LoadPhase(250.0), LoadPhase(400.0, offered=0.0))
    )
    runs = {
        "expensive": _run(EXPENSIVE),
        "medium": _run(MEDIUM),
        "cheap": _run(CHEAP, noise=CHEAP_NOISE),
        "bursty cost": _run(CHEAP, bursty_cost),
        "bursty rate": _run(EXPENSIVE, bursty_rate, periods=110),
    }
    level = {name: statistics.median(one.threads for one in journal.passes[-30:]) for name, journal in runs.items()}
    cheap = runs["cheap"]
    moves = sum(one.changed for one in cheap.passes[20:])
    cost, rate = runs["bursty cost"], runs["bursty rate"]
    peaks = [max(one.threads for one in cost.between(*span)) for span in ((0.0, 80.0), (80.0, 220.0))]
    after = cost.last.threads
    silent = rate.between(150.0, 250.0).last.threads
    busy = [rate.between(*span).most_threads for span in ((0.0, 150.0), (250.0, 400.0))]
    claims = (
        Claim(
            "C001-1",
            "expensive: about 15 threads; medium: about 8; cheap: at most 3, and oscillates",
            f"{level['expensive']:.0f}, {level['medium']:.0f}, {level['cheap']:.0f} with {moves} moves in 60 periods",
            13 <= level["expensive"] <= 17 and 6 <= level["medium"] <= 9 and cheap.most_threads <= 3 and moves >= 6,
            Kind.FITTED,
            "what a lock's handover costs is fitted to these thread counts",
        ),
        Claim(
            "C001-2",
            "bursty cost is followed: threads climb when tuples are expensive, and sleep when they are cheap again",
            f"at most {peaks[0]} before, {peaks[1]} while expensive, {after} at the end",
            peaks[1] > 2 * peaks[0] and after <= 3,
        ),
        Claim(
            "C001-2",
            "bursty rate is followed: threads drop for lack of congestion",
            f"{busy[0]} and {busy[1]} while tuples come, {silent} while none do",
            min(busy) >= 10 and silent < busy[0] / 2,
        ),
    )
    rows: list[Row] = [{"case": name, **row} for name, journal in runs.items() for row in journal.rows()]

    return Figure("elastic_load_balance", rows, claims)
