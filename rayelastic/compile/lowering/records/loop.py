"""The loop over a run of records around a compiled function: rel_process of abi.h, as an object file.

It is LLVM rather than Python. So a function that can't raise has no check per tuple and vectorises, and no exception is
ever boxed: Numba's status of one call becomes REL_FAILED(i). A bare cfunc would swallow it.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils

from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.records.types import (
    FRAME,
    FRAME_CAPACITY,
    FRAME_CAREFUL,
    FRAME_CONTEXT,
    FRAME_OUT,
    FRAME_STOPPED,
    FRAME_SUSPICION,
    FRAME_USED,
    RecordType,
    frame_slot,
    make_record,
)
from rayelastic.graph.spec.requests import FunctionKind

I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
POINTER = ir.IntType(8).as_pointer()
PROCESS = ir.FunctionType(I64, [POINTER, I64, POINTER, I64, POINTER, POINTER])
LLVMLITE = tuple(int(part) for part in llvmlite.__version__.split(".")[:2])
STOPPED = I64(-(2**63))  # REL_STOPPED


def build(
    compiled: Any,
    record: RecordType,
    state: RecordType | None,
    library_of: Callable[[str], Any],
    *,
    in_place: bool,
) -> tuple[str, bytes, tuple[str, ...]]:
    """Generate machine code of the loop with the function in it.

    Args:
        compiled: Numba's compile result of the user's function.
        record: The type of its first argument.
        state: The type of its second argument, None if it isn't keyed.
        library_of: Returns Numba's library of a helper function by its name in machine code, else None.
        in_place: Whether the output buffer may be the input buffer.

    Returns:
        Entry symbol, object file, imported names.
    """
    context, codegen = compiled.target_context, compiled.library.codegen
    module = codegen._create_empty_module("rayelastic.run")
    bodies = [
        _body(module, context, compiled, record, state, in_place=same)
        for same in ([False, True] if in_place else [False])
    ]
    linked = _with_callees(compiled.library, library_of)
    entry = "rel_process_" + hashlib.sha256(str(linked).encode()).hexdigest()[:16]
    _entry(module, entry, bodies, allocates=f"@{engine.CONTEXT_KEY}" in str(linked))
    final = llvm.parse_assembly(cgutils.normalize_ir_text(str(module)))
    final.link_in(linked)
    if record.plan.has_suspicions:  # called twice, and only the inlined copy vectorises
        final = _inlined(final, compiled.fndesc.llvm_func_name)
    for function in final.functions:
        if not function.is_declaration and function.name != entry:
            function.linkage = "internal"  # with one caller, the inliner inlines it
    final.verify()
    _optimise(codegen, final)
    image = codegen._tm.emit_object(final)
    return entry, image, _imports(final)


def _with_callees(library: Any, library_of: Callable[[str], Any]) -> Any:
    """Return the module of the function and its callees, not optimised yet."""
    module = library._final_module
    _link_callees(module, library)
    while slots := [g.name for g in module.global_variables if g.is_declaration and g.name.startswith(_UNRESOLVED)]:
        _close_recursion(module, slots, library_of)
    return module


_UNRESOLVED = ".numba.unresolved$"  # prefix of the slot with a recursive function's address


def _link_callees(module: Any, library: Any) -> None:
    for callee in dict.fromkeys(library._linking_libraries):
        module.link_in(callee._get_module_for_linking(), preserve=True)


def _close_recursion(module: Any, slots: list[str], library_of: Callable[[str], Any]) -> None:
    """Set the addresses through which functions call themselves, which Numba leaves to its own linker."""
    known = {f.name for f in module.functions if not f.is_declaration}
    names = [slot.removeprefix(_UNRESOLVED) for slot in slots]
    lines = [f'declare void @"{name}"()\n@"{_UNRESOLVED}{name}" = constant ptr @"{name}"' for name in names]
    module.link_in(llvm.parse_assembly("\n".join(lines)))  # first, because unreferenced names aren't linked in
    for name in names:
        if name not in known and (library := library_of(name)) is not None:
            module.link_in(library._get_module_for_linking(), preserve=True)
            _link_callees(module, library)


def _inlined(module: Any, name: str) -> Any:
    """Return the module with a function always inlined; edits the text up to llvmlite 0.49, then marks the result."""
    if LLVMLITE >= (0, 50):
        module.get_function(name).add_function_attribute("alwaysinline")
        return module
    head = re.compile(rf'(^define [^\n]*@"?{re.escape(name)}"?\([^\n]*\)(?: (?:local_)?unnamed_addr)?)', re.MULTILINE)
    text, count = head.subn(r"\1 alwaysinline", str(module))
    return llvm.parse_assembly(text) if count else module


def _body(
    module: Any, context: Any, compiled: Any, record: RecordType, state: RecordType | None, *, in_place: bool
) -> Any:
    """Return the loop, either for `out` distinct from `in` or for both being one buffer."""
    function = ir.Function(module, PROCESS, "run.in_place" if in_place else "run")
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    source, count, out, capacity, slots, engine_context = function.args
    if not in_place:
        out.add_attribute("noalias")
    builder, plan = ir.IRBuilder(function.append_basic_block("entry")), record.plan
    frame = cgutils.alloca_once(builder, FRAME, name="frame")
    values = {FRAME_OUT: out, FRAME_USED: I64(0), FRAME_CAPACITY: capacity, FRAME_CONTEXT: engine_context}
    for slot, value in (values | {FRAME_STOPPED: I32(0), FRAME_CAREFUL: I64(0), FRAME_SUSPICION: I64(0)}).items():
        builder.store(value, frame_slot(builder, frame, slot))
    callee = context.declare_function(module, compiled.fndesc)

    again = function.append_basic_block("again") if plan.has_suspicions else None

    def call_each(failure: Any = None) -> None:
        """Call the function for each tuple of the run; after a failure, branch to a block, or return its index."""
        with cgutils.for_range(builder, count) as loop:
            if plan.kind is FunctionKind.MAP:
                place = builder.gep(out, [builder.mul(loop.index, I64(plan.output.record_size))])
                builder.store(place, frame_slot(builder, frame, FRAME_OUT))
            tuple_at = builder.gep(source, [builder.mul(loop.index, I64(record.schema.record_size))])
            arguments = [make_record(context, builder, record, tuple_at, frame)]
            if state is not None:
                slot = builder.gep(builder.bitcast(slots, POINTER.as_pointer()), [loop.index])
                arguments.append(make_record(context, builder, state, builder.load(slot), frame))
            status, _ = context.call_conv.call_function(
                builder, callee, compiled.fndesc.restype, compiled.fndesc.argtypes, arguments
            )
            with builder.if_then(status.is_error, likely=False):
                if failure is not None:
                    builder.branch(failure)
                else:
                    if plan.kind is FunctionKind.FILTER:
                        engine.kept(builder, engine_context, builder.load(frame_slot(builder, frame, FRAME_USED)))
                    stopped = builder.load(frame_slot(builder, frame, FRAME_STOPPED))
                    stopped = builder.icmp_unsigned("!=", stopped, I32(0))
                    builder.ret(builder.select(stopped, STOPPED, builder.sub(I64(-1), loop.index)))

    call_each(failure=again)  # an earlier tuple may be the cause
    if again is not None:
        done = function.append_basic_block("done")
        suspicion = builder.load(frame_slot(builder, frame, FRAME_SUSPICION))
        builder.cbranch(builder.icmp_unsigned("!=", suspicion, I64(0)), again, done)
        builder.position_at_end(again)
        builder.store(I64(1), frame_slot(builder, frame, FRAME_CAREFUL))
        call_each()
        builder.branch(done)
        builder.position_at_end(done)
    builder.ret(count if plan.kind is FunctionKind.MAP else builder.load(frame_slot(builder, frame, FRAME_USED)))
    return function


def _entry(module: Any, name: str, bodies: list[Any], *, allocates: bool) -> None:
    """Call the loop; twice in the code if the buffers may be one, so that LLVM vectorises both cases."""
    function = ir.Function(module, PROCESS, name)
    source, count, out, *others = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    outer = engine.current_context(builder) if allocates else None
    if outer is not None:
        engine.set_current_context(builder, others[-1])
    result = cgutils.alloca_once(builder, I64)
    if len(bodies) == 1:
        builder.store(builder.call(bodies[0], list(function.args)), result)
    else:
        with builder.if_else(builder.icmp_unsigned("==", source, out)) as (distinct, two):
            with distinct:
                builder.store(builder.call(bodies[1], [source, count, source, *others]), result)
            with two:
                builder.store(builder.call(bodies[0], list(function.args)), result)
    if outer is not None:
        engine.set_current_context(builder, outer)
    builder.ret(builder.load(result))


def _optimise(codegen: Any, module: Any) -> None:
    """Run Numba's full set of optimisation passes."""
    passes, builder = codegen._module_pass_manager()
    passes.run(module, builder)


def _imports(module: Any) -> tuple[str, ...]:
    declared = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    declared += [g.name for g in module.global_variables if g.is_declaration]
    return tuple(sorted(declared))
