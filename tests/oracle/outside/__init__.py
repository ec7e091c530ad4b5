"""Programs that remember, read or replace something outside their function, and those about times with a zone.

Each is a whole module that defines `f`. It is run twice over its tuples, and `change()`, where it has one, between.
"""

from __future__ import annotations

import random
import re

from tests.oracle.outside import patches, zones
from tests.oracle.outside.memories import CELLS_AND_GLOBALS
from tests.oracle.outside.objects import OBJECTS_AND_LIBRARIES
from tests.oracle.program import Program

__all__ = ["program"]

WHOLE = ("t.i % 5", "len(t.s)", "t.j % 3 + 1", "1", "int(t.p)", "(t.i % 7) * (t.j % 4)", "2 if t.p else t.i % 3")
REAL = ("t.x", "t.y * 0.5", "0.5", "float(t.i % 9)", "t.x if t.p else t.y")
TEXT = ("t.s", "t.u", "t.s.upper()", "t.s[:2]", "t.s + t.u", "t.s.strip()", "str(t.i % 4)")
TRUTH = ("t.p", "t.i % 2 == 0", "t.s == t.u", "len(t.s) > 3", "not t.p", "t.x > t.y")
FURTHER = (("i", WHOLE), ("x", REAL), ("s", TEXT), ("p", TRUTH))
MEMORIES = [block for text in (CELLS_AND_GLOBALS, OBJECTS_AND_LIBRARIES) for block in text.strip().split("\n--- ")]
_SLOT = re.compile(r"\{([ixspk])\}")


def filled(template: str, chosen: random.Random) -> str:
    """A template with expressions put in: {i} an int, {x} a float, {s} a text, {p} a bool, {k} a small int."""
    table = {"i": WHOLE, "x": REAL, "s": TEXT, "p": TRUTH, "k": ("0", "1", "2", "3")}
    return _SLOT.sub(
        lambda m: f"({chosen.choice(table[m[1]])})" if m[1] != "k" else chosen.choice(table["k"]), template
    )


def program(chosen: random.Random) -> Program:
    """A program."""
    way = chosen.random()
    if way < 0.5:
        return _of_memory(chosen)
    return zones.program(chosen) if way < 0.8 else patches.program(chosen)


def _of_memory(chosen: random.Random) -> Program:
    head, _, template = chosen.choice(MEMORIES).partition("\n")
    kind, output = head.split()
    body = filled(template, chosen)
    outputs: tuple[str, ...] = (output,)
    if kind == "map" and "RETURN" in body and chosen.random() < 0.5:
        further, table = chosen.choice(FURTHER)
        outputs = (output, further)
        body = re.sub(r"RETURN (.*)", lambda m: f"return ({m[1]}, {chosen.choice(table)})", body)
    body = body.replace("RETURN ", "return ").replace("YIELD ", "yield ")
    return Program(body, kind, declared=outputs, repeated=True)
