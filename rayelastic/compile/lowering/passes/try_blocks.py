"""What stands before `try` isn't inside it.

Numba takes a block with an exception check for one inside `try`. Where it inlines a comprehension, it joins blocks that
follow each other: what was raised before `try` would then go to the handlers, and the code on from there.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

from numba.core import ir
from numba.core.ir_utils import rename_labels
from numba.core.unsafe import eh

from rayelastic.compile.lowering.passes.constants import definition


def part_from_try(func_ir: Any) -> None:
    """Gives what stands before `try` a block of its own again."""
    blocks = func_ir.blocks
    for label in list(blocks):
        block = blocks[label]
        at = next((at for at, one in enumerate(block.body) if _calls(func_ir, one, eh.mark_try_block)), 0)
        if any(isinstance(one, ir.Assign) and isinstance(one.value, ir.Expr) for one in block.body[:at]):
            rest = ir.Block(block.scope, block.loc)
            rest.body, number = block.body[at:], max(blocks) + 1
            block.body = [*block.body[:at], ir.Jump(number, block.loc)]
            blocks[number] = rest
    func_ir.blocks = rename_labels(blocks)


def _calls(func_ir: Any, statement: Any, function: Any) -> bool:
    call = statement.value if isinstance(statement, ir.Assign) else None
    if not (isinstance(call, ir.Expr) and call.op == "call"):
        return False
    return getattr(definition(func_ir, call.func), "value", None) is function
