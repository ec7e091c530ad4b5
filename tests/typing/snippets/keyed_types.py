"""Streams with keys: state, aggregates, windows, joins."""

from __future__ import annotations

from typing import Any, NamedTuple, assert_type

import rayelastic as rel
from rayelastic.connectors.typed import Value


class Click(NamedTuple):
    user: str
    ms: int


class Order(NamedTuple):
    user: str
    price: float


class Frozen(NamedTuple):
    n: int = 0


@rel.state
class Seen:
    n: int = 0


topology = rel.Topology("keys")
clicks = topology.source(rel.rows([Click("ada", 120)])).key_by("user")
orders = topology.source(rel.rows([Order("ada", 1.5)])).key_by("user")


def paid(click: Click, order: Order) -> Order:
    return order._replace(user=click.user)


def key_by_keeps_the_type() -> None:
    assert_type(clicks, rel.KeyedStream[Click, Any])
    assert_type(clicks.filter(lambda t: t.ms > 1), rel.Stream[Click])


def key_by_a_function_knows_the_key() -> None:
    stream = topology.source(rel.rows([Order("ada", 1.5)]), name="others")
    assert_type(stream.key_by(lambda t: t.user), rel.KeyedStream[Order, str])
    assert_type(stream.group_by(lambda t: (t.user, t.price)), rel.KeyedStream[Order, tuple[str, float]])
    stream.key_by(lambda t: t.usr)  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def state_is_mutable() -> None:
    def numbered(t: Click, s: Seen) -> int:
        s.n += t.ms
        return s.n

    assert_type(clicks.map(numbered, state=Seen), rel.Stream[Value[int]])


def state_in_a_lambda() -> None:
    assert_type(clicks.map(lambda t, s: Click(t.user, s.n), state=Seen), rel.Stream[Click])


def state_of_a_filter() -> None:
    assert_type(clicks.filter(lambda t, s: s.n < t.ms, state=Seen, ttl=60), rel.Stream[Click])


def state_of_a_dict() -> None:
    clicks.map(lambda t, s: s.setdefault(t.user, t.ms), state=dict, schema=int)


def aggregate_makes_any() -> None:
    assert_type(clicks.aggregate(n=rel.count(), total=rel.sum("ms")), rel.Stream[Any])


def reduce_keeps_the_type() -> None:
    assert_type(clicks.reduce(lambda a, b: a if a.ms > b.ms else b), rel.Stream[Click])


def deduplicate_keeps_the_type() -> None:
    assert_type(clicks.deduplicate(ttl=60), rel.Stream[Click])


def window_keeps_the_type() -> None:
    assert_type(clicks.window(seconds=10), rel.WindowedStream[Click, Any])


def fold_of_a_window() -> None:
    clicks.window(count=3).fold(lambda total, t: total + t.ms, 0)


def late_tuples() -> None:
    clicks.window(seconds=10).aggregate(n=rel.count()).late().print()


def join_with_a_schema() -> None:
    joined = clicks.join(orders, symmetric=True, keep="all", fn=paid, schema=Order)
    joined.filter(lambda t: t.price > 1)


def annotated_function() -> None:
    def slow(stream: rel.Stream[Click]) -> rel.Stream[Click]:
        return stream.filter(lambda t: t.ms > 1000)

    assert_type(slow(clicks), rel.Stream[Click])


def annotated_without_a_type() -> None:
    def shown(stream: rel.Stream) -> None:
        stream.map(lambda t: t.anything).print()

    shown(clicks)


def job_of_a_topology() -> None:
    assert_type(rel.start(topology), rel.Job)


def assigned_field_of_a_named_tuple() -> None:
    def numbered(t: Click, s: Frozen) -> int:
        s.n += t.ms  # mypy: misc; pyright: reportAttributeAccessIssue
        return s.n

    clicks.map(numbered, state=Frozen)


def misspelt_field_of_the_state() -> None:
    clicks.filter(lambda t, s: s.m > 1, state=Seen)  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def misspelt_field_beside_a_state() -> None:
    clicks.map(lambda t, s: t.msec + s.n, state=Seen)  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def state_of_another_class() -> None:
    def numbered(t: Click, s: Frozen) -> int:
        return s.n

    clicks.map(numbered, state=Seen)  # mypy: misc, type-var; pyright: reportCallIssue, reportArgumentType


def value_of_another_type_in_a_state() -> None:
    def named(t: Click, s: Seen) -> int:
        s.n = t.user  # mypy: assignment; pyright: reportAttributeAccessIssue
        return s.n

    clicks.map(named, state=Seen)


def state_without_keys(stream: rel.Stream[Click]) -> None:
    stream.map(lambda t, s: t.ms, state=Seen)  # mypy: call-overload; pyright: reportCallIssue


def wrong_emit() -> None:
    clicks.aggregate(n=rel.count(), emit="updates")  # mypy: arg-type; pyright: reportArgumentType


def misspelt_field_in_reduce() -> None:
    clicks.reduce(lambda a, b: a if a.msec > b.ms else b)  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def misspelt_field_in_fold() -> None:
    clicks.window(count=3).fold(
        lambda total, t: total + t.msec,  # mypy: attr-defined; pyright: reportAttributeAccessIssue
        0,
    )


def misspelt_option_of_a_window() -> None:
    clicks.window(second=10)  # mypy: call-arg; pyright: reportCallIssue


def join_of_no_stream() -> None:
    clicks.join({"ada": 1})  # mypy: call-overload; pyright: reportArgumentType


def wrong_how_of_a_join() -> None:
    clicks.join(orders, how="outer")  # mypy: call-overload; pyright: reportArgumentType


def join_without_keys(stream: rel.Stream[Click]) -> None:
    stream.cross_joined(orders)  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def misspelt_field_behind_a_join() -> None:
    joined = clicks.join(orders, by="arrival", fn=paid, schema=Order)
    joined.filter(lambda t: t.ms > 1)  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def aggregate_of_no_aggregate() -> None:
    clicks.aggregate(n=3)  # mypy: arg-type; pyright: reportArgumentType


def misspelt_method_of_a_window() -> None:
    clicks.window(count=3).agregate(n=rel.count())  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def misspelt_status() -> None:
    rel.start(topology).stauts()  # mypy: attr-defined; pyright: reportAttributeAccessIssue
