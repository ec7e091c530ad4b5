"""Explains why a function can't be compiled, from this compiler's own reasons or from Numba's error, with the line.

A reason travels through Numba's errors as one line of JSON: `packed` writes it, `plain_reason` reads it. The first line
of Numba's error has the pass that failed; the useful one is the second (findings section 4).
"""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from rayelastic.errors import ErrorCode, LaneError
from rayelastic.reasons import Code, Reason

__all__ = [
    "Code",
    "NotCompiledError",
    "Reason",
    "compiled_reason",
    "missing_schema",
    "not_compiled",
    "packed",
    "plain_reason",
    "reason_in_method",
    "text_of",
]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACES = (re.compile(r'File "([^"]+)", line (\d+)'), re.compile(r"at (\S+) \((\d+)\)"), re.compile(r"\((\S+):(\d+)\)"))
_PACKED = re.compile(r'\{"code": "[a-z_]+".*\}')
_NOT_FOUND = r"[Nn]o implementation of function Function\(<"
_CALLED = r" found for signature:\s*>>> \w+(\([^\n]*\))"
_ASSIGNED = r"intrinsic _set_field[\s\S]*?\((\w+)#[^\n]*?, Literal\[str\]\((\w+)\)"
_WORDS: dict[str, str | tuple[Code, dict[str, str]]] = {  # {Numba's words: what isn't compiled, or another reason}
    _ASSIGNED: r"assigning '\2' of a \1 that the function made",
    r"exception_match|Exception matching|'Tuple' object has no attribute 'exc_class'": (Code.CATCHES_UNKNOWN, {}),
    r"Exception object cannot be stored": (Code.READS_EXCEPTION, {}),
    r"Int value is too large:? ?(-?\d*)": (Code.INTEGER_TOO_LARGE, {"value": r"\1"}),
    r"Operands must be the same type": (Code.TWO_KINDS, {"what": "a variable", "first": "int", "second": "float"}),
    r"cannot safely cast (\w+) to (\w+)": (Code.TWO_KINDS, {"what": "a dict", "first": r"\2", "second": r"\1"}),
    r"Cannot infer the type of variable '([^'.$]+)[^']*'[^\n]*imprecise": (Code.NOTHING_PUT_IN, {"what": r"'\1'"}),
    r"Cannot infer the type of variable[^\n]*imprecise": (Code.NOTHING_PUT_IN, {"what": "a list or dict"}),
    r"Dict\.value_type cannot be of type": "a dict that holds None",
    r"Dict\.key_type cannot be of type": "a dict with the key None",
    r"Undecided type": "a value of unknown kind, such as a dict of lists,",
    r"The use of yield in a closure": (Code.ITEMS_AT_ONCE, {"what": "a generator expression"}),
    r"Unsupported use of cell variable": "a function inside the function that calls itself, or changes outer names,",
    r"Illegal IR, del found": "`del` of a name",
    r"Signature mismatch": (Code.ARGUMENTS, {"what": "a function that it calls"}),
    r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'": r"\2.\1",
    r"Unknown attribute '(\w+)' of type Function\(<class '(\w+)'>": r"\2.\1",
    r"Unknown attribute '(\w+)' of type Function": r"'\1' of a class or a function",
    r"Unknown attribute '(\w+)' of type (\S+)": r"\2.\1",
    r"Cannot cast ([^:]*?) to ([^:]*?): %[^\n]*": (
        Code.TWO_KINDS,
        {"what": "a value", "first": r"\1", "second": r"\2"},
    ),
    r"Untyped global name '(\w+)'[^<]*<class '([\w.]+)'>": (Code.OUTSIDE, {"name": r"\1", "kind": r"\2"}),
    r"Untyped global name '(\w+)'": r"'\1' outside the function",
    r"NameError: name '(\w+)' is not defined": (Code.UNDEFINED, {"name": r"\1"}),
    r"Invalid use of getiter with parameters \(dict ([\w.]+)#\d+\)": (
        Code.WRITE_INSTEAD,
        {"what": r"taking the items of '\1'", "instead": "its keys(), or make it a tuple"},
    ),
    r"Invalid use of getiter with parameters \(([^()]*)\)": r"taking the items of \1",
    r"isinstance\([^\n]*Function\(<": "isinstance(..) of this class",
    r"list\([^\n]* as value is forbidden": "a dict of lists",
    r"format spec in f-strings not supported": "an f-string with such a format",
    r"Variable '(\w+)' is not defined": (Code.UNASSIGNED, {"name": r"\1"}),
    r"Type of variable '([^'.$]+)[^']*' cannot be determined": (Code.KIND_UNKNOWN, {"what": r"'\1'"}),
    r"Type of variable '[^']*' cannot be determined": (Code.KIND_UNKNOWN, {"what": "a value"}),
    r"No conversion from [^\n]*": (Code.MIXED_KINDS, {"what": "values"}),
    _NOT_FOUND + r"(?:built-in function|class) '?(\w+)'?>\)" + _CALLED: r"\1\2",
    _NOT_FOUND + r"(?:intrinsic|function) (\w+)[^\n]*" + _CALLED: r"\1\2",
    r"Cannot unify ([^\n]*?) and ([^\n]*?) for '([^'.]+)[^']*'": (
        Code.TWO_KINDS,
        {"what": r"'\3'", "first": r"\1", "second": r"\2"},
    ),
    r"Cannot request literal type|non-constant": (Code.CONSTANT_ONLY, {"what": "it", "argument": "value here"}),
    r"(?:Use of unsupported opcode \(|unsupported (?:opcode:|bytecode) )(\w+)": r"Python's \1",
}
_PATTERNS = tuple((re.compile(said), meant) for said, meant in _WORDS.items())
_NOISE = re.compile(
    r"^(Failed in \w+ mode pipeline.*|- Resolution failure.*|During: .*|There (is|are) \d+ candidate.*|None|)$"
)


class NotCompiledError(Exception):
    """The reason why a function isn't compiled.

    Args:
        reason: Its code and values; `where` is the line.
        lasting: Whether it would fail at another time as well.
    """

    def __init__(self, reason: Reason, *, lasting: bool = True) -> None:
        super().__init__(text_of(reason))
        self.reason, self.lasting = reason, lasting


def packed(code: Code = Code.UNSUPPORTED, **values: Any) -> str:
    """Return a reason as one line of JSON, as the message of an error.

    >>> packed(what="str.maketrans")
    '{"code": "unsupported", "what": "str.maketrans"}'
    """
    return json.dumps(code(**values).as_dict(), default=str)


def text_of(reason: Reason) -> str:
    """Return one line without a full stop: what isn't compiled, in which method, and where.

    >>> text_of(Code.UNSUPPORTED(what="print", method="on_time", where="job.py:3: print(t)"))
    "on_time: print isn't compiled (job.py:3: print(t))"
    """
    method, where = reason.values.get("method"), reason.values.get("where")
    return (f"{method}: " if method else "") + str(reason) + (f" ({where})" if where else "")


def not_compiled(reason: Reason) -> LaneError:
    """Return the error of a function that has to be compiled and can't be."""
    return LaneError(
        f"it can't be compiled: {text_of(reason)}",
        hint=f"{_install(reason) or 'Change that'}, or use lane='python'",
        code=ErrorCode.NOT_COMPILED,
        details=reason.as_dict(),
    )


def reason_in_method(error: Exception, name: str, method: Any) -> Reason:
    """Return why a method of an object isn't compiled, from what its compilation raised."""
    if not isinstance(error, LaneError):
        reason = plain_reason(error, method)
    else:
        reason = Reason.from_dict(error.details) if error.details else Code.COMPILER_SAYS(error=error.problem)
    return reason.code(**reason.values, method=name)


def plain_reason(error: BaseException, function: Callable[..., Any], problem: Reason | None = None) -> Reason:
    """Return what isn't compiled, and where.

    Args:
        error: The compiler's exception.
        function: The user's function.
        problem: A better reason than Numba's, if there is one.
    """
    text = _COLOUR.sub("", str(error))
    reason = problem or _reason_in(text)
    values = {
        name: _in_python_types(value) if isinstance(value, str) else value for name, value in reason.values.items()
    }
    return reason.code(**values, where=_source_line(text, function))


_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and_": "&", "or_": "|", "xor": "^",
}  # fmt: skip
_PYTHON_TYPES: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"Literal\[int\]": "int",
    r"value \+?e<(?:[^;>]*\.)?(\w+);[^>]*>": r"a member of the enum \1",
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
    r"'\$\w+'": "a value",
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
    """Return a text with Python's names of types in place of Numba's.

    >>> _in_python_types("setitem(DictType[unicode_type,int64]<iv=None>, unicode_type, none)")
    'dict[str, int][str] = None'
    """
    for pattern, meant in _TYPES:
        text = pattern.sub(meant, text)
    return text


def missing_schema(reason: Reason | None) -> str:
    """Return a hint for a function whose output schema is unknown.

    Args:
        reason: Why it isn't compiled, if that was tried.
    """
    if reason is not None and reason.code in (Code.RETURNS_NONE, Code.NO_RESULT):
        return "Leave tuples out by filter_map or filter: map emits one for each. Or pass schema= with '<type> | None'"
    hint = "Pass schema=, or annotate what it returns with a class of typed fields"
    return f"{_install(reason)}. Or {hint[0].lower()}{hint[1:]}" if _install(reason) else hint


def _install(reason: Reason | None) -> str:
    """Return what to install where that is all that is missing."""
    return f"Install {reason.values['package']}" if reason is not None and reason.code is Code.NO_COMPILER else ""


def _reason_in(text: str) -> Reason:
    ours = _PACKED.findall(text)
    if ours and not re.search(_ASSIGNED, text):
        return Reason.from_dict(json.loads(ours[-1]))
    for pattern, meant in _PATTERNS:
        if found := pattern.search(text):
            code, values = (Code.UNSUPPORTED, {"what": meant}) if isinstance(meant, str) else meant
            return code(**{name: found.expand(value) for name, value in values.items()})
    lines = (line.strip() for line in text.splitlines())
    return Code.COMPILER_SAYS(error=next((line.rstrip(".:") for line in lines if not _NOISE.match(line)), "no reason"))


def _source_line(text: str, function: Callable[..., Any]) -> str:
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
