"""Rewrites format specs, `"%s: %d" % (..)` and `"{}: {}".format(..)` as f-strings of calls; part of syntax.py."""

from __future__ import annotations

import ast
import re
import string
from typing import Any

_PERCENT = re.compile(r"%(?:%|(?P<flags>[0\- ]?)(?P<width>\d*)(?:\.(?P<precision>\d+))?(?P<kind>[sdifeg]))")


class Formats(ast.NodeTransformer):
    """Makes every formatted value a call of a function with the value and the spec as an int (`encoded`).

    Args:
        name: The function's name.
        name: of the function.

    >>> ast.unparse(Formats("put").visit(ast.parse("f'{x:.2f} of {y}'")))
    "f'{put(x, 6697518)} of {y}'"
    >>> ast.unparse(Formats("put").visit(ast.parse("'%5d: %s' % (x, y)")))
    "f'{put(x, 6567230)}: {y}'"
    >>> ast.unparse(Formats("put").visit(ast.parse("'{:>4}{}'.format(x, y)")))
    "f'{put(x, 13374)}{y}'"
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Rewrite f'..'."""
        self.generic_visit(node)
        for value in node.values:
            if isinstance(value, ast.FormattedValue) and isinstance(value.format_spec, ast.JoinedStr):
                spec = value.format_spec.values
                if all(isinstance(part, ast.Constant) for part in spec) and value.conversion in (-1, ord("s")):
                    written = "".join(str(part.value) for part in spec if isinstance(part, ast.Constant))
                    given = value.value if value.conversion == -1 else _text(value.value)
                    value.value, value.format_spec, value.conversion = self._call(given, written), None, -1
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Rewrite '..' % ..."""
        self.generic_visit(node)
        if not (
            isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        ):
            return node
        if not isinstance(node.right, ast.Tuple):
            return node  # one value, which may be a tuple
        made = self._percent(node.left.value, node.right.elts)
        return node if made is None else ast.copy_location(ast.JoinedStr(made), node)

    def _percent(self, text: str, given: list[ast.expr]) -> list[ast.expr] | None:
        parts: list[ast.expr] = []
        at, rest = 0, list(given)
        for found in _PERCENT.finditer(text):
            parts.append(ast.Constant(text[at : found.start()]))
            at = found.end()
            if found[0] == "%%":
                parts.append(ast.Constant("%"))
                continue
            if not rest:
                return None
            value, kind, flags, width = rest.pop(0), found["kind"], found["flags"], found["width"]
            precision = "" if found["precision"] is None else "." + found["precision"]
            if kind in "di" and precision:
                return None
            if kind == "s":
                value, align = _text(value), "<" if flags == "-" else ">"
                written = (align + width if width else "") + precision
            else:
                align = "<" if flags == "-" else "" if flags == "0" or not width else ">"
                sign, zero = (" " if flags == " " else ""), ("0" if flags == "0" else "")
                written = f"{align}{sign}{zero}{width}{precision}{'d' if kind == 'i' else kind}"
            plain = kind == "s" and not written
            parts.append(_formatted(given_text(value) if plain else self._call(value, written)))
        if rest or "%" in re.sub(_PERCENT, "", text):
            return None
        parts.append(ast.Constant(text[at:]))
        return _without_empty(parts)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite '..'.format(..)."""
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Name) and function.id == "format" and len(node.args) == 2 and not node.keywords:
            spec = node.args[1]
            known = isinstance(spec, ast.Constant) and isinstance(spec.value, str) and spec.value
            return self._call(node.args[0], str(known)) if known else node
        if not (isinstance(function, ast.Attribute) and function.attr == "format"):
            return node
        text = function.value
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            return node
        made = self._braces(text.value, node)
        return node if made is None else ast.copy_location(ast.JoinedStr(made), node)

    def _braces(self, text: str, node: ast.Call) -> list[ast.expr] | None:
        given: dict[str, Any] = {str(at): value for at, value in enumerate(node.args)}
        given |= {keyword.arg or "": keyword.value for keyword in node.keywords}
        parts: list[ast.expr] = []
        number = 0
        try:
            fields = list(string.Formatter().parse(text))
        except ValueError:
            return None
        for before, name, spec, conversion in fields:
            parts.append(ast.Constant(before))
            if name is None:
                continue
            if name == "":
                name, number = str(number), number + 1
            if name not in given or isinstance(given[name], ast.Starred) or conversion or "{" in (spec or ""):
                return None
            parts.append(_formatted(self._call(given[name], spec) if spec else given[name]))
        return _without_empty(parts)

    def _call(self, value: ast.expr, spec: str) -> ast.expr:
        call = ast.Call(ast.Name(self._name, ast.Load()), [value, ast.Constant(encoded(spec))], [])
        return ast.fix_missing_locations(ast.copy_location(call, value))


def encoded(spec: str) -> int:
    """Return a format spec as an int, a constant for compiled code; 0 for one that is too long."""
    raw = spec.encode()
    return int.from_bytes(raw, "little") if len(raw) < 8 else 0


def given_text(value: ast.expr) -> ast.expr:
    """Return the x of str(x), because an f-string makes it text anyway."""
    return value.args[0] if isinstance(value, ast.Call) else value


def _text(value: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(ast.Name("str", ast.Load()), [value], []), value)


def _formatted(value: ast.expr) -> ast.expr:
    return ast.copy_location(ast.FormattedValue(value, -1, None), value)


def _without_empty(parts: list[ast.expr]) -> list[ast.expr]:
    return [part for part in parts if not (isinstance(part, ast.Constant) and part.value == "")]
