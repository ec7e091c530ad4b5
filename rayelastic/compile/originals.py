"""Detects members of Python's and NumPy's modules that a test or a shim has replaced.

Compiled code relies on the known behaviour of these members. So a member is identified by its object, never by its
name. No new code is compiled while a member is replaced that the compiler itself relies on. No Numba here.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import os
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_INSTALLED = (sys.stdlib_module_names | {"numpy"}) - {"__main__"}  # their versions are in the cache's key
_RELIED_ON = ("builtins", "math", "operator", "re", "numpy")  # modules whose behaviour the compiler relies on
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_BUILTINS = frozenset(
    ["abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr", "complex", "dict", "divmod",
     "enumerate", "filter", "float", "format", "frozenset", "getattr", "hasattr", "hash", "hex", "id", "int",
     "isinstance", "issubclass", "iter", "len", "list", "map", "max", "min", "next", "object", "oct", "ord", "pow",
     "property", "range", "repr", "reversed", "round", "set", "setattr", "slice", "sorted", "str", "sum", "super",
     "tuple", "type", "zip"]
)  # fmt: skip


_original: dict[tuple[str, ...], tuple[int, ...]] = {}  # {modules: the ids of their members, all of them originals}


def builtin_of(function: types.FunctionType, name: str) -> tuple[bool, Any]:
    """Return whether a builtin name of a function isn't Python's own, and its value."""
    there = getattr(function, "__builtins__", {})  # typeshed has the attribute in some versions alone
    value = there.get(name) if isinstance(there, dict) else getattr(there, name, None)
    return name in there and _is_replaced("builtins", name, value), value


@functools.cache
def _lies_there(file: str) -> bool:
    numpy = find_spec("numpy")
    if numpy is not None and numpy.origin is not None and Path(file).is_relative_to(Path(numpy.origin).parent):
        return True
    library = Path(os.__file__).parent
    return Path(file).is_relative_to(library) and "site-packages" not in Path(file).relative_to(library).parts


def is_installed(module: str) -> bool:
    """Return whether a module of that name is the standard library's or NumPy's, and not another with its name."""
    if module.partition(".")[0] not in _INSTALLED:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is None or _lies_there(file)


def is_member(function: types.FunctionType) -> bool:
    """Return whether a function is a member of the standard library or NumPy under its own name."""
    if not _is_written_there(function):
        return False
    found: Any = sys.modules[function.__globals__["__name__"]]
    for name in function.__qualname__.split("."):
        found = inspect.getattr_static(found, name, None)
    return found is function


def _is_written_there(function: types.FunctionType) -> bool:
    home = function.__globals__.get("__name__") or ""
    return is_installed(home) and function.__globals__ is vars(sys.modules.get(home, builtins))


def replaced_member(modules: tuple[str, ...] = _RELIED_ON) -> str:
    """Name a replaced member that the compiler relies on; empty if there is none.

    Args:
        modules: The modules to check.

    >>> from unittest import mock
    >>> with mock.patch("math.sqrt", lambda x: 42.0):
    ...     replaced_member()
    'math.sqrt'
    >>> replaced_member()
    ''
    """
    there = {name: vars(importlib.import_module(name)) for name in modules}
    now = tuple(id(value) for members in there.values() for value in members.values())
    if _original.get(modules) == now:  # unchanged since the last check
        return ""
    for name, members in there.items():
        for member in _BUILTINS if name == "builtins" else [one for one in members if not one.startswith("__")]:
            if _is_replaced(name, member, members.get(member)):
                return f"{name}.{member}"
    _original[modules] = now
    return ""


def _is_replaced(root: str, name: str, value: Any) -> bool:
    """Return whether the value of a member can't be the module's own."""
    if isinstance(value, types.BuiltinFunctionType):
        if root in ("builtins", "math"):
            return value.__name__ != name or not isinstance(value.__self__, types.ModuleType)
        return False
    if isinstance(value, types.FunctionType):
        return not _is_written_there(value)
    if isinstance(value, type):
        home = value.__module__.partition(".")[0]
        return bool(value.__flags__ & _HEAP_TYPE) and not is_installed(value.__module__) and home != root
    return not isinstance(value, types.ModuleType) and type(value).__module__.partition(".")[0] == "unittest"
