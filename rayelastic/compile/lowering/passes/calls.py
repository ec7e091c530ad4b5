"""Uses of outside objects in a user's function, over Numba's IR: calls, changes, and uses as values.

Attributes are read before (constants.py). A call of a dataclass makes an instance (instances.py).
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import dataclasses
import enum
import operator
from collections.abc import Callable, Iterator
from typing import Any

from numba.core import ir
from numba.core.errors import UnsupportedError

from rayelastic.compile.lowering.base import tables
from rayelastic.compile.lowering.numbers.whole_numbers import check_range
from rayelastic.compile.lowering.passes import objects, regular_calls
from rayelastic.compile.lowering.passes.constants import definition, literal
from rayelastic.compile.lowering.records import instances
from rayelastic.compile.reading.bound import is_callable_object
from rayelastic.compile.reasons import Code, packed

_COMPARISONS = (operator.eq, operator.ne, operator.contains, operator.lt, operator.le, operator.gt, operator.ge)


def of_objects(func_ir: Any, statement: Any, helper: Callable[[Any], Any]) -> Iterator[Any]:
    """Return the statements that replace one: properties and objects are called, Enum members become their values.

    Args:
        func_ir: The function.
        statement: One of its statements, with its attributes already read.
        helper: Makes a dispatcher of a callee.
    """
    value = statement.value if isinstance(statement, ir.Assign) else None
    if isinstance(value, ir.Global | ir.FreeVar) and isinstance(value.value, objects.Computed):
        callee = ir.Var(statement.target.scope, f"$property.{id(statement)}", statement.loc)
        yield ir.Assign(ir.Global(value.name, value.value.function, value.loc), callee, statement.loc)
        statement.value = ir.Expr.call(callee, [], (), value.loc)
    elif isinstance(value, ir.Global | ir.FreeVar) and isinstance(value.value, objects.Frozen):
        member = value.value.value
        if isinstance(member, enum.Enum) and (uses := list(_uses(func_ir, statement.target))):
            compared = [_compares(func_ir, use) for use in uses]
            known = literal(objects.member_value(member, compared, value.name, value.loc))
            statement.value = ir.Global(value.name, known, value.loc)
    elif isinstance(value, ir.Expr) and value.op == "call":
        if len(value.args) > 1 and getattr(definition(func_ir, value.func), "value", None) is range:
            yield from _checked_range(value, statement)
        yield from regular_calls.of_patterns(func_ir, statement)
        yield from _with_function(func_ir, value, statement, helper)
    yield statement


def _checked_range(call: Any, statement: Any) -> Iterator[Any]:
    """For a call of range, yield statements that check whether it can be counted in 64 bits."""
    names = (ir.Var(statement.target.scope, f"$range.{part}.{id(statement)}", call.loc) for part in ("check", "done"))
    check, done = names
    yield ir.Assign(ir.Global("check_range", check_range, call.loc), check, call.loc)
    yield ir.Assign(ir.Expr.call(check, list(call.args), (), call.loc), done, call.loc)


def _with_function(func_ir: Any, call: Any, statement: Any, helper: Callable[[Any], Any]) -> Iterator[Any]:
    """For a call of an object, yield the statement that makes the called function."""
    value = definition(func_ir, call.func)
    owner = value.value if isinstance(value, ir.Global | ir.FreeVar) else None
    if not isinstance(owner, objects.Frozen):
        return
    if isinstance(owner.value, type) and dataclasses.is_dataclass(owner.value):
        yield from _instance(call, value, statement)
        return
    if not is_callable_object(owner.value):
        what = "makes an object" if isinstance(owner.value, type) else "isn't written in Python"
        raise UnsupportedError(packed(what=f"'{value.name}(..)', which {what},"), call.loc)
    callee = ir.Var(statement.target.scope, f"$object.{id(statement)}", statement.loc)
    yield ir.Assign(ir.Global(value.name, helper(owner.value), call.loc), callee, statement.loc)
    call.func = callee


def _instance(call: Any, made: Any, statement: Any) -> Iterator[Any]:
    """For a call of a dataclass, yield statements that make its defaults and the class, and pass all by position."""
    fields = instances.fields_of(made.value.value, call.loc)
    positional = [field.name for field in fields if not field.kw_only]
    given = dict(zip(positional, call.args, strict=False)) | dict(call.kws)
    missing = [f for f in fields if f.name not in given]
    wrong = call.vararg is not None or len(call.args) > len(positional) or len(given) != len(call.args) + len(call.kws)
    if wrong or any(f.default is dataclasses.MISSING for f in missing) or set(given) - {f.name for f in fields}:
        raise UnsupportedError(packed(Code.ARGUMENTS, what=f"'{made.name}(..)'"), call.loc)
    scope, number = statement.target.scope, id(statement)
    for field in missing:
        given[field.name] = ir.Var(scope, f"$default.{field.name}.{number}", call.loc)
        yield ir.Assign(ir.Const(literal(field.default), call.loc), given[field.name], call.loc)
    callee, kind = ir.Var(scope, f"$make.{number}", call.loc), ir.Var(scope, f"$class.{number}", call.loc)
    yield ir.Assign(ir.Global("make", instances.make, call.loc), callee, call.loc)
    yield ir.Assign(ir.Global(made.name, made.value, call.loc), kind, call.loc)
    call.func, call.args, call.kws = callee, [kind, *(given[field.name] for field in fields)], ()


def _uses(func_ir: Any, variable: Any) -> Iterator[Any]:
    """Yield where a variable is read, except for attributes, which are known already."""
    for block in func_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, ir.Del):
                continue
            is_own = isinstance(statement, ir.Assign) and statement.target.name == variable.name
            if not is_own and any(never.name == variable.name for never in statement.list_vars()):
                yield statement


def _compares(func_ir: Any, statement: Any) -> bool:
    """Return whether a statement compares, or makes a tuple that is only compared with."""
    value = statement.value if isinstance(statement, ir.Assign) else None
    if isinstance(value, ir.Expr) and value.op in ("build_tuple", "build_list", "build_set"):
        return all(_compares(func_ir, use) for use in _uses(func_ir, statement.target))
    return isinstance(value, ir.Expr) and value.op == "binop" and value.fn in _COMPARISONS


def check_changes(func_ir: Any, statement: Any) -> None:
    """Reject a change of an object or a table outside the function.

    Raises:
        UnsupportedError: It names the object as the user does.
    """
    kinds = (ir.SetAttr, ir.DelAttr, ir.SetItem, ir.StaticSetItem, ir.DelItem)
    if not isinstance(statement, kinds):
        return
    value = definition(func_ir, statement.target)
    if isinstance(value, ir.Global | ir.FreeVar) and isinstance(value.value, objects.Frozen | tables.Table | tuple):
        name = f"{value.name}.{statement.attr}" if isinstance(statement, ir.SetAttr | ir.DelAttr) else value.name
        objects.refuse_change(name, statement.loc)
