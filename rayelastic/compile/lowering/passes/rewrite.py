"""Passes over Numba's IR of a user function, between its byte code and its types.

Before types: `return x` and `yield x` of the operator function become deliveries into the output buffer, without
generator object or boxing. str and bytes constants become views. Plain helper functions are compiled along. Exceptions
lose their arguments (for those, explain.py runs the Python function). A value that may change without the code's
knowledge is rejected with a message. After types: output.py decides the output schema, exact.py makes operators on
numbers exact.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numba
from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.errors import UnsupportedError
from numba.core.ir_utils import build_definitions
from numba.core.typed_passes import NopythonTypeInference, PreLowerStripPhis
from numba.core.untyped_passes import FixupArgs, InlineClosureLikes

from rayelastic.compile.lowering.base.plan import Plan
from rayelastic.compile.lowering.containers.conversions import check_constant_sets, check_conversions
from rayelastic.compile.lowering.containers.dict_keys import refuse_keys
from rayelastic.compile.lowering.numbers import exact
from rayelastic.compile.lowering.passes import calls
from rayelastic.compile.lowering.passes.constants import definition, folded, is_tuple_class, literal
from rayelastic.compile.lowering.passes.exception_arguments import drop_exception_arguments
from rayelastic.compile.lowering.passes.none_values import check_nones
from rayelastic.compile.lowering.passes.provided import PROVIDED
from rayelastic.compile.lowering.passes.try_blocks import balance_tries, part_from_try
from rayelastic.compile.lowering.records import output
from rayelastic.compile.lowering.records.types import RecordType, deliver, set_field
from rayelastic.compile.lowering.text.codecs import name_codecs
from rayelastic.compile.reading.bound import taken_apart
from rayelastic.compile.reading.syntax import rewritten
from rayelastic.graph.spec.requests import FunctionKind
from rayelastic.reasons import Code

RECORD = "$record"  # the variable that holds the operator function's first argument

# Options of all compiled functions: Python never calls them, so nothing is wrapped or boxed.
OPTIONS: dict[str, Any] = {
    "nopython": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "error_model": "python",
}

_helpers: dict[Any, tuple[Any, Any]] = {}  # by function and its bound parameters, which are kept alive
_known: dict[str, Any] = {}  # what `rewritten` requires of a helper, by name


def helper(function: Callable[..., Any]) -> Any:
    """Return the Numba dispatcher of a callee: a plain function, a method, a partial, an object."""
    parts = taken_apart(function)
    assert parts is not None
    key = parts.function, *((name, id(value)) for name, value in parts.values.items())
    if key not in _helpers:
        plain = rewritten(parts.function, PROVIDED, bound=parts.values, **_known)
        _helpers[key] = dispatcher(_with_views(plain)), parts
    return _helpers[key][0]


def _with_views(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose default values are in their compiled form."""
    plain: Any = function
    if not plain.__defaults__:
        return function
    made = types.FunctionType(plain.__code__, plain.__globals__, plain.__name__, None, plain.__closure__)
    made.__defaults__ = tuple(literal(value) for value in plain.__defaults__)
    made.__kwdefaults__ = plain.__kwdefaults__
    return made


def dispatcher(function: Callable[..., Any]) -> Any:
    """Return the Numba dispatcher of a function that is rewritten already."""
    return numba.jit(**OPTIONS, pipeline_class=OperatorPipeline)(function)


def forget_helpers(plan: Plan) -> None:
    """Drop helpers before each compilation: the globals that they captured may have changed since."""
    _helpers.clear()
    _known.update(members=plan.members, may_be_none=plan.may_be_none, times=plan.times)


def library_of(name: str) -> Any:
    """Return Numba's library of a helper function, by its name in machine code; None if there is none."""
    overloads = (one for dispatcher, _ in _helpers.values() for one in dispatcher.overloads.values())
    return next((one.library for one in overloads if one.fndesc.llvm_func_name == name), None)


def operator_record(state: Any) -> RecordType | None:
    """Return the record type of the operator function's first argument, None while a helper function is compiled."""
    first = state.args[0] if state.args else None
    if isinstance(first, RecordType) and state.func_id.func is first.plan.function:
        return first
    return None


class _Pass(FunctionPass):
    def __init__(self) -> None:  # abstract in Numba
        super().__init__()


@register_pass(mutates_CFG=False, analysis_only=False)
class RewriteDeliveries(_Pass):
    """For the operator function alone, before Numba takes it for a generator."""

    _name = "rayelastic_deliveries"

    def run_pass(self, state: Any) -> bool:
        """Rewrite `state.func_ir` in place."""
        record = operator_record(state)
        if record is None:
            return False
        _rewrite_unpacking(state.func_ir, record)
        _rewrite_deliveries(state.func_ir, record)
        _refresh(state.func_ir)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class RewriteConstants(_Pass):
    """For operator and helper functions, after comprehensions are inlined."""

    _name = "rayelastic_constants"

    def run_pass(self, state: Any) -> bool:
        """Rewrite `state.func_ir` in place."""
        func_ir = state.func_ir
        drop_exception_arguments(func_ir)
        _leave_undefined(func_ir)
        balance_tries(func_ir)
        part_from_try(func_ir)
        check_constant_sets(func_ir)
        for block in func_ir.blocks.values():
            for statement in block.find_insts(ir.Assign):
                before, statement.value = statement.value, folded(func_ir, statement.value, helper)
                replacement = func_ir._definitions[statement.target.name]
                replacement[:] = [statement.value if one is before else one for one in replacement]
        for block in func_ir.blocks.values():
            block.body = [
                replacement for statement in block.body for replacement in calls.of_objects(func_ir, statement, helper)
            ]
            _rewrite_attributes(func_ir, block)
        _refresh(func_ir)
        for block in func_ir.blocks.values():
            _fill_defaults(func_ir, block)
            name_codecs(block, functools.partial(definition, func_ir))
        _refresh(func_ir)
        return True


@register_pass(mutates_CFG=False, analysis_only=True)
class DecideOutput(_Pass):
    """The pass after types."""

    _name = "rayelastic_output"

    def run_pass(self, state: Any) -> bool:
        """Decide the output schema of the operator function; reject keys that can't be compared."""
        refuse_keys(state)
        record = operator_record(state)
        if record is not None:
            delivered = [
                state.typemap[call.args[1].name]
                for block in state.func_ir.blocks.values()
                for call in block.find_exprs("call")
                if getattr(state.typemap[call.func.name], "typing_key", None) is deliver
            ]
            output.decide(record.plan, state.typingctx, delivered, record.schema)
        return False


@register_pass(mutates_CFG=False, analysis_only=False)
class MakeExact(_Pass):
    """For operator and helper functions, directly before machine code is generated."""

    _name = "rayelastic_exact"

    def run_pass(self, state: Any) -> bool:
        """Replace operators on numbers in `state.func_ir`."""
        check_conversions(state)
        record = operator_record(state)
        check_nones(state, helper=record is None)
        suspects = record is not None and _runs_straight(state, record)
        if exact.make_exact(state, suspects=suspects) and record is not None:
            record.plan.has_suspicions = True
        return True


def _runs_straight(state: Any, record: RecordType) -> bool:
    """Return whether a wrong integer is harmless until the run is over: no loop, no state, one output per tuple."""
    if record.plan.kind is not FunctionKind.MAP or len(state.args) > 1:
        return False
    return not compute_cfg_from_blocks(state.func_ir.blocks).loops()


class OperatorPipeline(CompilerBase):
    """Numba's own pipeline with our passes in it."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's pipelines."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state, "rayelastic")
        pipeline.add_pass_after(RewriteDeliveries, FixupArgs)
        pipeline.add_pass_after(RewriteConstants, InlineClosureLikes)
        pipeline.add_pass_after(DecideOutput, NopythonTypeInference)
        pipeline.add_pass_after(MakeExact, PreLowerStripPhis)
        pipeline.finalize()
        return [pipeline]


# --- statements -----------------------------------------------------------------------------------------------------


def _call(block: Any, function: Any, arguments: list[Any], loc: Any, name: str, target: Any = None) -> Iterator[Any]:
    """Yield IR that calls a global function."""
    callee = ir.Var(block.scope, f"${name}.{id(arguments)}", loc)
    yield ir.Assign(ir.Global(name, function, loc), callee, loc)
    result = target or ir.Var(block.scope, f"${name}.result.{id(arguments)}", loc)
    yield ir.Assign(ir.Expr.call(callee, arguments, (), loc), result, loc)


def _rewrite_attributes(func_ir: Any, block: Any) -> None:
    """Rewrite s.total = x as a call that sees both types."""
    body: list[Any] = []
    for statement in block.body:
        calls.check_changes(func_ir, statement)
        if isinstance(statement, ir.SetAttr):
            name = ir.Var(block.scope, f"$attribute.{id(statement)}", statement.loc)
            body.append(ir.Assign(ir.Const(statement.attr, statement.loc), name, statement.loc))
            body.extend(_call(block, set_field, [statement.target, name, statement.value], statement.loc, "set_field"))
        else:
            body.append(statement)
    block.body = body


def _fill_defaults(func_ir: Any, block: Any) -> None:
    """Pass all fields in order to NamedTuple classes: Numba ignores defaults."""
    body: list[Any] = []
    for statement in block.body:
        call = statement.value if isinstance(statement, ir.Assign) else None
        if isinstance(call, ir.Expr) and call.op == "call" and call.vararg is None:
            called = definition(func_ir, call.func)
            record_class = called.value if isinstance(called, ir.Global | ir.FreeVar) else None
            if is_tuple_class(record_class):
                body.extend(_with_all_fields(block, call, record_class))
        body.append(statement)
    block.body = body


def _with_all_fields(block: Any, call: Any, record_class: Any) -> Iterator[Any]:
    """Change a call to one by position; yield the statements that make its defaults."""
    given = dict(zip(record_class._fields, call.args, strict=False)) | dict(call.kws)
    missing = [name for name in record_class._fields if name not in given]
    if len(call.args) + len(call.kws) != len(given) or set(missing) - set(record_class._field_defaults):
        return  # a call that Python rejects too; Numba's message explains it
    for name in missing:
        default = ir.Var(block.scope, f"$default.{name}.{id(call)}", call.loc)
        yield ir.Assign(ir.Const(literal(record_class._field_defaults[name]), call.loc), default, call.loc)
        given[name] = default
    call.args, call.kws = [given[name] for name in record_class._fields], ()


def _rewrite_deliveries(func_ir: Any, record: RecordType) -> None:
    """Rewrite return and yield of the operator function as deliveries."""
    record.plan.is_generator = func_ir.is_generator
    flat_map = record.plan.kind is FunctionKind.FLAT_MAP
    first = func_ir.blocks[min(func_ir.blocks)]
    kept = ir.Var(first.scope, RECORD, first.loc)
    first.body.insert(0, ir.Assign(ir.Arg(func_ir.arg_names[0], 0, first.loc), kept, first.loc))
    func_ir.is_generator = False
    for block in func_ir.blocks.values():
        body: list[Any] = []
        for statement in block.body:
            loc = statement.loc
            if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Yield):
                body.extend(_call(block, deliver, [kept, statement.value.value], loc, "deliver", statement.target))
            elif isinstance(statement, ir.Return) and not flat_map:
                body.extend(_call(block, deliver, [kept, statement.value], loc, "deliver"))
                body.extend(_return_none(block, loc))
            elif isinstance(statement, ir.Return):
                body.extend(_return_none(block, loc))
            else:
                body.append(statement)
        block.body = body


def _return_none(block: Any, loc: Any) -> Iterator[Any]:
    nothing = ir.Var(block.scope, f"$nothing.{id(block)}", loc)
    yield ir.Assign(ir.Const(None, loc), nothing, loc)
    cast = ir.Var(block.scope, f"$nothing.cast.{id(block)}", loc)
    yield ir.Assign(ir.Expr.cast(nothing, loc), cast, loc)
    yield ir.Return(cast, loc)


def _rewrite_unpacking(func_ir: Any, record: RecordType) -> None:
    """Make `a, b = t` index the tuple: Numba unpacks only its own tuples."""
    for block in func_ir.blocks.values():
        for statement in block.find_insts(ir.Assign):
            value = statement.value
            if isinstance(value, ir.Expr) and value.op == "exhaust_iter" and _is_argument(func_ir, value.value):
                count = len(record.schema.fields)
                if value.count != count:
                    problem = record.plan.refuse(
                        Code.WRONG_COUNT,
                        what="its unpacking",
                        count=value.count,
                        schema=str(record.schema),
                        fields=count,
                    )
                    raise UnsupportedError(problem, value.loc)
                statement.value = value.value


def _is_argument(func_ir: Any, variable: Any) -> bool:
    assigned = definition(func_ir, variable)
    return isinstance(assigned, ir.Arg) and assigned.index == 0


def _leave_undefined(func_ir: Any) -> None:
    """Remove Numba's assignments of undefined variables in local functions, which later passes don't support."""
    for block in func_ir.blocks.values():
        block.body = [s for s in block.body if getattr(getattr(s, "value", None), "op", "") != "null"]


def _refresh(func_ir: Any) -> None:
    func_ir._definitions = build_definitions(func_ir.blocks)
