"""Programs about the way that control takes: loops, handlers, `finally`, early ends, names that may have no value.

Their values are small whole numbers, so that they compile quickly and all that may go wrong is the way itself.
"""

from __future__ import annotations

import random

from tests.oracle.program import Program

NAMES = ("a", "b", "c", "d")
RAISING = ("{v} // {w}", "{v} % {w}", "LEVELS[{v}]", "int(t.s)", "CODES[t.s]", "[7, 8][{v}]", "{{1: 5, 2: 6}}[{v}]")
QUIET = ("{v}", "{v} + {k}", "{v} - {w}", "{v} * {k}", "len(t.s)", "{k}", "t.i", "t.j", "sum([e for e in range({k})])",
         "({v} if {w} > {k} else {k})", "max({v}, {w})")  # fmt: skip
CAUGHT = (
    "ZeroDivisionError",
    "IndexError",
    "KeyError",
    "ValueError",
    "(IndexError, KeyError)",
    "Exception",
    "LookupError",
)
RAISED = ("ValueError('bad')", "KeyError(t.s)", "IndexError", "ZeroDivisionError('none')")
CONDITIONS = ("{v} > {k}", "{v} == {w}", "{v}", "t.s == 'GET'", "{v} < {w} and t.i", "not {v}", "{v} or {w} > {k}",
              "(n := {v} + {k}) > {w}")  # fmt: skip


class Maker:
    """Makes one program.

    Args:
        chosen: where chance comes from.
    """

    def __init__(self, chosen: random.Random) -> None:
        self._chosen = chosen
        self._kind = chosen.choice(("map", "map", "map", "flat_map"))
        self._counters = 0
        self._left = 14  # statements that are still to come
        self._known = [name for name in NAMES if chosen.random() < 0.8] or ["a"]

    def program(self) -> Program:
        """A program."""
        start = [f"{name} = {self._chosen.choice(('t.i', 't.j', '0', '1', '2'))}" for name in self._known]
        start += [f"if {self._condition()}: {name} = 1" for name in NAMES if name not in self._known]
        body = [*start, *self._block(0, loop=False, outermost=True)]
        given = "(" + ", ".join(self._known[:2]) + ",)" if len(self._known) > 1 else self._known[0]
        body.append(f"yield {self._name()}" if self._kind == "flat_map" else f"return {given}")
        return Program("def f(t):\n" + "\n".join("    " + line for line in body), self._kind)

    # --- expressions --------------------------------------------------------------------------------------------------

    def _name(self) -> str:
        return self._chosen.choice(NAMES if self._chosen.random() < 0.15 else self._known)

    def _filled(self, template: str) -> str:
        return template.format(v=self._name(), w=self._name(), k=self._chosen.choice((0, 1, 2, 3, -1, 5)))

    def _value(self) -> str:
        return self._filled(self._chosen.choice(RAISING if self._chosen.random() < 0.45 else QUIET))

    def _condition(self) -> str:
        return self._filled(self._chosen.choice(CONDITIONS))

    # --- statements ---------------------------------------------------------------------------------------------------

    def _block(self, depth: int, *, loop: bool, outermost: bool = False) -> list[str]:
        count = self._chosen.choice((3, 4, 5)) if outermost else self._chosen.choice((1, 1, 2, 3))
        return [line for _ in range(count) for line in self._statement(depth, loop)]

    def _statement(self, depth: int, loop: bool) -> list[str]:
        self._left -= 1
        if depth > 2 or self._left < 0 or self._chosen.random() < 0.45:
            return [self._simple(loop, depth)]
        kinds = (self._try, self._try, self._if, self._for, self._while, self._match)
        return self._chosen.choice(kinds)(depth + 1, loop)

    def _simple(self, loop: bool, depth: int) -> str:
        chance = self._chosen.random()
        if depth and chance < 0.12:
            return f"if {self._condition()}: {self._end(loop)}"
        if chance < 0.2 and self._kind == "flat_map":
            return f"yield {self._value()}"
        if chance < 0.4:
            return f"{self._name()} {self._chosen.choice('+-')}= {self._value()}"
        if chance < 0.48:
            return self._value()
        return f"{self._chosen.choice(NAMES if chance < 0.55 else self._known)} = {self._value()}"

    def _end(self, loop: bool) -> str:
        ends = ["return" if self._kind == "flat_map" else self._returned(), f"raise {self._chosen.choice(RAISED)}"]
        return self._chosen.choice([*ends, *(("break", "continue", "break", "continue") if loop else ())])

    def _returned(self) -> str:
        return f"return ({self._name()}, {self._name()})" if len(self._known) > 1 else f"return {self._name()}"

    def _inside(self, depth: int, *, loop: bool) -> list[str]:
        return ["    " + line for line in self._block(depth, loop=loop)]

    def _if(self, depth: int, loop: bool) -> list[str]:
        lines = [f"if {self._condition()}:", *self._inside(depth, loop=loop)]
        if self._chosen.random() < 0.3:
            lines += [f"elif {self._condition()}:", *self._inside(depth, loop=loop)]
        return [*lines, "else:", *self._inside(depth, loop=loop)] if self._chosen.random() < 0.5 else lines

    def _for(self, depth: int, loop: bool) -> list[str]:
        name = self._chosen.choice(("e", "d"))
        over = self._chosen.choice(
            (f"for {name} in range(3):", f"for {name} in [1, 0, 2]:", f"for e, {name} in enumerate([5, t.i]):")
        )
        lines = [over, *self._inside(depth, loop=True)]
        return [*lines, "else:", *self._inside(depth, loop=loop)] if self._chosen.random() < 0.25 else lines

    def _while(self, depth: int, loop: bool) -> list[str]:
        self._counters += 1
        counter = f"turn{self._counters}"
        condition = f"{counter} < 3" + (f" and ({self._condition()})" if self._chosen.random() < 0.4 else "")
        lines = [f"{counter} = 0", f"while {condition}:", f"    {counter} += 1", *self._inside(depth, loop=True)]
        return [*lines, "else:", *self._inside(depth, loop=loop)] if self._chosen.random() < 0.2 else lines

    def _try(self, depth: int, loop: bool) -> list[str]:
        lines = ["try:", *self._inside(depth, loop=loop)]
        handlers = self._chosen.choice((0, 1, 1, 1, 2))
        for caught in self._chosen.sample(CAUGHT, handlers):
            lines += [f"except {caught}:", *self._inside(depth, loop=loop)]
            if self._chosen.random() < 0.15:
                lines.append("    raise")
        if handlers and self._chosen.random() < 0.25:
            lines += ["else:", *self._inside(depth, loop=loop)]
        if not handlers or self._chosen.random() < 0.25:
            lines += [
                "finally:",
                f"    {self._chosen.choice(self._known)} += {self._filled(self._chosen.choice(QUIET))}",
            ]
        return lines

    def _match(self, depth: int, loop: bool) -> list[str]:
        lines = [f"match {self._name()}:"]
        for case in self._chosen.sample(("0", "1 | 2", "d", "_ if a > 1", "-1"), 2):
            if case == "d" and lines[-1] != lines[0]:
                case = "3"
            guarded = f"d if {self._condition()}" if case == "d" else case
            lines += [f"    case {guarded}:", *("    " + line for line in self._inside(depth, loop=loop))]
        return lines


def program(chosen: random.Random) -> Program:
    """A program that Python takes."""
    while True:
        made = Maker(chosen).program()
        try:
            compile(made.source, "made", "exec", dont_inherit=True)
        except SyntaxError:
            continue
        return made
