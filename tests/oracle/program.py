"""A program: the source of one function with the classes and constants that it needs, and how it is run.

The source is whole: executed as it is, it can be a test. Knows nothing of the compiler.
"""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass
from typing import Any

from tests.oracle.grammar import CONSTANTS
from tests.oracle.rows import FIELDS

IMPORTS = {
    "dt": "import datetime as dt", "math": "import math", "re": "import re", "np": "import numpy as np",
    "operator": "import operator", "collections": "import collections", "functools": "import functools",
    "itertools": "import itertools", "bisect": "import bisect", "statistics": "import statistics",
    "contextvars": "import contextvars", "dataclasses": "import dataclasses", "decimal": "import decimal",
    "heapq": "import heapq", "json": "import json", "locale": "import locale", "os": "import os",
    "pa": "import pyarrow as pa",
    "random": "import random", "string": "import string", "threading": "import threading", "time": "import time",
    "types": "import types", "uuid": "import uuid", "Annotated": "from typing import Annotated",
}  # fmt: skip
STATE = """class State(NamedTuple):
    count: int = 0
    total: float = 0.0
    peak: float = 0.0
    last: str = ""
    seen: bool = False
"""
OUTPUT_TYPES = {
    "s": "str", "b": "bytes", "i": "int", "x": "float", "p": "bool", "a": "dt.datetime", "e": "dt.date",
    "g": "dt.timedelta", "o": "dt.time", "Z": 'pa.timestamp("us", "Europe/Berlin")', "U": 'pa.timestamp("us", "UTC")',
    "ns": "str | None", "ni": "int | None", "nx": "float | None",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Patch:
    """A member of a module that something else stands for in some of the runs of a program.

    Args:
        member: 'math.sqrt'.
        fake: what stands for it, as text.
        phases: of each run whether it is patched.
        moves: whether what it gives by itself is another at each call, so that no compiled code can be right.
    """

    member: str
    fake: str
    phases: tuple[bool, ...]
    moves: bool


@dataclass(frozen=True, slots=True)
class Program:
    """One function `f` as text.

    Args:
        body: the definition of `f`; of one that is repeated all that stands outside it, too.
        kind: map, filter or flat_map.
        keyed: whether it has a state `st` beside the tuple `t`.
        declared: types of its output where the output is declared, else empty.
        repeated: whether it is run several times, as it may remember something (repeated.py).
        patch: what is replaced while it runs.
    """

    body: str
    kind: str = "map"
    keyed: bool = False
    declared: tuple[str, ...] = ()
    repeated: bool = False
    patch: Patch | None = None

    @property
    def fields(self) -> list[str]:
        """Of its tuple: those that it reads."""
        read = {
            node.attr
            for node in ast.walk(ast.parse(self.body))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "t"
        }
        return [name for name in FIELDS if name in read] or ["i"]

    @property
    def source(self) -> str:
        """The module that it stands in."""
        used = {node.id for node in ast.walk(ast.parse(self.body)) if isinstance(node, ast.Name)}
        tables = [text for name, text in CONSTANTS.items() if name in used]
        row = ["class Row(NamedTuple):", *(f"    {name}: {FIELDS[name][1]}" for name in self.fields)]
        parts = ["\n".join(row) + "\n"]
        if self.keyed:
            parts.append(STATE)
        if self.declared:
            columns = ", ".join(f'"f{at}": {OUTPUT_TYPES[kind]}' for at, kind in enumerate(self.declared))
            parts.append(f"OUTPUT = {{{columns}}}\n")
        if tables:
            parts.append("\n".join(tables) + "\n")
        rest = "\n\n".join([*parts, self.body])
        names = {node.id for node in ast.walk(ast.parse(rest)) if isinstance(node, ast.Name)}
        imports = [text for name, text in IMPORTS.items() if name in names] + ["from typing import NamedTuple"]
        return "\n".join(imports) + "\n\n\n" + rest + "\n"

    def constants(self) -> list[object]:
        """Texts and numbers that the function and its tables name."""
        return [node.value for node in ast.walk(ast.parse(self.source)) if isinstance(node, ast.Constant)]

    def module(self, name: str) -> dict[str, Any]:
        """The names that executing the source gives; the lines are known to whoever asks for source."""
        source = self.source
        file = f"<{name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        names: dict[str, Any] = {"__name__": "made"}
        exec(compile(source, file, "exec", dont_inherit=True), names)
        return names


def parsed(body: str) -> ast.FunctionDef:
    node = ast.parse(body).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node
