"""Classes that describe a record by annotated fields: dataclasses, attrs, msgspec and Pydantic, TypedDict, plain ones.

NamedTuple classes aren't among them: their instances are the tuples. Knows no schemas; imports none of the libraries.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any


def field_names(cls: type) -> tuple[str, ...] | None:
    """Return the names of the fields of a class's instances, in order; None if it isn't a class of records.

    >>> @dataclasses.dataclass
    ... class Click:
    ...     user: str
    ...     ms: int = 0
    >>> field_names(Click), field_names(int)
    (('user', 'ms'), None)
    """
    if issubclass(cls, tuple) or not cls.__flags__ & _HEAP_TYPE:
        return None
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls) if field.init)
    if (attributes := getattr(cls, "__attrs_attrs__", None)) is not None:
        return tuple(attribute.name for attribute in attributes)
    for names in ("__struct_fields__", "__pydantic_fields__", "model_fields"):  # msgspec, Pydantic
        if (fields := getattr(cls, names, None)) is not None:
            return tuple(fields)
    if typing.is_typeddict(cls) or cls.__bases__ == (object,):
        return _annotated(cls)
    return None


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: written in Python


def _annotated(cls: type) -> tuple[str, ...] | None:
    """Return the names of a class that has only annotations and methods."""
    hints: dict[str, Any] = cls.__annotations__ if typing.is_typeddict(cls) else vars(cls).get("__annotations__", {})
    names = (name for name, hint in hints.items() if "ClassVar" not in str(hint))
    return tuple(name for name in names if not name.startswith("_")) or None


def field_hints(cls: type) -> dict[str, Any]:
    """Return the types of a class's fields; a key that a TypedDict may lack is nullable.

    Raises:
        Exception: whatever reading the annotations raises.
    """
    hints = typing.get_type_hints(cls, include_extras=True)
    names = field_names(cls) or ()
    may_lack: frozenset[str] = getattr(cls, "__optional_keys__", frozenset())
    return {name: _plain(hints[name], may_lack=name in may_lack) for name in names}


def _plain(hint: Any, *, may_lack: bool) -> Any:
    """Return a type without the `Required` or `NotRequired` around it, which overrides the TypedDict's `total`."""
    mark = typing.get_origin(hint)
    if mark in (typing.Required, typing.NotRequired):
        hint, may_lack = typing.get_args(hint)[0], mark is typing.NotRequired
    return hint | None if may_lack else hint


def values_by_name(record: object) -> dict[Any, Any] | None:
    """Return the values of a mapping or of an instance by the names of its fields; None of anything else."""
    if isinstance(record, Mapping):
        return dict(record)
    names = field_names(type(record))
    return None if names is None else {name: getattr(record, name) for name in names}
