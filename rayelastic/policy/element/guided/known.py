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
        measured: throughput by configuration.
        rejected: configurations that were worse, or that didn't come into force.
        explanations: of what was measured, the best first.
        noise: relative standard deviation of throughput.
        explorations: trials of what may be better so far.
    """

    best: Configuration
    measured: Mapping[Configuration, Series]
    rejected: Collection[Configuration]
    explanations: tuple[Explanation, ...]
    noise: float
    explorations: int = 0
