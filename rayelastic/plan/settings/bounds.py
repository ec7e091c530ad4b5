"""The fewest and the most replicas of a region, checked."""

from __future__ import annotations

from typing import Any

from rayelastic.errors import ConfigError
from rayelastic.plan.hash_ring import PARTITIONS

Bounds = tuple[int, int]  # the fewest and the most replicas


def checked_pair(value: Any, shown: str, operator: str | None) -> Bounds:
    """Return a number or a pair as bounds.

    Args:
        value: Number, or (fewest, most).
        shown: The setting with its value, such as 'JobConfig(replicas={...})'.
        operator: The operator that the setting is about.

    Raises:
        ConfigError: they are no bounds.

    >>> checked_pair(2, "replicas", None), checked_pair((1, 8), "replicas", None)
    ((2, 2), (1, 8))
    """
    pair = (value, value) if isinstance(value, int) else value
    whole = isinstance(pair, tuple) and len(pair) == 2 and all(type(number) is int for number in pair)
    if isinstance(value, bool) or not whole or not 1 <= pair[0] <= pair[1]:
        raise ConfigError(
            shown, operator=operator, hint="Give the fewest and the most, such as (1, 8), or one number for both"
        )
    if pair[1] > PARTITIONS:
        raise ConfigError(
            f"JobConfig(replicas=...): {pair[1]} replicas are more than the {PARTITIONS} partitions of keys",
            operator=operator,
            hint=f"Give {PARTITIONS} or less",
        )
    bounds: Bounds = pair
    return bounds
