"""Corrects Numba's `try` blocks: code before or after `try` isn't inside it.

Numba takes a block with an exception check for one inside `try`. When it inlines a comprehension, it joins consecutive
blocks; an exception raised before `try` would then go to its handlers. It also counts the depth of `try` statements.
With `except` and `finally`, it counts one exit too many on the path without an exception. It then takes all later code
for the inside. Earlier, when it reads byte code, it forgets the names of keyword arguments inside `try`, and
uses them by position. From Python 3.12 on, comprehensions are inlined: it takes one with a condition for a `try` that
ends at the condition. From 3.13 on, an inner function receives its closure by a separate instruction. Inside `try` that
is in another block, and is lost.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import dis
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import bytecode, byteflow, ir
from numba.core.errors import UnsupportedError
from numba.core.ir_utils import rename_labels
from numba.core.unsafe import eh

from rayelastic.compile.lowering.passes.constants import definition
from rayelastic.compile.reasons import Code, packed

DEEPEST = 100  # nested try statements
_MAKES = ("BUILD_LIST", "BUILD_MAP", "BUILD_SET")
_NOTHING = ("NOP", "NOT_TAKEN")


@contextmanager
def keywords_kept() -> Iterator[None]:
    """Keep the byte code that names keyword arguments while compiling, under Numba's compiler lock."""
    usual = byteflow.StatePy311.pop_kw_names
    byteflow.StatePy311.pop_kw_names = _names_before  # type: ignore[method-assign]
    try:
        yield
    finally:
        byteflow.StatePy311.pop_kw_names = usual  # type: ignore[method-assign]


def _names_before(state: Any) -> int | None:
    """Return the number of the constant with the names of a call's keyword arguments; None if it has none."""
    state._kw_names = None
    byte_code, at = state._bytecode, state._pc - 2
    while at in byte_code and byte_code[at].opname in ("PRECALL", "CACHE"):
        at -= 2
    return byte_code[at].arg if at in byte_code and byte_code[at].opname == "KW_NAMES" else None


@contextmanager
def comprehensions_known() -> Iterator[None]:
    """Join and drop the exception handlers of comprehensions while compiling, under Numba's compiler lock."""
    usual = bytecode.ByteCodePy312.remove_build_list_swap_pattern

    def removed(code: Any, entries: list[Any]) -> list[Any]:
        joined = _joined(code, entries)
        behind = {one.end: code.table[one.end] for one in joined if one.end in code.table}
        # It wants no argument of 2 but SWAP's there, and finds that of whatever stands there.
        hidden = {at: one for at, one in behind.items() if one.arg == 2 and one.opname != "SWAP"}
        code.table |= {at: bytecode.ByteCodeInst(at, dis.opmap["NOP"], None, one.next) for at, one in hidden.items()}
        left = usual(code, joined)
        code.table |= hidden
        return left if left == entries else removed(code, left)

    bytecode.ByteCodePy312.remove_build_list_swap_pattern = removed  # type: ignore[method-assign]
    try:
        yield
    finally:
        bytecode.ByteCodePy312.remove_build_list_swap_pattern = usual  # type: ignore[method-assign]


@contextmanager
def closures_kept() -> Iterator[None]:
    """Keep a function and its closure in one block while compiling, under Numba's compiler lock."""
    quiet, usual = byteflow._NO_RAISE_OPS, byteflow.StatePy313.set_function_attribute

    def given(state: Any, function: Any, **attributes: Any) -> None:
        usual(state, function, **attributes)
        state._used_regs |= set(attributes.values())  # or they don't come into this block

    byteflow._NO_RAISE_OPS = quiet | {"MAKE_FUNCTION"}
    byteflow.StatePy313.set_function_attribute = given  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        byteflow._NO_RAISE_OPS = quiet
        byteflow.StatePy313.set_function_attribute = usual  # type: ignore[method-assign]


def _joined(code: Any, entries: list[Any]) -> list[Any]:
    """Return the entries of an exception table, with those of a comprehension that only jumps separate joined."""
    entries_joined: list[Any] = []
    for one in entries:
        last = entries_joined[-1] if entries_joined else None
        if last is not None and last.target == one.target and last.depth == one.depth:
            between = [code.table[at].opname for at in code.ordered_offsets if last.end <= at < one.start]
            begins = code.table[last.start].opname
            if begins in _MAKES and all("JUMP" in name or name in _NOTHING for name in between):
                entries_joined[-1] = one._replace(start=last.start)
                continue
        entries_joined.append(one)
    return entries_joined


def part_from_try(func_ir: Any) -> None:
    """Put the code before `try` into its own block again."""
    blocks = func_ir.blocks
    for label in list(blocks):
        block = blocks[label]
        at = next((at for at, statement in enumerate(block.body) if _calls(func_ir, statement, eh.mark_try_block)), 0)
        if any(
            isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr) for statement in block.body[:at]
        ):
            rest = ir.Block(block.scope, block.loc)
            rest.body, number = block.body[at:], max(blocks) + 1
            block.body = [*block.body[:at], ir.Jump(number, block.loc)]
            blocks[number] = rest
    func_ir.blocks = rename_labels(blocks)


def balance_tries(func_ir: Any) -> None:
    """Enter `try` once more on each path to a block that comes from a lower depth than others.

    Raises:
        UnsupportedError: That doesn't balance them.
    """
    depths = {min(func_ir.blocks): 0}
    waiting = list(depths)
    ways: dict[tuple[int, int], int] = {}  # from block to block, with the depth
    shallow: set[int] = set()
    while waiting:
        label = waiting.pop()
        block = func_ir.blocks[label]
        end = depths[label] + sum(_change(func_ir, one) for one in block.body)
        if end > DEEPEST:
            raise _not_followed(block)
        for target in block.terminator.get_targets() if end >= 0 else ():  # less: a deeper path follows
            ways[label, target] = end
            if end > depths.get(target, -1):
                depths[target] = end
                waiting.append(target)
        if end < 0:
            shallow.add(label)
        else:
            shallow.discard(label)
    if shallow:
        raise _not_followed(func_ir.blocks[min(shallow)])
    even = {way for way, end in ways.items() if end >= depths[way[1]]}
    needs = _needs(func_ir, even)
    for (label, target), end in ways.items():
        if (label, target) in even:
            continue
        if depths[target] > needs[target]:
            raise _not_followed(func_ir.blocks[target])  # it isn't known which path is right
        _enter(func_ir, label, target, depths[target] - end)


def _needs(func_ir: Any, even: set[tuple[int, int]]) -> dict[int, int]:
    """Return the depth of `try` at which each block has to be entered, so that it doesn't leave more than were entered.

    Args:
        func_ir: The function.
        even: Paths from block to block that enter none, and so require nothing of the blocks before them.
    """
    needs = dict.fromkeys(func_ir.blocks, 0)
    changed = True
    while changed:
        changed = False
        for label, block in func_ir.blocks.items():
            least, sum_ = 0, 0
            for statement in block.body:
                sum_ += _change(func_ir, statement)
                least = min(least, sum_)
            follow = [target for target in block.terminator.get_targets() if (label, target) in even]
            need = max([-least, *(needs[target] - sum_ for target in follow)])
            if need > DEEPEST:
                raise _not_followed(block)
            changed = changed or need > needs[label]
            needs[label] = max(needs[label], need)
    return needs


def _not_followed(block: Any) -> UnsupportedError:
    return UnsupportedError(packed(Code.TRY_FLOW), block.loc)


def _change(func_ir: Any, statement: Any) -> int:
    return int(_calls(func_ir, statement, eh.mark_try_block)) - int(_calls(func_ir, statement, eh.end_try_block))


def _enter(func_ir: Any, label: int, target: int, times: int) -> None:
    """Enter `try` between a block and one that follows it."""
    block, number = func_ir.blocks[label], max(func_ir.blocks) + 1
    between = ir.Block(block.scope, block.loc)
    name = f"$enter.{number}"
    function, nothing = ir.Var(block.scope, name, block.loc), ir.Var(block.scope, f"{name}.none", block.loc)
    between.body = [
        ir.Assign(ir.Global("mark_try_block", eh.mark_try_block, block.loc), function, block.loc),
        *(ir.Assign(ir.Expr.call(function, (), (), block.loc), nothing, block.loc) for _ in range(times)),
        ir.Jump(target, block.loc),
    ]
    end = block.body[-1]
    if isinstance(end, ir.Jump):
        block.body[-1] = ir.Jump(number, end.loc)
    else:
        true, false = (number if one == target else one for one in (end.truebr, end.falsebr))
        block.body[-1] = ir.Branch(end.cond, true, false, end.loc)
    func_ir.blocks[number] = between


def _calls(func_ir: Any, statement: Any, function: Any) -> bool:
    call = statement.value if isinstance(statement, ir.Assign) else None
    if not (isinstance(call, ir.Expr) and call.op == "call"):
        return False
    return getattr(definition(func_ir, call.func), "value", None) is function
