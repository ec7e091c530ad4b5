"""Programs about lines of JSON: values of known meaning, at any depth, and lines that aren't an object."""

# ruff: noqa: E501  (tables of values, and times without a zone)

from __future__ import annotations

import json
import random
import types
from decimal import Decimal
from typing import Annotated, Any

import pyarrow as pa

import rayelastic as rel
from rayelastic.graph.records.names import is_field_name
from tests.oracle_io.program import Expected, Program, encoded, fields, packed
from tests.oracle_io.values import BAD, KINDS, NAMES, TEXTS

JUNK = (
    "null", "[1]", "1", "{", '"x"', "true", "}", '{"a":1}{"a":2}', '{"a":1} null', "{'a':1}", '{"a":01}', '{"a":1,}', "{}{}",
    '{"d":' + "[" * 70 + "]" * 70 + "}", '{"d":' + "[" * 20000 + "]" * 20000 + "}", '{"d":' + '{"d":' * 100 + "1" + "}" * 101, "[[[[[", "nul", "x\0",
)  # fmt: skip
SPACES = ("", "", "", " ", "  ", "\t")
DEEPEST = 60
BYTES = (('""', b""), ('"/wA="', b"\xff\0"), ('"YWI="', b"ab"))


def json_program(chance: random.Random) -> Program:
    """Makes a program."""
    return _declared(chance) if chance.random() < 0.5 else _inferred(chance)


def _texts_of(name: str) -> list[tuple[str, Any]]:
    kind = KINDS[name]
    written = [(text if kind.is_number else json.dumps(text, ensure_ascii=False), value) for text, value in kind.texts]
    return [*written, *kind.json]


def _object(chance: random.Random, parts: list[tuple[str, str]]) -> str:
    parts = chance.sample(parts, len(parts)) if chance.random() < 0.3 else parts
    space = chance.choice(SPACES)
    inner = f",{space}".join(
        f"{json.dumps(name, ensure_ascii=chance.random() < 0.5)}{space}:{space}{text}" for name, text in parts
    )
    return f"{{{space}{inner}{space}}}"


def _value(chance: random.Random, name: str, has_bad: bool, depth: int = 0) -> tuple[Any, Any]:
    """(declared type, function that draws (text, value))."""
    shape = chance.choice(["plain"] * 5 + ["list", "struct", "any", "map", "bytes"]) if depth < 2 else "plain"
    if shape == "list":
        declared, draw = _value(chance, name, has_bad, depth + 1)

        def listed() -> tuple[str, Any]:
            items = [draw() for _ in range(chance.randint(0, 3))]
            bad = any(value is BAD or value is None for _, value in items) and not _is_nullable(declared)
            bad = bad or any(value is BAD for _, value in items)
            return f"[{','.join(text for text, _ in items)}]", BAD if bad else [value for _, value in items]

        return types.GenericAlias(list, (declared,)), listed
    if shape == "struct":
        names = chance.sample(["x", "y", "z"], chance.randint(1, 3))
        inner = {
            part: _value(chance, chance.choice([k for k in KINDS if k != "enum"]), has_bad, depth + 1) for part in names
        }
        declared = pa.struct(
            [pa.field(part, _arrow(kind), nullable=_is_nullable(kind)) for part, (kind, _) in inner.items()]
        )

        def struct() -> tuple[str, Any]:
            drawn = {part: one() for part, (_, one) in inner.items()}
            bad = any(value is BAD for _, value in drawn.values())
            extra = [("other", '{"q": [1]}')] if chance.random() < 0.1 else []
            return _object(chance, [*((p, t) for p, (t, _) in drawn.items()), *extra]), BAD if bad else {
                p: v for p, (_, v) in drawn.items()
            }

        return Annotated[object, declared], struct
    if shape == "bytes":
        texts = [*BYTES, *((('"YQ"', BAD), ('"é"', BAD), ("1", BAD)) if has_bad else ())]
        return bytes, lambda: chance.choice(texts)
    if shape == "map":
        declared, draw = _value(chance, name, has_bad, depth + 1)
        by_number = chance.random() < 0.3

        def mapped() -> tuple[str, Any]:
            drawn = {key: draw() for key in chance.sample(range(5) if by_number else NAMES, chance.randint(0, 3))}
            bad = any(value is BAD or (value is None and not _is_nullable(declared)) for _, value in drawn.values())
            pairs = [(key, value) for key, (_, value) in drawn.items()]
            if by_number:
                text = f"[{','.join(f'[{key},{text}]' for key, (text, _) in drawn.items())}]"
            else:
                text = "{" + ",".join(f"{json.dumps(key)}:{text}" for key, (text, _) in drawn.items()) + "}"
            return text, BAD if bad else pairs

        return types.GenericAlias(dict, (int if by_number else str, declared)), mapped
    if shape == "any":
        return rel.Json, lambda: _any(chance, 0)
    choices = [(t, v) for t, v in _texts_of(name) if has_bad or v is not BAD]
    declared = KINDS[name].declared
    return declared if isinstance(declared, type) else Annotated[object, declared], lambda: chance.choice(choices)


def _is_nullable(declared: Any) -> bool:
    return declared is rel.Json


def _arrow(declared: Any) -> Any:
    from rayelastic.graph.records.annotations import form_of

    form = form_of(declared)
    assert form is not None
    return pa.json_() if declared is rel.Json else form.arrow


def _any(chance: random.Random, depth: int) -> tuple[str, Any]:
    """Any JSON: its text, and what json.loads makes of it."""
    kind = chance.choice(["text", "number", "truth", "null"] + ["list", "object"] * (depth < 3))
    if kind == "list":
        items = [_any(chance, depth + 1) for _ in range(chance.randint(0, 3))]
        return f"[{','.join(t for t, _ in items)}]", [v for _, v in items]
    if kind == "object":
        parts = [(name, _any(chance, depth + 1)) for name in chance.sample(NAMES, chance.randint(0, 3))]
        return _object(chance, [(n, t) for n, (t, _) in parts]), {n: v for n, (_, v) in parts}
    text = {
        "text": json.dumps(chance.choice(TEXTS)[0]), "null": "null", "truth": chance.choice(["true", "false"]),
        "number": chance.choice(["0", "-1", "1.50", "18446744073709551616", "1e5", "0.1", "9007199254740993"]),
    }[kind]  # fmt: skip
    return text, json.loads(text)


def _declared(chance: random.Random) -> Program:
    count, has_bad = chance.randint(1, 5), chance.random() < 0.5
    names, renaming = fields(chance, count)
    columns = [_value(chance, chance.choice(list(KINDS)), has_bad) for _ in names]
    nullable = [chance.random() < 0.6 or kind is rel.Json for kind, _ in columns]
    lines: list[str | bytes] = []
    rows, bad = [], []
    for _ in range(chance.randint(0, 12)):
        if has_bad and chance.random() < 0.15:
            again = json.dumps(names[0])
            junk: list[str | bytes] = [*JUNK, b'{"a":"\xff"}', f"{{{again}:null,{again}:null}}"]
            lines.append(chance.choice(junk))
            bad.append((0, len(lines)))
            continue
        parts, values = [], []
        for name, (_, draw), optional in zip(names, columns, nullable, strict=True):
            if chance.random() < 0.15 and (optional or has_bad):
                parts += [(name, "null")] if chance.random() < 0.5 else []
                values.append(None if optional else BAD)
                continue
            text, value = draw()
            parts.append((name, text))
            values.append(value)
        if chance.random() < 0.1:
            parts.append(("never declared", chance.choice(["1", '{"x": []}', '"text"'])))
        lines.append(chance.choice(SPACES) + _object(chance, parts) + chance.choice(SPACES))
        if any(value is BAD for value in values):
            bad.append((0, len(lines)))
        else:
            rows.append(tuple(values))
        if chance.random() < 0.05:
            lines.append(chance.choice(["", "  "]))
    types = {(renaming or {}).get(n, n): _or_none(k, o) for n, (k, _), o in zip(names, columns, nullable, strict=True)}
    options: dict[str, Any] = {
        "schema": types,
        "on_bad_row": chance.choice(["fail", "skip", "divert"]) if bad else "fail",
    }
    if renaming is not None:
        options["columns"] = renaming
    content, more = _content(chance, lines)
    return Program("json", [packed(chance, content)], {**options, **more}, Expected(rows, bad))


def _or_none(declared: Any, optional: bool) -> Any:
    return declared | None if optional and declared is not rel.Json else declared


def _content(chance: random.Random, lines: list[str | bytes]) -> tuple[bytes, dict[str, Any]]:
    end = chance.choice(["\n", "\n", "\r\n"])
    last = end if chance.random() < 0.8 and lines else ""
    if any(isinstance(line, bytes) for line in lines):
        return end.encode().join(one if isinstance(one, bytes) else one.encode() for one in lines) + last.encode(), {}
    return encoded(chance, end.join(map(str, lines)) + last)


# --- nothing is declared ----------------------------------------------------------------------------------------------

KEYS = ("a", "b", "c", "x", "@id", "late")


def _draw(chance: random.Random, wild: bool, depth: int = 0) -> Any:
    """What draws values of one kind, as texts."""
    kinds = ["whole", "fraction", "text", "truth", "null"] + ["list", "object"] * (depth < 3)
    kind = chance.choice(kinds)
    if kind == "list":
        draw = _draw(chance, wild, depth + 1)
        return lambda: f"[{','.join(draw() for _ in range(chance.randint(0, 3)))}]"
    if kind == "object":
        inner = {
            name: _draw(chance, wild, depth + 1)
            for name in chance.sample(KEYS if wild else KEYS[:4], chance.randint(1, 3))
        }
        return lambda: _object(chance, [(n, d()) for n, d in inner.items() if chance.random() < 0.9])
    if wild and chance.random() < 0.1:
        return lambda: _any(chance, depth)[0]
    texts = {
        "whole": ["0", "-1", "42", "9007199254740993", "9223372036854775807", "-9223372036854775808"] + ["18446744073709551615"] * wild,
        "fraction": ["1.5", "-0.0", "0.1", "1e3", "5e-324", "7", "9007199254740992"] + ["9007199254740993", "1e400"] * wild,
        "text": [json.dumps(text) for text, _ in TEXTS],
        "truth": ["true", "false"],
        "null": ["null"],
    }[kind]  # fmt: skip
    return lambda: chance.choice(texts) if chance.random() < 0.9 else "null"


def _inferred(chance: random.Random) -> Program:
    wild = chance.random() < 0.5
    names, renaming = fields(chance, chance.randint(1, 5))
    draws = {name: _draw(chance, wild) for name in names}
    lines: list[str | bytes] = []
    parsed: list[dict[str, Any]] = []
    for _ in range(chance.randint(1, 12)):
        present = [(name, draw()) for name, draw in draws.items() if chance.random() < 0.85]
        if wild and chance.random() < 0.1:
            present.append(("late", chance.choice(["1", '"x"'])))
        lines.append(_object(chance, present))
        parsed.append(json.loads(str(lines[-1]), parse_float=Decimal))
    options: dict[str, Any] = {"on_bad_row": "fail"}
    if renaming is not None:
        options["columns"] = {name: field for name, field in renaming.items() if any(name in row for row in parsed)}
    content, more = _content(chance, lines)
    has = [name for name in dict.fromkeys(n for row in parsed for n in row) if renaming is None or name in renaming]
    problem = not has or any(_problem([row.get(name) for row in parsed]) for name in has)

    def check(rows: list[tuple[Any, ...]], schema: Any) -> str | None:
        if problem:
            return "read, though it has values that no type holds as they are"
        if len(rows) != len(parsed):
            return f"{len(rows)} rows of {len(parsed)}"
        chosen = list(options.get("columns", has))
        for row, values in zip(rows, parsed, strict=True):
            for name, value in zip(chosen, row, strict=True):
                if not alike(values.get(name), value):
                    return f"{value!r} of {name!r} for {values.get(name)!r}"
        return None

    return Program(
        "json", [packed(chance, content)], {**options, **more}, Expected(None, may_fail=problem, check=check)
    )


def _problem(values: list[Any]) -> bool:
    """Whether no type holds all values as they are."""
    values = [value for value in values if value is not None]
    kinds = {"number" if type(value) in (int, Decimal) else type(value).__name__ for value in values}
    if len(kinds) > 1:
        return True
    if kinds == {"number"}:
        is_float = any(isinstance(v, Decimal) for v in values) or any(not -(1 << 63) <= v < 1 << 63 for v in values)
        wide = any(isinstance(v, int) and (abs(v) > 10**300 or int(float(v)) != v) for v in values)
        return is_float and (wide or any(isinstance(v, Decimal) and abs(v) > Decimal("1.8e308") for v in values))
    if kinds == {"list"}:
        return _problem([item for value in values for item in value])
    if kinds == {"dict"}:
        names = dict.fromkeys(name for value in values for name in value)
        bad = any(not is_field_name(name) for name in names)
        return not names or bad or any(_problem([value.get(name) for value in values]) for name in names)
    return False


def alike(written: Any, read: Any) -> bool:
    """Whether a value that was inferred is what JSON says."""
    if isinstance(written, bool) or written is None or isinstance(written, str):
        return type(written) is type(read) and written == read
    if isinstance(written, int):
        return type(read) in (int, float) and not isinstance(read, bool) and int(read) == written
    if isinstance(written, Decimal):
        return type(read) is float and repr(float(written)) == repr(read)
    if isinstance(written, list):
        return isinstance(read, list) and len(read) == len(written) and all(map(alike, written, read))
    return (
        isinstance(read, dict)
        and set(written) <= set(read)
        and all(alike(written.get(name), one) for name, one in read.items())
    )
