"""Programs about CSV: cells of known meaning, written in one of the ways in which CSV is written."""

from __future__ import annotations

import datetime as dt
import math
import random
import re
from dataclasses import dataclass
from typing import Any

from tests.oracle_io.program import Expected, Program, encoded, fields, packed
from tests.oracle_io.values import BAD, GROUPS, KINDS, Kind

WHOLE = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?")


@dataclass
class Form:
    """How a file is written."""

    delimiter: str
    quote: str | None
    escape: str | None
    end: str
    comment: str | None
    nulls: tuple[str, ...]

    @staticmethod
    def drawn(chance: random.Random) -> Form:
        delimiter = chance.choice(",,,;\t|")
        quote = chance.choice(['"', '"', '"', "'", None])
        escape = chance.choice([None, None, None, "\\"])
        return Form(
            delimiter, quote, escape, chance.choice(["\n", "\n", "\r\n"]), chance.choice([None, None, "#"]),
            chance.choice([("",), ("",), ("", "NA"), ("null",)]),
        )  # fmt: skip

    def options(self) -> dict[str, Any]:
        usual = {"delimiter": ",", "quote": '"', "escape": None, "comment": None, "nulls": ("",)}
        return {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}

    def can_hold(self, text: str) -> bool:
        """Whether a text can be written at all."""
        if self.quote is not None:
            return True
        special = "\r\n" if self.escape else f"\r\n{self.delimiter}"
        special += "#" if self.comment else ""
        return not any(one in text for one in special) and text not in self.nulls and (text or "" in self.nulls) != ""

    def cell(self, text: str, chance: random.Random, *, first: bool, alone: bool) -> str:
        """A text as it is written."""
        out = text.replace(self.escape, self.escape * 2) if self.escape else text
        if self.quote is None:
            return out.replace(self.delimiter, f"{self.escape}{self.delimiter}") if self.escape else out
        special = f"{self.delimiter}{self.quote}\r\n"
        must = (
            any(one in text for one in special)
            or text in (*self.nulls, "")
            or (first and bool(self.comment) and text[:1] == "#")
        )
        if not must and not alone and chance.random() < 0.8:
            return out
        doubled = f"{self.escape}{self.quote}" if self.escape and chance.random() < 0.6 else self.quote * 2
        return f"{self.quote}{out.replace(self.quote, doubled)}{self.quote}"


def csv_program(chance: random.Random) -> Program:
    """Makes a program."""
    return _declared(chance) if chance.random() < 0.5 else _inferred(chance)


def _declared(chance: random.Random) -> Program:
    form, count = Form.drawn(chance), chance.randint(2, 5)
    kinds = [KINDS[chance.choice(list(KINDS))] for _ in range(count)]
    nullable = [chance.random() < 0.6 for _ in kinds]
    names, renaming = fields(chance, count)
    has_bad, rows, bad = chance.random() < 0.5, [], []
    cells: list[list[str]] = []
    header, options = _header(chance, form, names)
    null = next((one for one in form.nulls if one == ""), form.nulls[0])
    for number in range(chance.randint(0, 12)):
        drawn = [
            _cell(chance, kind, optional, form, has_bad, null) for kind, optional in zip(kinds, nullable, strict=True)
        ]
        line = [text if text == null and value_is_null else form.cell(text, chance, first=at == 0, alone=False)
                for at, (text, _, value_is_null) in enumerate(drawn)]  # fmt: skip
        if has_bad and chance.random() < 0.1 and (cells or options.get("header") is not False):
            line = line[:-1] if chance.random() < 0.5 and len(line) > 2 else [*line, "more"]
            bad.append((0, number))
        elif any(value is BAD for _, value, _ in drawn):
            bad.append((0, number))
        else:
            rows.append(tuple(value for _, value, _ in drawn))
        cells.append(line)
    types = {
        (renaming or {}).get(n, n): k.declared | None if o else k.declared
        for n, k, o in zip(names, map(_plain, kinds), nullable, strict=True)
    }
    if header is False and renaming is None and chance.random() < 0.5:
        names = [f"f{at}" for at in range(count)] if options.get("header") is False else names
        types = dict(zip(names, types.values(), strict=True))
    elif options.get("header") is False:
        columns = {f"f{at}": f"g{at}" for at in range(count)}
        options["columns"], types = columns, dict(zip(columns.values(), types.values(), strict=True))
    elif renaming is not None:
        options["columns"] = renaming
    options["schema" if chance.random() < 0.5 or options.get("header") is False else "types"] = types
    content, more = _content(chance, form, names if header else None, cells)
    policy = chance.choice(["fail", "skip", "divert"]) if bad else "fail"
    offset = 2 if header else 1
    numbers = [(file, number + offset) for file, number in bad]
    expected = Expected(rows, numbers, may_fail=not header and not cells)  # an empty file
    return Program(
        "csv", [packed(chance, content)], {**form.options(), **options, **more, "on_bad_row": policy}, expected
    )


def _plain(kind: Kind) -> Any:
    return kind if isinstance(kind.declared, type) else _Arrow(kind)


class _Arrow:
    """A kind whose type is pyarrow's."""

    def __init__(self, kind: Kind) -> None:
        from typing import Annotated

        self.declared: Any = Annotated[object, kind.declared]


def _cell(
    chance: random.Random, kind: Kind, optional: bool, form: Form, has_bad: bool, null: str
) -> tuple[str, Any, bool]:
    """What is written, what it stands for, and whether it is written as null."""
    if chance.random() < 0.15 and (optional or has_bad or kind.declared is str):
        return null, None if optional else "" if kind.declared is str else BAD, True
    choices = [(t, v) for t, v in (*kind.texts, *kind.csv) if form.can_hold(t) and (has_bad or v is not BAD)]
    text, value = chance.choice(choices)
    if text == "" and kind.declared is not str:
        value = None if optional else BAD
    return text, value, False


def _header(chance: random.Random, form: Form, names: list[str]) -> tuple[bool, dict[str, Any]]:
    can = all(form.can_hold(name) for name in names)
    match chance.choice(["yes"] * 4 + ["no", "names"]):
        case "no":
            return False, {"header": False}
        case "names":
            return False, {"header": list(names)}
    return (True, {}) if can else (False, {"header": list(names)})


def _content(
    chance: random.Random, form: Form, names: list[str] | None, cells: list[list[str]]
) -> tuple[bytes, dict[str, Any]]:
    lines = (
        []
        if names is None
        else [form.delimiter.join(form.cell(n, chance, first=at == 0, alone=False) for at, n in enumerate(names))]
    )
    for cell in cells:
        if form.comment and chance.random() < 0.2:
            lines.append('# a comment "with" quotes')
        if chance.random() < 0.05:
            lines.append("")
        lines.append(form.delimiter.join(cell))
    text = form.end.join(lines) + (form.end if chance.random() < 0.8 and lines else "")
    return encoded(chance, text)


def _inferred(chance: random.Random) -> Program:
    form, count = Form.drawn(chance), chance.randint(2, 5)
    groups = [chance.choice(list(GROUPS)) for _ in range(count)]
    names, renaming = fields(chance, count)
    null = next((one for one in form.nulls if one == ""), form.nulls[0])
    table: list[list[tuple[str, bool]]] = []
    files = chance.choice([1, 1, 1, 2])
    contents: list[bytes] = []
    more: dict[str, Any] = {}
    header, options = _header(chance, form, names)
    if options.get("header") is False:
        names, renaming = [f"f{at}" for at in range(count)], None
    if renaming is not None:
        options["columns"] = renaming
    for _ in range(files):
        own, cells = [], []
        for _ in range(chance.randint(1, 10)):
            row = []
            for group in groups:
                text = chance.choice([t for t in GROUPS[group] if form.can_hold(t)] or ["x"])
                row.append(
                    (null, True) if chance.random() < 0.1 or (text == "" and form.quote is None) else (text, False)
                )
            own.append(row)
            cells.append(
                [
                    t if is_null else form.cell(t, chance, first=at == 0, alone=False)
                    for at, (t, is_null) in enumerate(row)
                ]
            )
        content, told = _content(chance, form, names if header else None, cells)
        if contents and told != more:
            continue
        contents, more = [*contents, packed(chance, content)], told
        table += own
    columns = [[row[at] for row in table] for at in range(count)]
    wide = any(_is_wide(text) for column in columns for text, _ in column)
    late = files > 1
    options |= {**form.options(), **more}

    def check(rows: list[tuple[Any, ...]], schema: Any) -> str | None:
        if len(rows) != len(table):
            return f"{len(rows)} rows of {len(table)}"
        for at, column in enumerate(columns):
            for (text, is_null), row in zip(column, rows, strict=True):
                if not means(text, is_null or (text == "" and not isinstance(row[at], str)), row[at]):
                    return f"{row[at]!r} of field {schema.names[at]} for {text!r}"
        return None

    return Program("csv", contents, options, Expected(None, may_fail=wide or late, check=check))


def _is_wide(text: str) -> bool:
    if WHOLE.fullmatch(text):
        return int(text) != int(float(text))
    return bool(NUMBER.fullmatch(text)) and text.strip("+-.eE") != "" and math.isinf(float(text))


def means(text: str, is_null: bool, value: Any) -> bool:
    """Whether a value that was inferred is what a text says."""
    if is_null or value is None:
        return is_null and value is None
    if isinstance(value, str):
        return value == text
    if isinstance(value, bool):
        return text.lower() in (("true", "1") if value else ("false", "0"))
    if isinstance(value, int):
        return WHOLE.fullmatch(text) is not None and str(value) == text.lstrip("+")
    if isinstance(value, float):
        exact = not WHOLE.fullmatch(text) or int(text) == int(value)
        return (
            repr(float(text)) == repr(value)
            and exact
            and math.isfinite(value) == ("n" not in text)
            and text[:2] not in ("00", "0x")
        )
    if isinstance(value, dt.datetime):
        moment = dt.datetime.fromisoformat(text)
        nano = getattr(value, "nanosecond", 0)
        if (moment.tzinfo is None) != (value.tzinfo is None):
            return False
        return (
            moment == value.replace(microsecond=value.microsecond)
            or f"{moment.microsecond:06}{nano:03}" == text.partition(".")[2]
        )
    if isinstance(value, dt.date):
        return value.isoformat() == text
    return isinstance(value, dt.time) and value == dt.time.fromisoformat(text)
