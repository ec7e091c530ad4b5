"""JobConfig(replicas=...): bounds of replicas that users set by operator, or a schedule of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rayelastic.errors import ConfigError
from rayelastic.plan.settings.bounds import Bounds, checked_pair
from rayelastic.plan.settings.schedule import Schedule

ReplicaBounds = Bounds | Schedule  # of the replicas of a region


def checked_bounds(replicas: object) -> dict[str, ReplicaBounds]:
    """Return {operator: bounds} of JobConfig(replicas=...).

    Args:
        replicas: {operator: number, (fewest, most), or Schedule}.

    Raises:
        ConfigError: a value is no bounds; names the operator.

    >>> checked_bounds({"ask": 2, "count": (1, 8)})
    {'ask': (2, 2), 'count': (1, 8)}
    """
    if not isinstance(replicas, Mapping):
        raise ConfigError(f"JobConfig(replicas={replicas!r})", hint="Give {operator: (fewest, most)}")
    checked: dict[str, ReplicaBounds] = {}
    for operator, value in replicas.items():
        shown = f"JobConfig(replicas={{{operator!r}: {value!r}}})"
        if not isinstance(operator, str):
            raise ConfigError(shown, hint="Give {operator: (fewest, most)}, an operator by its name")
        checked[operator] = value if isinstance(value, Schedule) else checked_pair(value, shown, operator)
    return checked


def span_of(bounds: ReplicaBounds) -> Bounds:
    """Return the fewest and the most replicas of bounds; of a schedule those of the whole day."""
    return bounds.span if isinstance(bounds, Schedule) else bounds


def bounds_at(bounds: ReplicaBounds, now: datetime) -> Bounds:
    """Return the fewest and the most replicas at a time, which has its zone."""
    return bounds.at(now) if isinstance(bounds, Schedule) else bounds
