"""What functions are known to change outside themselves, in all the ways in which people write it."""

from __future__ import annotations

import bisect
import collections
import contextvars
import decimal
import functools
import heapq
import itertools
import os
import random
import threading
from typing import Any

import numpy as np
import pytest

from rayelastic.compile.effects.effects import remembered

pytestmark = pytest.mark.edges

SEEN: set[int] = set()
COUNTS: collections.Counter[str] = collections.Counter()
TABLE: dict[int, list[int]] = {}
HEAP: list[int] = []
LIMIT = 3
IDS = itertools.count()
RNG = random.Random(1)
GENERATOR = np.random.default_rng(1)
LOCAL = threading.local()
VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("VARIABLE")
N = 0


class Counter:
    total = 0

    def __init__(self) -> None:
        self.n, self.seen, self.factor = 0, set(), 3  # type: ignore[var-annotated]

    def __call__(self, t: Any) -> Any:
        self.n += 1
        return self.n

    def deep(self, t: Any) -> Any:
        return self._added(t)

    def _added(self, t: Any) -> Any:
        self.seen.add(t.i)
        return len(self.seen)

    def pure(self, t: Any) -> Any:
        made = [t.i * self.factor]
        made.append(1)
        return sum(made)


OBJECT = Counter()


def written(d: Any, t: Any) -> None:
    d[t.i] = 1


def by_global(t):
    global N
    N += 1


def by_default(t, kept=[]):  # noqa: B006
    kept.append(t.i)


def by_named_default(t, *, kept={}):  # noqa: B006
    kept[t.i] = 1


def by_another_name(t):
    s = SEEN
    s.add(t.i)


def by_what_is_inside(t):
    items = TABLE.setdefault(t.i, [])
    items.append(1)


def by_an_operator(t):
    s = SEEN
    s |= {t.i}


def by_a_helper(t):
    written(TABLE, t)


def by_a_class(t):
    Counter.total += 1


def by_type(t, self=OBJECT):
    type(self).total += 1


def by_itself(t):
    by_itself.calls += 1  # type: ignore[attr-defined]


def by_next(t):
    return next(IDS)


def by_a_loop(t):
    for one in IDS:
        return one
    return None


def by_a_heap(t):
    heapq.heappush(HEAP, t.i)


def by_bisect(t):
    bisect.insort(HEAP, t.i)


def by_context(t):
    decimal.getcontext().prec = 5


def by_environment(t):
    os.environ["X"] = "1"


def by_module(t):
    globals()["N"] = 1


def by_thread(t):
    LOCAL.n = 1


def by_variable(t):
    VARIABLE.set(1)


async def by_waiting(t):
    SEEN.add(t.i)


def by_yielding(t):
    for word in t.s.split():
        COUNTS[word] += 1
        yield word


def by_an_inner_function(t):
    def add():
        SEEN.add(t.i)

    add()


def by_a_comprehension(t):
    return [SEEN.add(x) for x in (1, 2)]  # type: ignore[func-returns-value]


def by_the_class_of_a_container(t):
    set.add(SEEN, t.i)


def closed():
    n = 0

    def count(t):
        nonlocal n
        n += 1
        return n

    return count


def nested():
    n = 0

    def add(x):
        nonlocal n
        n += x

    return lambda t: add(t.i)


CHANGING = [
    (Counter(), "self.n"), (Counter().deep, "self.seen"), (lambda t: OBJECT.deep(t), "OBJECT.seen"),
    (lambda t: OBJECT.seen.add(t.i), "OBJECT.seen"), (by_global, "N"), (by_default, "kept"), (by_named_default, "kept"),
    (by_another_name, "SEEN"), (by_what_is_inside, "TABLE"), (by_an_operator, "SEEN"), (by_a_helper, "TABLE"),
    (by_a_class, "Counter.total"), (by_type, "type(self).total"), (by_itself, "by_itself.calls"), (by_next, "IDS"),
    (by_a_loop, "IDS"), (by_a_heap, "HEAP"), (by_bisect, "HEAP"), (by_context, "decimal.getcontext().prec"),
    (by_environment, "os.environ"), (by_module, "globals()"), (by_variable, "VARIABLE"),
    (by_waiting, "SEEN"), (by_yielding, "COUNTS"), (by_an_inner_function, "SEEN"), (by_a_comprehension, "SEEN"),
    (by_the_class_of_a_container, "SEEN"), (closed(), "n"), (nested(), "n"), (lambda t: RNG.random(), "RNG"),
    (lambda t: GENERATOR.normal(), "GENERATOR"), (functools.partial(written, TABLE), "d"),
    (lambda t: SEEN.add(t.i) or True, "SEEN"),  # type: ignore[func-returns-value]
]  # fmt: skip


@pytest.mark.parametrize(("function", "name"), CHANGING, ids=[f"{i}-{name}" for i, (_, name) in enumerate(CHANGING)])
def test_a_change_outside_is_known_by_name(function: Any, name: str) -> None:
    """A1, A8."""
    assert remembered(function) == (name,)


def reads(t):
    return t.i in SEEN and LIMIT > N


def own(t):
    d: dict[str, int] = collections.defaultdict(int)
    for word in t.s.split():
        d[word] += 1
    out = list(d)
    out.sort()
    heapq.heapify(out)
    return tuple(out)


def own_cell(t):
    n = 0

    def add():
        nonlocal n
        n += 1

    add()
    return n


def renamed(t):
    n = LIMIT
    n += 1
    return n


def of_its_own(t):
    d: dict[int, int] = {}
    written(d, t)
    return d


@functools.lru_cache
def cached(x):
    return x


def draws(t):
    return random.random() < 0.1


PURE = [
    reads,
    own,
    own_cell,
    renamed,
    of_its_own,
    draws,
    by_thread,
    Counter().pure,
    lambda t: cached(t.i),
    lambda t: print(t),  # noqa: T201
    len,
]


@pytest.mark.parametrize("function", PURE, ids=range(len(PURE)))
def test_what_is_its_own_is_no_change(function: Any) -> None:
    assert remembered(function) == ()
