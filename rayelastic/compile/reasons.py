"""Explains in plain words why a function can't be compiled, from Numba's error; with the line of the user's source.

The first line of Numba's error has the pass that failed; the useful one is the second (findings section 4).
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

__all__ = ["NotCompiledError", "compiled_reason", "missing_schema", "plain_reason", "source_line"]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACES = (re.compile(r'File "([^"]+)", line (\d+)'), re.compile(r"at (\S+) \((\d+)\)"), re.compile(r"\((\S+):(\d+)\)"))
_NOT_FOUND = r"[Nn]o implementation of function Function\(<"
_CALLED = r" found for signature:\s*>>> \w+(\([^\n]*\))"
_ASSIGNED = r"intrinsic _set_field[\s\S]*?\((\w+)#[^\n]*?, Literal\[str\]\((\w+)\)"
_WORDS = {  # {Numba's words: their meaning}
    _ASSIGNED: r"'\2' of a \1 that the function made is assigned, which isn't compiled",
    r"exception_match|Exception matching|'Tuple' object has no attribute 'exc_class'": (
        "it catches what isn't known to be exceptions' classes; their names, or a tuple of names, are compiled"
    ),
    r"Exception object cannot be stored": "it looks at the exception that it catches, which compiled code doesn't have",
    r"Int value is too large:? ?(-?\d*)": r"the constant \1 doesn't fit the 64 bits of compiled integers",
    r"Operands must be the same type": "it mixes ints and floats in one variable here; make all of one kind",
    r"cannot safely cast (\w+) to (\w+)": r"a dict that holds \2 is given \1: make all of one kind",
    r"Cannot infer the type of variable '([^'.$]+)[^']*'[^\n]*imprecise": (
        r"what '\1' holds isn't known: nothing is put in"
    ),
    r"Cannot infer the type of variable[^\n]*imprecise": "what a list or dict holds isn't known: nothing is put in",
    r"Dict\.value_type cannot be of type": "a dict would hold None",
    r"Dict\.key_type cannot be of type": "a dict would have the key None",
    r"Undecided type": "the kind of a value isn't known: a dict of lists, for example, isn't compiled",
    r"The use of yield in a closure": "a generator expression is compiled only where all its items are taken at once",
    r"Unsupported use of cell variable": (
        "a function inside the function that calls itself, or changes outer names, isn't compiled"
    ),
    r"Illegal IR, del found": "`del` of a name isn't compiled",
    r"Signature mismatch": "a function is called with another number of arguments than it takes",
    r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'": r"\2.\1 isn't compiled",
    r"Unknown attribute '(\w+)' of type Function\(<class '(\w+)'>": r"\2.\1 isn't compiled",
    r"Unknown attribute '(\w+)' of type Function": r"'\1' of a class or a function isn't compiled",
    r"Unknown attribute '(\w+)' of type (\S+)": r"\2.\1 isn't compiled",
    r"Cannot cast ([^:]*?) to ([^:]*?): %[^\n]*": r"a value is once \1 and once \2",
    r"Untyped global name '(\w+)'[^<]*<class '([\w.]+)'>": r"'\1' outside the function is a \2, which isn't compiled",
    r"Untyped global name '(\w+)'": r"'\1' outside the function isn't compiled",
    r"NameError: name '(\w+)' is not defined": r"name '\1' is not defined",
    r"Invalid use of getiter with parameters \(dict ([\w.]+)#\d+\)": (
        r"taking the items of '\1' in turn isn't compiled: name their keys(), or make it a tuple"
    ),
    r"Invalid use of getiter with parameters \(([^()]*)\)": r"taking the items of \1 isn't compiled",
    r"isinstance\([^\n]*Function\(<": "isinstance(..) of this class isn't compiled",
    r"list\([^\n]* as value is forbidden": "a dict of lists isn't compiled",
    r"format spec in f-strings not supported": "an f-string with such a format isn't compiled",
    r"Variable '(\w+)' is not defined": r"'\1' may have no value here",
    r"Type of variable '([^'.$]+)[^']*' cannot be determined": r"what '\1' is can't be told",
    r"Type of variable '[^']*' cannot be determined": "what a value is here can't be told",
    r"No conversion from [^\n]*": "values of different kinds meet here",
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


class NotCompiledError(Exception):
    """The reason why a function isn't compiled.

    Args:
        reason: One sentence without a full stop.
        lasting: Whether it would fail at another time as well.
    """

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        super().__init__(reason)
        self.lasting = lasting


def plain_reason(error: BaseException, function: Callable[..., Any], problem: str = "") -> str:
    """Return one line without a full stop: what isn't compiled, and where.

    Args:
        error: The compiler's exception.
        function: The user's function.
        problem: A better reason than Numba's, empty if there is none.
    """
    text = _COLOUR.sub("", str(error))
    where = source_line(text, function)
    return _in_python_types(problem or _first_sentence(text)) + (f" ({where})" if where else "")


_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and_": "&", "or_": "|", "xor": "^",
}  # fmt: skip
_PYTHON_TYPES: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"'inner' outside the function is a numba[\w.]+, which isn't compiled": (
        "what it returns isn't known to be tuples: yield them, or return a list"
    ),
    r"<iv=(?:None|\{[^}]*\})>": "",
    r"\b(\w+)(?:\.state)?#\d+": r"\1",
    r"\bLiteral\[\w+\]\(([^()]*)\)": r"\1",
    r"\b(?:reflected )?(list|set)\(([^()]*)\)": r"\1[\2]",
    r"\b(?:Dict|List|Set)Type\[": lambda found: f"{found[0][:-5].lower()}[",
    r"\bUniTuple\((.+?) x \d+\)": r"tuple[\1, ...]",
    r"\bTuple\(([^()]*)\)": r"tuple[\1]",
    r"\b(?:OptionalType|Optional)\(([^()]*)\)|\?(\w+)": lambda found: f"{found[1] or found[2]} | None",
    r"\bunicode_type\b": "str",
    r"(?<![\w.])uint(?:8|16|32|64)\b": "unsigned int",
    r"(?<![\w.])(int|float)(?:8|16|32|64)\b": r"\1",
    r"(?<![\w.])boolean\b": "bool",
    r"\bbytes view\b": "bytes",
    r"\bnone\b": "None",
    r"(?:Poison<)+LiteralList\(\(([^()]*)\)\)>+": r"list[\1]",
    r"\b(int|bool|str)\((?:-?\d+|True|False|'[^']*')\)": r"\1",
    r"'\$\w+' is once": "a value is once",
    r"\brange_state_\w+": "range",
    r"\blisted\(": "list(",
    rf"\b({'|'.join(_SIGNS)})\(([^(),]*), ([^(),]*)\)": lambda found: f"{found[2]} {_SIGNS[found[1]]} {found[3]}",
    r"\btype\(CPUDispatcher\(<function (\w+)[^)]*\)\)": r"\1",
    r"\bgetitem\(([^()]*), ([^(),]*)\)": r"\1[\2]",
    r"\b(?:static_)?setitem\(([^()]*), ([^(),]*), ([^(),]*)\)": r"\1[\2] = \3",
    r",(?=\w)": ", ",
}
_TYPES = tuple((re.compile(said), meant) for said, meant in _PYTHON_TYPES.items())


def _in_python_types(text: str) -> str:
    """Return a sentence with Python's names of types in place of Numba's.

    >>> _in_python_types("setitem(DictType[unicode_type,int64]<iv=None>, unicode_type, none) isn't compiled")
    "dict[str, int][str] = None isn't compiled"
    """
    for pattern, meant in _TYPES:
        text = pattern.sub(meant, text)
    return text


def missing_schema(reason: str) -> str:
    """Return a hint for a function whose output schema is unknown.

    Args:
        reason: Why it isn't compiled.
    """
    if re.search(r"(?:returns|yields) None|never returns a value", reason):
        return "Leave tuples out by filter_map or filter: map emits one for each. Or pass schema= with '<type> | None'"
    return "Pass schema=, or annotate what it returns with a class of typed fields"


_OURS = re.compile(r"TypingError: ([^\n]+)\n\s*raised from \S*/rayelastic/compile/")


_MEMBER = re.compile(r"value \+?e<(?:[^;>]*\.)?(\w+);[^>]*>")


def _first_sentence(text: str) -> str:
    ours = _OURS.findall(text)
    if ours and not re.search(_ASSIGNED, text):
        return str(ours[-1])
    for pattern, words in _PATTERNS:
        found = pattern.search(text)
        if found:
            said = found.expand(words).replace("Literal[int]", "int")
            said = _MEMBER.sub(r"a member of the enum \1", said)
            return re.sub(r"\breflected list", "list", said)
    for line in text.splitlines():
        if not _NOISE.match(line.strip()):
            return line.strip().rstrip(".:")
    return "the compiler can't take something here"


def source_line(text: str, function: Callable[..., Any]) -> str:
    """Return the user's line in a message, as 'file.py:12: source'; empty if it names none."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    lines = [line for *_, line in code.co_lines() if line]
    first, last = min(lines, default=0), max(lines, default=0)
    for pattern in _PLACES:
        for path, number in pattern.findall(text):
            if Path(path).name == Path(code.co_filename).name and first <= int(number) <= last:
                shown = _shown(code, int(number))
                return f"{Path(path).name}:{number}" + (f": {shown}" if shown else "")
    return f"{Path(code.co_filename).name}:{first}"


def _shown(code: CodeType, number: int) -> str:
    """Return a line of source; of a lambda, which may share it with others, only its own part."""
    line = linecache.getline(code.co_filename, number)
    if code.co_name != "<lambda>":
        return line.strip()
    raw = line.encode()
    spans = [(a, b) for top, end, a, b in code.co_positions() if top == end == number and a is not None and b]
    spans = [(a, b) for a, b in spans if b > a]
    return raw[min(a for a, _ in spans) : max(b for _, b in spans)].decode(errors="replace") if spans else line.strip()


def compiled_reason(frozen: Sequence[str]) -> str:
    """Return the reason that `explain` shows for a compiled function.

    >>> compiled_reason(["LIMIT", "RULES"])
    'compiled to machine code; LIMIT, RULES as at declaration'
    """
    return "compiled to machine code" + (f"; {', '.join(frozen)} as at declaration" if frozen else "")
