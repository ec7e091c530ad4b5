"""A run of a controller on a plant, pass by pass, and its SASO figures: settling, accuracy, stability, overshoot.

The loop is the line of the architecture, section 1: apply(step(observe)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from rayelastic.policy.element.decision import Controller, Decision
from rayelastic.policy.element.observation import Observation


class Playable(Protocol):
    """A PE that a controller can be run on."""

    time: float

    @property
    def thread_count(self) -> int:
        """Scheduler threads in force."""

    @property
    def queues(self) -> int:
        """Operators with a queue in front."""

    @property
    def placement(self) -> object:
        """Which ones these are; equal if nothing has changed."""

    @property
    def others(self) -> float:
        """CPUs that other processes keep busy."""

    @property
    def true_rate(self) -> float:
        """Tuples/s that the present configuration gives, without noise."""

    @property
    def tuples_per_source_tuple(self) -> float:
        """By which throughput is divided to give a rate."""

    def play(self) -> Observation:
        """Let a period pass and return what is seen of it."""

    def apply(self, decision: Decision) -> None:
        """Bring about what is desired."""


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


def play(controller: Controller, plant: Playable, periods: int, *, keep: bool = False) -> Journal:
    """Run a controller on a plant.

    Args:
        controller: what decides.
        plant: on what.
        periods: how many periods.
        keep: whether observations are kept, for a replay.

    >>> from bench.plant.fixed_configuration import FixedConfiguration
    >>> from bench.plant.constants import ENGINE, LAPTOP
    >>> from bench.plant.graph import pipeline
    >>> from bench.plant.plant import Plant
    >>> journal = play(FixedConfiguration.dynamic(2), Plant(pipeline([500.0] * 4), LAPTOP, ENGINE), periods=3)
    >>> [(one.threads, one.queues) for one in journal]
    [(2, 0), (2, 5), (2, 5)]
    """
    passes = []
    scale = plant.tuples_per_source_tuple
    for _ in range(periods):
        seen = plant.play()
        others, true_rate = plant.others, plant.true_rate
        threads, queues, placement = plant.thread_count, plant.queues, plant.placement
        decision = controller.step(seen)
        plant.apply(decision)
        changed = plant.thread_count != threads or plant.placement != placement
        kept = seen if keep else None
        rate = seen.throughput / scale
        passes.append(Pass(plant.time, rate, true_rate, threads, queues, others, decision, changed, kept))
    return Journal(tuple(passes))
