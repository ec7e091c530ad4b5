"""What a function reads of objects and enums is in the key of its code: others of other values get other code."""

from __future__ import annotations

import dataclasses
import enum
import functools
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rayelastic.compile.reading.identity import Identity


class Event(NamedTuple):
    count: int  # type: ignore[assignment]
    price: float

    @property
    def turnover(self) -> float:
        return self.count * self.price


class OtherEvent(NamedTuple):
    count: int  # type: ignore[assignment]
    price: float

    @property
    def turnover(self) -> float:
        return self.count + self.price


@dataclasses.dataclass(frozen=True)
class Limits:
    low: float


class Scorer:
    def __init__(self, by: float, limits: Limits = Limits(-1.0)) -> None:
        self.by, self.limits, self.unread = by, limits, object()

    def score(self, t: Any) -> Any:
        return t.price * self.by + self.helped(t.count)

    def helped(self, n: int) -> float:
        return n + self.limits.low


def scaled(by: float, t: Any) -> Any:
    return t.price * by


def turned_over(t: Any) -> Any:
    return t.turnover


def reading(names: Any) -> Any:
    return lambda t: t.kind == names.A.value


def key(function: Any, schema: Any = Event) -> str:
    found = Identity(function, schema)
    assert found.known
    return found.digest


def test_what_is_read_is_in_the_key() -> None:
    assert key(Scorer(2.5).score) == key(Scorer(2.5).score), "nobody reads the attribute that differs"
    assert key(Scorer(2.5).score) != key(Scorer(2.0).score)
    assert key(Scorer(2.5, Limits(-2.0)).score) != key(Scorer(2.5).score), "a method that it calls reads this"
    assert key(functools.partial(scaled, 3)) != key(functools.partial(scaled, 4))
    one, two = enum.Enum("Name", {"A": "x"}), enum.Enum("Name", {"A": "y"})
    assert key(reading(one)) != key(reading(two))
    assert key(turned_over) != key(turned_over, OtherEvent)


PROGRAM = """
import sys
from typing import NamedTuple
import rayelastic as rel

class Event(NamedTuple):
    count: int

class Scale:
    def __init__(self, by): self.by = by
    def __call__(self, t): return t.count * self.by

topology = rel.Topology("t")
source = topology.source(rel.rows([Event(2), Event(3)]), name="rows")
for by in (5, 7):
    source.map(Scale(by), name=f"scaled_{by}", lane="compiled").sink(rel.list(), name=f"out_{by}")
results = rel.run(topology)
print([t.value for by in (5, 7) for t in results[f"out_{by}"]], "numba" in sys.modules)
"""


def test_objects_of_other_attributes_get_other_code_in_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    def run() -> str:
        done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert [run(), run()] == ["[10, 15, 14, 21] True", "[10, 15, 14, 21] False"]
