"""Finds the outside names that a function assigns, in its byte code. Knows no Numba."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator

_WRITES = ("STORE_GLOBAL", "DELETE_GLOBAL")
_CELL_WRITES = ("STORE_DEREF", "DELETE_DEREF")
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def cells_written(code: types.CodeType, inside: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield names that a function, or an inner one, assigns though they belong to another function or to the module.

    Args:
        code: The function's code.
        inside: Variables that count as its own, such as those of the function around a comprehension.

    >>> def outer():
    ...     n = 0
    ...     def inner():
    ...         nonlocal n
    ...         n += 1
    ...     return inner
    >>> list(cells_written(outer.__code__)), list(cells_written(outer().__code__))
    (['n'], ['n'])
    """
    for one in dis.get_instructions(code):
        is_free = one.opname in _CELL_WRITES and one.argval in code.co_freevars
        if one.opname in _WRITES or (is_free and one.argval not in inside):
            yield one.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            own = frozenset(code.co_cellvars) | (inside if code.co_name in _COMPREHENSIONS else frozenset())
            yield from cells_written(constant, own if constant.co_name in _COMPREHENSIONS else frozenset())
