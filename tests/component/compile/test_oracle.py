"""The oracle that makes programs: they are right Python, what is planted is found and made small, nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rayelastic.compile import Compiler, compiler
from rayelastic.compile.lowering.records import fields
from rayelastic.compile.reading import syntax
from rayelastic.compile.reading.identity import Identity
from tests.oracle.beyond import watched
from tests.oracle.compare import Difference, Python, rows_of
from tests.oracle.generate import program
from tests.oracle.known import known
from tests.oracle.plants import PLANTS, plant
from tests.oracle.program import Patch, Program
from tests.oracle.report import test_text as text_of_test
from tests.oracle.shrink import Shrinker
from tests.oracle.worker import Options, Result, batch

# Numbers of programs that mix templates; ./dev oracle makes as many as one likes.
MIXED = 1440  # from here on
GATE = range(MIXED, MIXED + 24)
NIGHTLY = 20_000


class Sent(list[Any]):
    """What a worker sends."""

    send = list.append


def test_most_programs_give_something_in_python():
    gives = 0
    for number in range(200):
        made = program(3, MIXED + number)
        python = Python(made, made.module(f"made-{number}"))
        answers = [python.answer(row, python.fresh()) for row in rows_of(made, str(number), 20)]
        gives += any(not answer.raised for answer in answers)
    assert gives > 160
    assert program(3, 7) == program(3, 7)


def test_what_is_planted_is_found_and_made_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The compiler gets another function than Python runs: one that adds 2 for 1."""
    honest = Compiler.compile

    def dishonest(self: Compiler, request: Any) -> Any:
        names = Program(made.body.replace("+ 1", "+ 2")).module("planted")
        return honest(self, type(request)(request.operator, request.kind, names["f"], request.input_schema))

    made = Program("def f(t):\n    n = t.i + 1\n    return (n, t.x)")
    monkeypatch.setattr(Compiler, "compile", dishonest)
    monkeypatch.setattr("tests.oracle.worker.made_program", lambda seed, number: made)
    sent = Sent()
    batch(range(1), Options(1, tmp_path, second=False, limit=0), sent)
    (found,) = next(message for message in sent if isinstance(message, Result)).found
    assert found.kind == "value"


COUNTER = """def make():
    n = 0
    def f(t):
        nonlocal n
        n += len(t.s)
        return n
    return f
f = make()"""
PLANTED = {
    "A1": Program(COUNTER, declared=("i",), repeated=True),
    "A2": Program("def f(t):\n    return (t.z.strftime('%H:%M'), t.z.time())", declared=("s", "o"), repeated=True),
    "A5": Program("def f(t):\n    return (t.i, t.s)", declared=("i", "s")),
    "B1": Program(
        "def f(t):\n    return time.time() + t.i % 3",
        declared=("x",),
        repeated=True,
        patch=Patch("time.time", "lambda: 1000.0", (True, False), moves=True),
    ),
}


@pytest.mark.edges
@pytest.mark.parametrize("name", ["", *PLANTS])
def test_faults_that_were_there_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """A1, A2, A5, B1: each is planted once more."""
    for owner, attribute in (
        (compiler, "first_change"), (compiler, "replaced_member"), (syntax, "cells_written"),
        (fields, "load_plain"), (fields, "moment_type"), (Identity, "_attribute"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, attribute, getattr(owner, attribute))
    plant(name)
    programs = [PLANTED[name]] if name else list(PLANTED.values())
    monkeypatch.setattr("tests.oracle.worker.made_program", lambda seed, number: programs[number])
    sent = Sent()
    batch(range(len(programs)), Options(1, tmp_path, second=False, limit=0), sent)
    found = [difference for message in sent if isinstance(message, Result) for difference in message.found]
    assert bool(found) is bool(name)


def test_a_difference_is_shrunk_to_what_shows_it():
    def check(one: Program, rows: list[tuple[Any, ...]]) -> Difference | None:
        """A compiler for which "b" is in no text."""
        answer = Python(one, one.module("planted")).answer(rows[-1])
        wrong = Python(one, Program(one.body.replace("'b' in", "'~' in")).module("planted")).answer(rows[-1])
        return None if answer == wrong else Difference("value", tuple(rows), str(answer.items), str(wrong.items))

    made = Program(
        "def f(t):\n    n = 0\n    for w in t.s.split():\n"
        "        if 'b' in w.upper().lower():\n            n += len(w)\n"
        "    return (t.i, n, t.u)"
    )
    rows = (tuple({"s": "xx ab", "u": "u", "i": 7}[name] for name in made.fields),)
    small, found = Shrinker(check, 20.0).shrunk(made, Difference("value", rows, "", ""))
    assert small.body.count("\n") < made.body.count("\n")
    assert small.fields == ["s"]
    assert found.rows == (("b",),)
    compile(text_of_test(1, 2, small, found), "pasted", "exec")


@pytest.mark.parametrize(("number", "beyond"), [(-(2**63), True), (-(2**62), False)])
def test_what_a_key_function_makes_may_be_beyond_64_bits(number: int, beyond: bool):
    made = Program("def f(t):\n    return (min(t.i, 2, key=abs),)")
    python = Python(made, made.module("keyed"))
    assert watched(made, python.names, python.arguments((number,), None)).beyond is beyond


@pytest.mark.parametrize(("number", "beyond"), [(0, True), (9, False)])
def test_a_handler_may_see_a_name_without_a_value(number: int, beyond: bool):
    made = Program(
        "def f(t):\n    if t.i > 5: b = 1\n    try:\n        return b\n    except NameError:\n        return 0"
    )
    python = Python(made, made.module("unbound"))
    assert watched(made, python.names, python.arguments((number,), None)).beyond is beyond


@pytest.mark.timeout(400)  # a quarter of a minute on a core of its own
def test_programs_of_the_gate_are_right_in_both_starts(tmp_path: Path):
    sent = Sent()
    batch(GATE, Options(1, tmp_path, limit=0), sent)
    results = [message for message in sent if isinstance(message, Result)]
    new = [(r.program.body, d) for r in results for d in r.found if not known(r.program, d)]
    assert not new, (
        f"{len(new)} differences: ./dev oracle {len(GATE)} --first {GATE.start} shrinks them. The first: {new[0]}"
    )
    assert sum(result.lane == "compiled" for result in results) > len(GATE) // 3


@pytest.mark.nightly
def test_many_programs_are_right():
    import subprocess
    import sys

    command = [sys.executable, "-m", "tests.oracle", str(NIGHTLY), "--seed", "2"]
    assert subprocess.run(command, cwd=Path(__file__).parents[3], check=False).returncode == 0
