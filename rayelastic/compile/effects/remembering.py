"""What an operator remembers outside its state, found in the user's functions and objects of its body."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Iterator, Mapping
from typing import Any

from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.compile.effects.effects import remembered
from rayelastic.compile.reading.bound import is_callable_object
from rayelastic.graph.records.schema import Schema

# Called at the start and the end of an operator, never for a tuple.
_SET_UP = ("initialize", "shutdown", "open", "close", "prepare", "commit", "abort")


def remembered_by(body: Any) -> tuple[str, ...]:
    """Name what an operator is known to change outside its state, as the user writes it.

    Args:
        body: The operator's body.
    """
    return tuple(dict.fromkeys(name for found in _parts(body) for name in found))


def _parts(value: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(value, OperatorCode):
        if value.machine is None:
            yield remembered(value.function, 1 if value.state is None else 2)
    elif isinstance(value, types.MethodType) and _is_ours(value.__self__):
        yield from _parts(value.__self__)
    elif isinstance(value, types.FunctionType | types.MethodType | functools.partial):
        yield remembered(value, None)
    elif isinstance(value, Schema | type):
        return
    elif dataclasses.is_dataclass(value) and _is_ours(value):
        for field in dataclasses.fields(value):
            part = getattr(value, field.name)
            yield from _methods(part) if field.name == "instance" and not _is_ours(part) else _parts(part)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, Mapping):
        yield from _parts(list(value.values()))
    elif is_callable_object(value):
        yield remembered(value, None)


def _is_ours(value: Any) -> bool:
    """Return whether an object is of this package, whose methods keep everything in their state argument."""
    return type(value).__module__.startswith("rayelastic.")


def _methods(instance: Any) -> Iterator[tuple[str, ...]]:
    """Yield the changes of all methods of a user's object that may be called for a tuple."""
    for name, found in inspect.getmembers_static(type(instance), lambda one: isinstance(one, types.FunctionType)):
        if name not in _SET_UP and (not name.startswith("_") or name == "__call__"):
            yield remembered(types.MethodType(found, instance), None)
