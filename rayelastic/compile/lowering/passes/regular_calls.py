r"""Calls of `re`'s functions and of patterns' sub over Numba's IR: with a constant pattern, flags and replacement.

`re.search(r"..", t.s, re.I)` becomes `search` of the compiled pattern, `p.sub(r"\1", t.s)` a call of a substitution
that combines pattern and replacement.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from typing import Any

from numba.core import ir, types
from numba.core.errors import UnsupportedError

from rayelastic.compile.lowering.base.declare import constants
from rayelastic.compile.lowering.regular import matches as regular
from rayelastic.compile.lowering.regular import scanning
from rayelastic.compile.lowering.regular.patterns import NoPatternError
from rayelastic.compile.lowering.times import text as moment_text
from rayelastic.compile.reasons import Code, packed

_PARAMETERS = {
    re.compile: ("pattern",),
    re.search: ("pattern", "string"),
    re.match: ("pattern", "string"),
    re.fullmatch: ("pattern", "string"),
    re.findall: ("pattern", "string"),
    re.finditer: ("pattern", "string"),
    re.split: ("pattern", "string", "maxsplit"),
    re.sub: ("pattern", "repl", "string", "count"),
}


class ModuleFunction:
    """A function of `re`."""

    def __init__(self, function: Any) -> None:
        self.name, self.parameters = function.__name__, (*_PARAMETERS[function], "flags")


class ModuleFunctionType(types.Type):
    """No value: calls of it are replaced."""


constants(ModuleFunction, ModuleFunctionType, lambda value: ModuleFunctionType(name=f"re.{value.name}"))


FUNCTIONS: dict[Any, Any] = {function: ModuleFunction(function) for function in _PARAMETERS}


def of_patterns(func_ir: Any, statement: Any) -> Iterator[Any]:
    """Return the statements before a call of `re` or of a pattern, which is changed in place.

    Raises:
        UnsupportedError: An argument that must be constant isn't, or can't be compiled.
    """
    call = statement.value
    called = _constant_of(func_ir, call.func)
    if isinstance(called, moment_text.ClassMethod):
        yield from _of_moments(func_ir, statement)
    if isinstance(called, ModuleFunction):
        yield from _of_module(func_ir, statement, called)
        call = statement.value
    if not isinstance(call, ir.Expr):
        return
    method = func_ir._definitions[call.func.name][0] if func_ir._definitions[call.func.name] else None
    if not (isinstance(method, ir.Expr) and method.op == "getattr"):
        return
    if method.attr == "strftime":
        yield from _formatted(func_ir, statement, method)
        return
    pattern = _constant_of(func_ir, method.value)
    if not isinstance(pattern, regular.Pattern):
        return
    if method.attr == "sub":
        yield from _substituted(func_ir, statement, pattern)
        method.attr = "search"  # never called, but it needs a type
    elif method.attr == "finditer" and not _is_walked_once(func_ir, statement.target):
        raise UnsupportedError(
            packed(Code.WRITE_INSTEAD, what="finditer() elsewhere", instead="`for m in ..`, or findall()"), call.loc
        )


def _constant_of(func_ir: Any, variable: Any) -> Any:
    """Return the value of a variable if it is known, else None."""
    try:
        made = func_ir.get_definition(variable)
    except KeyError:
        return None
    if isinstance(made, ir.Global | ir.FreeVar | ir.Const):
        return made.value
    if isinstance(made, ir.Expr) and made.op == "binop" and made.fn in (operator.or_, operator.add):
        left_value, other = _constant_of(func_ir, made.lhs), _constant_of(func_ir, made.rhs)
        same = all(isinstance(value, int) for value in (left_value, other)) or all(
            isinstance(value, str) for value in (left_value, other)
        )
        return made.fn(left_value, other) if same else None
    return None


def _of_module(func_ir: Any, statement: Any, function: ModuleFunction) -> Iterator[Any]:
    """Rewrite re.f(pattern, ..) as a method of the pattern."""
    call, shown = statement.value, f"re.{function.name}(..)"
    given = dict(zip(function.parameters, call.args, strict=False)) | dict(call.kws)
    if call.vararg is not None or len(call.args) > len(function.parameters) or set(given) - set(function.parameters):
        raise UnsupportedError(packed(Code.ARGUMENTS, what=shown), call.loc)
    flags = _constant_of(func_ir, given["flags"]) if "flags" in given else 0
    pattern = _constant_of(func_ir, given["pattern"]) if "pattern" in given else None
    if isinstance(pattern, regular.Pattern) and flags == 0:
        known = pattern
    elif isinstance(pattern, str) and isinstance(flags, int):
        known = _compiled(str(pattern), flags, shown, call.loc)
    else:
        raise UnsupportedError(packed(Code.CONSTANT_ONLY, what=shown, argument="pattern and flags"), call.loc)
    constant = ir.Global(shown, known, call.loc)
    if function.name == "compile":
        statement.value = constant
        func_ir._definitions[statement.target.name] = [constant]
        return
    scope, number = statement.target.scope, id(statement)
    owner, method = ir.Var(scope, f"$pattern.{number}", call.loc), ir.Var(scope, f"$search.{number}", call.loc)
    attribute = ir.Expr.getattr(owner, function.name, call.loc)
    func_ir._definitions[owner.name], func_ir._definitions[method.name] = [constant], [attribute]
    yield ir.Assign(constant, owner, call.loc)
    yield ir.Assign(attribute, method, call.loc)
    call.func, call.args = method, [given[name] for name in function.parameters[1:-1] if name in given]
    call.kws = ()


def _compiled(pattern: str, flags: int, shown: str, loc: Any) -> regular.Pattern:
    try:
        return regular.constant(re.compile(pattern, flags))
    except (re.error, ValueError) as error:
        raise UnsupportedError(packed(Code.INVALID, what=f"the pattern of {shown}", error=error), loc) from None
    except NoPatternError as error:
        raise UnsupportedError(error.of(shown), loc) from None


def _substituted(func_ir: Any, statement: Any, pattern: regular.Pattern) -> Iterator[Any]:
    """Rewrite pattern.sub(replacement, text[, count])."""
    call = statement.value
    given = dict(zip(("repl", "string", "count"), call.args, strict=False)) | dict(call.kws)
    replacement = _constant_of(func_ir, given["repl"]) if "repl" in given else None
    if not isinstance(replacement, str) or "string" not in given:
        raise UnsupportedError(packed(Code.CONSTANT_ONLY, what="sub()", argument="replacement"), call.loc)
    try:
        known = scanning.substitution(pattern, str(replacement))
    except NoPatternError as error:
        raise UnsupportedError(error.of("sub()"), call.loc) from None
    scope, number = statement.target.scope, id(statement)
    made, function = ir.Var(scope, f"$substitution.{number}", call.loc), ir.Var(scope, f"$sub.{number}", call.loc)
    yield ir.Assign(ir.Global("sub", known, call.loc), made, call.loc)
    yield ir.Assign(ir.Global("sub", scanning.sub, call.loc), function, call.loc)
    call.func, call.args, call.kws = function, [made, *(given[n] for n in ("string", "count") if n in given)], ()


def _of_moments(func_ir: Any, statement: Any) -> Iterator[Any]:
    """Rewrite datetime.strptime(text, format)."""
    call = statement.value
    form = _constant_of(func_ir, call.args[1]) if len(call.args) == 2 and not call.kws else None
    if not isinstance(form, str):
        raise UnsupportedError(packed(Code.CONSTANT_ONLY, what="strptime", argument="format"), call.loc)
    try:
        known = moment_text.parser(str(form))
    except NoPatternError as error:
        raise UnsupportedError(error.of("strptime"), call.loc) from None
    scope, number = statement.target.scope, id(statement)
    made, function = ir.Var(scope, f"$format.{number}", call.loc), ir.Var(scope, f"$strptime.{number}", call.loc)
    yield ir.Assign(ir.Global("format", known, call.loc), made, call.loc)
    yield ir.Assign(ir.Global("strptime", moment_text.parsed, call.loc), function, call.loc)
    call.func, call.args = function, [made, call.args[0]]


def _formatted(func_ir: Any, statement: Any, method: Any) -> Iterator[Any]:
    """Rewrite value.strftime(format)."""
    call = statement.value
    form = _constant_of(func_ir, call.args[0]) if len(call.args) == 1 and not call.kws else None
    if not isinstance(form, str):
        raise UnsupportedError(packed(Code.CONSTANT_ONLY, what="strftime", argument="format"), call.loc)
    try:
        moment_text.check_format(str(form))
    except NoPatternError as error:
        raise UnsupportedError(error.of("strftime"), call.loc) from None
    function = ir.Var(statement.target.scope, f"$strftime.{id(statement)}", call.loc)
    yield ir.Assign(ir.Global("strftime", moment_text.written, call.loc), function, call.loc)
    call.func, call.args = function, [method.value, call.args[0]]


def _is_walked_once(func_ir: Any, variable: Any) -> bool:
    """Return whether a variable has only one iterator, at the same place: a second one would start anew."""
    used = [
        statement
        for block in func_ir.blocks.values()
        for statement in block.body
        if not isinstance(statement, ir.Del)
        and not (isinstance(statement, ir.Assign) and statement.target.name == variable.name)
        and any(variable_read.name == variable.name for variable_read in statement.list_vars())
    ]
    if (
        len(used) != 1
        or not isinstance(used[0], ir.Assign)
        or not (variable.name.startswith("$") or "rel_items" in variable.name)
    ):
        return False
    value = used[0].value
    if isinstance(value, ir.Var):
        return _is_walked_once(func_ir, used[0].target)
    return isinstance(value, ir.Expr) and value.op == "getiter"
