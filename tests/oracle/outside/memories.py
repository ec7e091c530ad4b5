"""Modules whose function remembers or reads cells, default arguments, generators, globals and what they hold.

`RETURN value` is `return`, behind whose value another may come. Slots as in the package's `filled`. A block begins with
the kind of the operator and the type of its output.
"""

from __future__ import annotations

__all__ = ["CELLS_AND_GLOBALS"]

CELLS_AND_GLOBALS = """
map i
def make():
    n = {k}
    def f(t):
        nonlocal n
        n += {i}
        RETURN n
    return f
f = make()
--- map i
def make():
    n = {k}
    def f(t):
        nonlocal n
        if {p}:
            n = n + {i}
        RETURN n
    return f
f = make()
--- map p
def make():
    last = ""
    def f(t):
        nonlocal last
        new, last = last != {s}, {s}
        RETURN new
    return f
f = make()
--- filter p
def make():
    last = ""
    def f(t):
        nonlocal last
        new = last != {s}
        last = {s}
        return new
    return f
f = make()
--- map x
def make():
    total = 0.0
    def f(t):
        nonlocal total
        total += {x}
        RETURN total
    return f
f = make()
--- map i
def make():
    n = 0
    def add(x):
        nonlocal n
        n += x
        return n
    def f(t):
        RETURN add({i})
    return f
f = make()
--- map i
def make():
    n = 0
    def add(x):
        nonlocal n
        n += x
        return n
    return lambda t: add({i})
f = make()
--- map i
def f(t):
    n = {i}
    def add():
        nonlocal n
        n += {i}
    add()
    RETURN n
--- map i
def f(t):
    n = {i}
    def more():
        return n + {k}
    n = n + 1
    RETURN more()
--- map i
def make():
    n = {k}
    def change():
        nonlocal n
        n += 3
    def f(t):
        RETURN n + {i}
    return f, change
f, change = make()
--- map i
fs = [lambda t: {i} + k for k in range(3)]
f = fs[{k} % 3]
--- map i
fs = []
for k in range(3):
    def f(t):
        RETURN k * {i}
    fs.append(f)
f = fs[0]
--- map i
fs = [lambda t, k=k: {i} + k for k in range(3)]
f = fs[{k} % 3]
--- map i
def f(t, kept=[]):
    kept.append({i})
    RETURN len(kept)
--- map i
def f(t, kept=[1, 2]):
    kept.append({i})
    RETURN sum(kept)
--- map i
def f(t, kept={1: 2}):
    kept[{i}] = 1
    RETURN len(kept)
--- map i
def f(t, *, kept={1: 2}):
    kept[{i}] = kept.get({i}, 0) + 1
    RETURN kept[{i}]
--- map i
def numbers():
    n = 0
    while True:
        n += 1
        yield n
it = numbers()
def f(t):
    RETURN next(it) + {i}
--- map i
def numbers():
    total = 0
    while True:
        total += (yield total) or 0
it = numbers()
next(it)
def f(t):
    RETURN it.send({i})
--- flat_map i
def make():
    n = 0
    def f(t):
        nonlocal n
        for w in {s}.split():
            n += 1
            yield n
    return f
f = make()
--- flat_map s
seen = set()
def f(t):
    for w in {s}.split():
        if w not in seen:
            seen.add(w)
            yield w
--- map i
N = {k}
def f(t):
    global N
    N += {i}
    RETURN N
--- map i
N = {k}
def add(x):
    global N
    N += x
def f(t):
    add({i})
    RETURN N
--- map i
LIMIT = {k}
def change():
    global LIMIT
    LIMIT += 5
def f(t):
    RETURN min({i}, LIMIT)
--- map i
TABLE = {1: 10, 2: 20}
def change():
    TABLE[1] = 11
    TABLE[0] = 5
def f(t):
    RETURN TABLE.get({i}, 0)
--- map i
LEVELS = [1, 2, 3]
def change():
    LEVELS.append(9)
def f(t):
    RETURN len(LEVELS) + {i}
--- map i
def helper(x):
    return x + 1
def change():
    global helper
    helper = lambda x: x + 100
def f(t):
    RETURN helper({i})
--- map i
SEEN = {0}
def f(t):
    SEEN.add({i})
    RETURN len(SEEN)
--- filter p
SEEN = {0}
def f(t):
    known = {i} in SEEN
    s = SEEN
    s.add({i})
    return not known
--- map i
SEEN = {0}
def f(t):
    s = SEEN
    s |= {{i}}
    RETURN len(s)
--- map i
TABLE = {1: 2}
def put(d, key):
    d[key] = d.get(key, 0) + 1
    return d[key]
def f(t):
    RETURN put(TABLE, {i})
--- map i
KEPT = [0]
def f(t):
    KEPT[0] += {i}
    RETURN KEPT[0]
--- map i
KEPT = [3, 1]
def f(t):
    KEPT.sort()
    KEPT[0] = {i}
    RETURN KEPT[1]
--- map i
KEPT = [0]
def f(t):
    heapq.heappush(KEPT, {i})
    RETURN heapq.heappop(KEPT)
--- map i
KEPT = [0]
def f(t):
    bisect.insort(KEPT, {i})
    RETURN len(KEPT)
"""
