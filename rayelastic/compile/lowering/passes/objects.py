"""Objects and classes outside the function: their attributes are copied at declaration.

`self.rate`, `CONFIG.limits.low`, `Color.RED.value` become constants, a method a helper function that knows its object,
a property a call of one. Attributes that aren't read cost nothing. An object that the function changes is rejected.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import enum
import inspect
import types as python_types
from typing import Any

from numba.core import types
from numba.core.errors import UnsupportedError

from rayelastic.compile.lowering.base.declare import constants
from rayelastic.compile.lowering.records.values import Member
from rayelastic.compile.reading.identity import is_of_python
from rayelastic.compile.reasons import Code, packed

CHANGERS = frozenset(
    ["append", "extend", "insert", "remove", "pop", "popitem", "clear", "update", "setdefault", "add", "discard",
     "appendleft", "popleft", "sort", "reverse", "move_to_end"]
)  # fmt: skip
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__")
_INT_TEXTS = (int.__repr__,)
_VALUES = (int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset)
_MISSING = object()


class Frozen:
    """An object, a class or an Enum member that compiled code knows."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Computed:
    """A property of an object: the function that computes it."""

    def __init__(self, function: python_types.MethodType) -> None:
        self.function = function


class FrozenType(types.Type):
    """Carries the object; its attributes are read before types are known."""

    def __init__(self, value: Any) -> None:
        self.value = value
        kind = value.__name__ if isinstance(value, type) else type(value).__name__
        super().__init__(name=f"object of {kind}#{id(value)}")


constants(Frozen, FrozenType, lambda value: FrozenType(value.value))


def is_frozen(value: Any) -> bool:
    """Return whether it is an object, or a class, whose attributes compiled code can read."""
    kind: Any = value if isinstance(value, type) else type(value)
    if not is_of_python(kind) or (isinstance(value, type) and issubclass(value, BaseException | tuple)):
        return False
    if isinstance(value, _VALUES) and not isinstance(value, enum.Enum):
        return False
    plain = kind.__getattribute__ is object.__getattribute__ or issubclass(kind, enum.Enum)
    metaclass: Any = type(kind)
    return plain and metaclass.__getattribute__ is type.__getattribute__


def attribute(owner: Any, name: str, shown: str, loc: Any) -> Any:
    """Return the value of `owner.name` at declaration, or a Computed for a property.

    Raises:
        UnsupportedError: It has none, or a dynamic one.
    """
    if isinstance(owner, enum.EnumMeta) and name in owner.__members__:
        return owner.__members__[name]
    if isinstance(owner, tuple) and name in getattr(owner, "_fields", ()):
        return getattr(owner, name)
    if isinstance(owner, enum.Enum) and name in ("name", "value", "_name_", "_value_"):
        return getattr(owner, name)
    descriptor = inspect.getattr_static(owner, name, _MISSING)
    if descriptor is _MISSING:
        raise UnsupportedError(packed(Code.NO_ATTRIBUTE, what=shown, name=name), loc)
    if (
        isinstance(descriptor, property)
        and not isinstance(owner, type)
        and isinstance(descriptor.fget, python_types.FunctionType)
    ):
        return Computed(python_types.MethodType(descriptor.fget, owner))
    if isinstance(descriptor, python_types.FunctionType):
        return (
            descriptor
            if isinstance(owner, type) or name in vars_of(owner)
            else python_types.MethodType(descriptor, owner)
        )
    if isinstance(descriptor, staticmethod):
        return descriptor.__func__
    if isinstance(descriptor, classmethod):
        return python_types.MethodType(descriptor.__func__, owner if isinstance(owner, type) else type(owner))
    if isinstance(descriptor, python_types.MemberDescriptorType) and not isinstance(owner, type):
        return getattr(owner, name)  # a slot
    if name not in vars_of(owner) and hasattr(type(descriptor), "__get__"):
        raise UnsupportedError(packed(what=f"'{shown}.{name}', which is computed when it is read,"), loc)
    return descriptor


def vars_of(owner: Any) -> Any:
    """Return an object's own attributes; of a class none, because they may all be descriptors."""
    return {} if isinstance(owner, type) else getattr(owner, "__dict__", {})


def refuse_change(shown: str, loc: Any) -> None:
    """Reject an object that the function changes.

    Raises:
        UnsupportedError: Always.
    """
    raise UnsupportedError(packed(Code.CHANGES_OUTSIDE, name=shown), loc)


def member_value(member: Any, uses: list[Any], shown: str, loc: Any) -> Any:
    """Return the int, text or number of an Enum member that is used without name or value.

    Args:
        member: A member of the user's class.
        uses: Whether each use of it is a comparison.
        shown: The user's expression.
        loc: Its location.

    Raises:
        UnsupportedError: Its class defines its own text or comparison.
    """
    kind: Any = type(member)
    plain: Any = int if isinstance(member, int) else str if isinstance(member, str) else None
    if plain is None and kind.__eq__ is object.__eq__ and not isinstance(member, enum.Flag):
        return Member(member)
    same = plain is not None and all(getattr(kind, name) is getattr(plain, name) for name in _COMPARISONS)
    as_text = same and kind.__str__ in (plain.__str__, *_INT_TEXTS) and kind.__format__ is plain.__format__
    if not same or not (as_text or all(uses)):
        raise UnsupportedError(
            packed(Code.WRITE_INSTEAD, what=f"'{shown}', an Enum member,", instead="its .value or .name"), loc
        )
    return int(member) if plain is int else str.__str__(member)
