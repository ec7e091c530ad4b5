"""A hash of all that a user's function is made of: byte code, constants, closure, globals, helper functions.

Names of files and line numbers don't count, so equal functions are shared and an edit elsewhere in the file costs
nothing. A function that uses what can't be named so has no identity and isn't cached.
"""

from __future__ import annotations

import datetime as dt
import dis
import hashlib
import inspect
import re
import sys
import types
from collections.abc import Callable
from typing import Any

_NO_DATA = types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type
_LIBRARIES = sys.stdlib_module_names | {"numpy"}

__all__ = ["Identity", "frozen_digest"]


class Identity:
    """The hash of a function, and the values that it refers to.

    >>> def one(x): return x + 1
    >>> def two(x): return x + 1   # another place, the same function
    >>> Identity(one).digest == Identity(two).digest
    True
    >>> Identity(lambda x: x + 2).digest == Identity(one).digest
    False
    """

    def __init__(self, function: Callable[..., Any] | None) -> None:
        self.classes: list[type] = []  # NamedTuple classes that it refers to
        self.known = True  # False: something has no stable name, nothing may be cached
        self.changeable: set[str] = set()  # names of dicts, lists and sets, whose content counts
        self.frozen: dict[str, list[Any]] = {}  # names outside the function that stand for data, as it is now
        self._hash = hashlib.sha256()
        self._seen: dict[int, int] = {}
        if function is not None:
            self._function(function)

    @property
    def digest(self) -> str:
        """Hexadecimal; of no use if not `known`."""
        return self._hash.hexdigest()

    def _add(self, *parts: object) -> None:
        self._hash.update(repr(parts).encode() + b"\0")

    def _value(self, value: Any) -> None:
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | type(...)):
            self._add(type(value).__name__, value)
        elif isinstance(value, tuple | frozenset):
            self._add(type(value).__name__, len(value))
            for item in sorted(value, key=repr) if isinstance(value, frozenset) else value:
                self._value(item)
        elif isinstance(value, dict | list | set):
            self._add(type(value).__name__, len(value))
            for item in sorted(value, key=repr) if isinstance(value, set) else value:
                self._value(item)
                if isinstance(value, dict):
                    self._value(value[item])
        elif isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta):
            self._add("temporal", value)
        elif isinstance(value, re.Pattern):
            self._add("pattern", value.pattern, value.flags)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif isinstance(value, types.ModuleType):
            self._add("module", value.__name__, getattr(value, "__version__", ""))
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.BuiltinFunctionType):
            self._add("builtin", value.__module__, value.__qualname__)
        elif type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            self._add("numpy", str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest())
        else:
            self.known = False

    def _class(self, value: type) -> None:
        self._add("class", value.__module__, value.__qualname__)
        if issubclass(value, tuple) and hasattr(value, "_fields"):
            self.classes.append(value)
            self._add(value._fields, [str(a) for a in getattr(value, "__annotations__", {}).values()])
            for default in getattr(value, "_field_defaults", {}).values():
                self._value(default)

    def _function(self, function: Any) -> None:
        if not isinstance(function, types.FunctionType):
            self.known = False
            return
        if id(function) in self._seen:  # recursion, or a helper used twice
            self._add("again", self._seen[id(function)])
            return
        self._seen[id(function)] = len(self._seen)
        self._code(function.__code__)
        self._value(tuple(function.__defaults__ or ()))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._add("closure", name)
            try:
                self._note(name, cell.cell_contents)
                self._value(cell.cell_contents)
            except ValueError:  # not assigned yet
                self.known = False
        for name in sorted(_global_names(function.__code__)):  # no names of attributes: they may be globals by chance
            if name in function.__globals__:
                self._add("global", name)
                self._note(name, function.__globals__[name])
                self._attributes(function.__globals__[name], function.__code__)

    def _note(self, name: str, value: Any) -> None:
        if isinstance(value, dict | list | set):
            self.changeable.add(name)
        if not isinstance(value, _NO_DATA):
            self.frozen.setdefault(name, []).append(value)

    def _attributes(self, value: Any, code: types.CodeType) -> None:
        """A global; of a module also those functions that the code may take from it."""
        self._value(value)
        if isinstance(value, types.ModuleType):
            for name in sorted(_all_names(code)):
                found = getattr(value, name, None)
                if isinstance(found, types.FunctionType | int | float | str | bytes):
                    self._add("attribute", name)
                    if value.__name__.partition(".")[0] not in _LIBRARIES:
                        self._note(f"{value.__name__}.{name}", found)
                    if not isinstance(found, types.FunctionType) or value.__name__.partition(".")[0] not in (
                        "numpy",
                        "math",
                    ):
                        self._value(found)

    def _code(self, code: types.CodeType) -> None:
        self._add("code", code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self._add(code.co_argcount, code.co_kwonlyargcount, code.co_flags & ~inspect.CO_NESTED, code.co_exceptiontable)
        for constant in code.co_consts:
            self._value(constant)


def frozen_digest(function: Callable[..., Any]) -> str | None:
    """A hash of the data outside a function that it reads; None where something has no stable name.

    Of the data alone, so that it is the same for a copy of the function in another process.

    >>> limits = [1, 2]
    >>> before = frozen_digest(lambda t: t in limits)
    >>> limits.append(3)
    >>> frozen_digest(lambda t: t in limits) == before
    False
    """
    data = Identity(None)
    for name, values in sorted(Identity(function).frozen.items()):
        data._add(name)
        for value in values:
            data._value(value)
    return data.digest if data.known else None


def _global_names(code: types.CodeType) -> set[str]:
    names = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_global_names(inner) for inner in _inner_codes(code)))


def _all_names(code: types.CodeType) -> set[str]:
    return set(code.co_names).union(*(_all_names(inner) for inner in _inner_codes(code)))


def _inner_codes(code: types.CodeType) -> list[types.CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
