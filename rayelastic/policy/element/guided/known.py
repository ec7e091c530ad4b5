"""What a search found so far, as those see it who propose what to try next. Must not know what that is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.policy.element.guided.explanation import Explanation
from rayelastic.policy.element.guided.measurement import Series

__all__ = ["Known"]


@dataclass(frozen=True, slots=True)
class Known:
    """What a search found so far.

    Args:
        best: the best configuration.
        peak: the one of the best throughput, of which savings may lose a little.
        measured: throughput by configuration.
        rejected: configurations that were worse, or that didn't come into force.
        explanations: of what was measured, the best first.
        savings: failed trials of fewer threads so far.
        noise: relative standard deviation of throughput.
        explorations: trials of what may be better so far.
    """

    best: Configuration
    peak: Configuration
    measured: Mapping[Configuration, Series]
    rejected: Collection[Configuration]
    explanations: tuple[Explanation, ...]
    savings: int
    noise: float
    explorations: int = 0

    def levels(self) -> dict[int, float]:
        """Return the best throughput of each thread count."""
        levels: dict[int, float] = {}
        for configuration, series in self.measured.items():
            levels[configuration.threads] = max(levels.get(configuration.threads, 0.0), series.throughput)
        return levels
