"""Methods of every stream that people know from tables: choose fields, take the first tuples, inspect what passes."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any

from rayelastic.fluent.base import StreamBase, StreamT
from rayelastic.fluent.naming import declared_as, named
from rayelastic.graph.operators.columns import drop, inspect, rename, select, with_columns
from rayelastic.graph.operators.gathering.expressions import as_function, by_field


class ColumnMethods(StreamBase[StreamT]):
    """Operators on fields, and for inspecting tuples."""

    __slots__ = ()

    def select(self, *fields: str, name: str = "") -> StreamT:
        """Keep only these fields, in this order.

        Args:
            fields: Their names.
            name: The operator's name; 'select' by default.

        Raises:
            GraphError: No field.
            SchemaError: An unknown field.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("clicks")
        >>> clicks = topology.source(rel.rows([{"user": "ada", "page": "home", "ms": 120}]), name="clicks")
        >>> clicks.select("ms", "user").sink(rel.list(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        [Record(ms=120, user='ada')]
        """
        return declared_as(self.topology, name, "select", lambda it: self._declare(select(self._upstream, it, fields)))

    def drop(self, *fields: str, name: str = "") -> StreamT:
        """Remove these fields.

        Args:
            fields: Their names.
            name: The operator's name; 'drop' by default.

        Raises:
            GraphError: No field is left.
            SchemaError: An unknown field.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("clicks")
        >>> clicks = topology.source(rel.rows([{"user": "ada", "page": "home", "ms": 120}]), name="clicks")
        >>> clicks.drop("page").sink(rel.list(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        [Record(user='ada', ms=120)]
        """
        return declared_as(self.topology, name, "drop", lambda it: self._declare(drop(self._upstream, it, fields)))

    @named
    def rename(self, names: Mapping[str, str], *, name: str = "") -> StreamT:
        """Rename fields.

        Args:
            names: {old: new}; other fields keep their names.
            name: The operator's name; 'rename' by default.

        Raises:
            GraphError: Two fields would have one name.
            SchemaError: An unknown field, or an invalid name.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("clicks")
        >>> clicks = topology.source(rel.rows([{"user": "ada", "ms": 120}]), name="clicks")
        >>> clicks.rename({"ms": "millis"}).sink(rel.list(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        [Record(user='ada', millis=120)]
        """
        return self._declare(rename(self._upstream, name, names))

    def with_columns(
        self, *expressions: Any, name: str | Callable[[Any], Any] = "", **columns: Callable[[Any], Any]
    ) -> StreamT:
        """Add fields, or replace those of the same name, by functions of a tuple. `assign` is another name of it.

        Args:
            expressions: Expressions of `rel.col`, each for the field of its name, which `.alias(name)` sets.
            columns: field = function of the tuple before this operator; the field holds what it returns.
            name: The operator's name; 'with_columns' by default. A function: the field `name`.

        Raises:
            GraphError: No column, or a function returns several values.
            SchemaError: The type of a value is unknown: annotate the function's return type.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("clicks")
        >>> clicks = topology.source(rel.rows([{"user": "ada", "ms": 120}]), name="clicks")
        >>> clicks.with_columns(user=lambda t: t.user.upper(), s=lambda t: t.ms / 1000).sink(rel.list(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        [Record(user='ADA', ms=120, s=0.12)]
        """
        if not isinstance(name, str):
            columns, name = {"name": name, **columns}, ""
        columns = {field: as_function(fn) for field, fn in {**by_field(expressions), **columns}.items()}
        return declared_as(
            self.topology, name, "with_columns", lambda it: self._declare(with_columns(self._upstream, it, columns))
        )

    assign = with_columns

    def with_column(self, column: str, fn: Any, *, name: str = "") -> StreamT:
        """Add a field, or replace it: `.with_columns(column=fn)`.

        Args:
            column: the name of the field.
            fn: of ``with_columns``.
            name: of the operator; by default 'with_columns'.
        """
        return self.with_columns(name=name, **{column: fn})

    @named
    def inspect(self, fn: Callable[[Any], Any] = builtins.print, *, name: str = "") -> StreamT:
        """Call a function with each tuple, and emit the tuple as it is. It runs in Python: to debug, not for speed.

        Args:
            fn: A function of one tuple; its return value is ignored.
            name: The operator's name; its function's, or 'inspect', by default.

        Raises:
            GraphError: fn isn't a function of one tuple.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("letters")
        >>> letters = topology.source(rel.rows([("a",), ("b",)], schema={"letter": str}), name="letters")
        >>> letters.inspect(lambda t: print("passes:", t.letter)).sink(rel.count(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        passes: a
        passes: b
        2
        """
        return self._declare(inspect(self._upstream, name, fn))
