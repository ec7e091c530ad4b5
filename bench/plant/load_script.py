"""What happens to a PE while it is simulated: phases of cost, offered rate and other processes' load.

Must not know who reacts to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadPhase:
    """What holds from `start` on, until the next phase.

    Args:
        start: s since the start of the PE.
        costs: ns per tuple of each operator; None: those of the graph.
        offered: tuples/s that the sources are given; None: as many as are taken.
        others: CPUs that other processes keep busy.
    """

    start: float = 0.0
    costs: tuple[float, ...] | None = None
    offered: float | None = None
    others: float = 0.0


@dataclass(frozen=True, slots=True)
class LoadScript:
    """Phases in order of their start, the first at 0.

    >>> script = LoadScript((LoadPhase(), LoadPhase(start=12.0, others=1.0)))
    >>> [(start, end, phase.others) for start, end, _, phase in script.between(10.0, 15.0)]
    [(10.0, 12.0, 0.0), (12.0, 15.0, 1.0)]
    """

    phases: tuple[LoadPhase, ...] = (LoadPhase(),)

    def __post_init__(self) -> None:
        starts = [phase.start for phase in self.phases]
        if not starts or starts[0] != 0.0 or starts != sorted(set(starts)):
            raise ValueError(f"a load script with starts {starts}: begin at 0.0 and let each phase start later")

    def number_at(self, time: float) -> int:
        """Return the number of the phase at a time."""
        return bisect_right(self.phases, time, key=lambda phase: phase.start) - 1

    def between(self, start: float, end: float) -> Iterator[tuple[float, float, int, LoadPhase]]:
        """Yield the parts of an interval with the number of their phase, and the phase."""
        number = self.number_at(start)
        while start < end:
            until = self.phases[number + 1].start if number + 1 < len(self.phases) else end
            yield start, min(until, end), number, self.phases[number]
            start, number = until, number + 1


STEADY = LoadScript()
