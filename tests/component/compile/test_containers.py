"""Counting, sorting, sets, and functions of iterables: compiled, they give what CPython gives."""

# ruff: noqa: B905, C416, C417, C419, RUF015
# functions as users write them

from __future__ import annotations

import itertools
from operator import itemgetter
from typing import Any, NamedTuple

import pytest
from harness import FLAT_MAP, MAP, request, same_as_python

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Row(NamedTuple):
    s: str
    u: str
    i: int
    x: float


STOP = frozenset({"a", "the", "ß"})
STOPS = {"a", "zz"}
TEXTS = [
    "", "a", "b b", "a b a c a", "the quick the", "a=1;b=2", "x\x00y x\x00y", "ß İ ς ǅ ß", "😀 e\u0301 😀 é",
    "\x1c\x1f\x85\u2028", "cab bac abc", "a text longer than twelve bytes a text", "1 2 3", "İ i̇ I",
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 7, 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.5, float("inf"), 5e-324, -2.5]
ROWS = [
    (text, TEXTS[-at % len(TEXTS)], NUMBERS[at % len(NUMBERS)], FLOATS[at % len(FLOATS)])
    for at, text in enumerate(itertools.chain(TEXTS, TEXTS[::3]))
]


def counted(t):
    d = {}  # type: ignore[var-annotated]
    for w in t.s.split():
        d[w] = d.get(w, 0) + 1
    return ";".join(f"{k}={v}" for k, v in d.items())


def counted_by_default(t):
    d = {}  # type: ignore[var-annotated]
    for c in t.s:
        d.setdefault(c, 0)
        d[c] += 1
    return ",".join(k + str(v) for k, v in sorted(d.items())), len(d)


def counted_by_membership(t):
    d = {}
    for w in t.s.split():
        if w not in d:
            d[w] = 0
        d[w] += 1
    return max(d.values()) if d else -1


def summed(t):
    d = {}  # type: ignore[var-annotated]
    for k in (1, 2, 1):
        d[k] = d.get(k, 0) + t.x
    return d[1], d[2]


def first_seen(t):
    d = {}  # type: ignore[var-annotated]
    for at, w in enumerate(t.s.split()):
        d.setdefault(w, at)
    return sum(d.values())


def most_frequent(t):
    d = {}  # type: ignore[var-annotated]
    for w in t.s.split():
        d[w] = d.get(w, 0) + 1
    if not d:
        return "", "", "", ""
    return (
        max(d, key=d.get),  # type: ignore[arg-type]
        max(d.items(), key=lambda p: p[1])[0],
        sorted(d.items(), key=lambda p: -p[1])[0][0],
        sorted(d.items(), key=lambda p: (-p[1], p[0]))[-1][0],
    )


def shown(t):
    r = ""
    d = {k: len(w) for k, w in enumerate(t.s.split())}
    for k, v in d.items():
        r += str(k) + ":" + str(v) + ";"
    return r


def each(t):
    d = {}  # type: ignore[var-annotated]
    for w in t.s.split():
        d[w] = d.get(w, 0) + 1
    for w in sorted(d):
        yield w, d[w]


def enumerated(t):
    r = 0
    for k, c in enumerate(t.s):
        r += k * (c == "a")
    for k, w in enumerate(t.s.split(), start=2):
        r += k * len(w)
    return r, [k for k, c in enumerate(t.s) if c == "b"][:1] == [0]


def zipped(t):
    same = 0
    for k, (a, b) in enumerate(zip(t.s, t.u)):
        same += k * (a == b)
    words = t.s.split()
    return same, sum(1 for a, b in zip(words, words[1:]) if a == b), ";".join(a + b for a, b in zip(t.s, t.u))


def turned(t):
    r = ""
    for w in reversed(t.s.split()):
        r += w
    return r, "".join(reversed(t.s)), [k for k in reversed(range(3))][0]


def in_order(t):
    words = t.s.split()
    return " ".join(sorted(words)), "".join(sorted(t.s)), " ".join(sorted(words, reverse=True)), sorted([3, t.i, 0])[1]


def in_order_by_key(t):
    k = t.i % 3
    words = t.s.split()
    return (
        ",".join(sorted(words, key=len)),
        ",".join(sorted(words, key=len, reverse=True)),
        ",".join(sorted(words, key=lambda w: (abs(len(w) - k), w[-1]))),
    )


def in_order_by_part(t):
    words = sorted(t.s.split(), key=str.lower)
    return ",".join(words), sorted([(2, "b"), (1, "c"), (t.i % 3, "a")], key=itemgetter(0))[0][1]


def stable(t):
    many = [(k * 7 % 5, k) for k in range(40)]
    return sum(at * k for at, (_, k) in enumerate(sorted(many, key=lambda p: p[0]))), sum(
        at * k for at, (_, k) in enumerate(sorted(many, key=lambda p: p[0], reverse=True))
    )


def zeros(t):
    found = sorted([t.x, 0.0, -0.0, 1.0])
    return str(found[0]) + str(found[1]) + str(found[2])


def sorted_in_place(t):
    a, b = t.s.split(), t.u.split()
    a.sort()
    b.sort(key=lambda w: w[-1], reverse=True)
    return ",".join(a) + "/" + ",".join(b)


def extremes(t):
    words = t.s.split()
    return (
        max(words, key=len, default="-"),
        min(words, default="none"),
        max(t.s, t.u),
        min(t.s, t.u, "m"),
        max(t.s, t.u, key=len),
        max((len(w) for w in words), default=0),
        min([5, -3, t.i % 7], key=abs),
    )


def largest_of_nothing(t):
    return max(len(w) for w in t.s.split())


def conditions(t):
    words = t.s.split()
    return any([c == "a" for c in t.s]), all(words), any(w in t.s for w in STOP), all(w in t.s for w in STOPS)


def marked(t):
    words = ["*" if any(c == "a" for c in w) else w for w in t.s.split()]
    return " ".join(words), sum(sum(len(c) * k for c in w) for k, w in enumerate(t.s.split()))


def first_of(t):
    return next((w for w in t.s.split() if len(w) > 1), "-"), sum(1 for w in STOP if w in t.s)


def mapped(t):
    r = 0
    for n in map(len, t.s.split()):
        if n > 3:
            continue
        r += n
    kept = ""
    for w in filter(lambda w: "a" in w, t.s.split()):
        kept += w
    return r, kept, ",".join(map(lambda w: w.upper(), t.s.split())), sum(map(len, t.u.split()))


def sets(t):
    a, b = set(t.s.split()), set(t.u)
    return len(a), len(b), t.u in a, "a" in b, len({w for w in t.s.split()}), ",".join(sorted(a)), len({1, 2, t.i})


def set_operations(t):
    a, b = set(t.s), set(t.u)
    return len(a | b), len(a & b), len(a - b), a <= b, len(a ^ b), a == b


def first_repeated(t):
    seen = set()
    for w in t.s.split():
        if w in seen:
            return w
        seen.add(w)
    return ""


def words_as_lists(t):
    a = t.s.split()
    a.append("z")
    a.insert(0, t.u)
    a.extend(t.u.split())
    a += ["q"]
    a.reverse()
    last = a.pop()
    b = t.s.split()
    return "|".join(a), last, a.count("a"), "|".join(b[1:]), "|".join(b[::-1]), b == t.u.split(), b.count("a"), bool(b)


def found_at(t):
    return t.s.split().index("a")


def removed(t):
    a = t.s.split()
    a.remove("a")
    return len(a)


def stack(t):
    open_ones = []
    for c in t.s:
        if c == "a":
            open_ones.append(c)
        elif open_ones and c == "b":
            open_ones.pop()
    return len(open_ones)


def distance(t):
    a, b = t.s[:5], t.u[:5]
    previous = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        current = [i]
        for j, cb in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (ca != cb)))
        previous = current
    return previous[-1]


def shadowed(t):
    w = "outer"
    n = sum(len(w) for w in t.s.split())
    return w, n


CASES = [
    counted, counted_by_default, counted_by_membership, summed, first_seen, most_frequent, shown, each, enumerated,
    zipped, turned, in_order, in_order_by_key, in_order_by_part, stable, zeros, sorted_in_place, extremes,
    largest_of_nothing, conditions,
    marked, first_of, mapped, sets, set_operations, first_repeated, words_as_lists, found_at, removed, stack, distance,
    shadowed,
]  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=[f.__name__ for f in CASES])
def test_compiled_equals_python(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row, FLAT_MAP if function is each else MAP)
    for row in ROWS:
        same_as_python(runner, row)


def numbered_twice(t):
    numbered = enumerate(t.s[2:].split(), 1)
    total = 0
    for at, word in numbered:
        total += at * len(word)
    for _ in numbered:  # nothing is left
        total += 1000
    return total


def test_an_iterator_that_has_come_to_its_end_stays_there(compiled: Any) -> None:
    """Whatever is in memory in front of the text: white space here."""
    runner = compiled(numbered_twice, Row)
    assert runner([("  more than twelve bytes", "", 0, 0.0)]).items == [(50,)]


def test_what_is_sorted_with_a_nan_is_refused(compiled: Any) -> None:
    runner = compiled(lambda t: sorted([t.x, 1.0, 0.5])[0], Row)
    assert runner([("", "", 0, 2.0), ("", "", 0, float("nan"))]).failed == 1


def set_in_a_loop(t):
    r = 0
    for k in {t.i, 3, 5}:
        r = r * 3 + k % 3
    return r


def stop_words(t):
    for w in STOP:
        if w in t.s:
            return w
    return ""


def literal_set(t):
    return [k + t.i for k in {9, 5, 33}][0]


def set_as_list(t):
    return list(set(t.s.split()))[0]


def float_in_ints(t):
    a = [0, 0]
    a[0] = t.x
    return a[0]


def int_in_floats(t):
    d = {1: 0.5}
    d[2] = t.i
    return d[2]


def kept_map(t):
    m = map(len, t.s.split())
    return len(list(m))


REFUSED: list[tuple[Any, tuple[str, ...]]] = [
    *((fn, ("write_instead", "sorted(..)")) for fn in (set_in_a_loop, stop_words, literal_set, set_as_list)),
    (float_in_ints, ("two_kinds", "'a' int float")),
    (int_in_floats, ("two_kinds", "'d' float int")),
    (kept_map, ("items_at_once", "map")),
]


@pytest.mark.parametrize(("function", "reason"), REFUSED, ids=[f.__name__ for f, _ in REFUSED])
def test_what_would_differ_is_refused(compiler: Any, function: Any, reason: Any) -> None:
    code = compiler.compile(request(function, Row, output=_any_output(function)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, *reason, "test_containers.py:")


def _any_output(function: Any) -> Any:
    return Schema.of(str if function in (stop_words, set_as_list) else float if "float" in function.__name__ else int)
