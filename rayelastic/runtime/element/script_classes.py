"""Names the classes of the user's script in a process that runs parts of it, so that pickle finds them by name.

Functions ship the objects of a script by value. The state of keys is large and therefore pickled by name. So the
classes get the names in `__main__` that they have in the script's process, and saved state can be read there. Knows
operators, neither state nor checkpoints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import islice
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

SCRIPT = "__main__"
_EMPTY = CellType()
MOST = 100_000  # objects to visit, also of a collection: the data of a function isn't read completely
MOST_ITEMS = 1000


def name_script_classes(roots: Iterable[object]) -> None:
    """Name the classes of the script in this process as in its own, where the names are free.

    Args:
        roots: Shipped objects, such as operators.
    """
    script = sys.modules[SCRIPT]
    for cls in script_classes(roots):
        if cls.__name__ == cls.__qualname__ and not hasattr(script, cls.__name__):
            setattr(script, cls.__name__, cls)


def script_classes(roots: Iterable[object]) -> Iterator[type]:
    """Yield the classes of the script that these objects, or functions in them, refer to; each once."""
    ahead: list[Any] = list(roots)
    seen: dict[int, Any] = {}  # which also keeps generated objects alive
    while ahead and len(seen) < MOST:
        one = ahead.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, type) and one.__module__ == SCRIPT:
            yield one
        with suppress(Exception):  # users' objects may raise anything when they are inspected
            ahead.extend(_parts(one))


def _parts(one: Any) -> Iterable[Any]:
    """Return what an object refers to, if it may lead to classes of the script."""
    if isinstance(one, type | FunctionType):
        if one.__module__ != SCRIPT:
            return ()
        return (*one.__bases__, *vars(one).values()) if isinstance(one, type) else _of_function(one)
    if isinstance(one, MethodType | staticmethod | classmethod):
        return (one.__func__, getattr(one, "__self__", None))
    if isinstance(one, property):
        return (one.fget, one.fset)
    if isinstance(one, partial):
        return (one.func, one.args, one.keywords)
    if isinstance(one, Mapping):
        return islice(one.values(), MOST_ITEMS)
    if isinstance(one, list | tuple | set | frozenset):
        return (type(one), *islice(one, MOST_ITEMS))
    if is_dataclass(one):
        return (type(one), *(getattr(one, field.name, None) for field in fields(one)))
    return (
        (type(one), *vars(one).values())
        if type(one).__module__ == SCRIPT and hasattr(one, "__dict__")
        else (type(one),)
    )


def _of_function(function: FunctionType) -> Iterator[Any]:
    known = function.__globals__
    yield from (known[name] for name in _names(function.__code__) if name in known)
    yield from (cell.cell_contents for cell in function.__closure__ or () if cell != _EMPTY)
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from function.__annotations__.values()


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
