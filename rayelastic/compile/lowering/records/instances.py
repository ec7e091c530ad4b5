"""Dataclasses that a function makes and reads: a struct of the types of its fields, without identity.

Only classes whose constructors do nothing but set fields. An instance can't leave the function, nor change in it.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import dataclasses
import operator
from typing import Any

from numba.core import cgutils, types
from numba.core.errors import TypingError, UnsupportedError
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr

from rayelastic.compile.lowering.base.declare import overloads, primitive, structure
from rayelastic.compile.lowering.base.moment_types import PointType
from rayelastic.compile.lowering.base.views import ViewType
from rayelastic.compile.reasons import packed

_MADE_BY = "<string>"  # the file of code that dataclasses generate


class InstanceType(types.Type):
    """An instance of a dataclass."""

    def __init__(self, instance_class: type, kinds: tuple[Any, ...]) -> None:
        self.instance_class, self.kinds = instance_class, kinds
        self.names = tuple(field.name for field in dataclasses.fields(instance_class))
        self.shown = f"a dataclass {instance_class.__qualname__}"
        super().__init__(name=f"{instance_class.__qualname__}#{id(instance_class)}({', '.join(map(str, kinds))})")


# Its fields, in order.
structure(InstanceType, lambda kind: list(zip(kind.names, kind.kinds, strict=True)))


def fields_of(kind: Any, loc: Any) -> tuple[Any, ...]:
    """Return the fields of a dataclass.

    Raises:
        UnsupportedError: Its constructor does more than set them.
    """
    fields = dataclasses.fields(kind)
    own = "__dataclass_fields__" in vars(kind) and _is_generated(kind, "__init__") and kind.__new__ is object.__new__
    plain = kind.__setattr__ is object.__setattr__ or _is_generated(kind, "__setattr__")
    hooks = any(hasattr(kind, name) for name in ("__post_init__", "__getattr__"))
    all_given = all(f.init and f.default_factory is dataclasses.MISSING for f in fields)
    variables = any(f._field_type is dataclasses._FIELD_INITVAR for f in kind.__dataclass_fields__.values())  # type: ignore[attr-defined]
    if not (own and plain and all_given) or hooks or variables or kind.__getattribute__ is not object.__getattribute__:
        what = f"making a {kind.__qualname__}, which does more than to set its fields,"
        raise UnsupportedError(packed(what=what), loc)
    return fields


def _is_generated(kind: type, name: str) -> bool:
    code = getattr(getattr(kind, name), "__code__", None)
    return code is not None and code.co_filename == _MADE_BY


@primitive
def make(typingctx: Any, kind: Any, *given: Any) -> Any:
    """Make an instance of a class from all its fields in order."""
    values: Any = given[0] if len(given) == 1 and isinstance(given[0], types.BaseTuple | tuple) else given
    instance = InstanceType(kind.value, tuple(types.unliteral(one) for one in values))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        instance_value = cgutils.create_struct_proxy(instance)(context, builder)
        for at, name in enumerate(instance.names):
            value = builder.extract_value(args[1], at)
            value = context.cast(builder, value, sig.args[1][at], instance.kinds[at])
            context.nrt.incref(builder, instance.kinds[at], value)
            setattr(instance_value, name, value)
        return instance_value._getvalue()

    return instance(kind, types.Tuple(tuple(values))), codegen


@infer_getattr
class InstanceAttributes(AttributeTemplate):
    """Implements p.x."""

    key = InstanceType

    def generic_resolve(self, typ: InstanceType, name: str) -> Any:  # type: ignore[override]
        """Return the type of a field, None for another attribute (members.py)."""
        return typ.kinds[typ.names.index(name)] if name in typ.names else None


@lower_getattr_generic(InstanceType)
def _getattr(context: Any, builder: Any, typ: InstanceType, value: Any, name: str) -> Any:
    field_value = getattr(cgutils.create_struct_proxy(typ)(context, builder, value=value), name)
    context.nrt.incref(builder, typ.kinds[typ.names.index(name)], field_value)
    return field_value


@primitive
def _compared(typingctx: Any, instance: Any) -> Any:
    """Return the fields that take part in comparisons, as a tuple."""
    chosen = [at for at, field in enumerate(dataclasses.fields(instance.instance_class)) if field.compare]
    result = types.Tuple(tuple(instance.kinds[at] for at in chosen))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.make_tuple(builder, result, [builder.extract_value(args[0], at) for at in chosen])

    return result(instance), codegen


def _check_equality(a: Any, b: Any) -> bool:
    if not (isinstance(a, InstanceType) and isinstance(b, InstanceType)):
        return False
    exact = all(isinstance(kind, types.Integer | types.Boolean | ViewType | PointType) for kind in a.kinds)
    if a != b or not exact or not _is_generated(a.instance_class, "__eq__"):
        raise TypingError(packed(what=f"comparing {a.shown} with {b.shown}"))
    return True


@overloads(operator.eq)
def _equal(a: Any, b: Any) -> Any:
    return (lambda a, b: _compared(a) == _compared(b)) if _check_equality(a, b) else None


@overloads(operator.ne)
def _unequal(a: Any, b: Any) -> Any:
    return (lambda a, b: _compared(a) != _compared(b)) if _check_equality(a, b) else None
