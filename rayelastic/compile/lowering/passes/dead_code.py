"""What Numba leaves out of a function because nothing uses it: never what may raise, for then it has a use.

Where Numba inlines a comprehension it clears away what has no effect, and counts `a // b`, `words[3]`, `words[3] = 1`
and `int(text)` among it. Only while user functions are compiled; other code of Numba's in this process stays as it is.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core import ir, ir_utils

_MAY_RAISE = {"binop", "inplace_binop", "unary", "getitem", "static_getitem", "typed_getitem", "exhaust_iter"}
_CALLS_THAT_MAY_RAISE: tuple[list[Any], ...] = ([int], [max], ["ceil", math], ["log", np])


@contextmanager
def raising_kept() -> Iterator[None]:
    """While compiling, under Numba's compiler lock: what may raise is kept."""
    usual, of_block = ir_utils.has_no_side_effect, ir_utils.remove_dead_block
    ir_utils.has_no_side_effect = functools.partial(_is_of_no_use, usual)
    ir_utils.remove_dead_block = functools.partial(_with_stores, of_block)
    try:
        yield
    finally:
        ir_utils.has_no_side_effect, ir_utils.remove_dead_block = usual, of_block


def _with_stores(usual: Callable[..., bool], block: Any, lives: set[str], *rest: Any) -> bool:
    """Clear a block, but for `words[9] = ..` of a list that nothing reads."""
    lives |= {one.target.name for one in block.body if isinstance(one, ir.SetItem)}
    return usual(block, lives, *rest)


def _is_of_no_use(usual: Callable[..., bool], value: Any, lives: Any, calls: dict[str, list[Any]]) -> bool:
    """Return whether an unused value may be left out; `calls` says what functions are called by which variables."""
    if isinstance(value, ir.Expr):
        if value.op in _MAY_RAISE:
            return False
        if value.op == "call" and calls.get(value.func.name) in _CALLS_THAT_MAY_RAISE:
            return False
    return usual(value, lives, calls)
