"""Which of Python's own classes a class stands for: a test's fake of datetime, such as freezegun's, is datetime."""

from __future__ import annotations

__all__ = ["own_class"]

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: written in Python


def own_class(cls: type) -> type:
    """Return the class of the module datetime that a class passes itself off as; the class itself if it doesn't.

    Such a fake is a subclass of the original, and says that the original is one of its own.

    >>> import datetime as dt
    >>> class Day(dt.date): pass
    >>> own_class(dt.datetime) is dt.datetime, own_class(Day) is Day
    (True, True)
    """
    for base in cls.__mro__[1:]:
        if base.__module__ == "datetime" and not base.__flags__ & _HEAP_TYPE and issubclass(base, cls):
            return base
    return cls
