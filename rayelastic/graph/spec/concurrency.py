"""How many calls of an operator's function may be in flight, and how slow and failing calls are handled.

Knows no threads, event loops or native code.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rayelastic.errors import ErrorCode
from rayelastic.graph.records.shown import check_flag, counted, invalid

MOST_CALLS = 100_000
MOST_TRIES = 100


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Limits of concurrent calls; made by ``concurrent``.

    Args:
        capacity: The most calls in flight.
        ordered: Whether results are in the order of the tuples.
        timeout: Seconds that a call may take; None: unlimited.
        retry: How often a failed call is repeated.
        max_batch: The number of tuples in a call; 0: one, not in a list.
        max_wait: Seconds that a tuple waits for its batch to fill.
    """

    capacity: int = 100
    ordered: bool = True
    timeout: float | None = None
    retry: int = 0
    max_batch: int = 0
    max_wait: float = 0.01

    @property
    def room(self) -> int:
        """The most tuples in flight."""
        return self.capacity * max(self.max_batch, 1)

    @property
    def shown(self) -> str:
        """Describe the limits for `explain()`.

        >>> Concurrency(capacity=32, ordered=False, max_batch=8).shown
        'up to 32 calls of up to 8 tuples at the same time, out of order'
        """
        of = f" of up to {counted(self.max_batch, 'tuple')}" if self.max_batch else ""
        return (
            f"up to {counted(self.capacity, 'call')}{of} at the same time, {'in' if self.ordered else 'out of'} order"
        )


def concurrent(
    capacity: int = 100,
    *,
    ordered: bool = True,
    timeout: float | None = None,
    retry: int = 0,
    max_batch: int = 0,
    max_wait: float = 0.01,
) -> Concurrency:
    """Make calls of a function concurrently: for `map`, `filter` and `flat_map`.

    An `async def` function runs on an event loop that all such operators of a PE share, a plain one on
    up to `capacity` threads. While `capacity` tuples are in flight, or have results that wait for their turn, the
    operator accepts no more: that is its back-pressure. Watermarks keep their place among the tuples. A checkpoint
    waits for the calls in flight.

    Args:
        capacity: The most calls in flight, 1 to 100,000.
        ordered: True: results are in the order of the tuples; False: in the order of completion, which is sooner.
        timeout: Seconds that one attempt may take before it raises TimeoutError. A plain function can't be stopped: its
            thread is busy until it returns. None: unlimited.
        retry: How often a failed call is repeated, after 0.1, 0.2, 0.4, ... seconds, at most 10 s, less a random part.
            `on_error` handles the last exception.
        max_batch: If it isn't 0, the function receives a list of 1 to max_batch tuples, as model servers do. It returns
            a list of as many results (for flat_map: of lists of results).
        max_wait: Seconds that the first tuple of a batch waits for it to fill.

    Raises:
        GraphError: A number is out of its range.

    Source: AsyncDataStream of Apache Flink.

    >>> concurrent(capacity=32, timeout=5).shown
    'up to 32 calls at the same time, in order'
    """
    _check_count("capacity", capacity, 1, MOST_CALLS)
    _check_count("retry", retry, 0, MOST_TRIES)
    _check_count("max_batch", max_batch, 0, MOST_CALLS)
    check_flag("ordered", ordered)
    if timeout is not None:
        _check_seconds("timeout", timeout)
    _check_seconds("max_wait", max_wait)
    return Concurrency(capacity, ordered, timeout, retry, max_batch, max_wait)


def concurrency_of(function: Callable[..., Any], choice: object) -> Concurrency | None:
    """Return how a function is called; None: one call after the other.

    Raises:
        GraphError: The choice isn't a Concurrency.
    """
    if choice is None:
        return Concurrency() if is_async(function) else None
    if not isinstance(choice, Concurrency):
        raise invalid("concurrent", choice, "Pass rel.concurrent(capacity=...)", ErrorCode.WRONG_TYPE)
    return choice


def is_async(function: object) -> bool:
    """Return whether a function, method, partial, or callable object is `async def`.

    >>> async def f(): ...
    >>> is_async(functools.partial(f)), is_async(print)
    (True, False)
    """
    while isinstance(function, functools.partial):
        function = function.func
    method = function if inspect.isroutine(function) else type(function).__call__ if callable(function) else None
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)


def _check_count(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise invalid(name, value, f"Pass a whole number from {least} to {most:,}")


def _check_seconds(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise invalid(name, value, "Pass seconds, more than 0")
