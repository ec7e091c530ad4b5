"""A state of fixed layout as Python functions see it."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

__all__ = ["MutableState"]


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
