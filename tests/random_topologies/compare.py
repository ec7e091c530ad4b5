"""One program: interpreted, run under its conditions, compared; a difference becomes a small program."""

from __future__ import annotations

import ast
import os
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from tests.random_topologies.flow import QUIRKS, Flow
from tests.random_topologies.generate import program as made_program
from tests.random_topologies.known import KNOWN
from tests.random_topologies.naive import interpreted
from tests.random_topologies.program import Program
from tests.random_topologies.running import Condition, RejectedError, canonical, conditions, run

BUDGET = 20.0  # seconds of shrinking


@dataclass(frozen=True, slots=True)
class Difference:
    """What one condition shows.

    Args:
        stream: whose tuples are others.
        text: what differs, and a program to run.
        known: its name, if it is known.
    """

    stream: str
    text: str
    known: str = ""


@dataclass(slots=True)
class Result:
    """What came of one program."""

    number: int
    outputs: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    found: list[Difference] = field(default_factory=list)


def checked(seed: int, number: int, *, shrink: bool = True) -> Result:
    """Compare one program under each of its conditions; the first difference of each stream counts."""
    program = made_program(seed, number)
    result = Result(number, kinds=Counter(node.kind for node in program.nodes))
    wanted, seen = interpreted(program), set[str]()
    for condition in conditions(seed, number, program):
        name = f"random-topology-{seed}-{number}"
        for stream, problem in _differences(program, wanted, condition, name).items():
            if stream not in seen and not (seen and stream == "*"):
                seen.add(stream)
                result.found.append(_described(program, condition, stream, problem, shrink=shrink))
        result.outputs += len(program.streams)
    return result


def _differences(program: Program, wanted: dict[str, Flow], condition: Condition, name: str) -> dict[str, str]:
    """What differs, by stream; '*': the job failed."""
    try:
        found = run(program, condition, name)
    except RejectedError as error:
        return {} if _may_be_rejected(program) else {"*": f"rejected: {error}"}
    except Exception as error:
        return {"*": f"{type(error).__name__}: {error}"}
    problems = {stream: difference(wanted[stream], found[stream]) for stream in program.streams}
    return {stream: problem for stream, problem in problems.items() if problem}


def _may_be_rejected(program: Program) -> bool:
    """Keys of like types with other parameters may be rejected, or are equal as values."""
    return any(f.like for node in program.sources for f in node.options["schema"])


def difference(wanted: Flow, found: list[tuple[Any, ...]]) -> str:
    """What differs between the interpreter's tuples and the engine's; empty: nothing."""
    here, there = [canonical(row) for row in wanted.rows], [canonical(row) for row in found]
    if wanted.ordered and here != there and Counter(map(repr, here)) == Counter(map(repr, there)):
        return f"another order: {found[:8]}, right {wanted.rows[:8]}"
    one, other = Counter(map(repr, here)), Counter(map(repr, there))
    if one == other:
        return ""
    lacks, more = list((one - other).elements()), list((other - one).elements())
    return f"lacks {len(lacks)} {lacks[:3]}, has {len(more)} others {more[:3]}"


def _described(program: Program, condition: Condition, stream: str, problem: str, *, shrink: bool) -> Difference:
    whole = program if stream == "*" else program.behind(stream)
    name = "" if stream == "*" else _known(whole, condition, stream)
    if shrink and not name:
        whole, problem, stream = Shrinker(condition, problem).shrunk(whole, stream)
    shown = whole.text(condition.lane, condition.config, stream) if stream != "*" else whole.body(with_rows=True)
    return Difference(stream, f"# {stream} under {condition}: {problem}\n{shown}", name)


def _known(program: Program, condition: Condition, stream: str) -> str:
    """The names of what a difference is made of; empty: it is new."""
    condition = Shrinker(condition, "").fitting(program)

    def differs(quirks: set[str]) -> bool:
        QUIRKS.update(quirks)
        try:
            wanted = interpreted(program)
        finally:
            QUIRKS.clear()
        return bool(_differences(program, wanted, condition, "random-topology-known").get(stream))

    if not KNOWN or differs(set(KNOWN)):
        return ""
    return ", ".join(name for name in KNOWN if differs(set(KNOWN) - {name})) or "several"


class Shrinker:
    """Makes the rows of a difference fewer, as long as the stream differs.

    Args:
        condition: under which it does.
        problem: what was seen.
    """

    def __init__(self, condition: Condition, problem: str) -> None:
        self.condition, self.problem = condition, problem
        self.until = time.monotonic() + BUDGET

    def shrunk(self, program: Program, stream: str) -> tuple[Program, str, str]:
        if stream == "*":
            program, stream = self._one_stream(program)
        if stream == "*" or self._problem(program, stream) == "":
            return program, self.problem, stream
        for source in program.sources:
            size = max(1, len(source.options["rows"]) // 2)
            while size:
                program, less = self._without(program, source.name, size, stream)
                size = size if less else size // 2
        return program, self.problem, stream

    def _one_stream(self, program: Program) -> tuple[Program, str]:
        """The first stream that fails alone."""
        for stream in program.streams:
            if self._problem(program.behind(stream), stream):
                return program.behind(stream), stream
        return program, "*"

    def _without(self, program: Program, source: str, size: int, stream: str) -> tuple[Program, bool]:
        node = next(one for one in program.nodes if one.name == source)
        rows = list(node.options["rows"])
        for at in range(0, len(rows), size):
            if time.monotonic() > self.until:
                return program, False
            less = program.with_rows({source: rows[:at] + rows[at + size :]})
            if self._problem(less, stream):
                return less, True
        return program, False

    def fitting(self, program: Program) -> Condition:
        """The condition, without pins of operators that aren't there."""
        config = self.condition.config
        if "pes=" not in config:
            return self.condition
        names = {node.name for node in program.nodes}
        before, _, pins = config.partition("pes=")
        kept = {name: pe for name, pe in ast.literal_eval(pins[:-1]).items() if name in names}
        return replace(self.condition, config=f"{before}pes={kept})")

    def _problem(self, program: Program, stream: str) -> str:
        name = f"random-topology-shrunk-{os.getpid()}"
        found = _differences(program, interpreted(program), self.fitting(program), name)
        problem = found.get(stream) or found.get("*", "")
        self.problem = problem or self.problem
        return problem
