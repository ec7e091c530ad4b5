"""Invariants that are checked at run time, as RE_CHECK and RE_ASSERT check those of the native core (assert.hpp).

A broken invariant is a defect of this program. Bad input is never checked this way: it raises an error of its own.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rayelastic.errors import RayelasticError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["InvariantError", "invariant"]

EXPENSIVE = os.environ.get("RAYELASTIC_ASSERTIONS") == "1"  # as the native extension reads it


class InvariantError(RayelasticError):
    """An invariant of rayelastic doesn't hold: what was begun is undone or given up, as after any error."""


def invariant(holds: bool | Callable[[], bool], what: str, *values: object) -> None:
    """Raise InvariantError unless something holds.

    Args:
        holds: Whether it does. A function is an expensive check, and is called with RAYELASTIC_ASSERTIONS=1 only.
        what: The invariant, in a few words.
        values: The values that it is about.

    >>> invariant(1 < 2, "numbers are ordered")
    >>> invariant(3 < 2, "numbers are ordered", 3, 2)
    Traceback (most recent call last):
    rayelastic.errors.invariants.InvariantError: invariant broken: numbers are ordered (3, 2). Please report it [error]
    """
    if not (holds if isinstance(holds, bool) else not EXPENSIVE or holds()):
        shown = f" ({', '.join(map(repr, values))})" if values else ""
        raise InvariantError(f"invariant broken: {what}{shown}", hint="Please report it")
