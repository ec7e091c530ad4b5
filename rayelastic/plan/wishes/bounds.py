"""How many replicas users want at least and at most: what JobConfig(replicas=...) says, each checked."""

from __future__ import annotations

from typing import Any

from rayelastic.errors import ConfigError
from rayelastic.plan.hash_ring import PARTITIONS

__all__ = ["Bounds", "checked_pair"]

Bounds = tuple[int, int]  # the fewest and the most replicas


def checked_pair(value: Any, said: str, operator: str | None) -> Bounds:
    """Return the bounds that a number or a pair says.

    Args:
        value: number, or (fewest, most).
        said: the setting, in words.
        operator: that it is about.

    Raises:
        ConfigError: it says nothing that there can be.

    >>> checked_pair(2, "replicas", None), checked_pair((1, 8), "replicas", None)
    ((2, 2), (1, 8))
    """
    pair = (value, value) if isinstance(value, int) else value
    whole = isinstance(pair, tuple) and len(pair) == 2 and all(type(number) is int for number in pair)
    if isinstance(value, bool) or not whole or not 1 <= pair[0] <= pair[1]:
        raise ConfigError(
            said, operator=operator, hint="Give the fewest and the most, such as (1, 8), or one number for both"
        )
    if pair[1] > PARTITIONS:
        raise ConfigError(
            f"JobConfig(replicas=...): there are {PARTITIONS} partitions of keys, and it may have {pair[1]} replicas",
            operator=operator,
            hint=f"Give {PARTITIONS} or less",
        )
    found: Bounds = pair
    return found
