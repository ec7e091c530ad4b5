"""Compiles one user function: types, IR, LLVM, object file."""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba.core import compiler, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaWarning, UnsupportedError
from numba.core.registry import cpu_target

from rayelastic.compile.cache.loader import declare_symbols, unknown_symbols
from rayelastic.compile.lowering import everything  # noqa: F401  registers what text and records can do
from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.convention import refusals_pass
from rayelastic.compile.lowering.base.plan import Plan
from rayelastic.compile.lowering.passes.dead_code import raising_kept
from rayelastic.compile.lowering.passes.provided import PROVIDED
from rayelastic.compile.lowering.passes.rewrite import OperatorPipeline, dispatcher, forget_helpers, library_of
from rayelastic.compile.lowering.passes.try_blocks import closures_kept, comprehensions_known, keywords_kept
from rayelastic.compile.lowering.records import loop
from rayelastic.compile.lowering.records.types import RecordType
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionKind
from rayelastic.reasons import Code

__all__ = ["PROVIDED", "Compiled", "Plan", "compile_function", "flattened"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code and its output."""

    entry: str
    image: bytes
    imports: tuple[str, ...]
    output: Schema
    in_place: bool


def flattened(function: Callable[..., Any], *, keyed: bool) -> Callable[..., Any]:
    """Return a flat_map function that returns its items as one that yields them."""
    inner = dispatcher(function)

    def items(t: Any) -> Any:
        for item in inner(t):  # noqa: UP028  Numba has no `yield from`
            yield item

    def items_of_key(t: Any, s: Any) -> Any:
        for item in inner(t, s):  # noqa: UP028
            yield item

    return items_of_key if keyed else items


@global_compiler_lock
def compile_function(plan: Plan, input_schema: Schema, state_schema: Schema | None) -> Compiled:
    """Compile `plan.function` to machine code over runs.

    Raises:
        Exception: Any exception of Numba; `plan` may have a better reason.
    """
    declare_symbols(engine.SERVICES)
    forget_helpers(plan)
    record = RecordType(input_schema, plan, is_state=False)
    state = RecordType(state_schema, plan, is_state=True) if state_schema else None
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    flags: Any = compiler.Flags()
    flags.nrt = True
    flags.error_model = "python"
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.no_compile = True
    with (
        refusals_pass(cpu_target.target_context),
        raising_kept(),
        keywords_kept(),
        comprehensions_known(),
        closures_kept(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", NumbaWarning)  # its warnings are about code that is rejected, or correct
        result = compiler.compile_extra(
            cpu_target.typing_context,
            cpu_target.target_context,
            plan.function,
            (record,) if state is None else (record, state),
            types.none,
            flags,
            {},
            pipeline_class=OperatorPipeline,
        )
    in_place = _may_be_in_place(plan, input_schema)
    entry, image, imports = loop.build(result, record, state, library_of, in_place=in_place)
    if "PyGILState_Ensure" in imports:
        raise UnsupportedError(plan.refuse(Code.NEEDS_INTERPRETER, what="it"))
    if unknown := unknown_symbols(imports):
        raise UnsupportedError(plan.refuse(Code.NEEDS_INTERPRETER, what=f"'{unknown[0]}'"))
    return Compiled(entry, image, imports, plan.output, in_place)


def _may_be_in_place(plan: Plan, input_schema: Schema) -> bool:
    """Return whether an output record may overwrite its input record: never while views point into that.

    Nor if the tuples of a run may be needed again, to find the one whose integers overflowed.
    """
    if plan.has_suspicions:
        return False
    if plan.kind is FunctionKind.FILTER:
        return True
    same_size = plan.output.record_size == input_schema.record_size
    return plan.kind is FunctionKind.MAP and same_size and not plan.output.has_text
