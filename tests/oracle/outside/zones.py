"""Functions of times with a zone: Berlin's, over both changes of the clock, UTC, and times without one."""

from __future__ import annotations

import random

from tests.oracle.program import Program

__all__ = ["program"]

SPANS = (
    "dt.timedelta(days=1)",
    "dt.timedelta(hours=1)",
    "dt.timedelta(minutes=-90)",
    "t.span",
    "(t.h - t.z)",
    "(t.v - t.w)",
)
MOMENTS = (
    "{z}",
    "({z} + {g})",
    "({z} - {g})",
    "({g} + {z})",
    "{z}.replace(minute=30)",
    "max({z}, {z})",
    "min({z}, {z})",
    "({z} if {c} else {z})",
)
EXPRESSIONS = {
    "s": ("{m}.strftime('%H:%M')", "{m}.strftime('%Y-%m-%d %j')", "{m}.isoformat()", "str({m})", "f'{{{m}}}'",
          "{m}.tzname() or ''", "str({m}.timetz())"),
    "i": ("{m}.hour", "{m}.day", "{m}.weekday()", "{m}.isocalendar()[1]", "{m}.fold", "{m}.toordinal()", "{m}.minute",
          "{m}.utctimetuple().tm_hour", "len({{{m}, {m}}})", "hash({m}) * 0", "{m}.month + {m}.year"),
    "p": ("{m} < {m}", "{m} == {m}", "{m} >= {m}", "{m} != {m}", "{m}.time() < dt.time(6)", "{m} in ({m}, {m})",
          "bool({m})", "{z} is None", "({m}, 1) < ({m}, 2)", "{m}.tzinfo is None"),
    "g": ("{m} - {m}", "{m}.utcoffset() or dt.timedelta()", "{m}.dst() or dt.timedelta()"),
    "e": ("{m}.date()",),
    "o": ("{m}.time()",),
    "x": ("{m}.timestamp()", "({m} - {m}).total_seconds()"),
    "Z": ("{m}", "{z}", "{z}"),
    "U": ("{m}", "{m}.astimezone(dt.timezone.utc)"),
    "a": ("{m}.replace(tzinfo=None)", "dt.datetime.combine({m}, dt.time(3))", "{m}"),
}  # fmt: skip
FAMILIES = {"Z": ("t.z", "t.h"), "U": ("t.v", "t.w"), "a": ("t.at", "t.since")}
ZONED = ("Z",) * 5 + ("U",) * 3 + ("a",)


def program(chosen: random.Random) -> Program:
    """A program of one to three expressions."""
    family = chosen.choice(ZONED)
    outputs = tuple(chosen.choice([*EXPRESSIONS, "s", "i", "p", family]) for _ in range(chosen.choice((1, 1, 2, 3))))
    outputs = tuple(family if kind in "ZUa" and chosen.random() < 0.8 else kind for kind in outputs)
    parts = [_filled(chosen.choice(EXPRESSIONS[kind]), family, chosen) for kind in outputs]
    given = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    if chosen.random() < 0.2:
        body = f"def f(t):\n    when = {_filled('{m}', family, chosen)}\n    return {given}".replace("t.z.", "when.")
    else:
        body = f"def f(t):\n    return {given}"
    return Program(body, "map", declared=outputs, repeated=True)


def _filled(template: str, family: str, chosen: random.Random) -> str:
    """{m} a time, of the family mostly; {z} a field; {g} a span; {c} a condition."""
    while any(slot in template for slot in ("{m}", "{z}", "{g}", "{c}")):
        mixed = chosen.random() < 0.08
        of = chosen.choice(list(FAMILIES)) if mixed else family
        template = template.replace("{m}", "{z}" if chosen.random() < 0.6 else chosen.choice(MOMENTS), 1)
        template = template.replace("{z}", chosen.choice(FAMILIES[of]), 1)
        template = template.replace("{g}", chosen.choice(SPANS), 1)
        template = template.replace("{c}", chosen.choice(("t.p", "t.span > dt.timedelta()")), 1)
    return template.replace("{{", "{").replace("}}", "}")
