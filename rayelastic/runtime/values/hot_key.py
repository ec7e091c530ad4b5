"""The most frequent key of a region, as upstream routers count it in a sample.

Must not know how keys are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

KEPT = 512  # sampled tuples that a share is of: routers halve their counts at twice as many (hot_keys.hpp)
SURE = 3.0  # standard deviations: of even keys, one in a thousand readings has as much
LEAST = 0.1  # the share of the tuples from which a key is reported


@dataclass(frozen=True, slots=True)
class HotKey:
    """The most frequent key of a stream, lately.

    Args:
        key: Its text; empty: no key has a tenth of the tuples.
        share: Its least share of the tuples, 0 to 1; 0 without a key.
        looks: The number of tuples that were sampled since the start.

    >>> print(HotKey("'home'", 0.61, 1000))
    key 'home' has 61%
    """

    key: str
    share: float
    looks: int

    @property
    def sure_share(self) -> float:
        """The share of the tuples that the key has almost surely: the lower end of Wilson's interval for the sample."""
        n = min(self.looks, KEPT)
        if n == 0:
            return 0.0
        spread = math.sqrt(self.share * (1 - self.share) / n + SURE**2 / (4 * n * n))
        return max(0.0, (self.share + SURE**2 / (2 * n) - SURE * spread) / (1 + SURE**2 / n))

    def __str__(self) -> str:
        return f"key {self.key} has {self.share:.0%}"


def hot_keys_of(seen: Iterable[Mapping[str, HotKey]]) -> dict[str, HotKey]:
    """Merge the reports of several routers upstream of a region.

    Args:
        seen: {region: its most frequent key} by each element of a job.

    Returns:
        {region: its most frequent key}, of those where one has a tenth of the tuples.

    >>> hot_keys_of([{"r1": HotKey("7", 0.6, 300)}, {"r1": HotKey("8", 0.5, 100)}])
    {'r1': HotKey(key='7', share=0.45, looks=400)}
    """
    by_region: dict[str, list[HotKey]] = {}
    for keys_by_region in seen:
        for region, key in keys_by_region.items():
            by_region.setdefault(region, []).append(key)
    hottest = {region: merged(found) for region, found in by_region.items()}
    return {region: key for region, key in hottest.items() if key.share >= LEAST}


def merged(found: Sequence[HotKey]) -> HotKey:
    """Return the most frequent key of several streams together; unreported shares aren't counted."""
    looks = sum(one.looks for one in found)
    shares: dict[str, float] = {}
    for one in found:
        shares[one.key] = shares.get(one.key, 0.0) + one.share * one.looks / max(looks, 1)
    key = max(shares, key=lambda name: shares[name])
    return HotKey(key, shares[key], looks)
