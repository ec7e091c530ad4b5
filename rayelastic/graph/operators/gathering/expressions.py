"""`col`: expressions of fields, as Polars and Spark write them. Each is a function of a tuple, written as one.

`rel.col("amount") * 2` is `lambda t: t.amount * 2`, and compiles as that does. Knows no stream.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Iterable
from io import StringIO
from tokenize import NAME, TokenError, generate_tokens, untokenize
from typing import Any, NoReturn

from rayelastic.errors import GraphError
from rayelastic.graph.operators import aggregates as rel
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.words import COLUMN, missing

_COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_LOGIC = {"&": "and", "|": "or", "~": "not"}


class Column:
    """An expression of fields; made by ``col``.

    Args:
        source: in Python, of a tuple `t`.
        name: of the field that it becomes.
        field: of the tuple, where it is nothing else.
        holds: whether it is a condition: `&` and `|` of it are `and` and `or`, of numbers those of their bits.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, source: str, name: str, field: str = "", *, holds: bool = False) -> None:
        self._source, self._name, self._field, self._holds = source, name, field, holds

    @property
    def output(self) -> str:
        """The name of the field that it becomes."""
        return self._name

    @property
    def function(self) -> Callable[[Any], Any]:
        """It as a function of a tuple."""
        made: Callable[[Any], Any] = eval(f"lambda t: {self._source}", {})  # noqa: S307  of fields, literals and operators
        return made

    def alias(self, name: str) -> Column:
        """Return it for a field of another name."""
        return Column(self._source, name, self._field, holds=self._holds)

    def is_null(self) -> Column:
        """Return whether it is None."""
        return self._made(f"({self._source} is None)", holds=True)

    def is_not_null(self) -> Column:
        """Return whether it isn't None."""
        return self._made(f"({self._source} is not None)", holds=True)

    def sum(self) -> rel.Named:
        """Sum the field, for ``aggregate``. Likewise min, max, mean, first, last, count and n_unique."""
        return self._total(rel.sum)

    def min(self) -> rel.Named:
        """Find the least value."""
        return self._total(rel.min)

    def max(self) -> rel.Named:
        """Find the greatest value."""
        return self._total(rel.max)

    def mean(self) -> rel.Named:
        """Average the field."""
        return self._total(rel.mean)

    def first(self) -> rel.Named:
        """Keep the first value."""
        return self._total(rel.first)

    def last(self) -> rel.Named:
        """Keep the last value."""
        return self._total(rel.last)

    def count(self) -> rel.Named:
        """Count the values that aren't None."""
        return self._total(rel.count)

    def n_unique(self) -> rel.Named:
        """Count the different values."""
        return self._total(rel.distinct)

    def _total(self, function: Callable[[str], rel.AggregateSpec]) -> rel.Named:
        if not self._field:
            raise GraphError(
                f"{function.__name__}() of an expression",
                location=caller_location(),
                hint=f"Write .with_columns({self._name}=...) before, and rel.{function.__name__}({self._name!r})",
            )
        return function(self._field).alias(self._name)

    def _made(self, source: str, *, holds: bool = False) -> Column:
        return Column(source, self._name, holds=holds)

    def __getattr__(self, word: str) -> NoReturn:
        raise AttributeError(missing("a Column", word, dir(type(self)), COLUMN))

    def __bool__(self) -> NoReturn:
        raise TypeError("a Column has no truth value. Write & for and, | for or, ~ for not, each side in parentheses")

    def __repr__(self) -> str:
        return f"<Column {self._name}: {self._source}>"

    def __invert__(self) -> Column:
        return self._made(f"(not {self._source})", holds=True)

    def __neg__(self) -> Column:
        return self._made(f"(-{self._source})")

    def _with(self, operator: str, other: object, *, turned: bool = False) -> Column:
        holds = operator in _COMPARE
        if operator in _LOGIC and (self._holds or isinstance(other, bool) or getattr(other, "_holds", False)):
            operator, holds = _LOGIC[operator], True
        sides = (_source(other), self._source) if turned else (self._source, _source(other))
        return self._made(f"({sides[0]} {operator} {sides[1]})", holds=holds)


def _source(value: object) -> str:
    if isinstance(value, Column):
        return value._source
    if value is None or isinstance(value, str | bytes | int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    raise GraphError(
        f"an expression with {shown(value)}", location=caller_location(), hint="Write a function: lambda t: t.field"
    )


def _operators() -> None:
    """Give Column Python's operators."""
    for name, operator in {
        "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|",
    }.items():  # fmt: skip
        setattr(Column, f"__{name}__", lambda self, other, it=operator: self._with(it, other))
        setattr(Column, f"__r{name}__", lambda self, other, it=operator: self._with(it, other, turned=True))
    for operator, name in _COMPARE.items():
        setattr(Column, f"__{name}__", lambda self, other, it=operator: self._with(it, other))


_operators()


def as_function(fn: Any) -> Any:
    """Return an expression as a function of a tuple; anything else as it is."""
    return fn.function if isinstance(fn, Column) else fn


def by_field(expressions: Iterable[Any]) -> dict[str, Any]:
    """Return expressions by the fields that they become.

    Raises:
        GraphError: one is none.
    """
    found = {}
    for one in expressions:
        if not isinstance(one, Column):
            raise GraphError(
                f"with_columns needs expressions, not {shown(one)}",
                location=caller_location(),
                hint="Write .with_columns(column=lambda t: t.field * 2)",
            )
        found[one.output] = one
    return found


class _Fields(ast.NodeTransformer):
    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.names:
            raise NameError(f"{node.id!r} is no field")
        return ast.copy_location(ast.Attribute(ast.Name("t", ast.Load()), node.id, ast.Load()), node)


def of_text(condition: object, names: Collection[str]) -> Callable[[Any], Any]:
    """Return a condition on fields, as pandas writes it, as a function of a tuple: `&`, `|`, `~` are and, or, not.

    Raises:
        GraphError: it isn't Python, or names something that is no field.

    >>> from types import SimpleNamespace
    >>> of_text("n > 3", ["n"])(SimpleNamespace(n=4))
    True
    """
    try:
        text = condition if isinstance(condition, str) else ""
        read = generate_tokens(StringIO(text).readline)
        words = [(NAME, _LOGIC[one.string]) if one.string in _LOGIC else one[:2] for one in read]
        tree = _Fields(names).visit(ast.parse(untokenize(words).strip(), mode="eval"))
    except (SyntaxError, NameError, ValueError, TokenError) as error:
        raise GraphError(
            f"query({shown(condition)}): {error}",
            location=caller_location(),
            hint="Write .filter(lambda t: t.field > 10)",
        ) from None
    function: Callable[[Any], Any] = eval(f"lambda t: {ast.unparse(tree)}", {})  # noqa: S307  of fields, literals and operators
    return function


def col(field: str) -> Any:
    """Name a field in an expression, for `filter`, `with_columns` and `aggregate`.

    It has Python's operators, `&`, `|` and `~`, `alias(name)`, `is_null()`, and the aggregates sum, min, max, mean,
    first, last, count and n_unique. For anything else write a function of a tuple.

    Args:
        field: its name.

    Raises:
        GraphError: no name of a field.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("gross")
    >>> paid = topology.source(rel.rows([("a", 10.0), ("b", 2.0)], {"user": str, "net": float}))
    >>> gross = paid.filter(rel.col("net") > 5).with_columns((rel.col("net") * 1.5).alias("gross"))
    >>> gross.sink(rel.list(), name="out")
    <sink out>
    >>> rel.run(topology)["out"]
    [Record(user='a', net=10.0, gross=15.0)]
    """
    if not str(field).isidentifier():
        raise GraphError(f"rel.col({shown(field)})", location=caller_location(), hint="Give the name of a field")
    return Column(f"t.{field}", field, field)
