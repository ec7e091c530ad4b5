"""Functions and classes that programs use, as text: few, so that the cache of compiled code has most of them."""

from __future__ import annotations

from tests.random_topologies.values import Field, Schema

BASE: Schema = (
    Field("k", "str", nullable=True), Field("g", "int"), Field("j", "int"), Field("x", "int", nullable=True),
    Field("y", "float", nullable=True), Field("s", "str", nullable=True), Field("at", "int"),
)  # fmt: skip
BASE_TEXT = (
    'BASE = {"k": str | None, "g": int, "j": int, "x": int | None, "y": float | None, "s": str | None, "at": int}'
)

FILTERS = {
    "p_group": "t.g != 1",
    "p_value": "t.x is not None and t.x > 2",
    "p_key": 't.k == "a" or t.y is None',
    "p_third": "t.j % 3 != 0",
    "p_text": "t.s is None or len(t.s) < 5",
}
MAPS = {
    "m_group": "t.k, (t.g + 1) % 3, t.j, t.x, t.y, t.s, t.at",
    "m_null": "t.k, t.g, t.j, (None if t.g == 0 else t.x), t.y, t.k, t.at",
    "m_swap": "t.s, t.g, t.j, t.x, (None if t.y is None else t.y * 2), t.k, t.at",
    "m_fill": "t.k, t.g, t.j, (t.j if t.x is None else t.x - t.j), t.y, t.s, t.at",
}
FLAT_MAPS = {
    "e_times": "    for i in range(t.g):\n        yield t.k, i, t.j, t.x, t.y, t.s, t.at",
    "e_again": "    yield t.k, t.g, t.j, t.x, t.y, t.s, t.at\n    if t.x is None:\n"
    "        yield t.s, t.g, -t.j, 0, t.y, None, t.at",
}
STATEFUL_MAPS = {
    "c_count": ("    s.n += 1", "t.k, t.g, s.n, t.x, t.y, t.s, t.at"),
    "c_total": ("    if t.x is not None:\n        s.total += t.x", "t.k, t.g, t.j, s.total, t.y, t.s, t.at"),
    "c_last": ('    last = s.last\n    s.last = t.s or "-"', "t.k, t.g, t.j, t.x, t.y, last, t.at"),
}
ASSIGNERS = {
    "a_group": "    return [(t.at - t.at % 8, t.at - t.at % 8 + 8 + 4 * t.g)]",
    "a_few": "    if t.x is None:\n        return\n    yield t.at, t.at + 5\n    yield 0, t.at // 20 * 20 + 20",
    "a_sorted": "    yield from sorted({(t.at - 1, t.at + 2), (t.at - t.g, t.at + 2)}, key=repr)",  # not compiled
}
FOLDS = {
    "f_sum": ("a + t.g", "0", "{'v': int}"),
    "f_text": ('(a + (t.s or "-"))[-6:]', '""', "{'v': str}"),
    "f_latest": ("t.x", "0", "{'v': int | None}"),
    "f_most": ("a if t.x is None else max(a, t.x)", "-100", "{'v': int}"),
}
REDUCES = {
    "r_newer": "b",
    "r_older": "a",
    "r_larger": "b if (b.x or 0) > (a.x or 0) else a",
    "r_later": "b if b.at >= a.at else a",
}

FUNCTIONS: dict[str, str] = {"BASE": BASE_TEXT + "\n"}
FUNCTIONS |= {name: f"def {name}(t):\n    return {text}\n" for name, text in FILTERS.items()}
FUNCTIONS |= {name: f"def {name}(t):\n    return {text}\n" for name, text in MAPS.items()}
FUNCTIONS |= {name: f"def {name}(t):\n{text}\n" for name, text in FLAT_MAPS.items()}
FUNCTIONS |= {name: f"def {name}(t):\n{text}\n" for name, text in ASSIGNERS.items()}
FUNCTIONS |= {name: f"def {name}(t, s):\n{first}\n    return {text}\n" for name, (first, text) in STATEFUL_MAPS.items()}
FUNCTIONS |= {name: f"def {name}(a, t):\n    return {text}\n" for name, (text, _, _) in FOLDS.items()}
FUNCTIONS |= {name: f"def {name}(a, b):\n    return {text}\n" for name, text in REDUCES.items()}
FUNCTIONS["State"] = 'class State(NamedTuple):\n    n: int = 0\n    total: int = 0\n    last: str = ""\n'
FUNCTIONS["c_odd"] = "def c_odd(t, s):\n    s.n += 1\n    return s.n % 2 == 1\n"
FUNCTIONS["c_pairs"] = (
    "def c_pairs(t, s):\n    s.n += 1\n    if s.n == 2:\n        s.n = 0\n"
    "        yield t.k, t.g, t.j, t.x, t.y, t.s, t.at\n"
)
FUNCTIONS["d_count"] = (
    'def d_count(t, s):\n    s["n"] = s.get("n", 0) + 1\n    return t.k, t.g, s["n"], t.x, t.y, t.s, t.at\n'
)
FUNCTIONS["Range"] = """class Lows(NamedTuple):
    n: int = 0
    low: int = 1 << 60
    high: int = -(1 << 60)


class Range:
    init = Lows

    def add(self, t, state):
        state.n += 1
        if t.x is not None:
            state.low = min(state.low, t.x)
            state.high = max(state.high, t.x)

    def merge(self, other, state):
        state.n += other.n
        state.low = min(state.low, other.low)
        state.high = max(state.high, other.high)

    def result(self, state) -> int:
        return state.n if state.high < state.low else state.n + state.high - state.low
"""
FUNCTIONS["w_ends"] = (
    "def w_ends(key, window, tuples):\n    yield *key, window.start, tuples[0].j, tuples[-1].j, len(tuples)\n"
)
FUNCTIONS["Quiet"] = """class Seen(NamedTuple):
    last: int = -1
    n: int = 0


class Quiet:
    def on_tuple(self, t, state, out):
        state.last = t.at
        state.n += 1
        if state.n == 4:
            out.give((*out.key, t.j, t.at, state.n))
            out.forget()
        else:
            out.after(6)

    def on_time(self, time, state, out):
        if time == state.last + 6:
            out.give((*out.key, -1, time, state.n))
            out.forget()
"""
FUNCTIONS["Reminded"] = """class Reminded:
    def on_tuple(self, t, state, out):
        state.setdefault("js", []).append(t.j)
        out.timer(t.at - t.at % 5 + 5)

    def on_time(self, time, state, out):
        out.give((*out.key, sum(state.get("js", [])), time, len(state.get("js", []))))
        state["js"] = []

    def on_end(self, state, out):
        if state.get("js"):
            out.give((*out.key, 0, -1, len(state["js"])))
"""
FUNCTIONS["s_small"] = "def s_small(t):\n    return t.g == 0\n"
FUNCTIONS["s_large"] = "def s_large(t):\n    return t.x is not None and t.x > 2\n"
FUNCTIONS["s_none"] = "def s_none(t):\n    return t.y is None\n"
FUNCTIONS["s_number"] = "def s_number(t):\n    return t.g\n"
PATTERNS: dict[str, tuple[str, list[tuple[str, int, str | None]]]] = {
    "two": ('rel.Pattern("one", s_small).then("two", s_large, within=7)', [("s_large", 7, None)]),
    "without": (
        'rel.Pattern("one", s_small).then("two", s_large, within=9, without=s_none)', [("s_large", 9, "s_none")],
    ),
    "three": (
        'rel.Pattern("one", s_small).then("two", s_large, within=9).then("end", s_none, within=9)',
        [("s_large", 9, None), ("s_none", 9, None)],
    ),
}  # fmt: skip


def adapter(schema: Schema) -> str:
    """The name of a function from tuples of a schema to those of BASE; it is among FUNCTIONS from now on."""
    name = "to_base_" + "_".join(f"{f.name}{f.kind[0]}{'n' if f.nullable else ''}" for f in schema)
    if name not in FUNCTIONS:
        values = ", ".join(_value(field, schema) for field in BASE)
        FUNCTIONS[name] = f"def {name}(t):\n    return {values}\n"
    return name


def _value(wanted: Field, schema: Schema) -> str:
    of_kind = [f for f in schema if f.kind == wanted.kind]
    found = next((f for f in of_kind if f.name == wanted.name), None)
    if found is None:
        fitting = [f for f in of_kind if wanted.nullable or not f.nullable]
        found = fitting[-1] if fitting else None
    if found is None:
        return "None" if wanted.nullable else "0"
    if found.nullable and not wanted.nullable:
        return f"(0 if t.{found.name} is None else t.{found.name})"
    return f"t.{found.name} % 40" if wanted.name == "at" and found.name != "at" else f"t.{found.name}"
