"""Sinks as descriptions: values that say where tuples go. The runtime writes them."""

from __future__ import annotations

import builtins
import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, ClassVar, Protocol, runtime_checkable

from rayelastic.errors import ErrorCode, SinkError
from rayelastic.graph.edges.paths import check_writable
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.concurrency import is_async
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.user_objects import FLUSH, LIFE, check_object, has_method

__all__ = [
    "OBJECTS",
    "TREES",
    "ArrowSink",
    "CallSink",
    "Choosy",
    "Committing",
    "CountSink",
    "CsvSink",
    "GrowingSink",
    "JsonSink",
    "ListSink",
    "PandasSink",
    "ParquetSink",
    "TextSink",
    "call",
    "commits",
    "list",
    "pandas",
    "print",
]


OBJECTS = frozenset({DataType.OBJECT})
TREES = frozenset({DataType.LIST, DataType.STRUCT, DataType.MAP})

LONGEST_PERIOD = 86_400.0  # seconds; a table that grows once a day is no longer growing


@runtime_checkable
class Choosy(Protocol):
    """A sink that can't write fields of some types."""

    refuses: ClassVar[frozenset[DataType]]


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """Writes Parquet: one file, or part files into a directory if the path has no suffix."""

    refuses: ClassVar[frozenset[DataType]] = OBJECTS

    path: str
    lane: Lane = Lane.BUILT_IN
    reason: str = "Arrow batches to Parquet"

    def check(self, operator: str) -> None:
        """Raise SinkError if nothing can be written there."""
        check_writable(self.path, operator)


@dataclass(frozen=True, slots=True)
class CsvSink:
    """Writes CSV with a header: one file, or part files into a directory if the path has no suffix."""

    refuses: ClassVar[frozenset[DataType]] = OBJECTS | TREES

    path: str
    lane: Lane = Lane.BUILT_IN
    reason: str = "Arrow batches to CSV"

    def check(self, operator: str) -> None:
        """Raise SinkError if nothing can be written there."""
        check_writable(self.path, operator)


@dataclass(frozen=True, slots=True)
class JsonSink:
    """Writes JSON, an object per line: one file, or part files into a directory if the path has no suffix."""

    refuses: ClassVar[frozenset[DataType]] = OBJECTS

    path: str
    lane: Lane = Lane.VECTORISED
    reason: str = "Arrow batches to lines of JSON, in Python"

    def check(self, operator: str) -> None:
        """Raise SinkError if nothing can be written there."""
        check_writable(self.path, operator)


@dataclass(frozen=True, slots=True)
class TextSink:
    """Writes the one text of each tuple as a line: one file, or part files where the path has no suffix."""

    refuses: ClassVar[frozenset[DataType]] = frozenset(DataType) - {DataType.STRING}

    path: str
    lane: Lane = Lane.VECTORISED
    reason: str = "Arrow batches to lines of text, in Python"

    def check(self, operator: str) -> None:
        """Raise SinkError if nothing can be written there."""
        check_writable(self.path, operator)


@dataclass(frozen=True, slots=True)
class GrowingSink:
    """Writes a folder of Parquet files while the job runs, a file per period."""

    refuses: ClassVar[frozenset[DataType]] = OBJECTS

    path: str
    period: float
    lane: Lane = Lane.VECTORISED
    reason: str = "Arrow batches to Parquet files, one a period"

    def check(self, operator: str) -> None:
        """Raise SinkError if nothing can be written there, or the period is invalid."""
        _check_seconds(self.period, operator)
        if PurePosixPath(self.path.partition("?")[0]).suffix:
            raise SinkError(
                f"{self.path!r} names a file, and the table needs a folder",
                operator=operator,
                hint="Name a folder",
                code=ErrorCode.NOT_A_FOLDER,
            )
        check_writable(self.path, operator)


def _check_seconds(period: object, operator: str) -> None:
    if isinstance(period, bool) or not isinstance(period, int | float) or not 0 < period < LONGEST_PERIOD:
        raise SinkError(
            f"a period of {period!r} seconds",
            operator=operator,
            hint="Pass seconds, such as 5",
            code=ErrorCode.OUT_OF_RANGE,
        )


class Committing(Protocol):
    """An object for `rel.call` that takes part in the checkpoints of the job.

    It is called with each tuple, and hides it from readers until a checkpoint is complete. So readers see each tuple
    exactly once. An epoch is the part of the stream between two checkpoints. A job that takes checkpoints ends with
    one; a job without checkpoints has one epoch, which is prepared and committed at its end.
    `rayelastic.testing.check_sink` drives such an object through its calls, with a crash between each two.
    """

    def __call__(self, t: Any, /) -> Any:
        """Write a tuple of the current epoch."""
        ...

    def prepare(self, epoch: int, /) -> None:
        """Make the tuples since the last call durable but hidden, under the number of an epoch.

        Numbers increase, over all restarts; they may have gaps.
        """
        ...

    def commit(self, epoch: int, /) -> None:
        """Show the tuples of an epoch and those before. May be called twice, from another thread and process."""
        ...

    def abort(self) -> None:
        """Drop prepared tuples that aren't committed. Called before the first tuple, after the commit of a restart."""
        ...


_COMMITS = ("prepare", "commit", "abort")


def commits(function: object) -> bool:
    """Return whether it is an object that takes part in checkpoints."""
    return all(has_method(function, name) for name in _COMMITS)


@dataclass(frozen=True, slots=True)
class CallSink:
    """Calls a Python function with each tuple; with `numbered` also with its epoch and its number in the stream."""

    function: Callable[..., Any]
    numbered: bool = False
    lane: Lane = Lane.PYTHON
    reason: str = "a Python function called with each tuple"

    def check(self, operator: str) -> None:
        """Raise SinkError if it isn't a function, or is an object with methods that are never called."""
        function: Any = self.function
        if not builtins.callable(function) or isinstance(function, type):
            raise SinkError(
                f"rel.call needs a function, not {shown(function)}",
                operator=operator,
                hint="Pass the function itself, or an object, not what it returns and not its class",
                code=ErrorCode.NOT_A_FUNCTION,
            )
        code = function if inspect.isroutine(function) else type(function).__call__
        if is_async(function) or inspect.isgeneratorfunction(code):
            what = "is async" if is_async(function) else "yields"
            raise SinkError(
                f"rel.call got a function that {what}: nothing would run it",
                operator=operator,
                hint="Make it a plain function; async work goes into a flat_map before the sink",
                code=ErrorCode.ASYNC_FUNCTION,
            )
        check_object(function, (*LIFE, FLUSH), error=SinkError)
        methods = [name for name in _COMMITS if has_method(function, name)]
        if methods and len(methods) < len(_COMMITS):
            lacks = [name for name in _COMMITS if name not in methods]
            raise SinkError(
                f"its class {type(function).__name__} has {methods[0]}(), but no {lacks[0]}(): none would be called",
                operator=operator,
                hint=f"Write {', '.join(_COMMITS)}, or only flush() for at least once",
                code=ErrorCode.MISSING_METHOD,
            )


@dataclass(frozen=True, slots=True)
class ListSink:
    """Collects tuples into a Python list."""

    lane: Lane = Lane.BUILT_IN
    reason: str = "native conversion to Arrow batches, tuples when they are asked for"

    def check(self, operator: str) -> None:
        """Do nothing: a list can always be made."""


@dataclass(frozen=True, slots=True)
class CountSink:
    """Counts tuples and drops them."""

    lane: Lane = Lane.BUILT_IN
    reason: str = "native counter"

    def check(self, operator: str) -> None:
        """Do nothing: counting is always possible."""


@dataclass(frozen=True, slots=True)
class ArrowSink:
    """Collects tuples into a pyarrow.Table."""

    refuses: ClassVar[frozenset[DataType]] = OBJECTS

    lane: Lane = Lane.BUILT_IN
    reason: str = "native conversion to Arrow batches"

    def check(self, operator: str) -> None:
        """Do nothing: a table can always be made."""


@dataclass(frozen=True, slots=True)
class PandasSink:
    """Collects tuples into a DataFrame: a table of Arrow, which the driver converts."""

    refuses: ClassVar[frozenset[DataType]] = OBJECTS

    lane: Lane = Lane.BUILT_IN
    reason: str = "native conversion to Arrow batches, a DataFrame at the end"

    def check(self, operator: str) -> None:
        """Raise SinkError if pandas isn't installed."""
        if importlib.util.find_spec("pandas") is None:
            raise SinkError(
                "rel.pandas needs pandas, which isn't installed",
                operator=operator,
                hint="pip install pandas; or use rel.arrow(), which needs no package",
                code=ErrorCode.MISSING_PACKAGE,
            )

    def for_pe(self) -> ArrowSink:
        """Return the sink of a PE."""
        return ArrowSink()

    def finish(self, rows: int, value: Any) -> Any:  # noqa: ARG002 -- as each sink of a driver has it
        """Return the DataFrame of a table."""
        return value.to_pandas(integer_object_nulls=True)  # NaN would make floats of integers


def call(function: Callable[..., Any], *, numbered: bool = False) -> CallSink:
    """Call a Python function with each tuple, in order, never from two threads at once.

    A job that restores a checkpoint calls it again with the tuples after it: at least once. For exactly once, the
    function drops repeated tuples by their number. Or pass an object that also has the methods `prepare`,
    `commit` and `abort`, and hides its tuples until a checkpoint is complete (`Committing`).

    An object may have `initialize()`, called before the first tuple, `flush()`, called at each checkpoint and at the
    end, and `shutdown()`, called at the end. With checkpoints each start copies the object.

    Args:
        function: A function of one tuple, or such an object; its return value is ignored.
        numbered: Call it with the tuple, a number of its epoch, and its own number in the stream. The epoch is higher
            than all prepared ones. The tuple's number counts from 0 and is the same after a restart.

    Raises:
        SinkError: At the declaration, if it is async, yields, or has methods that are never called.

    >>> import rayelastic as rel
    >>> seen = {}
    >>> topology = rel.Topology("once")
    >>> letters = topology.source(rel.rows([("a",), ("b",)], schema={"letter": str}), name="letters")
    >>> letters.sink(rel.call(lambda t, epoch, number: seen.setdefault(number, t.letter), numbered=True), name="seen")
    <sink seen>
    >>> rel.run(topology)["seen"], seen
    (2, {0: 'a', 1: 'b'})
    """
    return CallSink(function, numbered)


def list() -> ListSink:  # noqa: A001  (the public name is rel.list)
    """Collect the tuples into a list, which is the job's result under the sink's name.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("numbers")
    >>> topology.source(rel.sequence(2)).sink(rel.list(), name="out")
    <sink out>
    >>> rel.run(topology)["out"]
    [Sequence(value=0), Sequence(value=1)]
    """
    return ListSink()


def pandas() -> PandasSink:
    """Collect the tuples into a pandas DataFrame, which is the job's result under the sink's name.

    An integer column with None holds Python integers and None. A DataFrame is also a source: `topology.source(frame)`.

    Raises:
        SinkError: At the declaration, if pandas isn't installed.

    >>> import pandas as pd
    >>> import rayelastic as rel
    >>> topology = rel.Topology("frames")
    >>> frame = topology.source(pd.DataFrame({"k": ["a", "b"], "n": [1, 2]}))
    >>> frame.filter(lambda t: t.n > 1).sink(rel.pandas(), name="out")
    <sink out>
    >>> rel.run(topology)["out"].to_dict("records")
    [{'k': 'b', 'n': 2}]
    """
    return PandasSink()


def print() -> CallSink:  # noqa: A001  (the public name is rel.print)
    """Print each tuple on standard output, of the process that runs the sink.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("letters")
    >>> topology.source(rel.rows([("a",), ("b",)], {"letter": str})).sink(rel.print(), name="out")
    <sink out>
    >>> rel.run(topology)["out"]
    Record(letter='a')
    Record(letter='b')
    2
    """
    return call(builtins.print)
