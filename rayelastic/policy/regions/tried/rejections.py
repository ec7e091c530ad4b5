"""Shapes of regions that failed their trial, and regions that shrank too early: how long they aren't tried again.

A rejection lasts until the load changes (Joker 4.3). But a reverted change may itself look like a change of load, and
each repeated trial costs throughput. So each further rejection of a region lasts twice as long as the one before, until
a change of the region was kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.model import Shape

__all__ = ["Rejections", "Reversals"]

LONGEST = 10  # doublings
LONGEST_WAIT = 4  # doublings of the periods in which less must suffice
SOON = 8  # times what was waited: what grows again within that shrank too early


class Rejections:
    """What isn't to be tried.

    Args:
        periods: that the second rejection of a region lasts at least; the first one ends with the next change of load.

    >>> rejections = Rejections(periods=2)
    >>> rejections.add("r1", ((), 2)); rejections.load_changed(); rejections.shapes
    {}
    >>> rejections.add("r1", ((), 2)); rejections.load_changed(); rejections.shapes
    {'r1': {((), 2)}}
    """

    def __init__(self, periods: int) -> None:
        self._periods = periods
        self._now = 0
        self._shapes: dict[str, set[Shape]] = {}
        self._until: dict[str, int] = {}
        self._times: dict[str, int] = {}
        self._most: dict[str, int] = {}

    @property
    def shapes(self) -> Mapping[str, set[Shape]]:
        """Those that were tried in vain, by region."""
        return self._shapes

    def bounded(self, can: Actuation, most: int) -> Actuation:
        """Return what can be changed, without replicas that are known to carry no more than fewer did.

        Args:
            can: what can be changed.
            most: replicas of a region of which nobody has said how many it may have.
        """
        bounds = dict(can.bounds)
        for name, known in self._most.items():
            fewest, most_wanted = can.bounds_of(name, most)
            bounds[name] = fewest, max(fewest, min(most_wanted, known))
        return replace(can, bounds=bounds) if self._most else can

    def tick(self) -> None:
        """Record that a period has passed."""
        self._now += 1

    def add(self, region: str, shape: Shape) -> None:
        """Note a shape that didn't help, or couldn't be had."""
        times = self._times[region] = self._times.get(region, 0) + 1
        lasts = self._periods << min(times - 2, LONGEST) if times > 1 else 0
        self._until[region] = self._now + lasts
        self._shapes.setdefault(region, set()).add(shape)

    def enough(self, region: str, replicas: int) -> None:
        """Note replicas that carry as much as more of them: there are no more until the load changes."""
        self._most[region] = replicas

    def kept(self, region: str) -> None:
        """Note that a change of a region was worth it."""
        self._times.pop(region, None)

    def load_changed(self) -> None:
        """Forget what has been rejected for long enough."""
        self._most.clear()
        for region in [name for name in self._shapes if self._now >= self._until[name]]:
            del self._shapes[region]


class Reversals:
    """How long less must suffice before a region shrinks: twice as long each time that it has grown again soon.

    So a load that comes and goes ends with what its peaks need, if its lulls are short.

    Args:
        periods: at first.

    >>> reversals = Reversals(periods=2)
    >>> reversals.shrank(["r1"]); reversals.tick(); reversals.grew(["r1"]); reversals.wait(["r1", "r2"])
    4
    """

    def __init__(self, periods: int) -> None:
        self._periods = periods
        self._now = 0
        self._shrank: dict[str, int] = {}  # when
        self._times: dict[str, int] = {}

    def tick(self) -> None:
        """Record that a period has passed."""
        self._now += 1

    def wait(self, regions: Collection[str]) -> int:
        """Return the periods in a row in which less must suffice for regions."""
        return self._periods << max((self._times.get(region, 0) for region in regions), default=0)

    def shrank(self, regions: Collection[str]) -> None:
        """Note that regions scale in."""
        self._shrank.update(dict.fromkeys(regions, self._now))

    def grew(self, regions: Collection[str]) -> None:
        """Note that regions scale out."""
        for region in regions:
            at = self._shrank.pop(region, None)
            if at is not None:
                soon = self._now - at <= SOON * self.wait([region])
                self._times[region] = min(LONGEST_WAIT, self._times.get(region, 0) + 1) if soon else 0
