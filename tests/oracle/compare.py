"""Runs a program in plain Python and compiled over the same tuples, and says where they part.

Python decides. A tuple that compiled code refuses and Python doesn't is a difference, too, unless an integer leaves
64 bits there (beyond.py). Text of exceptions is Python's in any case: a failed tuple is run again in Python.
"""

from __future__ import annotations

import copy
import ctypes
import datetime as dt
import random
from dataclasses import dataclass
from typing import Any

from rayelastic.compile.code.explain import explain
from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.compile.code.state import MutableState
from rayelastic.compile.lanes.python_lane import error_text
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest
from tests.component.compile.harness import Outcome, Runner
from tests.oracle.beyond import watched
from tests.oracle.program import Program
from tests.oracle.rows import drawn

ROWS = 60
_FAILURES_LOOKED_AT = 25  # tuples of a program that raise, each run by itself
_REFUSALS_LOOKED_AT = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """Where compiled code and Python part.

    Args:
        kind: value, type, raises (Python raises, compiled code gives), refused (the other way round), message (of what
            is raised), state, error (what compiling or linking raises), second start, died.
        rows: tuples that show it, the last one above all.
        wanted: what Python gives, as text.
        ours: what compiled code gives, as text.
    """

    kind: str
    rows: tuple[tuple[Any, ...], ...]
    wanted: str
    ours: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Python's for one tuple: items, or the text of what it raised."""

    items: tuple[Any, ...] = ()
    raised: str = ""


class Python:
    """The program as Python runs it."""

    def __init__(self, program: Program, names: dict[str, Any]) -> None:
        self.program, self.names = program, names
        self.row = names["Row"]

    def arguments(self, row: tuple[Any, ...], state: Any) -> list[Any]:
        return [self.row._make(row)] if state is None else [self.row._make(row), state]

    def answer(self, row: tuple[Any, ...], state: Any = None) -> Answer:
        """What Python gives for a tuple; the state is changed unless it raises."""
        own = copy.copy(state)
        try:
            made = self.names["f"](*self.arguments(row, own))
            if self.program.kind == "filter":
                items = [row] if made else []
            elif self.program.kind == "flat_map":
                items = [cells(item) for item in made or ()]
            else:
                items = [cells(made)]
        except Exception as error:
            return Answer(raised=error_text(error))
        if state is not None:
            vars(state).update(vars(own))
        return Answer(tuple(items))

    def fresh(self) -> Any:
        """A key's first state, None where the program has none."""
        return MutableState(**self.names["State"]()._asdict()) if self.program.keyed else None


def cells(item: Any) -> tuple[Any, ...]:
    item = tuple(item) if isinstance(item, tuple) else (item,)
    return tuple(cell.item() if type(cell).__module__ == "numpy" else cell for cell in item)


def shown(items: Any) -> list[list[str]]:
    """Values with their types, in a form in which NaN is equal to itself and 0.0 isn't -0.0."""
    return [[f"{type(cell).__name__} {cell!r}" for cell in item] for item in items]


def same(wanted: Any, ours: Any) -> bool:
    return shown(wanted) == shown(ours)


def request(program: Program, names: dict[str, Any]) -> FunctionRequest:
    """What the compiler is asked for."""
    return FunctionRequest(
        "op",
        FunctionKind(program.kind),
        names["f"],
        Schema.of(names["Row"]),
        output=Schema.of(names["OUTPUT"]) if program.declared else None,
        keys=(program.fields[0],) if program.keyed else (),
        state=names["State"] if program.keyed else None,
        lane=Lane.COMPILED,
        location="made.py:1",
    )


class Comparison:
    """Of one program.

    Args:
        shim: the engine's services, of the test harness.
        program: it.
        names: of its module.
        code: compiled.
    """

    def __init__(self, shim: ctypes.CDLL, program: Program, names: dict[str, Any], code: OperatorCode) -> None:
        self.program, self.code = program, code
        self.python = Python(program, names)
        self.runner = Runner(shim, code)

    def run(self, rows: list[tuple[Any, ...]]) -> Outcome:
        """What compiled code gives; what no record of the schema may hold counts as given, so that it differs."""
        try:
            return self.runner(rows, keys=[0] * len(rows) if self.program.keyed else None, capacity=len(rows) + 7)
        except (ArithmeticError, AssertionError, ValueError) as error:
            return Outcome([(f"no value of its type: {error!r}",)] * len(rows))

    def differences(self, rows: list[tuple[Any, ...]]) -> list[Difference]:
        """Where both part over these tuples; one of each kind."""
        return self._keyed(rows) if self.program.keyed else self._stateless(rows)

    # --- without state ------------------------------------------------------------------------------------------------

    def _stateless(self, rows: list[tuple[Any, ...]]) -> list[Difference]:
        answers = [self.python.answer(row) for row in rows]
        found = self._that_raise([r for r, a in zip(rows, answers, strict=True) if a.raised][:_FAILURES_LOOKED_AT])
        good = [(row, answer) for row, answer in zip(rows, answers, strict=True) if not answer.raised]
        refused = 0
        while good:
            outcome = self.run([row for row, _ in good])
            if outcome.failed is None:
                break
            if not 0 <= outcome.failed < len(good):
                return [*found, Difference("refused", (good[0][0],), "", f"index {outcome.failed} of {len(good)}")]
            row, answer = good.pop(outcome.failed)
            if self.run([row]).failed is None and not self._alone(row, answer, found):
                found.append(Difference("refused", (row,), str(shown(answer.items)), "refused among others, not alone"))
            elif not (
                met := watched(self.program, self.python.names, self.python.arguments(row, None))
            ).beyond and not (met.inexact and met.floats):
                found.append(Difference("refused", (row,), str(shown(answer.items)), self._reason(row)))
            refused += 1
            if refused > _REFUSALS_LOOKED_AT:
                good = [one for one in good if self.run([one[0]]).failed is None]
        return _first_of_each([*found, *(self._values(good, outcome.items) if good else [])])

    def _alone(self, row: tuple[Any, ...], answer: Answer, found: list[Difference]) -> bool:
        """A tuple that fails among others and not alone: whether its value is wrong as well, which is noted."""
        if same(answer.items, items := self.run([row]).items):
            return False
        found.append(self._difference(row, answer.items, items))
        return True

    def _that_raise(self, rows: list[tuple[Any, ...]]) -> list[Difference]:
        found = []
        for row in rows:
            outcome = self.run([row])
            answer = self.python.answer(row)
            if outcome.failed is None:
                found.append(Difference("raises", (row,), answer.raised, str(shown(outcome.items))))
            elif (text := explain(self.code, row).message) != answer.raised:
                found.append(Difference("message", (row,), answer.raised, text))
        return found

    def _values(self, good: list[tuple[tuple[Any, ...], Answer]], ours: list[Any]) -> list[Difference]:
        wanted = [item for _, answer in good for item in answer.items]
        if same(wanted, ours):
            return []
        found = []
        for row, answer in good:
            alone = self.run([row])
            if alone.failed is not None:
                found.append(Difference("refused", (row,), str(shown(answer.items)), "refused alone, not among others"))
            elif not same(answer.items, alone.items):
                found.append(self._difference(row, answer.items, alone.items))
        return found or [Difference("value", tuple(row for row, _ in good), str(shown(wanted)), str(shown(ours)))]

    def _difference(self, row: tuple[Any, ...], wanted: Any, ours: Any) -> Difference:
        equal = len(wanted) == len(ours) and all(
            len(w) == len(o) and all(_equal(a, b) for a, b in zip(w, o, strict=True))
            for w, o in zip(wanted, ours, strict=True)
        )
        return Difference("type" if equal else "value", (row,), str(shown(wanted)), str(shown(ours)))

    def _reason(self, row: tuple[Any, ...]) -> str:
        return "refused: " + explain(self.code, row).message

    # --- with state ---------------------------------------------------------------------------------------------------

    def _keyed(self, rows: list[tuple[Any, ...]]) -> list[Difference]:
        """All tuples have one key. Those that raise, or may be refused, are left out, for they leave a state behind."""
        state = self.python.fresh()
        good: list[tuple[Any, ...]] = []
        wanted: list[Any] = []
        for row in rows:
            met = watched(self.program, self.python.names, self.python.arguments(row, copy.copy(state)))
            if met.beyond or (met.inexact and met.floats):
                continue
            answer = self.python.answer(row, state)
            if not answer.raised:
                good.append(row)
                wanted += answer.items
        outcome = self.run(good)
        if outcome.failed is not None:
            return [Difference("refused", tuple(good[: outcome.failed + 1]), str(shown(wanted[-1:])), "refused")]
        for at, (theirs, ours) in enumerate(zip(wanted, outcome.items, strict=True)):
            if not same([theirs], [ours]):
                found = self._difference(good[at], [theirs], [ours])
                return [Difference(found.kind, tuple(good[: at + 1]), found.wanted, found.ours)]
        final = [tuple(vars(state).values())]
        if good and not same(final, [outcome.states[0]]):
            return [Difference("state", tuple(good), str(shown(final)), str(shown([outcome.states[0]])))]
        return []


def _equal(one: Any, other: Any) -> bool:
    numbers = int | float | bool
    if isinstance(one, numbers) and isinstance(other, numbers):
        return bool(one == other) or (one != one and other != other)
    return type(one) is type(other) and bool(one == other)


def _first_of_each(found: list[Difference]) -> list[Difference]:
    kinds: dict[str, Difference] = {}
    for one in found:
        size = len(repr(one.rows))
        if one.kind not in kinds or size < len(repr(kinds[one.kind].rows)):
            kinds[one.kind] = one
    return list(kinds.values())


def rows_of(program: Program, seed: str, count: int = ROWS) -> list[tuple[Any, ...]]:
    """The tuples that a program is run over: the same for the same seed."""
    return drawn(program.fields, count, random.Random(seed), program.constants())


def literal(value: Any) -> str:
    """A value as source text."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    if isinstance(value, dt.date | dt.timedelta):
        return repr(value).replace("datetime.", "dt.", 1)
    return repr(value)
