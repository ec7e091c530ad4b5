"""A run of a controller on a plant, pass by pass, and its SASO figures: settling, accuracy, stability, overshoot.

The loop is the line of the architecture, section 1: apply(step(observe)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.plant.plant import Plant
from rayelastic.policy.element.decision import Controller, Decision
from rayelastic.policy.element.observation import Observation

__all__ = ["Journal", "Pass", "play"]


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of the loop.

    Args:
        time: s, at the end of the period.
        rate: tuples/s of the sources that were seen.
        true_rate: tuples/s without noise and warm-up, of the configuration in force at the end of the period.
        threads: scheduler threads in force.
        queues: operators with a queue in front.
        others: CPUs that other processes kept busy at the end.
        decision: what was decided then.
        changed: whether that was something else than what was in force.
        observation: what was seen; None where a journal keeps no observations.
    """

    time: float
    rate: float
    true_rate: float
    threads: int
    queues: int
    others: float
    decision: Decision
    changed: bool
    observation: Observation | None = None


@dataclass(frozen=True, slots=True)
class Journal:
    """All passes of a run; at least one."""

    passes: tuple[Pass, ...]

    def __iter__(self) -> Iterator[Pass]:
        return iter(self.passes)

    @property
    def last(self) -> Pass:
        """The last pass."""
        return self.passes[-1]

    def between(self, start: float, end: float) -> Journal:
        """Return the passes whose period ended in (start, end]."""
        return Journal(tuple(one for one in self.passes if start < one.time <= end))

    def settling_periods(self, patience: int | None = None) -> int:
        """Return how many periods passed until the last change; with `patience`, until none came for so many periods.

        A run that never settles gives the number of its periods.
        """
        last = 0
        for number, one in enumerate(self.passes, start=1):
            if one.changed:
                last = number
            elif patience is not None and number - last >= patience:
                return last
        return last if patience is None else len(self.passes)

    def quiet_after(self, number: int, periods: int) -> bool:
        """Return whether none of the `periods` passes after a number of passes changed anything."""
        return not any(one.changed for one in self.passes[number : number + periods])

    @property
    def most_threads(self) -> int:
        """The highest thread count that was in force."""
        return max(one.threads for one in self.passes)

    def rows(self) -> list[dict[str, float | int | str]]:
        """Return the passes as rows of a table."""
        return [
            {
                "time": round(one.time, 3),
                "rate": one.rate,
                "threads": one.threads,
                "queues": one.queues,
                "others": one.others,
                "rule": one.decision.rule,
                "reason": one.decision.reason,
            }
            for one in self.passes
        ]


def play(controller: Controller, plant: Plant, periods: int, *, keep: bool = False) -> Journal:
    """Run a controller on a plant.

    Args:
        controller: what decides.
        plant: on what.
        periods: how many periods.
        keep: whether observations are kept, for a replay.

    >>> from rayelastic.policy.element.fixed import FixedConfiguration
    >>> from bench.plant.constants import ENGINE, LAPTOP
    >>> from bench.plant.graph import pipeline
    >>> journal = play(FixedConfiguration.dynamic(2), Plant(pipeline([500.0] * 4), LAPTOP, ENGINE), periods=3)
    >>> [(one.threads, one.queues) for one in journal]
    [(2, 0), (2, 5), (2, 5)]
    """
    passes = []
    scale = float(plant.graph.rates.sum())
    for _ in range(periods):
        seen = plant.play()
        others = plant.script.phases[plant.script.number_at(plant.time)].others
        threads, queues, models, true_rate = plant.thread_count, plant.queues, plant.models, plant.state().rate
        decision = controller.step(seen)
        plant.apply(decision)
        changed = plant.thread_count != threads or plant.models != models
        kept = seen if keep else None
        rate = seen.throughput / scale
        passes.append(Pass(plant.time, rate, true_rate, threads, queues, others, decision, changed, kept))
    return Journal(tuple(passes))
