"""The class of the exception in flight, to distinguish `except ValueError` from `except KeyError` in compiled code.

Numba's code points to a constant about the raised exception, and can't read it. Here that constant also holds a
negative number of the exception's class, in a member that Numba reads only if it is positive. A handler compares
numbers (exceptions.py writes it so). If CPython's exception is unknown, and matters to the handler, the tuple is
rejected. The arguments of a raised exception are dropped: explain.py takes them from Python.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG002 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import builtins
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.callconv import ALLOC_FLAG_IDX, RETCODE_USEREXC, CPUCallConv, excinfo_ptr_t

from rayelastic.compile.lowering.base.declare import primitive
from rayelastic.compile.lowering.base.refusal import refuse

I1, I32 = ir.IntType(1), ir.IntType(32)


class NoneUsedError(TypeError):
    """None where a value is required: in CPython a TypeError, or an AttributeError."""


_numbers: dict[type, int] = {}


def note(kind: Any) -> None:
    """Assign a number to an exception class, before a handler that catches it is compiled."""
    _numbers.setdefault(kind, len(_numbers) + 1)


for _name in sorted(vars(builtins)):
    if isinstance(getattr(builtins, _name), type) and issubclass(getattr(builtins, _name), Exception):
        note(getattr(builtins, _name))
note(NoneUsedError)


def _known(kind: Any, arguments: Any) -> Any:
    """Return the class that CPython would raise where Numba raises this one."""
    said = str(arguments[0]) if arguments else ""
    is_none = kind is TypeError and said.startswith("expected ") and said.endswith("got None")
    return NoneUsedError if is_none else kind


class RaisingConvention(CPUCallConv):
    """Numba's own, with the numbers of classes."""

    def set_static_user_exc(
        self, builder: Any, exc: Any, exc_args: Any = None, loc: Any = None, func_name: Any = None
    ) -> None:
        """Raise a constant exception."""
        if exc is None or str((exc_args or ("",))[0]).startswith("Unreachable condition"):  # the end of a finally block
            builder.store(builder.load(self.caught(builder)), self._get_excinfo_argument(builder.function))
            return
        super().set_static_user_exc(builder, exc, exc_args, loc, func_name)
        known = _known(exc, exc_args)
        note(known)
        numbas = self.context.get_python_api(builder).serialize_object(
            self.build_excinfo_struct(exc, exc_args or (), loc, func_name)
        )
        members = list(numbas.initializer.constant)
        members[ALLOC_FLAG_IDX] = I32(-_numbers[known])
        name = f"{numbas.name}.{_numbers[known]}"
        ours = self.context.insert_unique_const(builder.module, name, ir.Constant.literal_struct(members))
        builder.store(ours, self._get_excinfo_argument(builder.function))

    def set_dynamic_user_exc(
        self, builder: Any, exc: Any, exc_args: Any, nb_types: Any, loc: Any = None, func_name: Any = None
    ) -> None:
        """Raise an exception with values of the run."""
        self.set_static_user_exc(builder, exc, (), loc, func_name)

    def unset_try_status(self, builder: Any) -> None:
        """End a try block before a handler, and keep the exception that Numba forgets."""
        raised = builder.load(self._get_excinfo_argument(builder.function))
        slot = self.caught(builder)
        builder.store(builder.select(cgutils.is_null(builder, raised), builder.load(slot), raised), slot)
        super().unset_try_status(builder)

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        """Handle the failure of a callee. A try block continues to its end, and the first exception counts."""
        tried = self.check_try_status(builder)
        raised_before = builder.and_(tried.in_try, cgutils.is_not_null(builder, tried.excinfo))
        raised = builder.select(raised_before, tried.excinfo, status.excinfoptr)
        builder.store(raised, self._get_excinfo_argument(builder.function))
        with builder.if_then(builder.not_(tried.in_try)):
            self._return_errcode_raw(builder, status.code)

    def caught(self, builder: Any) -> Any:
        """Return where this function's last caught exception is."""
        slot = getattr(builder, "_rel_caught", None)
        if slot is None:
            slot = builder._rel_caught = cgutils.alloca_once(builder, excinfo_ptr_t, name="caught", zfill=True)
        return slot

    def raise_again(self, builder: Any, raised: Any) -> None:
        """Raise the caught exception."""
        status = self.check_try_status(builder)
        builder.store(raised, self._get_excinfo_argument(builder.function))
        with builder.if_then(builder.not_(status.in_try)):
            self._return_errcode_raw(builder, RETCODE_USEREXC)


# --- what exceptions.py calls ---------------------------------------------------------------------------------------


@primitive
def caught(typingctx: Any) -> Any:
    """Return the exception that a handler has caught."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(builder.load(context.call_conv.caught(builder)), cgutils.voidptr_t)

    return types.voidptr(), codegen


@primitive
def raise_again(typingctx: Any, raised: Any) -> Any:
    """Raise it from the handler."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.call_conv.raise_again(builder, builder.bitcast(args[0], excinfo_ptr_t))
        return context.get_dummy_value()

    return types.none(raised), codegen


@primitive
def is_a(typingctx: Any, raised: Any, kinds: Any) -> Any:
    """Return whether it is of one of the classes in a tuple; reject the stream's tuple if that is unknown."""
    wanted = tuple(kind.exc_class for kind in kinds)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = builder.bitcast(args[0], excinfo_ptr_t)
        number = builder.neg(builder.load(builder.gep(place, [I32(0), I32(ALLOC_FLAG_IDX)])))
        unknown, matches = builder.icmp_signed("<=", number, I32(0)), I1(0)
        for known, its in _numbers.items():
            could_be = (TypeError, AttributeError) if known is NoneUsedError else (known,)
            caught = [issubclass(one, wanted) for one in could_be]
            if any(caught):
                same = builder.icmp_signed("==", number, I32(its))
                matches = builder.or_(matches, same)
                unknown = unknown if all(caught) else builder.or_(unknown, same)
        with builder.if_then(unknown, likely=False):
            refuse(builder)
        return matches

    return types.boolean(raised, kinds), codegen
