"""Faults that can be planted, so that one sees whether random topologies find them: `./dev topologies --plant NAME`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["PLANTS", "plant"]


def _nulls() -> None:
    """B2: a null of the latest tuple is left out of `reduce` and `fold`."""
    from rayelastic.graph.operators.aggregates import last
    from rayelastic.graph.operators.gathering import folds

    def without_nulls(field: str, *, nulls: bool = False) -> Any:
        return last(field)

    folds.last = without_nulls  # type: ignore[attr-defined]


def _keys() -> None:
    """B3: the parameters of a key's type don't count."""
    from rayelastic.graph.operators.joins import equality

    equality.are_comparable = lambda one, other: one.type is other.type


def _corrected() -> None:
    """B4: `corrected` means late. Windows are native, so it is the interpreter that is wrong."""
    from tests.random_topologies.naive_windows import Sessions, Windows

    Windows.was_given = lambda self, key, span: True  # type: ignore[method-assign]
    Sessions.was_given = lambda self, session: session.is_given or session.is_late  # type: ignore[method-assign]


PLANTS: dict[str, Callable[[], None]] = {"B2": _nulls, "B3": _keys, "B4": _corrected}


def plant(name: str) -> None:
    """Plant a fault in this process; empty: none."""
    if name:
        PLANTS[name]()
