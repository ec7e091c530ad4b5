"""What is told of a run: progress, and for each difference a test to paste."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TextIO

from tests.oracle.compare import Difference, literal
from tests.oracle.program import Program
from tests.oracle.worker import Result


def say(text: str, to: TextIO | None = None) -> None:
    """Writes a line, at once."""
    to = to or sys.stdout
    to.write(text + "\n")
    to.flush()


class Progress:
    """Counts, and shows them now and then.

    Args:
        total: programs in all.
    """

    def __init__(self, total: int) -> None:
        self.total, self.started = total, time.monotonic()
        self.lanes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.known: Counter[str] = Counter()
        self.new = 0
        self._told = self.started

    def add(self, result: Result) -> None:
        if result.lane == "second":
            return
        self.lanes[result.lane] += 1
        if result.lane == "python":
            self.reasons[result.reason.split("it can't be compiled: ")[-1].split(" (<oracle")[0]] += 1

    def tell(self, every: float = 10.0) -> None:
        if time.monotonic() - self._told >= every:
            self._told = time.monotonic()
            say(self.line(), to=sys.stderr)

    def line(self) -> str:
        done = sum(self.lanes.values())
        rate = done / max(1e-9, time.monotonic() - self.started)
        known = ", ".join(f"{name} {count}" for name, count in self.known.most_common())
        return (
            f"{done} of {self.total} functions, {self.lanes['compiled']} compiled, {rate:.1f}/s, "
            f"{self.new} differences" + (f"; known: {known}" if known else "")
        )


def test_text(number: int, seed: int, program: Program, found: Difference) -> str:
    """A test to paste into tests/component/compile."""
    rows = ", ".join("(" + "".join(f"{literal(cell)}, " for cell in row).rstrip() + ")" for row in found.rows)
    if program.repeated:
        return (
            f"{program.source}\n\n# over {[rows]}, in {program.patch}\n"
            if program.patch
            else f"{program.source}\n\n# over [{rows}]\n"
        )
    options = ", output=Schema.of(OUTPUT)" if program.declared else ""
    keys = ", keys=[0] * len(rows)" if program.keyed else ""
    options += f', keys=("{program.fields[0]}",), state=State' if program.keyed else ""
    source = "import datetime as dt\n" * ("dt." in rows and "import datetime" not in program.source) + program.source
    return f"""{source}

def test_of_oracle_{seed}_{number}(compiled):
    rows = [{rows}]
    runner = compiled(f, Row, {program.kind.upper()}{options})
    ours, wanted = runner(rows{keys}), python_result(runner.code, rows{keys})
    assert (ours.failed, repr(ours.items)) == (wanted.failed, repr(wanted.items))
"""


def described(number: int, seed: int, program: Program, found: Difference, *, shrunk: bool) -> str:
    what = "" if shrunk else ", not shrunk"
    python = f"# Python: {found.wanted}\n" if found.wanted else ""
    head = f"# {found.kind}{what}: ./dev oracle --seed {seed} --only {number}\n{python}# compiled: {found.ours}\n"
    return head.replace("\0", "\\0") + test_text(number, seed, program, found)
