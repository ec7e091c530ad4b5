"""How messages show a value that a user passed, and a number of things."""

from __future__ import annotations

import reprlib

from rayelastic.errors import ErrorCode, GraphError

MOST_DIGITS = 100  # from here on a count has no decimals

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def counted(count: int, noun: str) -> str:
    """Write a number of things: '1 region', '2 regions'.

    >>> counted(1, "thread"), counted(2000, "tuple")
    ('1 thread', '2,000 tuples')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def short(number: float) -> str:
    """Return a count in at most five characters.

    >>> short(950), short(12_300), short(4_560_000), short(0.256)
    ('950', '12.3k', '4.56M', '0.26')
    """
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.0f}" if number >= MOST_DIGITS else f"{round(number, 2):g}"


def shown(value: object) -> str:
    """Write a value in one line of reasonable length.

    >>> shown([1] * 1000)
    '[1, 1, 1, 1, 1, 1, ...]'
    """
    return " ".join(_SHORT.repr(value).split())


def invalid(what: str, value: object, hint: str, code: ErrorCode = ErrorCode.OUT_OF_RANGE) -> GraphError:
    """Return the error of an argument with an invalid value."""
    return GraphError(f"{what}={shown(value)} is invalid", hint=hint, code=code)


def conflict(problem: str, hint: str) -> GraphError:
    """Return the error of arguments that contradict each other."""
    return GraphError(problem, hint=hint, code=ErrorCode.CONFLICTING_ARGUMENTS)


def check_flag(what: str, value: object) -> None:
    """Reject an argument that is neither True nor False."""
    if not isinstance(value, bool):
        raise invalid(what, value, "Pass True or False", ErrorCode.UNKNOWN_CHOICE)
