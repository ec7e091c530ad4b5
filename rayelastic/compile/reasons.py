"""Why a function can't be compiled, in plain words, out of what Numba says; with the line of the user's source.

Numba's first line says which pass failed; the useful one is the second (findings section 4).
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["plain_reason", "source_line"]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACES = (re.compile(r'File "([^"]+)", line (\d+)'), re.compile(r"at (\S+) \((\d+)\)"), re.compile(r"\((\S+):(\d+)\)"))
_NOT_FOUND = r"[Nn]o implementation of function Function\(<"
_CALLED = r" found for signature:\s*>>> \w+(\([^\n]*\))"
_ASSIGNED = r"intrinsic _set_field[\s\S]*?\((\w+)#[^\n]*?, Literal\[str\]\((\w+)\)"
_WORDS = {  # what Numba says: what it means
    _ASSIGNED: r"'\2' of a \1 that the function made is assigned, which isn't compiled",
    r"exception_match|Exception matching": "it catches a named exception; `except Exception` is compiled",
    r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'": r"\2.\1 isn't compiled",
    r"Unknown attribute '(\w+)' of type (\S+)": r"\2.\1 isn't compiled",
    r"Untyped global name '(\w+)'[^<]*<class '([\w.]+)'>": r"'\1' outside the function is a \2, which isn't compiled",
    r"Untyped global name '(\w+)'": r"'\1' outside the function isn't compiled",
    r"NameError: name '(\w+)' is not defined": r"name '\1' is not defined",
    _NOT_FOUND + r"(?:built-in function|class) '?(\w+)'?>\)" + _CALLED: r"\1\2 isn't compiled",
    _NOT_FOUND + r"(?:intrinsic|function) (\w+)[^\n]*" + _CALLED: r"\1\2 isn't compiled",
    r"Cannot unify ([^\n]*?) and ([^\n]*?) for '([^'.]+)[^']*'": r"'\3' is once \1 and once \2",
    r"Cannot request literal type|non-constant": "it needs a constant where it has a variable",
    r"Use of unsupported opcode \((\w+)\)": r"it uses Python's \1, which isn't compiled",
    r"unsupported (?:opcode:|bytecode) (\w+)": r"it uses Python's \1, which isn't compiled",
}
_PATTERNS = tuple((re.compile(said), meant) for said, meant in _WORDS.items())
_NOISE = re.compile(
    r"^(Failed in \w+ mode pipeline.*|- Resolution failure.*|During: .*|There (is|are) \d+ candidate.*|None|)$"
)


def plain_reason(error: BaseException, function: Callable[..., Any], problem: str = "") -> str:
    """One line without a full stop: what isn't compiled, and where.

    Args:
        error: what the compiler raised.
        function: the user's function.
        problem: what is known better than Numba says, empty if nothing.
    """
    text = _COLOUR.sub("", str(error))
    where = source_line(text, function)
    return (problem or _first_sentence(text, error)) + (f" ({where})" if where else "")


def _first_sentence(text: str, error: BaseException) -> str:
    for pattern, words in _PATTERNS:
        found = pattern.search(text)
        if found:
            return re.sub(r"\breflected list", "list", found.expand(words).replace("Literal[int]", "int"))
    for line in text.splitlines():
        if not _NOISE.match(line.strip()):
            return line.strip().rstrip(".:")
    return type(error).__name__


def source_line(text: str, function: Callable[..., Any]) -> str:
    """The first line of the user's function that a message names, as 'file.py:12: source'; empty if it names none."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    lines = [line for *_, line in code.co_lines() if line]
    first, last = min(lines, default=0), max(lines, default=0)
    for pattern in _PLACES:
        for path, number in pattern.findall(text):
            if Path(path).name == Path(code.co_filename).name and first <= int(number) <= last:
                shown = linecache.getline(code.co_filename, int(number)).strip()
                return f"{Path(path).name}:{number}" + (f": {shown}" if shown else "")
    return f"{Path(code.co_filename).name}:{first}"
