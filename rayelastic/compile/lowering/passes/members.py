"""Methods and properties of the user's NamedTuple classes and dataclasses: helper functions of the tuple.

This covers the operator function's tuple, and those that functions make. Class methods, static methods and methods
inherited from tuple aren't compiled.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import inspect
import types as python_types
from typing import Any

from numba.core import types
from numba.core.imputils import lower_builtin, lower_getattr
from numba.core.registry import cpu_target
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr

from rayelastic.compile.lowering.passes.rewrite import helper
from rayelastic.compile.lowering.records.instances import InstanceType
from rayelastic.compile.lowering.records.types import RecordType

_KINDS = (types.BaseNamedTuple, RecordType, InstanceType)
_lowered: set[str] = set()  # names of members that are lowered


def _member(kind: Any, name: str) -> Any:
    """Return the function or property of a class, None for any other attribute."""
    record_class = kind.schema.tuple_type if isinstance(kind, RecordType) else kind.instance_class
    attribute = inspect.getattr_static(record_class, name, None)
    if hasattr(tuple, name) or name.startswith("_"):
        return None
    is_property = isinstance(attribute, property) and isinstance(attribute.fget, python_types.FunctionType)
    return attribute if is_property or isinstance(attribute, python_types.FunctionType) else None


def _dispatcher(kind: Any, name: str) -> Any:
    """Return the type of the helper function of a member."""
    member: Any = _member(kind, name)
    function: Any = member.fget if isinstance(member, property) else member
    return types.Dispatcher(helper(function))


def _lower(name: str) -> None:
    """Define how members of a name become machine code, once for all classes."""
    if name in _lowered:
        return
    _lowered.add(name)
    for key in _KINDS:

        @lower_builtin((key, name), key, types.VarArg(types.Any))
        def _call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return _called(context, builder, _dispatcher(sig.args[0], name), sig.args, args)

        @lower_getattr(key, name)
        def _get(context: Any, builder: Any, kind: Any, value: Any) -> Any:
            if isinstance(_member(kind, name), property):
                return _called(context, builder, _dispatcher(kind, name), (kind,), [value])
            field = context._getattrs[None].find((kind,))  # of another class, whose field has that name
            return field(context, builder, kind, value, name)

    cpu_target.target_context.refresh()


def _called(context: Any, builder: Any, function: Any, kinds: Any, args: Any) -> Any:
    sig = function.get_call_type(context.typing_context, tuple(kinds), {})
    call = context.get_function(function, sig)
    context.add_linking_libs(getattr(call, "libs", ()))
    return call(builder, args)


def _declare(kind_of_type: Any) -> None:
    @infer_getattr
    class Members(AttributeTemplate):
        key = kind_of_type

        def generic_resolve(self, typ: Any, name: str) -> Any:  # type: ignore[override]
            member = _member(typ, name)
            if member is None or name in getattr(typ, "fields", ()):
                return None
            _lower(name)
            if isinstance(member, property):
                return _dispatcher(typ, name).get_call_type(self.context, (typ,), {}).return_type
            return types.BoundFunction(_method(kind_of_type, typ, name), typ)


def _method(key_of_type: Any, typ: Any, name: str) -> Any:
    class Method(AbstractTemplate):
        key = (key_of_type, name)

        def generic(self, args: Any, kws: Any) -> Any:
            function = _dispatcher(typ, name)
            return function.get_call_type(self.context, (typ, *args), kws).as_method()

    return Method


for _kind in _KINDS:
    _declare(_kind)
