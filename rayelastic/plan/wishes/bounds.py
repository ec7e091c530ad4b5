"""How many replicas users want at least and at most: what JobConfig(replicas=...) says, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rayelastic.errors import ConfigError
from rayelastic.plan.hash_ring import PARTITIONS

__all__ = ["Bounds", "checked_bounds"]

Bounds = tuple[int, int]  # the fewest and the most replicas


def checked_bounds(replicas: object) -> dict[str, Bounds]:
    """Return {operator: bounds} of what JobConfig(replicas=...) says.

    Args:
        replicas: {operator: number, or (fewest, most)}.

    Raises:
        ConfigError: it says nothing that there can be; names the operator.

    >>> checked_bounds({"ask": 2, "count": (1, 8)})
    {'ask': (2, 2), 'count': (1, 8)}
    """
    if not isinstance(replicas, Mapping):
        raise ConfigError(f"JobConfig(replicas={replicas!r})", way_out="Give {operator: (fewest, most)}")
    return {operator: _bounds(operator, value) for operator, value in replicas.items()}


def _bounds(operator: Any, value: Any) -> Bounds:
    pair = (value, value) if isinstance(value, int) else value
    whole = isinstance(pair, tuple) and len(pair) == 2 and all(type(number) is int for number in pair)
    if not isinstance(operator, str) or isinstance(value, bool) or not whole or not 1 <= pair[0] <= pair[1]:
        raise ConfigError(
            f"JobConfig(replicas={{{operator!r}: {value!r}}})",
            operator=operator if isinstance(operator, str) else None,
            way_out="Give the fewest and the most, such as (1, 8), or one number for both",
        )
    if pair[1] > PARTITIONS:
        raise ConfigError(
            f"JobConfig(replicas=...): there are {PARTITIONS} partitions of keys, and it may have {pair[1]} replicas",
            operator=operator,
            way_out=f"Give {PARTITIONS} or less",
        )
    found: Bounds = pair
    return found
