"""A loop over a dict that changes its size: raises CPython's RuntimeError, where Numba's loop just ends."""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.typed.dictobject import Status, impl_iterator_iternext

from rayelastic.compile.lowering.base.raised import RaisingConvention

_BYTES, _STATUS = ir.IntType(8).as_pointer(), ir.IntType(32)


@lower_builtin("iternext", types.DictIteratorType)
def _next(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Return the next item, as in Numba; if there is none, check whether the dict has changed."""
    item = impl_iterator_iternext(context, builder, sig, args)
    if not isinstance(context.call_conv, RaisingConvention):  # Numba's own code, which lacks this error
        return item
    pair = context.make_helper(builder, types.Pair(sig.return_type.first_type, types.boolean), item)
    with builder.if_then(builder.not_(pair.second), likely=False):
        state = context.make_helper(builder, sig.args[0], args[0]).state
        takes = ir.FunctionType(_STATUS, [_BYTES, _BYTES.as_pointer(), _BYTES.as_pointer()])
        function = cgutils.get_or_insert_function(builder.module, takes, "numba_dict_iter_next")
        nowhere = cgutils.alloca_once(builder, _BYTES)
        status = builder.call(function, (state, nowhere, nowhere))
        changed = builder.icmp_signed("==", status, ir.Constant(_STATUS, Status.ERR_DICT_MUTATED))
        with builder.if_then(changed, likely=False):
            context.call_conv.return_user_exc(builder, RuntimeError, ("dictionary changed size during iteration",))
    return item
