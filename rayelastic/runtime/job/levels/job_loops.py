"""The loops of a coordinator as one: over regions, and over hosts. Elements have their own loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rayelastic.runtime.job.levels.budget_loop import BudgetLoop
    from rayelastic.runtime.loops.region_loop import RegionLoop
    from rayelastic.runtime.values.region_adaptation import RegionAdaptation


class JobLoops:
    """The loops of one job.

    Args:
        regions: Adapts its plan; None: it isn't adapted.
        budgets: Shares out its hosts; None: they aren't shared.
    """

    def __init__(self, regions: RegionLoop | None, budgets: BudgetLoop | None) -> None:
        self._regions = regions
        self._budgets = budgets
        self._started = False
        self._all: tuple[RegionLoop | BudgetLoop, ...] = tuple(loop for loop in (regions, budgets) if loop is not None)

    def start(self) -> None:
        """Start their threads."""
        self._started = True
        for loop in self._all:
            loop.start()

    def grows(self) -> None:
        """Start to share out hosts if a new element makes that necessary and the job runs already."""
        if self._started and self._budgets is not None:
            self._budgets.start()

    def pause(self, paused: bool) -> None:
        """Pause their decisions from now on, or resume them."""
        for loop in self._all:
            loop.hold(paused)

    def halt(self) -> None:
        """Make them end with the current pass; return at once."""
        for loop in self._all:
            loop.halt()

    def stop(self) -> None:
        """End them; the current configuration stays."""
        for loop in self._all:
            loop.stop()

    def adaptations(self, since: int) -> Sequence[RegionAdaptation]:
        """Return the adaptations of the plan, from a pass on."""
        return self._regions.journal.since(since) if self._regions is not None else ()
