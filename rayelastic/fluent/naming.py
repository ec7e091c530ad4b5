"""Names of operators: the argument `name=`, or else the name of the function or the method.

An automatic name is the first free one of `parse`, `parse_2`, `parse_3`, in declared order, so every run has the same
names. Knows no operator.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import Any, TypeVar

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.fluent.declarations import Declarations, is_free, mark_automatic
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.words import check_arguments

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

_NAMED_BY = ("fn", "cls", "own", "operator", "source", "sink")  # parameters whose values have their own name


def named(method: F) -> F:
    """Make `name=` of a method that declares an operator optional."""
    signature = inspect.signature(method)
    first = next((name for name in _NAMED_BY if name in signature.parameters), None)
    positions = [p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
    known = [p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)][1:]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    endless = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())

    @functools.wraps(method)
    def declaring(self: Any, *args: Any, **given: Any) -> Any:
        _check_no_name_first(method, args, given, None if endless else positions)
        if not open_ended:
            check_arguments(f"{method.__qualname__}()", given, known)
        if "name" in given:
            return method(self, *args, **given)
        topology: Declarations = getattr(self, "topology", self)
        place = positions.index(first) if first in positions else len(args)
        function = args[place] if place < len(args) else given.get(first or "")
        base = (function is not None and own_name(function)) or method.__name__
        return declared_as(topology, "", base, lambda name: method(self, *args, name=name, **given))

    return declaring  # type: ignore[return-value]


def declared_as(topology: Declarations, name: str, base: str, declare: Callable[[str], R]) -> R:
    """Declare operators under a name, or under the first free one.

    Args:
        topology: The topology to add them to.
        name: The name that the program sets; empty: none.
        base: What the automatic name begins with.
        declare: Declares them under a name.
    """
    if name:
        return declare(name)
    before = len(topology.operators)
    result = declare(next(candidate for candidate in _numbered(base) if is_free(topology, candidate)))
    mark_automatic(topology, list(islice(topology.operators, before, None)))
    return result


def _check_no_name_first(
    method: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any], positions: Sequence[str] | None
) -> None:
    """Raise GraphError if the first argument is an operator's name; positions: other parameters, None: any number."""
    if not args or not isinstance(args[0], str) or "name" in given:
        return
    if positions == ["field"] and len(args) == 1 and "field" not in given:
        return  # a text argument, not a name
    rest = [*(positions or ())][: len(args) - 1] or ["..."] * (len(args) > 1)
    arguments = [*rest, f"name={args[0]!r}", *(f"{key}=..." for key in given)]
    raise GraphError(
        f"{method.__name__} takes the name of its operator as a keyword",
        location=caller_location(),
        hint=f"Write .{method.__name__}({', '.join(arguments)})",
        code=ErrorCode.POSITIONAL_NAME,
    )


def _numbered(base: str) -> Iterator[str]:
    yield base
    yield from (f"{base}_{number}" for number in count(2))


def own_name(value: Any) -> str | None:
    """Return the name of a function or class, or of a source's or sink's maker; None: it has none.

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
