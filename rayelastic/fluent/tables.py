"""Verbs of tables, and of other systems: each is another word for operators that are there, with the same meaning."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from rayelastic.connectors.call.declaration import call
from rayelastic.errors import ErrorCode, GraphError
from rayelastic.fluent.base import StreamBase, StreamT
from rayelastic.fluent.naming import declared_as, named
from rayelastic.fluent.streams import Streams
from rayelastic.graph.operators import aggregates as rel
from rayelastic.graph.operators.columns import drop_nulls, explode, fill_null
from rayelastic.graph.operators.functions import deduplicate
from rayelastic.graph.operators.gathering.expressions import of_text
from rayelastic.graph.operators.gathering.ranked import native_top, ranked
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.declaration import declaring
from rayelastic.graph.spec.location import caller_location

_Fields = str | Sequence[str]


class TotalMethods:
    """Aggregates of fields that keep the fields' names: of the tuples of each key, or of each window.

    >>> from rayelastic import testing
    >>> rows, schema = [("a", 2), ("b", 5), ("a", 4)], {"user": str, "amount": int}
    >>> testing.collect(lambda s: s.key_by("user").mean("amount"), rows, schema)
    [('a', 3.0), ('b', 5.0)]
    >>> testing.collect(lambda s: s.key_by("user").min("amount"), rows, schema)
    [('a', 2), ('b', 5)]
    >>> testing.collect(lambda s: s.key_by("user").max("amount"), rows, schema)
    [('a', 4), ('b', 5)]
    >>> testing.collect(lambda s: s.key_by("user").min_by("amount"), rows, schema)  # .min_final
    [('a', 2), ('b', 5)]
    """

    __slots__ = ()

    def sum(self: Any, *fields: str, name: str = "") -> Any:
        """Sum fields, which keep their names: `.aggregate(amount=rel.sum("amount"))`.

        Without windows once the input has ended, as for ``aggregate``.

        Args:
            fields: one or more; without windows all but the keys by default.
            name: of the operator; by default 'aggregate'.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("totals")
        >>> paid = topology.source(rel.rows([("a", 2), ("b", 5), ("a", 4)], {"user": str, "amount": int}))
        >>> paid.key_by("user").sum("amount").sink(rel.list(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        [aggregate(user='a', amount=6), aggregate(user='b', amount=5)]
        """
        return _total(self, name, rel.sum, fields)

    def mean(self: Any, *fields: str, name: str = "") -> Any:
        """Average fields, as `sum` sums them."""
        return _total(self, name, rel.mean, fields)

    def min(self: Any, *fields: str, name: str = "") -> Any:
        """Find the least values of fields, as `sum` sums them."""
        return _total(self, name, rel.min, fields)

    def max(self: Any, *fields: str, name: str = "") -> Any:
        """Find the greatest values of fields, as `sum` sums them."""
        return _total(self, name, rel.max, fields)

    def max_by(self: Any, by: Any, *, name: str = "") -> Any:
        """Keep the tuple with the greatest value, whole; of equal ones the first. `max_final` is another name of it.

        Args:
            by: a field, or a function of a tuple.
            name: of the operator; by default 'reduce'.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("largest")
        >>> paid = topology.source(rel.rows([("a", 2), ("b", 5), ("a", 4)], {"user": str, "amount": int}))
        >>> paid.key_by("user").max_by("amount").sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('a', 4), ('b', 5)]
        """
        value = operator.attrgetter(by) if isinstance(by, str) else by
        return self.reduce(lambda a, b: b if value(b) > value(a) else a, **_named(name))

    def min_by(self: Any, by: Any, *, name: str = "") -> Any:
        """Keep the tuple with the least value, as `max_by` does. `min_final` is another name of it."""
        value = operator.attrgetter(by) if isinstance(by, str) else by
        return self.reduce(lambda a, b: b if value(b) < value(a) else a, **_named(name))

    max_final, min_final = max_by, min_by

    def count(self: Any, *, name: str = "") -> Any:
        """Count tuples: `.aggregate(count=rel.count())`."""
        return self.aggregate(count=rel.count(), **_named(name))


def _total(stream: Any, name: str, function: Callable[[str], rel.AggregateSpec], fields: tuple[str, ...]) -> Any:
    if not fields and isinstance(stream, StreamBase):
        fields = tuple(field for field in stream.schema.names if field not in stream.keys)
    if not fields or not all(isinstance(field, str) for field in fields):
        verb = function.__name__
        raise GraphError(f"{verb} needs a field", location=caller_location(), hint=f"Write .{verb}('field')")
    return stream.aggregate(**{field: function(field) for field in fields}, **_named(name))


def _named(name: str) -> dict[str, str]:
    return {"name": name} if name else {}


class TableMethods(StreamBase[StreamT]):
    """Verbs that people know from tables and from other systems.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> rows, schema = [("a", 2), ("b", 5), ("a", 4)], {"user": str, "amount": int}
    >>> testing.collect(lambda s: s.groupby("user").count(), rows, schema)
    [('a', 2), ('b', 1)]
    >>> testing.collect(lambda s: s.key_on(lambda t: t.user).count(), rows, schema)
    [('a', 2), ('b', 1)]
    >>> testing.collect(lambda s: s.count_final(lambda t: t.user), rows, schema)
    [('a', 2), ('b', 1)]
    >>> testing.collect(lambda s: s.key_by("user").count_window(2).sum("amount"), rows, schema)
    [('a', 6)]
    >>> testing.collect(lambda s: s.with_column("twice", rel.col("amount") * 2).select("twice"), rows, schema)
    [(4,), (10,), (8,)]
    >>> topology = rel.Topology("verbs")
    >>> ones, tens = topology.from_collection([1, 2]), topology.from_collection([10])
    >>> ones.merge(tens).for_each(lambda n: None, name="out")  # .foreach
    <sink out>
    >>> rel.run(topology)["out"]
    3
    """

    __slots__ = ()

    def unique(self, *fields: str, subset: _Fields | None = None, keep: str = "first", name: str = "") -> StreamT:
        """Keep the first tuple of each key: `.key_by(*fields).deduplicate()`.

        Other names of it are `distinct` and `drop_duplicates`.

        Args:
            fields: of the key; by default all.
            subset: the same, as one name or several.
            keep: 'first': the last one isn't known before the input ends.
            name: of the operator; by default 'unique'.

        Raises:
            GraphError: no such field, or another `keep`.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("users")
        >>> seen = topology.source(rel.rows([("a", 1), ("b", 2), ("a", 3)], {"user": str, "at": int}))
        >>> seen.unique("user").sink(rel.list(), name="out")
        <sink out>
        >>> [t.at for t in rel.run(topology)["out"]]
        [1, 2]
        """
        chosen = (*_fields(fields), *_fields(subset)) or self.schema.names
        if keep != "first":
            hint = "Leave keep= out, or write .key_by(field).aggregate(field=rel.last('field')) for the last"
            raise GraphError(f"keep={shown(keep)}", location=caller_location(), hint=hint)
        up = self._upstream.keyed(chosen)
        return declared_as(self.topology, name, "unique", lambda it: self._declare(deduplicate(up, it, None)))

    distinct = drop_duplicates = unique

    def drop_nulls(self, *fields: str, subset: _Fields | None = None, name: str = "") -> StreamT:
        """Leave out tuples that have None in one of these fields, whose type then has no None. `dropna` is the same.

        Args:
            fields: by default all that may be None.
            subset: the same, as one name or several.
            name: of the operator; by default 'drop_nulls'.

        Raises:
            SchemaError: no such field.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("scores")
        >>> scores = topology.source(rel.rows([("a", 1), ("b", None)], {"user": str, "score": int | None}))
        >>> scores.drop_nulls("score").sink(rel.list(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        [Record(user='a', score=1)]
        """
        chosen = (*_fields(fields), *_fields(subset))
        return declared_as(
            self.topology, name, "drop_nulls", lambda it: self._declare(*drop_nulls(self._upstream, it, chosen))
        )

    dropna = drop_nulls

    @named
    def fill_null(self, value: Any, *, name: str = "") -> StreamT:
        """Put a value in the place of None. `fillna` is another name of it.

        Args:
            value: for all fields of its type; or {field: value}.
            name: of the operator; by default 'fill_null'.

        Raises:
            GraphError: no field of this type may be None.
            SchemaError: no such field.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("scores")
        >>> scores = topology.source(rel.rows([("a", 1), ("b", None)], {"user": str, "score": int | None}))
        >>> scores.fill_null(0).sink(rel.list(), name="out")
        <sink out>
        >>> [t.score for t in rel.run(topology)["out"]]
        [1, 0]
        """
        return self._declare(fill_null(self._upstream, name, value))

    fillna = fill_null

    def explode(self, field: str, *, name: str = "") -> StreamT:
        """Emit a tuple for each item of a list, which takes the list's place.

        Args:
            field: that holds a list. An empty list, or None, emits nothing.
            name: of the operator; by default 'explode'.

        Raises:
            SchemaError: no such field, or it holds no list.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("tags")
        >>> posts = topology.source(rel.rows([{"post": 1, "tags": ["a", "b"]}, {"post": 2, "tags": ["c"]}]))
        >>> posts.explode("tags").sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [(1, 'a'), (1, 'b'), (2, 'c')]
        """
        return declared_as(self.topology, name, "explode", lambda it: self._declare(explode(self._upstream, it, field)))

    def sort(self, *by: str, descending: bool = False, name: str = "") -> StreamT:
        """Emit the tuples in the order of fields once the input has ended; after key_by those of each key together.

        They are kept in memory. None and NaN come last. An endless stream has no order: see ``top`` of windows.

        Args:
            by: one field or more, the first decides.
            descending: whether the largest comes first.
            name: of the operator; by default 'sort'.

        Raises:
            GraphError: no field, or an unknown one.

        >>> from rayelastic import testing
        >>> testing.collect(lambda s: s.sort("n", descending=True), [(5,), (9,), (7,)], {"n": int})
        [(9,), (7,), (5,)]
        """
        return self._ranked(name, "sort", by, descending=descending, most=None)

    def top(self, n: int, by: str, *, least: bool = False, name: str = "") -> StreamT:
        """Emit the n tuples with the largest values of a field once the input has ended; after key_by n of each key.

        It is native, and keeps n tuples of each key; a field of enums or lists is compared in Python.

        Args:
            n: how many, 1 or more.
            by: the field; tuples in which it is None or NaN are left out.
            least: whether to emit the smallest ones instead.
            name: of the operator; by default 'top'.

        Raises:
            GraphError: an unknown field, or an invalid number.

        >>> from rayelastic import testing
        >>> testing.collect(lambda s: s.top(2, by="n"), [(5,), (9,), (7,)], {"n": int})
        [(9,), (7,)]
        """
        return self._ranked(name, "top", (by,), descending=not least, most=n)

    def _ranked(self: Any, name: str, verb: str, by: tuple[str, ...], *, descending: bool, most: Any) -> StreamT:
        with declaring(name or verb, caller_location()):
            own = ranked(self._upstream, by, descending=descending, most=most)
        if most is not None:
            native: StreamT | None = declared_as(
                self.topology, name, verb, lambda it: self._native_top(it, most, by[0], not descending)
            )
            if native is not None:
                return native
        whole = self._at(self.topology, self.inputs, self.schema)
        done: StreamT = declared_as(self.topology, name, verb, lambda it: whole.apply(own, name=it))
        return done

    def _native_top(self: Any, name: str, n: int, by: str, least: bool) -> StreamT | None:
        specs = native_top(self._upstream, name, n, by, least=least)
        return self._declare(*specs) if specs else None

    def query(self: Any, condition: str, *, name: str = "") -> StreamT:
        """Keep the tuples for which a condition on fields holds, as pandas writes it: ``filter``.

        Args:
            condition: in Python, of fields by their names: "amount > 10 and user == 'ada'".
            name: of the operator; by default 'filter'.

        Raises:
            GraphError: it isn't Python, or names something that is no field.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("large")
        >>> paid = topology.source(rel.rows([("a", 2), ("b", 5)], {"user": str, "amount": int}))
        >>> paid.query("amount > 3").sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('b', 5)]
        """
        kept: StreamT = self.filter(of_text(condition, self.schema.names), **_named(name))
        return kept

    def value_counts(self: Any, *fields: str, name: str = "") -> StreamT:
        """Count the tuples of each value of fields: `.key_by(*fields).aggregate(count=rel.count())`.

        Args:
            fields: by default all.
            name: of the operator; by default 'aggregate'.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("pages")
        >>> topology.source(rel.rows(["home", "cart", "home"])).value_counts().sink(rel.list(), name="out")
        <sink out>
        >>> [tuple(t) for t in rel.run(topology)["out"]]
        [('home', 2), ('cart', 1)]
        """
        counts: StreamT = self.key_by(*fields or self.schema.names).count(name=name)
        return counts

    def count_final(self: Any, key: Callable[[Any], Any], *, name: str = "") -> StreamT:
        """Count the tuples of each key once the input has ended: `.key_by(key).count(name=name)`, as Bytewax does."""
        counts: StreamT = self.key_by(key).count(name=name)
        return counts

    def for_each(self: Any, fn: Callable[[Any], Any], *, name: str = "") -> Any:
        """Call a function with each tuple at the end of a stream: `.sink(rel.call(fn))`. `foreach` is the same.

        Args:
            fn: of one tuple; what it returns is dropped.
            name: of the operator; by default the function's.
        """
        return self.sink(call(fn), **_named(name))

    foreach = for_each

    def branch(self: Any, predicate: Callable[[Any], Any], *, name: str = "") -> Streams[StreamT]:
        """Split in two: the streams `trues` and `falses`, in this order; of ``split`` with one predicate.

        Args:
            predicate: of a tuple.
            name: of the operator; by default 'split'.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("parity")
        >>> large, small = topology.source(rel.sequence(5)).branch(lambda t: t.value > 2)
        >>> large.sink(rel.list(), name="large"), small.sink(rel.count(), name="small")
        (<sink large>, <sink small>)
        >>> rel.run(topology)["small"]
        3
        """
        parts: Streams[StreamT] = self.split(predicate, **_named(name))
        return parts

    def merge(self: Any, *others: StreamT, on: _Fields | None = None, how: str = "inner", name: str = "") -> StreamT:
        """Unite streams of one schema, as ``union``; with on= join another one, as ``join``.

        Args:
            others: one or more; with on= one.
            on: fields that both have.
            how: with on=: 'inner', 'left', 'right' or 'full'.
            name: with on=: of the operator; by default 'join'.

        Raises:
            GraphError: how= or name= without on=.
        """
        if on is None and (how != "inner" or name):
            hint = "Name the fields that both have, such as on='user', or write .union(other)"
            code = ErrorCode.CONFLICTING_ARGUMENTS
            raise GraphError("merge needs on= for how= and name=", location=caller_location(), hint=hint, code=code)
        merged: StreamT = self.union(*others) if on is None else self.join(*others, on=on, how=how, **_named(name))
        return merged

    def count_window(self: Any, count: int, slide: int | None = None) -> Any:
        """Put so many tuples of each key into a window: `.window(count=, slide=, rest=False)`.

        A window that isn't full when the input ends emits nothing, as in Flink.

        Args:
            count: tuples in a window.
            slide: from the start of one window to that of the next; `count` by default.
        """
        return self.window(count=count, slide=slide, rest=False)


def _fields(chosen: Any) -> tuple[str, ...]:
    """Names that were written one by one, or as a list."""
    if chosen is None or isinstance(chosen, str):
        return () if chosen is None else (chosen,)
    return tuple(field for one in chosen for field in ((one,) if isinstance(one, str) else one))
