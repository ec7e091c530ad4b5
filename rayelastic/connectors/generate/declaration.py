"""Sources of tuples that are generated: natively, or by a function."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar, overload

from rayelastic.connectors.description import Source
from rayelastic.connectors.typed import Declared, N, Plain, Value
from rayelastic.errors import ErrorCode, SourceError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.user_objects import LIFE, check_object

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GenerateSource(Source[T]):
    """What a function returns for the numbers 0, 1, 2, ..."""

    seeks: ClassVar[bool] = True

    function: Callable[[int], Any]
    count: int | None
    schema: Schema
    lane: Lane = Lane.PYTHON
    object_field = "function"
    passes_objects = True

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return "a Python function called once per tuple"

    @property
    def is_endless(self) -> bool:
        """Whether it is unbounded."""
        return self.count is None

    def at_most(self, count: int) -> GenerateSource[T]:
        """Return a source of the first tuples only."""
        return replace(self, count=count if self.count is None else min(count, self.count))

    def check(self, operator: str) -> None:
        """Raise SourceError if it isn't a function or the count is invalid."""
        _check_function(self.function, "rel.generate", operator)
        _check_count(self.count, "count", operator)


@overload
def generate(function: Callable[[int], Any], count: int | None, schema: type[N]) -> GenerateSource[N]: ...


@overload
def generate(
    function: Callable[[int], Any], count: int | None, schema: type[Plain]
) -> GenerateSource[Value[Plain]]: ...


@overload
def generate(
    function: Callable[[int], Any], count: int | None, schema: type[Mapping[str, Any]]
) -> GenerateSource[Any]: ...


@overload
def generate(function: Callable[[int], Any], count: int | None, schema: type[T]) -> GenerateSource[T]: ...


@overload
def generate(function: Callable[[int], Any], count: int | None, schema: Declared) -> GenerateSource[Any]: ...


def generate(function: Callable[[int], Any], count: int | None, schema: object) -> GenerateSource[Any]:
    """Emit `function(0)`, `function(1)`, ...

    Args:
        function: A function of the tuple's number, which returns a tuple, or a plain value if the schema has one field.
        count: The number of tuples; None: unbounded.
        schema: The schema of its results.

    >>> source = generate(lambda i: (i, i * i), 10, {"n": int, "square": int})
    """
    return GenerateSource(function, count, Schema.of(schema))


@dataclass(frozen=True, slots=True)
class CallableSource(Source[T]):
    """The tuples of an iterator that a function makes when the source starts."""

    is_called_again: ClassVar[bool] = True
    may_end: ClassVar[bool] = True

    function: Callable[[], Iterator[Any]]
    schema: Schema
    lane: Lane = Lane.PYTHON
    object_field = "function"
    passes_objects = True

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return "a Python iterator"

    @property
    def is_endless(self) -> bool:
        """Whether it may never end, which isn't known before it does."""
        return True

    def check(self, operator: str) -> None:
        """Raise SourceError if it isn't a function."""
        _check_function(self.function, "rel.callable", operator)


@overload
def callable(function: Callable[[], Iterator[Any]], schema: type[N]) -> CallableSource[N]: ...  # noqa: A001  (rel.callable)


@overload
def callable(function: Callable[[], Iterator[Any]], schema: type[Plain]) -> CallableSource[Value[Plain]]: ...  # noqa: A001  (rel.callable)


@overload
def callable(function: Callable[[], Iterator[Any]], schema: type[Mapping[str, Any]]) -> CallableSource[Any]: ...  # noqa: A001  (rel.callable)


@overload
def callable(function: Callable[[], Iterator[Any]], schema: type[T]) -> CallableSource[T]: ...  # noqa: A001  (rel.callable)


@overload
def callable(function: Callable[[], Iterator[Any]], schema: Declared) -> CallableSource[Any]: ...  # noqa: A001  (rel.callable)


def callable(function: Callable[[], Iterator[Any]], schema: object) -> CallableSource[Any]:  # noqa: A001  (rel.callable)
    """Emit the tuples of an iterator.

    Args:
        function: A function without arguments that returns an iterator of tuples, such as a generator function. It is
            called in the process that runs the source.
        schema: The schema of the tuples.

    >>> import rayelastic as rel
    >>> def squares():
    ...     yield from ((n, n * n) for n in range(3))
    >>> topology = rel.Topology("squares")
    >>> topology.source(rel.callable(squares, {"n": int, "square": int})).sink(rel.list(), name="out")
    <sink out>
    >>> [tuple(t) for t in rel.run(topology)["out"]]
    [(0, 0), (1, 1), (2, 4)]
    """
    return CallableSource(function, Schema.of(schema))


@dataclass(frozen=True, slots=True)
class SequenceSource(Source[Any]):
    """The numbers from 0, with a payload, generated natively."""

    kind: ClassVar[str] = "a sequence"
    seeks: ClassVar[bool] = True

    count: int
    payload_bytes: int
    schema: Schema
    lane: Lane = Lane.BUILT_IN
    reason: str = "native counter"

    def at_most(self, count: int) -> SequenceSource:
        """Return a source of the first tuples only."""
        return replace(self, count=min(count, self.count))

    def check(self, operator: str) -> None:
        """Raise SourceError if a number is out of range."""
        _check_count(self.count, "count", operator)
        _check_count(self.payload_bytes, "payload_bytes", operator)


def sequence(count: int, payload_bytes: int = 0) -> SequenceSource:
    """Emit the numbers 0 ... count-1 as `value: int`, natively; for benchmarks.

    Args:
        count: The number of tuples.
        payload_bytes: The size of a second field `payload: bytes`; 0: no such field.

    >>> print(sequence(10, payload_bytes=1024).schema)
    Sequence(value: int64, payload: binary)
    """
    fields: dict[str, type] = {"value": int} | ({"payload": bytes} if payload_bytes else {})
    return SequenceSource(count, payload_bytes, Schema.of(fields, name="Sequence"))


def _check_function(function: object, whose: str, operator: str) -> None:
    check_object(function, LIFE, error=SourceError)
    if not builtins.callable(function):
        raise SourceError(
            f"{whose} needs a function, not {shown(function)}",
            operator=operator,
            hint="Pass the function itself, not what it returns",
            code=ErrorCode.NOT_A_FUNCTION,
        )


def _check_count(count: object, name: str, operator: str) -> None:
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
        raise SourceError(
            f"{name}={shown(count)} is invalid",
            operator=operator,
            hint="Pass a whole number, 0 or more",
            code=ErrorCode.OUT_OF_RANGE,
        )
