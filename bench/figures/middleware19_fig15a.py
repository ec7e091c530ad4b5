"""Middleware'19 Fig. 15(a): a graph of the size and shape of VWAP by cores (C000-14).

The paper gives no costs. Assumed: the source, which reads and parses market data, does 35 % of all work; trades and
quotes each go through 10 of the exchanges' pipelines, and join before the sink.
"""

from __future__ import annotations

from bench.figures.figure import Claim, Figure
from bench.figures.plants import plant as plant_of
from bench.figures.plants import settled
from bench.figures.throughputs import outcome
from bench.plant.constants import XEON
from bench.plant.graph import PlantGraph, PlantOperator, Stream
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation
from rayelastic.reasons import Code

OPERATORS = 52
PIPELINES, DEPTH = 10, 2  # of each of the two branches
PAYLOAD = 128  # bytes: bids and quotes are small
SOURCE_COST, OPERATOR_COST = 1000.0, 260.0  # ns; each tuple passes 7 operators besides the source
HAND_INSERTED = 9  # threads of the hand-optimised version


def vwap() -> PlantGraph:
    """52 operators in the shape of Fig. 14(a)."""
    operators = [PlantOperator("source", SOURCE_COST, payload=PAYLOAD, source=True)]
    streams: list[Stream] = []

    def add(tails: list[int], share: float = 1.0) -> int:
        operators.append(PlantOperator(f"op{len(operators)}", OPERATOR_COST, payload=PAYLOAD))
        streams.extend(Stream(tail, len(operators) - 1, share) for tail in tails)
        return len(operators) - 1

    ends = []
    for _ in ("trades", "quotes"):
        head = add([0], 0.5)
        paths = [add([head], 1 / PIPELINES) for _ in range(PIPELINES)]
        for _ in range(DEPTH - 1):
            paths = [add([path]) for path in paths]
        ends.append(add(paths))
    join = add(ends)
    while len(operators) < OPERATORS:
        join = add([join])
    return PlantGraph(tuple(operators), tuple(streams))


class _HandOptimised:
    """Nine dedicated threads where a developer may have put them: spread over the graph."""

    def step(self, observation: Observation) -> Decision:
        ports = [operator for operator in observation.operators if operator.switchable]
        chosen = {ports[(at + 1) * len(ports) // HAND_INSERTED - 1].name for at in range(HAND_INSERTED)}
        models = {o.name: ThreadingModel.DEDICATED for o in ports if o.name in chosen and o.model.value == "manual"}
        return Decision(observation.minimum_threads, models, (Code.PINNED(),), "hand-optimised")

    def reset(self) -> None:
        """Forget nothing."""


def figure(small: bool) -> Figure:
    graph = vwap()
    cores = (4, 88) if small else (4, 16, 88)
    outcomes = {count: outcome(f"{count} cores", graph, XEON, cores=count) for count in cores}
    by_hand = settled(_HandOptimised(), plant_of(graph, XEON, cores=4), 12)[0]
    few = outcomes[4]
    least = min(one.ours / one.manual for one in outcomes.values())
    claims = (
        Claim(
            "C000-14",
            "elastic at least 2x manual with 3 threads instead of 9; +15 % over thread count at 4 cores",
            f"{least:.1f}x manual, {few.ours_threads} scheduler threads, {few.over_thread_count - 1:+.0%} at 4 cores",
            least >= 2 and few.ours_threads <= 3 and few.over_thread_count >= 1.15,
            remark="costs and topology of VWAP are assumed",
        ),
        Claim(
            "C000-14",
            "elastic at least 2x hand-optimised",
            f"{few.ours / by_hand:.2f}x nine dedicated threads spread over the graph, at 4 cores",
            few.ours / by_hand >= 2,
            remark="where its developers put their threads isn't known; an even spread balances well",
        ),
    )

    rows = [one.row() for one in outcomes.values()]
    return Figure("middleware19_fig15a", rows, claims)
