"""Finds the fields that a function of one tuple copies unchanged, so that data may stay partitioned by them.

It reads the function's source, in any execution mode. A field is kept if every emitted tuple is the input tuple, its
`_replace(..)`, or a call of a NamedTuple class. In this call, the field's value must be the parameter's field of the
same name. If that isn't visible, the field counts as changed. Knows no regions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from rayelastic.compile.reading.bound import taken_apart
from rayelastic.compile.reading.results.bindings import is_changed, own_nodes
from rayelastic.compile.reading.syntax import definition, value_of
from rayelastic.graph.records.schema import Schema


def kept_fields(
    function: Callable[..., Any], received: Schema, emitted: Schema, *, flat: bool = False
) -> frozenset[str]:
    """Return the fields whose values every output tuple copies from its input tuple.

    Args:
        function: A function of a tuple, and of a key's state.
        received: The schema of its input.
        emitted: The schema of its output.
        flat: Whether it emits any number of tuples: yields them, or returns a list.

    >>> from typing import NamedTuple
    >>> class Trade(NamedTuple):
    ...     symbol: str
    ...     price: float
    >>> trade = Schema.of(Trade)
    >>> sorted(kept_fields(lambda t: Trade(t.symbol, t.price * 2), trade, trade))
    ['symbol']
    >>> sorted(kept_fields(lambda t: t._replace(symbol="x"), trade, trade))
    ['price']
    >>> class Named:
    ...     symbol = "A"
    ...     def named(self, t): return Trade(self.symbol, t.price)
    >>> sorted(kept_fields(Named().named, trade, trade))
    ['price']
    """
    made_of = taken_apart(function)
    node = None if made_of is None else definition(made_of.function)
    if made_of is None or node is None or not made_of.tuple_name:
        return frozenset()
    function, tuple_name = made_of.function, made_of.tuple_name
    results = list(_results(node, flat))
    if not results or is_changed(node, tuple_name):
        return frozenset()
    reading = _Reading(function, tuple_name, received, emitted)
    kept = frozenset(name for name in received.names if _format(received, name) == _format(emitted, name))
    for result in results:
        kept &= frozenset() if result is None else reading.kept(result)
    return kept


def _format(schema: Schema, name: str) -> tuple[str, bool] | None:
    found = schema.find(name)
    return None if found is None else (found.format, found.nullable)


class _Reading:
    """Reads the expressions that make tuples."""

    def __init__(self, function: Any, tuple_name: str, received: Schema, emitted: Schema) -> None:
        self._function, self._tuple = function, tuple_name
        self._received, self._emitted = received, emitted

    def kept(self, made: ast.expr) -> frozenset[str]:
        """Return the fields of a tuple that are those of the parameter."""
        everything = frozenset(self._received.names)
        match made:
            case ast.Name(id=name) if name == self._tuple:
                return everything
            case ast.IfExp(body=one, orelse=other):
                return self.kept(one) & self.kept(other)
            case ast.Tuple(elts=values):
                return self._matching(self._emitted.names, values)
            case ast.Dict(keys=keys, values=values) if self._emitted.takes_names:
                if not all(isinstance(key, ast.Constant) for key in keys):
                    return frozenset()
                written = {
                    key.value: value for key, value in zip(keys, values, strict=True) if isinstance(key, ast.Constant)
                }
                return frozenset(
                    name for name in self._received.names if name in written and self._is(name, written[name])
                )
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="_replace"), args=[], keywords=changed) if (
                name == self._tuple
            ):
                names = [keyword.arg for keyword in changed]
                return frozenset() if None in names else everything.difference(names)
            case ast.Call(func=ast.Name(id=name), args=values, keywords=named):
                fields = self._fields_of(name)
                by_name = {keyword.arg: keyword.value for keyword in named}
                if fields is None or None in by_name:
                    return frozenset()
                kept = self._matching(fields, values)
                return kept | {
                    field for field, value in by_name.items() if field is not None and self._is(field, value)
                }
        return frozenset()

    def _matching(self, fields: tuple[str, ...], values: list[ast.expr]) -> frozenset[str]:
        if len(values) > len(fields) or any(isinstance(value, ast.Starred) for value in values):
            return frozenset()
        return frozenset(field for field, value in zip(fields, values, strict=False) if self._is(field, value))

    def _is(self, field: str, value: ast.expr) -> bool:
        match value:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return name == self._tuple and attribute == field
        return False

    def _fields_of(self, name: str) -> tuple[str, ...] | None:
        """Return the fields of a NamedTuple class that a name refers to; None for any other value."""
        code = self._function.__code__
        if name in (*code.co_varnames, *code.co_cellvars):
            return None
        found = value_of(self._function, name)
        plain = isinstance(found, type) and found.__bases__ == (tuple,) and hasattr(found, "_fields")
        return tuple(found._fields) if plain else None


def _results(node: ast.FunctionDef, flat: bool) -> Iterator[ast.expr | None]:
    """Yield every expression that makes an output tuple; None for an unknown one."""
    own = list(own_nodes(node))
    yields = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own)
    for each in own:
        match each:
            case ast.Yield(value=value):
                yield value
            case ast.YieldFrom(value=value):
                yield from _items(value)
            case ast.Return(value=value) if not yields:
                yield from _items(value) if flat else (value,)


def _items(made: ast.expr | None) -> Iterator[ast.expr | None]:
    match made:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            yield from (None if isinstance(item, ast.Starred) else item for item in items)
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
            yield item
        case _:
            yield None
