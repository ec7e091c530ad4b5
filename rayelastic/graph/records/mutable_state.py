"""State of fixed layout: as users declare it with `@rel.state`, and as Python functions see it."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar, cast, dataclass_transform

from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.shown import shown

C = TypeVar("C", bound=type)


class MutableState(types.SimpleNamespace):
    """A key's state as a Python function sees it: the fields of its class, which can be assigned, and no others.

    >>> state = MutableState(total=1)
    >>> state.total += 2
    >>> list(state)
    [3]
    >>> state.totl = 0
    Traceback (most recent call last):
    AttributeError: the state has no field 'totl', its fields are total
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            raise AttributeError(f"the state has no field '{name}', its fields are {', '.join(self.__dict__)}")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__dict__.values())

    def __len__(self) -> int:
        return len(self.__dict__)

    def __getitem__(self, index: int) -> Any:
        return list(self.__dict__.values())[index]


@dataclass_transform()
def state(cls: C) -> C:
    """Declare the state of a key: fields with types and initial values, which functions read and set.

    Its layout is that of a record, so functions that use it can be compiled, and checkpoints hold its fields.

    Args:
        cls: A class with annotated fields, each with its initial value; without methods or bases.

    Raises:
        SchemaError: Not a class, a field without an initial value, a method or a base class.

    >>> import rayelastic as rel
    >>> @rel.state
    ... class Seen:
    ...     n: int = 0
    >>> def numbered(t, s):
    ...     s.n += 1
    ...     return (t.key, s.n)
    >>> topology = rel.Topology("numbered")
    >>> rows = rel.rows([("a",), ("b",), ("a",)], {"key": str})
    >>> keyed = topology.source(rows).key_by("key")
    >>> keyed.map(numbered, state=Seen, schema={"key": str, "n": int}).sink(rel.list(), name="out")
    <sink out>
    >>> [tuple(t) for t in rel.run(topology)["out"]]
    [('a', 1), ('b', 1), ('a', 2)]
    """
    declared: object = cls
    if not isinstance(declared, type):
        raise SchemaError(
            f"@rel.state decorates a class, not {shown(declared)}",
            hint="Write it above a class",
            code=ErrorCode.BAD_STATE_CLASS,
        )
    annotations = inspect.get_annotations(declared)
    _check(declared, annotations)
    of_fields: Any = NamedTuple
    state_class = of_fields(declared.__name__, list(annotations.items()))
    state_class.__new__.__defaults__ = tuple(vars(declared)[field] for field in annotations)
    state_class._field_defaults = {field: vars(declared)[field] for field in annotations}
    state_class.__module__, state_class.__qualname__ = declared.__module__, declared.__qualname__
    state_class.__doc__ = declared.__doc__
    return cast("C", state_class)


def _check(cls: type, annotations: dict[str, Any]) -> None:
    members = vars(cls)
    lacking = [field for field in annotations if field not in members]
    further = [name for name in members if name not in annotations and not name.startswith("__")]
    if cls.__bases__ != (object,):
        raise SchemaError(
            f"{cls.__name__} has a base class",
            hint="Write all fields in the class itself",
            code=ErrorCode.BAD_STATE_CLASS,
        )
    if not annotations or further:
        what = f"{further[0]} without a type, or a method" if further else "no field"
        raise SchemaError(
            f"{cls.__name__} has {what}", hint="Write fields alone, such as n: int = 0", code=ErrorCode.BAD_STATE_CLASS
        )
    if lacking:
        raise SchemaError(
            f"{lacking[0]} of {cls.__name__} has no default",
            hint=f"Write {lacking[0]}: type = value",
            code=ErrorCode.BAD_DEFAULT,
        )
