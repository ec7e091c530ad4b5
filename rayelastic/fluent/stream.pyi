# What checkers know of streams: the type of their tuples. `stream.py` has the methods and what they do;
# tests/unit/graph/test_stubs.py compares the parameters of both.
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Generic, Literal, NoReturn, Protocol, TypeAlias, TypedDict, overload

from typing_extensions import TypeVar, Unpack

from rayelastic.connectors.typed import Declared, N, Plain, Value
from rayelastic.fluent.base import StreamBase
from rayelastic.fluent.declarations import Declarations
from rayelastic.fluent.functions import ErrorChoice
from rayelastic.fluent.streams import Streams
from rayelastic.graph.operators.aggregates import AggregateSpec, Emit, Named, TopK
from rayelastic.graph.operators.aligned import Aligned
from rayelastic.graph.operators.patterns import Pattern
from rayelastic.graph.operators.windows import Window
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.time_info import Lifetime, Seconds, TimeUnit
from rayelastic.graph.spec.concurrency import Concurrency
from rayelastic.graph.spec.declaration import LaneChoice
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.ordering import OrderChoice

__all__ = ["KeyedStream", "Stream", "SunkStream", "TimelyStream", "WindowedStream", "apply"]

T = TypeVar("T", default=Any)
K = TypeVar("K", default=Any)
U = TypeVar("U")
R = TypeVar("R")
S = TypeVar("S")

# What functions of whole batches take: arrays of NumPy, batches of Arrow, frames of pandas and Polars.
class _Batch(Protocol):
    @property
    def shape(self) -> Any: ...

B = TypeVar("B", bound=_Batch)

_Container: TypeAlias = type[dict[Any, Any]] | type[list[Any]] | type[set[Any]]
_Fields: TypeAlias = str | Sequence[str]
_Emit: TypeAlias = Literal["final", "update"] | Emit

# Options that the overloads of a method share.

class _Filter(TypedDict, total=False):
    name: str
    on_error: ErrorChoice
    concurrent: Concurrency | None
    ordered: OrderChoice

class _Map(_Filter, total=False):
    sides: Mapping[str, object]

class _ListMap(TypedDict, total=False):
    name: str
    schema: object
    lane: LaneChoice
    on_error: ErrorChoice
    sides: Mapping[str, object]
    ordered: OrderChoice

class _Lane(TypedDict, total=False):
    lane: LaneChoice

class _FilterMap(_Lane, total=False):
    name: str
    on_error: ErrorChoice
    ordered: OrderChoice

class _MapLane(_Map, _Lane, total=False): ...
class _FilterLane(_Filter, _Lane, total=False): ...

class _Ttl(TypedDict, total=False):
    ttl: Lifetime | None

class _StateFilter(_FilterLane, _Ttl, total=False): ...
class _StateMap(_MapLane, _Ttl, total=False): ...

class _Process(_Lane, _Ttl, total=False):
    name: str
    state: Callable[[], Any] | None
    clock: bool

class _Cross(_Lane, _Ttl, total=False):
    name: str
    how: Literal["inner", "left"]
    by: Literal["arrival"] | None
    suffix: str
    fn: Callable[..., Any] | None

class _Join(_Lane, _Ttl, total=False):
    name: str
    keep: Literal["latest", "first", "all"] | None
    within: Seconds | tuple[Seconds, Seconds] | None
    window: Seconds | Aligned | None
    how: Literal["inner", "left", "right", "full"] | None
    by: Literal["arrival"] | None
    symmetric: bool
    suffix: str
    fn: Callable[..., Any] | None

class Stream(StreamBase[Stream[Any]], Generic[T]):
    def __init__(self, topology: Declarations, inputs: tuple[str, ...], schema: Schema) -> None: ...
    @overload
    def map(
        self, fn: Callable[[Any], Any], *, lane: Literal["vectorised"], schema: object = None, **options: Unpack[_Map]
    ) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[T], Any], *, schema: type[N], **options: Unpack[_MapLane]) -> Stream[N]: ...
    @overload
    def map(
        self, fn: Callable[[T], Any], *, schema: type[Plain], **options: Unpack[_MapLane]
    ) -> Stream[Value[Plain]]: ...
    @overload
    def map(
        self, fn: Callable[[T], Any], *, schema: type[Mapping[str, Any]], **options: Unpack[_MapLane]
    ) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[T], Any], *, schema: type[U], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def map(self, fn: Callable[[T], Any], *, schema: Declared, **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[T], N], **options: Unpack[_MapLane]) -> Stream[N]: ...
    @overload
    def map(self, fn: Callable[[T], Plain], **options: Unpack[_MapLane]) -> Stream[Value[Plain]]: ...
    @overload
    def map(self, fn: Callable[[T], Mapping[str, Any]], **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[T], Awaitable[N]], **options: Unpack[_MapLane]) -> Stream[N]: ...
    @overload
    def map(self, fn: Callable[[T], Awaitable[Plain]], **options: Unpack[_MapLane]) -> Stream[Value[Plain]]: ...
    @overload
    def map(self, fn: Callable[[T], Awaitable[Mapping[str, Any]]], **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[T], Awaitable[U]], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def map(self, fn: Callable[[T], U], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def map(
        self, fn: Callable[[list[T]], Any], *, concurrent: Concurrency, **options: Unpack[_ListMap]
    ) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[B], Any], *, schema: type[U], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def map(self, fn: Callable[[B], Any], *, schema: Declared, **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def filter(
        self, fn: Callable[[Any], Any], *, lane: Literal["vectorised"], **options: Unpack[_Filter]
    ) -> Stream[T]: ...
    @overload
    def filter(
        self, fn: Callable[[T], object], *, lane: LaneChoice = "auto", **options: Unpack[_Filter]
    ) -> Stream[T]: ...
    @overload
    def flat_map(
        self, fn: Callable[[Any], Any], *, lane: Literal["vectorised"], schema: object = None, **options: Unpack[_Map]
    ) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Any], *, schema: type[N], **options: Unpack[_MapLane]) -> Stream[N]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T], Any], *, schema: type[Plain], **options: Unpack[_MapLane]
    ) -> Stream[Value[Plain]]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T], Any], *, schema: type[Mapping[str, Any]], **options: Unpack[_MapLane]
    ) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Any], *, schema: type[U], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Any], *, schema: Declared, **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Iterable[N]], **options: Unpack[_MapLane]) -> Stream[N]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Iterable[Plain]], **options: Unpack[_MapLane]) -> Stream[Value[Plain]]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Iterable[Mapping[str, Any]]], **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Awaitable[Iterable[Any]]], **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Iterable[U]], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def flat_map(
        self, fn: Callable[[list[T]], Any], *, concurrent: Concurrency, **options: Unpack[_ListMap]
    ) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[B], Any], *, schema: type[U], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def flat_map(self, fn: Callable[[B], Any], *, schema: Declared, **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def filter_map(self, fn: Callable[[T], Any], *, schema: type[N], **options: Unpack[_FilterMap]) -> Stream[N]: ...
    @overload
    def filter_map(
        self, fn: Callable[[T], Any], *, schema: type[Plain], **options: Unpack[_FilterMap]
    ) -> Stream[Value[Plain]]: ...
    @overload
    def filter_map(
        self, fn: Callable[[T], Any], *, schema: type[Mapping[str, Any]], **options: Unpack[_FilterMap]
    ) -> Stream[Any]: ...
    @overload
    def filter_map(self, fn: Callable[[T], Any], *, schema: type[U], **options: Unpack[_FilterMap]) -> Stream[U]: ...
    @overload
    def filter_map(self, fn: Callable[[T], Any], *, schema: Declared, **options: Unpack[_FilterMap]) -> Stream[Any]: ...
    @overload
    def filter_map(self, fn: Callable[[T], N | None], **options: Unpack[_FilterMap]) -> Stream[N]: ...  # type: ignore[overload-overlap]
    @overload
    def filter_map(self, fn: Callable[[T], Plain | None], **options: Unpack[_FilterMap]) -> Stream[Value[Plain]]: ...
    @overload
    def filter_map(self, fn: Callable[[T], Mapping[str, Any] | None], **options: Unpack[_FilterMap]) -> Stream[Any]: ...
    @overload
    def filter_map(self, fn: Callable[[T], Awaitable[N | None]], **options: Unpack[_FilterMap]) -> Stream[N]: ...  # type: ignore[overload-overlap]
    @overload
    def filter_map(
        self, fn: Callable[[T], Awaitable[Plain | None]], **options: Unpack[_FilterMap]
    ) -> Stream[Value[Plain]]: ...
    @overload
    def filter_map(self, fn: Callable[[T], Awaitable[Any]], **options: Unpack[_FilterMap]) -> Stream[Any]: ...
    @overload
    def filter_map(self, fn: Callable[[T], U | None], **options: Unpack[_FilterMap]) -> Stream[U]: ...
    def aggregate(
        self,
        *named_ones: AggregateSpec | Named,
        name: str = "",
        emit: _Emit = ...,
        ttl: Lifetime | None = None,
        two_steps: bool | None = None,
        **aggregates: AggregateSpec | TopK,
    ) -> Stream[Any]: ...
    agg = aggregate
    def event_time(
        self,
        field: str,
        *,
        name: str = "",
        lateness: Seconds = 0,
        unit: TimeUnit | None = None,
        idle_after: Seconds | None = None,
        by_clock: bool = False,
        ahead: Seconds | None = None,
    ) -> Stream[T]: ...
    @overload
    def key_by(self, fields: Callable[[T], U], /) -> KeyedStream[T, U]: ...
    @overload
    def key_by(self, *fields: str) -> KeyedStream[T]: ...
    group_by = key_by
    groupby = key_by
    key_on = key_by
    def select(self, *fields: str, name: str = "") -> Stream[Any]: ...
    def drop(self, *fields: str, name: str = "") -> Stream[Any]: ...
    def rename(self, names: Mapping[str, str], *, name: str = "") -> Stream[Any]: ...
    def with_columns(
        self, *expressions: Any, name: str | Callable[[T], Any] = "", **columns: Callable[[T], Any]
    ) -> Stream[Any]: ...
    assign = with_columns
    def with_column(self, column: str, fn: Any, *, name: str = "") -> Stream[Any]: ...
    def unique(self, *fields: str, subset: _Fields | None = None, keep: str = "first", name: str = "") -> Stream[T]: ...
    distinct = unique
    drop_duplicates = unique
    def drop_nulls(self, *fields: str, subset: _Fields | None = None, name: str = "") -> Stream[Any]: ...
    dropna = drop_nulls
    def fill_null(self, value: Any, *, name: str = "") -> Stream[Any]: ...
    fillna = fill_null
    def explode(self, field: str, *, name: str = "") -> Stream[Any]: ...
    def collect(self) -> list[T]: ...
    def show(self, n: int = 20) -> None: ...
    def sort(self, *by: str, descending: bool = False, name: str = "") -> Stream[T]: ...
    def top(self, n: int, by: str, *, least: bool = False, name: str = "") -> Stream[T]: ...
    def query(self, condition: str, *, name: str = "") -> Stream[T]: ...
    def value_counts(self, *fields: str, name: str = "") -> Stream[Any]: ...
    def count_final(self, key: Callable[[T], Any], *, name: str = "") -> Stream[Any]: ...
    def for_each(self, fn: Callable[[T], Any], *, name: str = "") -> SunkStream: ...
    foreach = for_each
    def branch(self, predicate: Callable[[T], object], *, name: str = "") -> Streams[Stream[T]]: ...
    def merge(
        self, *others: Stream[Any], on: _Fields | None = None, how: str = "inner", name: str = ""
    ) -> Stream[Any]: ...
    def count_window(self, count: int, slide: int | None = None) -> WindowedStream[T]: ...
    def join(
        self, right: Stream[Any], on: _Fields | None = None, *, how: Any = "inner", name: str = "", **options: Any
    ) -> Stream[Any]: ...
    def inspect(self, fn: Callable[[T], object] = ..., *, name: str = "") -> Stream[T]: ...
    def take(self, count: int, *, name: str = "") -> Stream[T]: ...
    limit = take
    head = take
    def print(self, *, name: str = "") -> SunkStream: ...
    def union(self, *others: Stream[T]) -> Stream[T]: ...
    def apply(
        self,
        operator: Any,
        *,
        name: str = "",
        on_error: ErrorChoice = "fail",
        ordered: OrderChoice = None,
        **others: Stream[Any],
    ) -> Any: ...
    def sink(self, sink: Any, *, name: str = "") -> SunkStream: ...
    def window(
        self,
        length: timedelta | None = None,
        /,
        *,
        count: int | None = None,
        seconds: Seconds | None = None,
        days: int | None = None,
        slide: Seconds | None = None,
        rest: bool | None = None,
        within: Seconds | None = None,
        assign: Callable[[T], Iterable[tuple[Any, Any]]] | None = None,
        lateness: Seconds | None = None,
        clock: bool = False,
        align_to: object = None,
        zone: str | None = None,
        ttl: Lifetime | None = None,
    ) -> WindowedStream[T]: ...
    def session(
        self, gap: Seconds | Callable[[T], Seconds], *, lateness: Seconds | None = None, clock: bool = False
    ) -> WindowedStream[T]: ...
    def merge_by_time(self, *others: Stream[T], name: str = "") -> TimelyStream[T]: ...
    def parallel(
        self,
        width: int,
        body: Callable[[Stream[T]], Stream[U]],
        *,
        name: str = "",
        by: str | Sequence[str] | None = None,
        order: bool = False,
    ) -> Stream[U]: ...
    def elastic(
        self,
        body: Callable[[Stream[T]], Stream[U]],
        *,
        name: str = "",
        most: int = 8,
        start: int = 1,
        order: bool = False,
    ) -> Stream[U]: ...
    def elastic_split(self, ways: int, *, name: str = "", start: int = 1) -> Streams[Stream[T]]: ...
    def split(
        self,
        ways: int | Callable[[T], object] | None = None,
        *,
        name: str = "",
        by: Callable[[T], int] | None = None,
        lane: LaneChoice = "auto",
        **predicates: Callable[[T], object],
    ) -> Streams[Stream[T]]: ...
    def throttle(self, per_second: float, *, name: str = "") -> Stream[T]: ...
    def delay(self, seconds: Seconds, *, name: str = "", most: int = 100_000) -> Stream[T]: ...
    def switch(
        self,
        control: Stream[R],
        on: Callable[[R], object],
        *,
        name: str = "",
        start: bool = True,
        off: Literal["wait", "drop"] = "wait",
    ) -> Stream[T]: ...
    def gate(
        self, control: Stream[R], *, name: str = "", most: int = 1, passes: Callable[[R], int] | None = None
    ) -> Stream[T]: ...
    @overload
    def cross_join(self, right: Stream[R], *, schema: type[N], **options: Unpack[_Cross]) -> TimelyStream[N]: ...
    @overload
    def cross_join(
        self, right: Stream[R], *, schema: type[Plain], **options: Unpack[_Cross]
    ) -> TimelyStream[Value[Plain]]: ...
    @overload
    def cross_join(
        self, right: Stream[R], *, schema: type[Mapping[str, Any]], **options: Unpack[_Cross]
    ) -> TimelyStream[Any]: ...
    @overload
    def cross_join(self, right: Stream[R], *, schema: type[U], **options: Unpack[_Cross]) -> TimelyStream[U]: ...
    @overload
    def cross_join(
        self, right: Stream[R], *, schema: Declared | None = None, **options: Unpack[_Cross]
    ) -> TimelyStream[Any]: ...
    def _declare_timely(self, spec: OperatorSpec) -> Stream[Any]: ...
    def _at(
        self, topology: Declarations, inputs: tuple[str, ...], schema: Schema, keys: tuple[str, ...] = ()
    ) -> Stream[Any]: ...

class KeyedStream(Stream[T], Generic[T, K]):
    keys: tuple[str, ...]
    def __init__(
        self, topology: Declarations, inputs: tuple[str, ...], schema: Schema, keys: tuple[str, ...]
    ) -> None: ...
    @overload  # type: ignore[override]  # mypy takes the overloads with state= for others
    def map(
        self, fn: Callable[[T, S], Any], *, state: Callable[[], S], schema: type[N], **options: Unpack[_StateMap]
    ) -> Stream[N]: ...
    @overload
    def map(self, fn: Callable[[T, S], N], *, state: Callable[[], S], **options: Unpack[_StateMap]) -> Stream[N]: ...
    @overload
    def map(
        self, fn: Callable[[T, Any], Any], *, state: _Container, schema: object = None, **options: Unpack[_StateMap]
    ) -> Stream[Any]: ...
    @overload
    def map(
        self, fn: Callable[[T, S], Any], *, state: Callable[[], S], schema: type[Plain], **options: Unpack[_StateMap]
    ) -> Stream[Value[Plain]]: ...
    @overload
    def map(
        self,
        fn: Callable[[T, S], Any],
        *,
        state: Callable[[], S],
        schema: type[Mapping[str, Any]],
        **options: Unpack[_StateMap],
    ) -> Stream[Any]: ...
    @overload
    def map(
        self, fn: Callable[[T, S], Any], *, state: Callable[[], S], schema: type[U], **options: Unpack[_StateMap]
    ) -> Stream[U]: ...
    @overload
    def map(
        self, fn: Callable[[T, S], Any], *, state: Callable[[], S], schema: Declared, **options: Unpack[_StateMap]
    ) -> Stream[Any]: ...
    @overload
    def map(
        self, fn: Callable[[T, S], Plain], *, state: Callable[[], S], **options: Unpack[_StateMap]
    ) -> Stream[Value[Plain]]: ...
    @overload
    def map(
        self, fn: Callable[[T, S], Mapping[str, Any]], *, state: Callable[[], S], **options: Unpack[_StateMap]
    ) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[T, S], U], *, state: Callable[[], S], **options: Unpack[_StateMap]) -> Stream[U]: ...
    @overload
    def map(
        self, fn: Callable[[Any], Any], *, lane: Literal["vectorised"], schema: object = None, **options: Unpack[_Map]
    ) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[T], Any], *, schema: type[N], **options: Unpack[_MapLane]) -> Stream[N]: ...
    @overload
    def map(
        self, fn: Callable[[T], Any], *, schema: type[Plain], **options: Unpack[_MapLane]
    ) -> Stream[Value[Plain]]: ...
    @overload
    def map(
        self, fn: Callable[[T], Any], *, schema: type[Mapping[str, Any]], **options: Unpack[_MapLane]
    ) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[T], Any], *, schema: type[U], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def map(self, fn: Callable[[T], Any], *, schema: Declared, **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[T], N], **options: Unpack[_MapLane]) -> Stream[N]: ...
    @overload
    def map(self, fn: Callable[[T], Plain], **options: Unpack[_MapLane]) -> Stream[Value[Plain]]: ...
    @overload
    def map(self, fn: Callable[[T], Mapping[str, Any]], **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[T], Awaitable[N]], **options: Unpack[_MapLane]) -> Stream[N]: ...
    @overload
    def map(self, fn: Callable[[T], Awaitable[Plain]], **options: Unpack[_MapLane]) -> Stream[Value[Plain]]: ...
    @overload
    def map(self, fn: Callable[[T], Awaitable[Mapping[str, Any]]], **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[T], Awaitable[U]], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def map(self, fn: Callable[[T], U], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def map(
        self, fn: Callable[[list[T]], Any], *, concurrent: Concurrency, **options: Unpack[_ListMap]
    ) -> Stream[Any]: ...
    @overload
    def map(self, fn: Callable[[B], Any], *, schema: type[U], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def map(self, fn: Callable[[B], Any], *, schema: Declared, **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def filter(
        self, fn: Callable[[T, S], object], *, state: Callable[[], S], **options: Unpack[_StateFilter]
    ) -> Stream[T]: ...
    @overload
    def filter(
        self, fn: Callable[[T, Any], object], *, state: _Container, **options: Unpack[_StateFilter]
    ) -> Stream[T]: ...
    @overload
    def filter(
        self, fn: Callable[[Any], Any], *, lane: Literal["vectorised"], **options: Unpack[_Filter]
    ) -> Stream[T]: ...
    @overload
    def filter(
        self, fn: Callable[[T], object], *, lane: LaneChoice = "auto", **options: Unpack[_Filter]
    ) -> Stream[T]: ...
    @overload  # type: ignore[override]  # mypy takes the overloads with state= for others
    def flat_map(
        self, fn: Callable[[T, S], Any], *, state: Callable[[], S], schema: type[N], **options: Unpack[_StateMap]
    ) -> Stream[N]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T, S], Iterable[N]], *, state: Callable[[], S], **options: Unpack[_StateMap]
    ) -> Stream[N]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T, Any], Any], *, state: _Container, schema: object = None, **options: Unpack[_StateMap]
    ) -> Stream[Any]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T, S], Any], *, state: Callable[[], S], schema: type[Plain], **options: Unpack[_StateMap]
    ) -> Stream[Value[Plain]]: ...
    @overload
    def flat_map(
        self,
        fn: Callable[[T, S], Any],
        *,
        state: Callable[[], S],
        schema: type[Mapping[str, Any]],
        **options: Unpack[_StateMap],
    ) -> Stream[Any]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T, S], Any], *, state: Callable[[], S], schema: type[U], **options: Unpack[_StateMap]
    ) -> Stream[U]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T, S], Any], *, state: Callable[[], S], schema: Declared, **options: Unpack[_StateMap]
    ) -> Stream[Any]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T, S], Iterable[Plain]], *, state: Callable[[], S], **options: Unpack[_StateMap]
    ) -> Stream[Value[Plain]]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T, S], Iterable[Mapping[str, Any]]], *, state: Callable[[], S], **options: Unpack[_StateMap]
    ) -> Stream[Any]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T, S], Iterable[U]], *, state: Callable[[], S], **options: Unpack[_StateMap]
    ) -> Stream[U]: ...
    @overload
    def flat_map(
        self, fn: Callable[[Any], Any], *, lane: Literal["vectorised"], schema: object = None, **options: Unpack[_Map]
    ) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Any], *, schema: type[N], **options: Unpack[_MapLane]) -> Stream[N]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T], Any], *, schema: type[Plain], **options: Unpack[_MapLane]
    ) -> Stream[Value[Plain]]: ...
    @overload
    def flat_map(
        self, fn: Callable[[T], Any], *, schema: type[Mapping[str, Any]], **options: Unpack[_MapLane]
    ) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Any], *, schema: type[U], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Any], *, schema: Declared, **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Iterable[N]], **options: Unpack[_MapLane]) -> Stream[N]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Iterable[Plain]], **options: Unpack[_MapLane]) -> Stream[Value[Plain]]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Iterable[Mapping[str, Any]]], **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Awaitable[Iterable[Any]]], **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[T], Iterable[U]], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def flat_map(
        self, fn: Callable[[list[T]], Any], *, concurrent: Concurrency, **options: Unpack[_ListMap]
    ) -> Stream[Any]: ...
    @overload
    def flat_map(self, fn: Callable[[B], Any], *, schema: type[U], **options: Unpack[_MapLane]) -> Stream[U]: ...
    @overload
    def flat_map(self, fn: Callable[[B], Any], *, schema: Declared, **options: Unpack[_MapLane]) -> Stream[Any]: ...
    @overload
    def process(self, cls: object, *, schema: type[N], **options: Unpack[_Process]) -> TimelyStream[N]: ...
    @overload
    def process(
        self, cls: object, *, schema: type[Plain], **options: Unpack[_Process]
    ) -> TimelyStream[Value[Plain]]: ...
    @overload
    def process(
        self, cls: object, *, schema: type[Mapping[str, Any]], **options: Unpack[_Process]
    ) -> TimelyStream[Any]: ...
    @overload
    def process(self, cls: object, *, schema: type[U], **options: Unpack[_Process]) -> TimelyStream[U]: ...
    @overload
    def process(self, cls: object, *, schema: Declared, **options: Unpack[_Process]) -> TimelyStream[Any]: ...
    def match(
        self,
        pattern: Pattern,
        *,
        name: str = "",
        how: Literal["inner", "left"] = "inner",
        lane: LaneChoice = "auto",
    ) -> TimelyStream[Any]: ...
    def deduplicate(self, *, name: str = "", ttl: Lifetime | None = None) -> Stream[T]: ...
    def scan(
        self,
        fn: Callable[[S, T], S],
        start: S,
        *,
        name: str = "",
        schema: object = None,
        ttl: Lifetime | None = None,
    ) -> Stream[Any]: ...
    def combine(
        self,
        own: object,
        *,
        name: str = "",
        schema: object = None,
        emit: _Emit = "final",
        ttl: Lifetime | None = None,
        lane: LaneChoice = "auto",
    ) -> Stream[Any]: ...
    def fold(self, fn: Callable[[S, T], S], start: S, *, name: str = "", schema: object = None) -> Stream[Any]: ...
    def reduce(
        self,
        fn: Callable[[T, T], object],
        *,
        name: str = "",
        emit: _Emit = "final",
        ttl: Lifetime | None = None,
    ) -> Stream[T]: ...
    reduce_final = reduce
    def sum(self, *fields: str, name: str = "") -> Stream[Any]: ...
    def mean(self, *fields: str, name: str = "") -> Stream[Any]: ...
    def min(self, *fields: str, name: str = "") -> Stream[Any]: ...
    def max(self, *fields: str, name: str = "") -> Stream[Any]: ...
    def count(self, *, name: str = "") -> Stream[Any]: ...
    def max_by(self, by: str | Callable[[T], Any], *, name: str = "") -> Stream[T]: ...
    def min_by(self, by: str | Callable[[T], Any], *, name: str = "") -> Stream[T]: ...
    max_final = max_by
    min_final = min_by
    @overload  # type: ignore[override]  # by the keys, so without on=
    def join(self, right: Stream[R], *, schema: type[N], **options: Unpack[_Join]) -> TimelyStream[N]: ...
    @overload
    def join(
        self, right: Stream[R], *, schema: type[Plain], **options: Unpack[_Join]
    ) -> TimelyStream[Value[Plain]]: ...
    @overload
    def join(
        self, right: Stream[R], *, schema: type[Mapping[str, Any]], **options: Unpack[_Join]
    ) -> TimelyStream[Any]: ...
    @overload
    def join(self, right: Stream[R], *, schema: type[U], **options: Unpack[_Join]) -> TimelyStream[U]: ...
    @overload
    def join(
        self, right: Stream[R], *, schema: Declared | None = None, **options: Unpack[_Join]
    ) -> TimelyStream[Any]: ...
    def enrich(
        self,
        table: Mapping[Any, Any],
        *,
        name: str = "",
        how: Literal["inner", "left"] = "inner",
        schema: object = None,
        suffix: str = ...,
    ) -> Stream[Any]: ...

class TimelyStream(Stream[T]):
    def late(self) -> Stream[Any]: ...

class WindowedStream(Generic[T, K]):
    stream: Any
    window: Window
    def __init__(self, stream: Any, window: Window, declare: Callable[[OperatorSpec], Any]) -> None: ...
    @property
    def topology(self) -> Declarations: ...
    def aggregate(
        self, *named_ones: AggregateSpec | Named, name: str = "", **aggregates: AggregateSpec | TopK
    ) -> TimelyStream[Any]: ...
    agg = aggregate
    @overload
    def process(
        self,
        fn: Callable[[Any, Any, Any], Any],
        *,
        name: str = "",
        schema: type[U],
        emit: _Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
    ) -> TimelyStream[U]: ...
    @overload
    def process(
        self,
        fn: Callable[[Any, Any, Any], Any],
        *,
        name: str = "",
        schema: object,
        emit: _Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
    ) -> TimelyStream[Any]: ...
    def combine(
        self,
        own: object,
        *,
        name: str = "",
        schema: object = None,
        emit: _Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
        lane: LaneChoice = "auto",
    ) -> TimelyStream[Any]: ...
    def fold(
        self,
        fn: Callable[[S, T], S],
        start: S,
        *,
        name: str = "",
        schema: object = None,
        emit: _Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
    ) -> TimelyStream[Any]: ...
    def reduce(
        self,
        fn: Callable[[T, T], object],
        *,
        name: str = "",
        emit: _Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
    ) -> TimelyStream[Any]: ...
    def sum(self, *fields: str, name: str = "") -> TimelyStream[Any]: ...
    def mean(self, *fields: str, name: str = "") -> TimelyStream[Any]: ...
    def min(self, *fields: str, name: str = "") -> TimelyStream[Any]: ...
    def max(self, *fields: str, name: str = "") -> TimelyStream[Any]: ...
    def count(self, *, name: str = "") -> TimelyStream[Any]: ...
    def max_by(self, by: str | Callable[[T], Any], *, name: str = "") -> TimelyStream[Any]: ...
    def min_by(self, by: str | Callable[[T], Any], *, name: str = "") -> TimelyStream[Any]: ...
    max_final = max_by
    min_final = min_by
    def top(
        self,
        k: int,
        by: str,
        *,
        name: str = "",
        least: bool = False,
        emit: _Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
    ) -> TimelyStream[Any]: ...
    def collect(
        self,
        *,
        name: str = "",
        emit: _Emit = "final",
        every: Seconds | None = None,
        until: Callable[[Any], Any] | None = None,
    ) -> TimelyStream[Any]: ...

class SunkStream:
    name: str
    def __init__(self, name: str) -> None: ...
    def __getattr__(self, attribute: str) -> NoReturn: ...

def apply(
    topology: Declarations,
    name: str,
    operator: Any,
    streams: Mapping[str, object],
    on_error: object = ...,
    ordered: object = ...,
) -> Stream[Any] | Streams[Stream[Any]] | SunkStream: ...
