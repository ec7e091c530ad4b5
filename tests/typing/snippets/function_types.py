"""Functions of one tuple: map, filter, flat_map and their options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, assert_type

import rayelastic as rel
from rayelastic.connectors.typed import Value


class Click(NamedTuple):
    user: str
    ms: int


class Order(NamedTuple):
    user: str
    price: float


@dataclass
class Reading:
    sensor: str
    celsius: float


class Frame:
    shape: tuple[int, int]

    def __getitem__(self, field: str) -> Any: ...


topology = rel.Topology("functions")
clicks = topology.source(rel.rows([Click("ada", 120)]))


def map_to_a_tuple() -> None:
    assert_type(clicks.map(lambda t: Order(t.user, t.ms / 10)), rel.Stream[Order])


def map_to_the_same_class() -> None:
    assert_type(clicks.map(lambda t: t._replace(ms=0)), rel.Stream[Click])


def map_to_a_plain_value() -> None:
    assert_type(clicks.map(lambda t: t.ms), rel.Stream[Value[int]])


def map_to_a_value_or_none() -> None:
    def early(t: Click) -> int | None:
        return t.ms if t.ms < 10 else None

    assert_type(clicks.map(early), rel.Stream[Value[int | None]])


def filter_map_drops_none() -> None:
    def early(t: Click) -> int | None:
        return t.ms if t.ms < 10 else None

    assert_type(clicks.filter_map(early), rel.Stream[Value[int]])
    assert_type(clicks.filter_map(lambda t: Order(t.user, 1.0) if t.ms else None), rel.Stream[Order])
    clicks.filter_map(lambda t: t.mss)  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def collect_returns_the_tuples() -> None:
    assert_type(clicks.collect(), list[Click])


def map_by_a_function() -> None:
    def price(t: Click) -> Order:
        return Order(t.user, 1.0)

    assert_type(clicks.map(price, name="price", on_error="skip"), rel.Stream[Order])


def map_with_a_schema() -> None:
    assert_type(clicks.map(lambda t: (t.user, 1.0), schema=Order), rel.Stream[Order])


def map_by_a_function_without_types() -> None:
    def parsed(t: Any) -> Any:
        return (t.user, 1.0)

    assert_type(clicks.map(parsed, schema=Order), rel.Stream[Order])


def map_to_a_dataclass() -> None:
    assert_type(clicks.map(lambda t: Reading(t.user, 1.0)), rel.Stream[Reading])


def map_with_fields() -> None:
    assert_type(clicks.map(lambda t: {"who": t.user}, schema={"who": str}), rel.Stream[Any])


def map_async() -> None:
    async def looked_up(t: Click) -> Order:
        return Order(t.user, 1.0)

    assert_type(clicks.map(looked_up, concurrent=rel.concurrent(capacity=8)), rel.Stream[Order])


def map_async_in_batches() -> None:
    async def looked_up(batch: list[Click]) -> list[tuple[str]]:
        return [(t.user,) for t in batch]

    clicks.map(looked_up, schema={"user": str}, concurrent=rel.concurrent(capacity=8, max_batch=32))


def map_of_arrays() -> None:
    def doubled(batch: Frame) -> dict[str, Any]:
        return {"ms": batch["ms"] * 2}

    clicks.map(doubled, schema={"ms": int}, lane="vectorised")


def map_in_a_chain() -> None:
    assert_type(clicks.map(lambda t: Order(t.user, 1.0)).map(lambda t: t.price), rel.Stream[Value[float]])


def reassigned_stream_of_any() -> None:
    stream = topology.source(rel.text("clicks.txt"))
    stream = stream.map(lambda t: Click(t.line, 1))
    stream.filter(lambda t: t.ms > 0)


def filter_keeps_the_type() -> None:
    assert_type(clicks.filter(lambda t: t.ms > 100), rel.Stream[Click])


def flat_map_to_texts() -> None:
    assert_type(clicks.flat_map(lambda t: t.user.split()), rel.Stream[Value[str]])


def flat_map_by_a_generator() -> None:
    def twice(t: Click) -> Iterator[Order]:
        yield Order(t.user, 1.0)
        yield Order(t.user, 2.0)

    assert_type(clicks.flat_map(twice), rel.Stream[Order])


def take_keeps_the_type() -> None:
    assert_type(clicks.take(3), rel.Stream[Click])


def passages_keep_the_type() -> None:
    assert_type(clicks.throttle(100.0).delay(1).inspect(), rel.Stream[Click])


def union_keeps_the_type() -> None:
    assert_type(clicks.union(clicks.filter(lambda t: t.ms > 1)), rel.Stream[Click])


def split_by_predicates() -> None:
    parts = clicks.split(slow=lambda t: t.ms > 100)
    assert_type(parts.slow, rel.Stream[Click])


def parallel_body() -> None:
    assert_type(clicks.parallel(2, lambda s: s.map(lambda t: Order(t.user, 1.0))), rel.Stream[Order])


def select_makes_any() -> None:
    clicks.select("user").map(lambda t: t.user)


def misspelt_field_in_map() -> None:
    clicks.map(lambda t: t.msec)  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def misspelt_field_in_filter() -> None:
    clicks.filter(lambda t: t.msec > 1)  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def misspelt_field_in_flat_map() -> None:
    clicks.flat_map(lambda t: t.usr.split())  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def misspelt_field_with_a_schema() -> None:
    clicks.map(lambda t: (t.usr, 1.0), schema=Order)  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def misspelt_field_behind_map() -> None:
    clicks.map(lambda t: Order(t.user, 1.0)).filter(
        lambda t: t.ms > 1  # mypy: attr-defined; pyright: reportAttributeAccessIssue
    )


def value_compared_with_another_type() -> None:
    clicks.filter(lambda t: t.user > 3)  # mypy: operator; pyright: reportOperatorIssue


def wrong_argument_of_a_constructor() -> None:
    clicks.map(lambda t: Order(t.user, t.user))  # mypy: arg-type; pyright: reportArgumentType


def function_of_another_type() -> None:
    def price(t: Order) -> float:
        return t.price

    clicks.map(price)  # mypy: arg-type, type-var; pyright: reportCallIssue, reportArgumentType


def predicate_of_another_type() -> None:
    def costly(t: Order) -> bool:
        return t.price > 1

    clicks.filter(costly)  # mypy: arg-type; pyright: reportArgumentType


def flat_map_to_a_number() -> None:
    clicks.flat_map(lambda t: t.ms)  # mypy: arg-type, return-value; pyright: reportCallIssue, reportArgumentType


def no_function() -> None:
    clicks.map(3)  # mypy: call-overload; pyright: reportCallIssue, reportArgumentType


def wrong_lane() -> None:
    clicks.map(lambda t: t.ms, lane="pyhton")  # mypy: call-overload; pyright: reportCallIssue, reportArgumentType


def wrong_on_error() -> None:
    clicks.filter(bool, on_error="drop")  # mypy: call-overload; pyright: reportArgumentType


def misspelt_option() -> None:
    clicks.map(lambda t: t.ms, lan="python")  # mypy: call-overload; pyright: reportCallIssue


def positional_name() -> None:
    clicks.map("milliseconds", lambda t: t.ms)  # mypy: call-overload; pyright: reportCallIssue


def misspelt_method() -> None:
    clicks.mapp(lambda t: t.ms)  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def union_of_two_types(orders: rel.Stream[Order]) -> None:
    clicks.union(orders)  # mypy: arg-type; pyright: reportArgumentType


def text_as_a_rate() -> None:
    clicks.throttle("100")  # mypy: arg-type; pyright: reportArgumentType


def stream_of_another_type() -> None:
    def shown(stream: rel.Stream[Order]) -> None:
        stream.print()

    shown(clicks)  # mypy: arg-type; pyright: reportArgumentType
