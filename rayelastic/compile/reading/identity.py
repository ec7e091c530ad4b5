"""A hash of a user's function: byte code, constants, closure, globals, helper functions, and attributes of objects.

File names and line numbers don't count, so equal functions share code and an edit elsewhere in the file costs nothing.
Of objects and classes, the attributes count that the function may read. A member of the standard library or of NumPy is
hashed by its current value, which a test may have replaced. A function that uses something without a stable name has no
identity and isn't cached.
"""

from __future__ import annotations

import datetime as dt
import dis
import enum
import functools
import hashlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from rayelastic.compile.originals import builtin_of, is_installed, is_member
from rayelastic.compile.reading.bound import is_callable_object, taken_apart

_NO_DATA = types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type


class Identity:
    """The hash of a function, and the values that it refers to.

    Args:
        function: A user's callable.
        records: The classes of its tuple and state; their methods and properties count.

    >>> def one(x): return x + 1
    >>> def two(x): return x + 1   # another place, the same function
    >>> Identity(one).digest == Identity(two).digest
    True
    >>> Identity(lambda x: x + 2).digest == Identity(one).digest
    False
    """

    def __init__(self, function: Callable[..., Any] | None, *records: type | None) -> None:
        self.classes: list[type] = []  # NamedTuple classes that it refers to
        self.is_too_large = False  # it leads to more than is worth reading, so not all was read
        self.known = True  # False: something has no stable name, nothing may be cached
        self.members: set[str] = set()  # names of methods and properties of objects and classes that it may use
        self.times = False  # whether it uses datetime, by whatever name
        self.frozen: dict[str, list[Any]] = {}  # names of outside data, with its current value
        self._parts: list[bytes] = []
        self._seen: dict[int, int] = {}
        self._names: set[str] = set()  # in any of the code
        self._owners: list[Any] = [one for one in records if one is not None]  # whose attributes it may read
        self._kept: list[Any] = []  # kept alive, so that no other object has its id
        if function is not None:
            self._bound(function)
            self._value(function)
            self._attributes()

    @property
    def digest(self) -> str:
        """Hexadecimal; meaningless if not `known`."""
        return hashlib.sha256(self.inputs).hexdigest()

    @property
    def inputs(self) -> bytes:
        """All inputs of the digest, as text."""
        return b"\n".join(self._parts)

    def _add(self, *parts: object) -> None:
        self._parts.append(repr(parts).encode(errors="backslashreplace"))

    def _value(self, value: Any) -> None:
        if isinstance(value, enum.Enum):
            self._add("member", value.name)
            self._class(type(value))
            self._value(value._value_)
            self._owner(value)
        elif value is None or isinstance(value, bool | int | float | complex | str | bytes | type(...)):
            self._add(type(value).__name__, value)
        elif isinstance(value, tuple | frozenset | dict | list | set):
            self._collection(value)
        elif isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta | dt.timezone):
            self._add("temporal", value)
            self.times = True
        elif isinstance(value, re.Pattern):
            self._add("pattern", value.pattern, value.flags)
        elif isinstance(value, types.FunctionType | types.MethodType | functools.partial | property | _WRAPPED):
            self._callable(value)
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif isinstance(value, types.ModuleType):
            self._add("module", value.__name__, getattr(value, "__version__", ""))
            self.times = self.times or value is dt
            self._owner(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.BuiltinFunctionType):
            owner = value.__self__
            plain = isinstance(owner, types.ModuleType | type | None)
            self._add("builtin", value.__module__, value.__qualname__, "" if plain else type(owner).__qualname__)
            self.known = self.known and (plain or is_installed(type(owner).__module__))
        elif type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            self._add("numpy", str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest())
        elif type(value).__module__ == "numpy" and callable(value):
            self._add("numpy", type(value).__qualname__, _name_of(value))
        elif is_of_python(type(value)):
            self._class(type(value))
            self._owner(value)
            if is_callable_object(value):
                self._value(type(value).__call__)
        else:
            self.known = False

    def _collection(self, value: Any) -> None:
        self._add(type(value).__name__, len(value))
        if hasattr(value, "_fields"):
            self._class(type(value))
            self._owner(value)
        unordered = isinstance(value, frozenset | set)
        for item in sorted(value, key=repr) if unordered else value:
            self._value(item)
            if isinstance(value, dict):
                self._value(value[item])

    def _callable(self, value: Any) -> None:
        self._add(type(value).__name__)
        if isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.MethodType):
            self._function(value.__func__)
            self._value(value.__self__)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self._value(part)
        elif isinstance(value, property):
            self._value(value.fget)
        else:
            self._value(value.__func__)

    def _class(self, value: type) -> None:
        self._add("class", value.__module__, value.__qualname__)
        self.times = self.times or value.__module__ == dt.__name__
        if issubclass(value, tuple) and hasattr(value, "_fields"):
            if value not in self.classes:
                self.classes.append(value)
            self._add(value._fields, [str(a) for a in getattr(value, "__annotations__", {}).values()])
            for default in getattr(value, "_field_defaults", {}).values():
                self._value(default)
        fields = getattr(value, "__dataclass_fields__", {})
        hints = _hints(value) if fields else {}
        for name, field in fields.items():
            self._add("field", name, str(hints.get(name, field.type)), field.kw_only, field.init, field.compare)
            self._value(getattr(value, name, None))
        if is_of_python(value):
            self._owner(value)

    def _function(self, function: Any) -> None:
        if not isinstance(function, types.FunctionType):
            self.known = False
            return
        if self._is_known(function):  # recursion, or a helper used twice
            return
        if is_member(function):
            self._add("member", function.__module__, function.__qualname__)
            self._code(function.__code__)
            return
        self._code(function.__code__)
        self._names |= _all_names(function.__code__)
        self.times = self.times or dt.__name__ in self._names  # imported in the function
        self._value(tuple(function.__defaults__ or ()))
        self._value(dict(function.__kwdefaults__ or {}))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._add("closure", name)
            try:
                self._note(name, cell.cell_contents)
                self._value(cell.cell_contents)
            except ValueError:  # not assigned yet
                self.known = False
        for name in sorted(global_names(function.__code__)):  # no names of attributes: they may be globals by chance
            if name in function.__globals__:
                self._add("global", name)
                self._note(name, function.__globals__[name])
                self._value(function.__globals__[name])
                continue
            is_replaced, value = builtin_of(function, name)
            if is_replaced:
                self._add("builtins", name)
                self._value(value)

    def _is_known(self, value: Any) -> bool:
        """Return whether it was visited before, and record it."""
        if id(value) in self._seen:
            self._add("again", self._seen[id(value)])
            return True
        if len(self._seen) >= _MOST_OBJECTS:
            self.is_too_large, self.known = True, False
            return True
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        return False

    def _bound(self, function: Any) -> None:
        """Record the bound parameters: the object of a method, the arguments of a partial."""
        found = taken_apart(function)
        for name, value in ({} if found is None else found.values).items():
            self._note(name, value)

    def _note(self, name: str, value: Any) -> None:
        if not isinstance(value, _NO_DATA):
            self.frozen.setdefault(name, []).append(value)

    # --- attributes of objects, classes and modules -------------------------------------------------------------------

    def _owner(self, value: Any) -> None:
        if not self._is_known(value):
            self._owners.append(value)

    def _attributes(self) -> None:
        """Read the attributes of all owners that the code names: these may lead to more owners, and to more names."""
        read: set[tuple[int, str]] = set()
        while not self._exceeds() and (wanted := [each for each in self._readable() if each not in read]):
            for at, name in wanted:
                read.add((at, name))
                owner = self._owners[at]
                found = inspect.getattr_static(owner, name)
                if not (isinstance(owner, type) and isinstance(found, types.MemberDescriptorType)):
                    self._add("attribute", at, name)
                    self._attribute(owner, name, found)

    def _exceeds(self) -> bool:
        if len(self._owners) * len(self._names) > _MOST_NAMES:
            self.is_too_large, self.known = True, False
        return self.is_too_large

    def _readable(self) -> Iterator[tuple[int, str]]:
        for at, owner in enumerate(self._owners):
            for name in sorted(self._names):
                if _is_named(owner, name):
                    yield at, name

    def _attribute(self, owner: Any, name: str, found: Any) -> None:
        if isinstance(owner, types.ModuleType):
            if not is_installed(owner.__name__):
                self._value(found)
                self._note(f"{owner.__name__}.{name}", found)
            elif isinstance(found, _NAMEABLE) or _is_plain(found):
                self._value(found)
            else:
                self._add("object", type(found).__module__, type(found).__qualname__, _name_of(found))
        elif isinstance(found, types.MemberDescriptorType | types.DynamicClassAttribute | enum.property):
            if not isinstance(owner, type):
                self._value(getattr(owner, name, None))  # a slot; name and value of an Enum member
        elif not isinstance(found, _OF_C):
            if isinstance(found, types.FunctionType | property | _WRAPPED):
                self.members.add(name)
            elif isinstance(owner, type) and not isinstance(owner, enum.EnumMeta):
                self._note(f"{owner.__name__}.{name}", found)
            self._value(found)

    def _code(self, code: types.CodeType) -> None:
        self._add("code", code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self._add(code.co_argcount, code.co_kwonlyargcount, code.co_flags & ~inspect.CO_NESTED, code.co_exceptiontable)
        for constant in code.co_consts:
            self._value(constant)


def _hints(cls: type) -> dict[str, Any]:
    """Return the types of a class's fields instead of their names in its source; none if one is unknown."""
    try:
        return typing.get_type_hints(cls)
    except Exception:
        return {}


def frozen_digest(function: Callable[..., Any]) -> str | None:
    """Return a hash of the outside data that a function reads; None if something has no stable name.

    Only the data counts, so that it is the same for a copy of the function in another process.

    >>> limits = [1, 2]
    >>> before = frozen_digest(lambda t: t in limits)
    >>> limits.append(3)
    >>> frozen_digest(lambda t: t in limits) == before
    False
    """
    whole, data = Identity(function), Identity(None)
    data._names = whole._names
    for name, values in sorted(whole.frozen.items()):
        data._add(name)
        for value in values:
            data._value(value)
    data._attributes()
    return data.digest if data.known else None


_MOST_OBJECTS = 2_000  # functions, classes and objects that a function may lead to; a library has more
_MOST_NAMES = 60_000  # names looked up in them, 10 us each
_WRAPPED: Any = staticmethod | classmethod
_OF_C = (types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType, types.BuiltinFunctionType)
_NAMEABLE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_NOT_PLAIN = {"re", "functools", "numpy", "numba", "llvmlite", "ctypes", "_ctypes", "cffi", "_cffi_backend"}


def is_of_python(kind: type) -> bool:
    """Return whether a class is a user's, written in Python, so that compiled code may read attributes alone."""
    heap = bool(kind.__flags__ & _HEAP_TYPE)
    return heap and not any(one.__module__.partition(".")[0] in _NOT_PLAIN for one in kind.__mro__)


def _is_plain(value: Any) -> bool:
    """Return whether a value of an installed module is a constant, or a collection of constants."""
    if isinstance(value, dict):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    if isinstance(value, tuple | list | set | frozenset):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | complex | str | bytes)


def _name_of(value: Any) -> str:
    """Return the name of a NumPy callable, such as a ufunc, if the module still has it under this name."""
    return str(getattr(value, "__name__", "")) if callable(value) else ""


def _is_named(owner: Any, name: str) -> bool:
    if name in getattr(owner if isinstance(owner, type) else type(owner), "_fields", ()):
        return False  # of a NamedTuple, which counts as its items
    try:
        inspect.getattr_static(owner, name)
    except AttributeError:
        return False
    return True


def global_names(code: types.CodeType) -> set[str]:
    """Return the names that code, and inner code, reads of its module; none of attributes."""
    names = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(global_names(inner) for inner in _inner_codes(code)))


def _all_names(code: types.CodeType) -> set[str]:
    return set(code.co_names).union(*(_all_names(inner) for inner in _inner_codes(code)))


def _inner_codes(code: types.CodeType) -> list[types.CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
