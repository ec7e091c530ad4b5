"""How messages show a value that a user passed, and a number of things."""

from __future__ import annotations

import reprlib

__all__ = ["counted", "shown"]

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def counted(count: int, noun: str) -> str:
    """Write a number of things: '1 region', '2 regions'.

    >>> counted(1, "thread"), counted(2000, "tuple")
    ('1 thread', '2,000 tuples')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shown(value: object) -> str:
    """Write a value in one line of reasonable length.

    >>> shown([1] * 1000)
    '[1, 1, 1, 1, 1, 1, ...]'
    """
    return " ".join(_SHORT.repr(value).split())
