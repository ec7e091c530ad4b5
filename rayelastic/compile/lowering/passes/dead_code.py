"""The unused code that Numba removes from a function: never code that may raise, which counts as a use.

When Numba inlines a comprehension, it removes code without effects, and includes `a // b`, `words[3]`, `words[3] = 1`
and `int(text)`. The change holds only while user functions are compiled, not for other code of Numba in this process.
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
    """Keep code that may raise while compiling, under Numba's compiler lock."""
    usual, of_block = ir_utils.has_no_side_effect, ir_utils.remove_dead_block
    ir_utils.has_no_side_effect = functools.partial(_is_of_no_use, usual)
    ir_utils.remove_dead_block = functools.partial(_with_stores, of_block)
    try:
        yield
    finally:
        ir_utils.has_no_side_effect, ir_utils.remove_dead_block = usual, of_block


def _with_stores(usual: Callable[..., bool], block: Any, lives: set[str], *rest: Any) -> bool:
    """Clear a block, but keep `words[9] = ..` of a list that is never read."""
    lives |= {store.target.name for store in block.body if isinstance(store, ir.SetItem)}
    return usual(block, lives, *rest)


def _is_of_no_use(usual: Callable[..., bool], value: Any, lives: Any, calls: dict[str, list[Any]]) -> bool:
    """Return whether an unused value may be removed; `calls` has the functions that each variable calls."""
    if isinstance(value, ir.Expr):
        if value.op in _MAY_RAISE:
            return False
        if value.op == "call" and calls.get(value.func.name) in _CALLS_THAT_MAY_RAISE:
            return False
    return usual(value, lives, calls)
