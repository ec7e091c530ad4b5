"""How messages show a value that a user passed."""

from __future__ import annotations

import reprlib

__all__ = ["shown"]

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def shown(value: object) -> str:
    """Write a value in one line of reasonable length.

    >>> shown([1] * 1000)
    '[1, 1, 1, 1, 1, 1, ...]'
    """
    return " ".join(_SHORT.repr(value).split())
