"""bytes.decode, str.encode, bytes.hex and str.translate.

The codec and its error handler are constant texts, for which Numba has no types of this project. So calls are rewritten
first: `x.decode("ascii", "ignore")` becomes `x.decode(rel_codec=1, rel_on_error=1)`.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any

from numba.core import ir

from rayelastic.compile.lowering.base.declare import overloads_method, primitive
from rayelastic.compile.lowering.base.services import service
from rayelastic.compile.lowering.base.tables import TableType
from rayelastic.compile.lowering.base.views import BYTES, TEXT, ViewType
from rayelastic.compile.lowering.text.methods import Argument, Method, declare
from rayelastic.compile.lowering.text.unicode_tables import replacements

_CODECS = {"utf-8": 0, "ascii": 1, "iso8859-1": 2}  # rel_text_codec, by codecs.lookup(..).name
_ON_ERROR = {"strict": 0, "ignore": 1, "replace": 2}  # rel_text_on_error
_ARGUMENTS = (Argument("rel_codec", int, 0, by_name=True), Argument("rel_on_error", int, 0, by_name=True))

declare(
    "decode",
    Method("rel_text_decode", _ARGUMENTS, lambda view: (), TEXT, raises=(UnicodeDecodeError,), of=("bytes",)),
)
declare(
    "encode", Method("rel_text_encode", _ARGUMENTS, lambda view: (), BYTES, raises=(UnicodeEncodeError,), of=("str",))
)
declare("hex", Method("rel_text_hex", (), lambda view: (), TEXT, of=("bytes",)))


def name_codecs(block: Any, definition: Any) -> None:
    """Rewrite calls of decode and encode in a block of Numba's IR.

    Args:
        block: A block of a function.
        definition: Returns what a variable is assigned; None if it has several assignments.
    """
    body: list[Any] = []
    for statement in block.body:
        call = statement.value if isinstance(statement, ir.Assign) else None
        if isinstance(call, ir.Expr) and call.op == "call" and (call.args or call.kws):
            method = definition(call.func)
            if isinstance(method, ir.Expr) and method.op == "getattr" and method.attr in ("decode", "encode"):
                body.extend(_numbered(block, call, definition))
        body.append(statement)
    block.body = body


def _numbered(block: Any, call: Any, definition: Any) -> Iterator[Any]:
    """Change a call with known constants; yield the statements that make its new arguments."""
    given = dict(zip(("encoding", "errors"), call.args, strict=False)) | dict(call.kws)
    made = {name: definition(variable) for name, variable in given.items()}
    if not set(made) <= {"encoding", "errors"} or len(call.args) > 2:
        return
    if not all(isinstance(value, ir.Const) and isinstance(value.value, str) for value in made.values()):
        return
    try:
        codec = codecs.lookup(made["encoding"].value).name if "encoding" in made else "utf-8"
    except LookupError:
        return
    on_error = made["errors"].value if "errors" in made else "strict"
    if codec not in _CODECS or on_error not in _ON_ERROR:
        return
    numbers = {"rel_codec": _CODECS[codec], "rel_on_error": _ON_ERROR[on_error]}
    call.args = []
    call.kws = tuple((name, ir.Var(block.scope, f"${name}.{id(call)}", call.loc)) for name in numbers)
    for name, variable in call.kws:
        yield ir.Assign(ir.Const(numbers[name], call.loc), variable, call.loc)


@overloads_method(ViewType, "translate")
def _translate(text: Any, table: Any) -> Any:
    """Translate with a dict of characters outside the function, as str.maketrans makes it."""
    if text != TEXT or not isinstance(table, TableType):
        return None
    raw = replacements(dict(zip(table.table.keys, table.table.values, strict=False)))
    if raw is None:
        return None

    @primitive
    def translated(typingctx: Any, text: Any) -> Any:
        return service("rel_text_translate", TEXT(text), raw)

    return lambda text, table: translated(text)
