"""What JobConfig(replicas=...) says of an operator, checked: bounds, or a schedule of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rayelastic.errors import ConfigError
from rayelastic.plan.wishes.bounds import Bounds, checked_pair
from rayelastic.plan.wishes.schedule import Schedule

__all__ = ["Wish", "bounds_at", "checked_wishes", "span_of"]

Wish = Bounds | Schedule  # of the replicas of a region


def checked_wishes(replicas: object) -> dict[str, Wish]:
    """Return {operator: wish} of what JobConfig(replicas=...) says.

    Args:
        replicas: {operator: number, (fewest, most), or Schedule}.

    Raises:
        ConfigError: it says nothing that there can be; names the operator.

    >>> checked_wishes({"ask": 2, "count": (1, 8)})
    {'ask': (2, 2), 'count': (1, 8)}
    """
    if not isinstance(replicas, Mapping):
        raise ConfigError(f"JobConfig(replicas={replicas!r})", hint="Give {operator: (fewest, most)}")
    found: dict[str, Wish] = {}
    for operator, value in replicas.items():
        said, named = f"JobConfig(replicas={{{operator!r}: {value!r}}})", isinstance(operator, str)
        if not named:
            raise ConfigError(said, hint="Give {operator: (fewest, most)}, an operator by its name")
        found[operator] = value if isinstance(value, Schedule) else checked_pair(value, said, operator)
    return found


def span_of(wish: Wish) -> Bounds:
    """Return the fewest and the most replicas that a wish ever has."""
    return wish.span if isinstance(wish, Schedule) else wish


def bounds_at(wish: Wish, now: datetime) -> Bounds:
    """Return the fewest and the most replicas of a wish at a time, which has its zone."""
    return wish.at(now) if isinstance(wish, Schedule) else wish
