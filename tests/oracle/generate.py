"""Makes programs from the grammar: chooses templates by type, so that most of what comes out is right Python.

Each program is made of a part of the grammar alone, drawn anew (swarm testing), so that rare neighbours meet.
Knows neither the compiler nor which tuples will come.
"""

from __future__ import annotations

import ast
import random
import re

from tests.oracle import control, grammar, ordinary, outside, seldom, statements
from tests.oracle.program import Program
from tests.oracle.rows import FIELDS, WORDS

_BINDER = re.compile(r"@(\w+):([A-Za-z]+)")
_SLOT = re.compile(r"([$!])([A-Za-z]+)(['0]?)|@(\w+)(?::(?=[A-Za-z])[A-Za-z]+)?")
_OUTPUTS = ["s"] * 5 + ["i"] * 5 + ["x"] * 3 + ["p"] * 3 + ["a", "e", "g", "g", "b", "ns", "ni", "nx"]
_SCALARS = {"s", "i", "x", "p", "a", "e", "g", "b"}
_STATE = [("st.count", "i"), ("st.total", "x"), ("st.last", "s"), ("st.peak", "x"), ("st.seen", "p")]
_IN_TRY = 0.15  # of all programs
_KEPT = 0.6  # of the templates of a type, in one program

Names = list[tuple[str, str]]


class NothingFitsError(Exception):
    """No template can be used here: another choice has to be made."""


def _weighted(text: str) -> list[tuple[int, str]]:
    lines = (line.split(" ", 1) for line in text.strip().splitlines())
    return [(int(weight), template) for weight, template in lines]


def _blocks(text: str) -> list[tuple[int, str]]:
    found = []
    for block in text.strip().split("\n--- "):
        weight, _, template = block.partition("\n")
        found.append((int(weight), template.strip("\n")))
    return found


_FIRST = {kind: _weighted(text) for kind, text in grammar.EXPRESSIONS.items()}
_ORDINARY = {kind: _weighted(text) for kind, text in ordinary.EXPRESSIONS.items()}
EXPRESSIONS = {kind: _FIRST.get(kind, []) + _ORDINARY.get(kind, []) for kind in _FIRST | _ORDINARY}
_FIRST_STATEMENTS = _blocks(statements.STATEMENTS) + _blocks(seldom.STATEMENTS)
STATEMENTS = _FIRST_STATEMENTS + _blocks(ordinary.STATEMENTS)
BLOCK_STATEMENTS = _blocks(statements.BLOCK_STATEMENTS)
STATE_STATEMENTS = _blocks(statements.STATE_STATEMENTS)


class Maker:
    """Makes one program.

    Args:
        chosen: where chance comes from.
    """

    def __init__(self, chosen: random.Random) -> None:
        self.chosen = chosen
        self._swarm = {kind: self._part(table) for kind, table in EXPRESSIONS.items()}
        self._statements = self._part(STATEMENTS)
        self._texts = chosen.sample(WORDS, 4)
        self._taken: set[str] = {"t", "st", "f"}
        self._outputs: tuple[str, ...] = ()
        self._kind = "map"
        self._exits: list[Names] = []
        self._alone = False  # no constants where there are fields

    def _part(self, table: list[tuple[int, str]]) -> list[tuple[int, str]]:
        part = [row for row in table if self.chosen.random() < _KEPT]
        return part or table

    # --- templates ----------------------------------------------------------------------------------------------------

    def expression(self, kind: str, names: Names, depth: int) -> str:
        """An expression of a type; one template for `depth` 0."""
        if depth <= 0 or self.chosen.random() < 0.25:
            return self._leaf(kind, names)
        table = self._swarm[kind]
        for _ in range(6):
            (template,) = self.chosen.choices([t for _, t in table], [w for w, _ in table])
            try:
                return "(" + self.filled(template, names, depth - 1) + ")"
            except NothingFitsError:
                continue
        return self._leaf(kind, names)

    def _leaf(self, kind: str, names: Names) -> str:
        pick = self.chosen.choice
        own = [name for name, of in names if of == kind]
        fields = [f"t.{name}" for name, (of, _) in FIELDS.items() if of == kind]
        if own and self.chosen.random() < 0.65:
            return pick(own)
        if fields and (kind not in "six" or self._alone or self.chosen.random() < 0.85):
            return pick(fields[:1] + fields)
        if kind in grammar.LEAVES:
            return pick(own + grammar.LEAVES[kind])
        return self._constant(kind)

    def _constant(self, kind: str) -> str:
        pick = self.chosen.choice
        match kind:
            case "s" | "w":
                return repr(pick([*self._texts, *self._texts, "", "ä", "ß", " "]))
            case "c":
                return repr(pick([",", ";", "=", " ", "-", ":", ".", "a", "/"]))
            case "i":
                return str(pick([0, 1, 2, 3, 7, 10, 60, -1, 100, 1000]))
            case "k":
                return str(pick([0, 1, 2, 3, -1, -2, 5, 8]))
            case "n":
                return str(pick([0, 1, 2, 3, 5, 9]))
            case "bit":
                return pick(["0", "1"])
            case "x":
                return pick(["0.5", "1.5", "2.0", "0.0", "-1.0", "100.0", "1e-3"])
        raise NothingFitsError(kind)

    def filled(self, template: str, names: Names, depth: int, *, statement: bool = False) -> str:
        """A template with everything put in; names bound by statements at its margin are added to `names`."""
        bound = {hint: (self._fresh(hint), kind) for hint, kind in _BINDER.findall(template)}
        for hint in re.findall(r"@(\w+)", template):
            bound.setdefault(hint, (self._fresh(hint), ""))
        before = len(names)

        def seen(position: int) -> Names:
            text = template[:position] if statement else template
            return names[:before] + [bound[hint] for hint, _ in _BINDER.findall(text)]

        def put(found: re.Match[str]) -> str:
            sign, what, how, name = found.groups()
            if name:
                return bound[name][0]
            if sign == "!":
                return self._mutable_name(what, seen(found.start()))
            scope = seen(found.start()) if how == "'" else names[:before]
            if what in ("k", "n", "w", "c", "bit"):
                return self._constant(what)
            return self._leaf(what, scope) if how == "0" else self.expression(what, scope, depth)

        lines = []
        at = 0
        for line in template.split("\n"):
            stripped = line.strip()
            indent = line[: len(line) - len(line.lstrip())]
            place = at
            if stripped in ("$BLOCK", "$SMALL", "$EXIT"):
                lines += [indent + one for one in self._inner(stripped, seen(place), depth)]
            else:
                part = _SLOT.sub(lambda m, p=place: put(_Moved(m, p)), line)  # type: ignore[arg-type, misc]
                lines.append(part)
            at += len(line) + 1
        if statement:
            names += self._kept(template, bound)
        return "\n".join(lines)

    def _kept(self, template: str, bound: dict[str, tuple[str, str]]) -> Names:
        """Names that certainly have a value behind a statement."""
        first = template.split("\n", 1)[0]
        branches = first.startswith(("if $p", "match", "try")) and "$EXIT" not in template
        kept = []
        for line in template.split("\n"):
            if line.startswith(("for", "while", "if (")) or (line.startswith(" ") and not branches):
                continue
            given, equals, _ = line.partition(" = ")
            kept += [bound[hint] for hint, _ in _BINDER.findall(given) if equals and "(" not in given]
        return kept

    def _fresh(self, hint: str) -> str:
        name, number = hint, 2
        while name in self._taken:
            name, number = f"{hint}{number}", number + 1
        self._taken.add(name)
        return name

    def _mutable_name(self, kind: str, names: Names) -> str:
        own = [name for name, of in names if of == kind and name not in ("w", "ch") and "." not in name]
        if not own:
            raise NothingFitsError(kind)
        return self.chosen.choice(own)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _inner(self, what: str, names: Names, depth: int) -> list[str]:
        if what == "$EXIT":
            return self._exit(names)
        table = BLOCK_STATEMENTS
        count = self.chosen.choice((1, 1, 2)) if what == "$BLOCK" else 1
        lines: list[str] = []
        for _ in range(count):
            lines += self._one(table, names, 1).split("\n")
        return lines

    def _one(self, table: list[tuple[int, str]], names: Names, depth: int) -> str:
        for _ in range(8):
            (template,) = self.chosen.choices([t for _, t in table], [w for w, _ in table])
            try:
                return self.filled(template, names, depth, statement=True)
            except NothingFitsError:
                continue
        return "pass"

    def _exit(self, names: Names) -> list[str]:
        """A mark, put in place of which is what ends the function early, once it is known what the function gives."""
        self._exits.append(list(names))
        return [f"EXIT_{len(self._exits) - 1}_"]

    def _exited(self, number: int) -> str:
        given = self._given(self._exits[number])
        if self._kind == "flat_map":
            return self.chosen.choice((f"yield {given}", f"yield {given}", "return"))
        return f"return {given}"

    def _decide(self, names: Names) -> None:
        """What the function gives: mostly what can be made of its local names."""
        if self._kind == "filter":
            self._outputs = ("p",)
            return
        ways = [row.split(" ", 1)[0] for name, kind in names for row in grammar.CONSUMERS.get(kind, ())]
        ways += [kind for name, kind in names if kind in _SCALARS] * 3
        count = self.chosen.choice((1, 1, 1, 2, 2, 3))
        self._outputs = tuple(
            self.chosen.choice(ways if ways and self.chosen.random() < 0.75 else _OUTPUTS) for _ in range(count)
        )

    def _given(self, names: Names) -> str:
        parts = [self.expression(kind, names, 1) for kind in self._outputs]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def _last(self, names: Names) -> str:
        """What is given at the end: made of the local names, where types allow it."""
        parts = []
        for kind in self._outputs:
            ways = [
                (name, template.split(" ", 1)[1])
                for name, of in names
                for template in grammar.CONSUMERS.get(of, ())
                if template.split(" ", 1)[0] == kind
            ]
            ways += [(name, "$v") for name, of in names if of == kind and "." not in name] * 3
            if ways and self.chosen.random() < 0.8:
                name, template = self.chosen.choice(ways)
                parts.append("(" + self.filled(template.replace("$v", name), names, 1) + ")")
            else:
                parts.append(self.expression(kind, names, 2))
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def program(self) -> Program:
        """A program."""
        self._kind = self.chosen.choices(("map", "filter", "flat_map"), (80, 7, 13))[0]
        keyed = self._kind == "map" and self.chosen.random() < 0.1
        names: Names = list(_STATE) if keyed else []
        lines: list[str] = []
        for _ in range(self.chosen.choice((0, 0, 1, 1, 1, 2, 2, 3, 4))):
            lines += self._one(self._statements, names, self.chosen.choice((1, 1, 2))).split("\n")
        if keyed:
            for _ in range(self.chosen.choice((1, 2, 3))):
                lines += self._one(STATE_STATEMENTS, names, 1).split("\n")
        self._decide(names)
        if self._kind == "flat_map" and self.chosen.random() < 0.7:
            loop = self.chosen.choice(
                ("for @w:s in $ls:", "for @ch:s in $s:", "for @v:i in $li:", "for @v:i in range($n):")
            )
            _, kind = _BINDER.findall(loop)[0]
            head = self.filled(loop, names, 1)
            inside = [*names, (head.split(" ")[1], kind)]
            body = self._one(BLOCK_STATEMENTS, inside, 1).split("\n") if self.chosen.random() < 0.4 else []
            lines += [head, *("    " + line for line in body), f"    yield {self._last(inside)}"]
        elif self._kind == "flat_map":
            lines.append(f"yield {self._last(names)}")
        else:
            lines.append(f"return {self._last(names)}")
        lines = re.sub(r"EXIT_(\d+)_", lambda m: self._exited(int(m[1])), "\n".join(lines)).split("\n")
        if self.chosen.random() < _IN_TRY:  # which changes nothing but how it is compiled
            lines = ["try:", *("    " + line for line in lines), "except AssertionError:", "    raise"]
        body = "def f(t, st):\n" if keyed else "def f(t):\n"  # type: ignore[assignment]
        body += "\n".join("    " + line for line in lines)
        declared = self._outputs if self._kind != "filter" and self.chosen.random() < 0.3 else ()
        return Program(tidied(body), self._kind, keyed, declared)  # type: ignore[arg-type]

    def alone(self, table: str, template: str) -> Program:
        """The program that shows one template: of an expression of a type, or of a statement."""
        names: Names = []
        self._alone = True
        if table in _SCALARS | {"ns", "ni", "nx"}:
            self._outputs = (table,)
            lines = [f"return {self.filled(template, names, 0)}"]
        else:
            text = template if table == "statement" else f"@got:{table} = {template}"
            lines = self.filled(text, names, 0, statement=True).split("\n")
            self._decide(names)
            lines.append(f"return {self._last(names)}")
        text = re.sub(r"EXIT_(\d+)_", lambda m: self._exited(int(m[1])), "\n".join(lines))
        return Program(tidied("def f(t):\n" + "\n".join("    " + line for line in text.split("\n"))))


class _Moved:
    """A match within a line, told where the line begins in its template."""

    def __init__(self, found: re.Match[str], by: int) -> None:
        self._found, self._by = found, by

    def groups(self) -> tuple[str, ...]:
        return self._found.groups()

    def start(self) -> int:
        return self._found.start() + self._by


class _Strings(ast.NodeTransformer):
    """F("{:>5}", a) becomes the f-string."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id == "F"):
            return node
        text = node.args[0]
        assert isinstance(text, ast.Constant)
        rest = iter(node.args[1:])
        values: list[ast.expr] = []
        for literal, slot, spec, how in _pieces(text.value):  # type: ignore[arg-type]
            if literal:
                values.append(ast.Constant(literal))
            if slot:
                form = ast.JoinedStr([ast.Constant(spec)]) if spec else None
                values.append(ast.FormattedValue(next(rest), ord("r") if how else -1, form))
        return ast.JoinedStr(values)


def _pieces(text: str) -> list[tuple[str, bool, str, bool]]:
    pieces = []
    for literal, slot in re.findall(r"([^{]*)(\{[^}]*\})?", text):
        inner = slot[1:-1]
        how = inner.startswith("~r")
        pieces.append((literal, bool(slot), inner.removeprefix("~r").removeprefix(":"), how))
    return pieces


def tidied(body: str) -> str:
    """The function as the standard library writes it: brackets where they are needed.

    Raises:
        ValueError: an f-string can't be written so.
    """
    return ast.unparse(ast.fix_missing_locations(_Strings().visit(ast.parse(body))))


EACH = [(kind, template) for kind, table in _FIRST.items() for _, template in table]
EACH += [("statement", template) for _, template in _FIRST_STATEMENTS]
EACH += [(kind, template) for kind, table in _ORDINARY.items() for _, template in table]
EACH += [("statement", template) for _, template in _blocks(ordinary.STATEMENTS)]


OUTSIDE = (
    len(EACH) + (3 - len(EACH)) % 8
)  # the first program about what stands outside its function; each eighth follows


def program(seed: int, number: int) -> Program:
    """The program of a number: the same for the same seed.

    The first ones have one template each, so that all are seen; of the others, which are drawn, each eighth is about
    control alone, and each eighth about what stands outside the function.
    """
    chosen = random.Random(f"{seed}:{number}")
    if number >= len(EACH) and number % 8 in (3, 7):
        return control.program(chosen) if number % 8 == 7 else outside.program(chosen)
    while True:
        try:
            maker = Maker(chosen)
            made = maker.alone(*EACH[number]) if number < len(EACH) else maker.program()
            compile(made.source, "made", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            continue
        return made
