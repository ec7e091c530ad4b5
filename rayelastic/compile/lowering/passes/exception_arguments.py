"""Removes the arguments of raised exceptions from compiled code, because messages come from the Python function."""

# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from typing import Any

from numba.core import ir

from rayelastic.compile.lowering.base.refusal import holds
from rayelastic.compile.lowering.passes.constants import definition


def drop_exception_arguments(func_ir: Any) -> None:
    """Make `raise ValueError(f'bad {t.x}')` raise ValueError: the message comes from the Python function.

    `raise ValueError(words[5])` may be an IndexError. Python decides which one it is, so the tuple is rejected.
    """
    for block in func_ir.blocks.values():
        for statement in list(block.body):
            if not isinstance(statement, ir.Raise | ir.TryRaise) or statement.exception is None:
                continue
            exception = definition(func_ir, statement.exception)
            if isinstance(exception, ir.Expr) and exception.op == "call":
                dropped = {v.name for v in [*exception.args, *(v for _, v in exception.kws)]}
                exception.args, exception.kws = [], ()
                may_raise = False
                while dropped:
                    dropped, raising = _remove_unused(func_ir, dropped)
                    may_raise = may_raise or raising
                if may_raise:
                    block.body[block.body.index(statement) : block.body.index(statement)] = _refusal(
                        block, statement.loc
                    )


def _refusal(block: Any, loc: Any) -> list[Any]:
    """Return IR that rejects the tuple."""
    never, function, nothing = (
        ir.Var(block.scope, f"${name}.{id(loc)}", loc) for name in ("never", "holds", "nothing")
    )
    return [
        ir.Assign(ir.Const(False, loc), never, loc),
        ir.Assign(ir.Global("holds", holds, loc), function, loc),
        ir.Assign(ir.Expr.call(function, [never], (), loc), nothing, loc),
    ]


def _remove_unused(func_ir: Any, candidates: set[str]) -> tuple[set[str], bool]:
    """Remove code that only made the dropped arguments; return its own arguments, and whether it may raise."""
    used = {v.name for block in func_ir.blocks.values() for s in block.body for v in _reads(s)}
    unused = {name for name in candidates if name.startswith("$") and name not in used}
    sources: set[str] = set()
    may_raise = False
    for block in func_ir.blocks.values():
        for statement in block.find_insts(ir.Assign):
            if statement.target.name in unused:
                sources |= {v.name for v in _reads(statement)}
                may_raise = may_raise or _may_raise(func_ir, statement.value)
        block.body = [s for s in block.body if not (isinstance(s, ir.Assign) and s.target.name in unused)]
    return sources, may_raise


_DIVISIONS = (operator.truediv, operator.floordiv, operator.mod)


def _may_raise(func_ir: Any, value: Any) -> bool:
    """Return whether an exception's argument may itself raise: an index, a division, a number parsed from text."""
    if not isinstance(value, ir.Expr):
        return False
    if value.op == "binop":
        part = definition(func_ir, value.lhs)
        is_format = value.fn is operator.mod and isinstance(getattr(part, "value", None), str)
        return value.fn in _DIVISIONS and not is_format
    if value.op == "call":
        called = definition(func_ir, value.func)
        return getattr(called, "value", None) in (int, float, max, min)
    return value.op in ("getitem", "static_getitem", "typed_getitem")


def _reads(statement: Any) -> list[Any]:
    if not isinstance(statement, ir.Assign):
        return list(statement.list_vars())
    value = statement.value
    if isinstance(value, ir.Var):
        return [value]
    return list(value.list_vars()) if hasattr(value, "list_vars") else []
