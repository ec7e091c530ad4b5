"""Dicts and sets made in a function compare keys by content, as CPython does.

Numba compares the keys of a dict byte for byte unless they hold memory with reference counts. That is wrong for text
and bytes, which are an address and a size here, and for types with padding. So every key that isn't a plain integer is
compared by `==`. Floats are rejected as keys: CPython finds NaN by its identity, which compiled code lacks.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import UnsupportedError
from numba.core.typing.templates import signature
from numba.typed import dictobject
from numba.typed.typedobjectutils import _get_incref_decref

from rayelastic.compile.lowering.base.declare import primitive
from rayelastic.compile.reasons import Code, packed

I32 = ir.IntType(32)
POINTER = ir.IntType(8).as_pointer()
_TABLE = ir.LiteralStructType([POINTER] * 5)  # equal, key incref, key decref, value incref, value decref
_FAILED = I32(-1)  # of a comparison: Numba's dict raises then


def refuse_keys(state: Any) -> None:
    """Reject dicts and sets with keys that compiled code can't find as CPython does.

    Raises:
        UnsupportedError: At the first line that makes such a dict or set.
    """
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            target = getattr(statement, "target", None)
            kind = state.typemap.get(getattr(target, "name", None))
            key = kind.key_type if isinstance(kind, types.DictType) else None
            key = kind.dtype if isinstance(kind, types.Set) else key
            if key is not None and _holds_float(key):
                what = "dict" if isinstance(kind, types.DictType) else "set"
                raise UnsupportedError(packed(Code.BY_IDENTITY, what=f"a {what} with float keys"), statement.loc)


def _holds_float(key: Any) -> bool:
    if isinstance(key, types.BaseTuple):
        return any(_holds_float(item) for item in _items(key))
    if isinstance(key, types.Optional):
        return _holds_float(key.type)
    return isinstance(key, types.Float | types.Complex)


def _items(kind: Any) -> Any:
    """Return the types of a tuple's items; Numba's stubs don't say that its tuple types can be iterated over."""
    return kind


def _same(a: Any, b: Any) -> bool:
    return a == b


def _method_table(typingctx: Any, dict_pointer: Any, key: Any, value: Any) -> Any:
    """Return a new dict's functions for keys and values, instead of Numba's `_dict_set_method_table`."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        table = cgutils.alloca_once(builder, _TABLE, zfill=True)

        def put(at: int, function: Any) -> None:
            builder.store(builder.bitcast(function, POINTER), cgutils.gep_inbounds(builder, table, 0, at))

        key_type, value_type = key.instance_type, value.instance_type
        if not isinstance(key_type, types.Integer | types.Boolean):
            put(0, _equal(context, builder.module, key_type))
        for first, kind, name in ((1, key_type, "dict_key"), (3, value_type, "dict_value")):
            model = context.data_model_manager[kind]
            if model.contains_nrt_meminfo():
                for at, function in enumerate(_get_incref_decref(context, builder.module, model, name), start=first):
                    put(at, function)
        kinds = ir.FunctionType(ir.VoidType(), [POINTER, _TABLE.as_pointer()])
        setter = cgutils.get_or_insert_function(builder.module, kinds, "numba_dict_set_method_table")
        builder.call(setter, [args[0], table])
        return context.get_dummy_value()

    return types.void(dict_pointer, key, value), codegen


def _equal(context: Any, module: Any, key: Any) -> Any:
    """Make a C function that returns whether the keys at two addresses are equal."""
    model = context.data_model_manager[key]
    place = model.get_data_type().as_pointer()
    function = ir.Function(module, ir.FunctionType(I32, [place, place]), module.get_unique_name("dict_key.equal"))
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    kinds = signature(types.boolean, key, key)
    compiled = context.compile_subroutine(builder, _same, kinds)
    keys = [model.load_from_data_pointer(builder, argument) for argument in function.args]
    status, result = context.call_internal_no_propagate(builder, compiled.fndesc, kinds, keys)
    with builder.if_then(status.is_error, likely=False):
        builder.ret(_FAILED)
    builder.ret(builder.zext(context.cast(builder, result, types.boolean, types.int8), I32))
    return function


dictobject._dict_set_method_table = primitive(_method_table)
