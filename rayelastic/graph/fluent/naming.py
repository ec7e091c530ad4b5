"""Names of operators: `name=` of every method that declares one, or else its function's own name, or the method's.

An automatic name is the first that is free: `parse`, `parse_2`, `parse_3`, in declared order, so every run has the same
names. Knows no operator.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any, TypeVar

from rayelastic.graph.fluent.declarations import Declarations, is_free, mark_automatic

__all__ = ["declared_as", "named"]

R = TypeVar("R")

_NAMED_BY = ("fn", "cls", "own", "operator", "source", "sink")  # parameters whose values have a name of their own


def named(method: Callable[..., R]) -> Callable[..., R]:
    """Make `name=` of a method that declares an operator optional."""
    signature = inspect.signature(method)
    first = next((name for name in _NAMED_BY if name in signature.parameters), None)
    positions = [p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD][1:]

    @functools.wraps(method)
    def declaring(self: Any, *args: Any, **given: Any) -> R:
        topology: Declarations = getattr(self, "topology", self)
        if args and "name" not in given and _is_name_first(args, given, positions):
            given["name"], *rest = args
            args = tuple(rest)
            if method.__name__ == "aggregate" and args:
                given["emit"], args = args[0], ()
        if "name" in given:
            return method(self, *args, **given)
        place = positions.index(first) if first in positions else len(args)
        function = args[place] if place < len(args) else given.get(first or "")
        base = (function is not None and own_name(function)) or method.__name__
        return declared_as(topology, "", base, lambda name: method(self, *args, name=name, **given))

    return declaring


def declared_as(topology: Declarations, name: str, base: str, declare: Callable[[str], R]) -> R:
    """Declare operators under a name, or under the first one that is free.

    Args:
        topology: that gets them.
        name: that the program chose; empty: none.
        base: what the automatic name begins with.
        declare: called with the name.
    """
    if name:
        return declare(name)
    before = len(topology.operators)
    made = declare(next(one for one in _numbered(base) if is_free(topology, one)))
    mark_automatic(topology, list(islice(topology.operators, before, None)))
    return made


def _is_name_first(args: tuple[Any, ...], given: dict[str, Any], positions: list[str]) -> bool:
    alone = positions == ["field"] and len(args) == 1 and not set(positions) & set(given)
    return not alone and (isinstance(args[0], str) or len(args) > len(positions) > 0)


def _numbered(base: str) -> Iterator[str]:
    yield base
    yield from (f"{base}_{number}" for number in count(2))


def own_name(value: Any) -> str | None:
    """The name of a function or class, or of what made a source or a sink; None: it has none.

    >>> own_name(len), own_name(lambda t: t), own_name(functools.partial(len))
    ('len', None, 'len')
    """
    inner = getattr(value, "function", None)  # of rel.call, rel.generate, rel.callable; of rel.count() a member
    if callable(inner) and own_name(inner):
        return own_name(inner)
    if isinstance(value, functools.partial):
        return own_name(value.func)
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        return name if name.isidentifier() else None
    kind = str(getattr(inner, "value", type(value).__name__))
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub(r"(?:Source|Sink|Files)$", "", kind)).lower() or None
