"""How an element's adaptation behaves: settling, overshoot and oscillation, in the terms of SASO (PLDI'17 section 4).

Changes that follow each other closely belong together: they answer one change of the load. Must not know who decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rayelastic.policy.element.observation import Observation

__all__ = ["Settling"]

QUIET = 10  # periods without a change, after which the next change answers another load


@dataclass(slots=True)
class Settling:
    """Counts what a loop changes.

    Args:
        changes: of threads or queues, since the start.
        returns: of these, changes back to what was in force before, under the same load: oscillation.
        seconds: from the start, or from the first change under a new load, to the last change.
        most: threads that were in force meanwhile.

    >>> settling, settings = Settling(), [(1, False), (2, True), (4, True), (2, True)]
    >>> for time, (threads, changed) in enumerate(settings):
    ...     settling.add(Observation(time=time, period=1, throughput=1.0, thread_count=threads), changed=changed)
    >>> settling.changes, settling.returns, settling.seconds, settling.overshoot(2)
    (3, 1, 3.0, 2)
    """

    changes: int = 0
    returns: int = 0
    seconds: float = 0.0
    most: int = 0
    _since: float = 0.0
    _quiet: int = 0
    _seen: set[tuple[int, frozenset[str]]] = field(default_factory=set)
    _last: tuple[int, frozenset[str]] | None = None

    def add(self, observation: Observation, *, changed: bool) -> None:
        """Take a period, and whether anything was changed at its end."""
        now = observation.thread_count, observation.queued
        if now != self._last:
            self.returns += now in self._seen
            self._last = now
            self._seen.add(now)
        self.most = max(self.most, observation.thread_count)
        if not changed:
            self._quiet += 1
            return
        if self._quiet >= QUIET and self.changes:
            self._since, self._seen, self.most = observation.time, {now}, observation.thread_count
        self.changes += 1
        self._quiet, self.seconds = 0, observation.time - self._since

    def overshoot(self, threads: int) -> int:
        """Return the most threads that were in force under this load, above those in force now."""
        return max(0, self.most - threads)
