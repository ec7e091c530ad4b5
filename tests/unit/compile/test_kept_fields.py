"""Which fields a function leaves as they are: what must be seen, and what must not be believed."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import pytest

from rayelastic.compile.reading.kept_fields import kept_fields
from rayelastic.graph import Schema


class Trade(NamedTuple):
    symbol: str
    price: float
    volume: int


class Paid(NamedTuple):
    symbol: str
    volume: float  # another type
    paid: float


class Odd(namedtuple("Odd", "symbol price volume")):  # noqa: PYI024
    """Not what it is made of."""

    __slots__ = ()

    def __new__(cls, symbol: str, price: float, volume: int) -> Self:
        return super().__new__(cls, symbol[::-1], price, volume)


TRADE, PAID = Schema.of(Trade), Schema.of(Paid)


def kept(function: Callable[..., Any], gives: Schema = TRADE, *, flat: bool = False) -> str:
    return " ".join(sorted(kept_fields(function, TRADE, gives, flat=flat)))


def branches(t: Trade, s: Any) -> Trade:
    s.count += 1
    if t.price > 1:
        return Trade(t.symbol, t.price, volume=t.volume + s.count)
    return Trade(symbol=t.symbol, volume=t.volume, price=0.0)


def one_branch_changes(t: Trade) -> Trade:
    return Trade("all" if t.price > 1 else t.symbol, t.price, t.volume)


def yields(t: Trade) -> Any:
    for i in range(3):
        if i < t.volume:
            yield Paid(t.symbol, t.volume, t.price * i)
    yield from [Paid(t.symbol, 0.0, t.price)]
    yield from (Paid(t.symbol, 0.0, t.price + i) for i in range(2))


def yields_from_what(t: Trade) -> Any:
    yield Paid(t.symbol, 1.0, t.price)
    yield from other(t)


def other(t: Trade) -> Any:
    return [Paid(t.symbol[0], 1.0, t.price)]


def bound_again(t: Trade) -> Trade:
    t = Trade("all", t.price, t.volume)
    return Trade(t.symbol, t.price, t.volume)


def bound_in_a_loop(t: Trade) -> Any:
    return [Trade(t.symbol, t.price, t.volume) for t in (t, t._replace(symbol="x"))]


def bound_by_a_walrus(t: Trade) -> Trade:
    if (t := t._replace(symbol="x")).price > 1:
        pass
    return t


def bound_by_match(t: Trade) -> Trade:
    match t.symbol:
        case t:  # type: ignore[misc]
            pass
    return Trade(t.symbol, t.price, t.volume)


def inner(t: Trade) -> Trade:
    def made(t: Trade) -> Trade:
        return Trade("x", t.price, t.volume)

    return made(t)


def another_class(t: Trade) -> Any:
    Trade = Odd
    return Trade(t.symbol, t.price, t.volume)


def sometimes_nothing(t: Trade) -> Any:
    if t.price > 1:
        return None
    return t


def swapped(t: Trade) -> Trade:
    return Trade(t.symbol, t.volume, t.price)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        (lambda t: t, "price symbol volume"),
        (lambda t: Trade(t.symbol, t.price * 2, t.volume), "symbol volume"),
        (lambda t: (t.symbol, 1.0, t.volume), "symbol volume"),
        (lambda t: t._replace(price=1.0), "symbol volume"),
        (lambda t: t if t.price > 1 else t._replace(volume=0), "price symbol"),
        (lambda t: Trade(*t), ""),
        (lambda t: Trade(**t._asdict()), ""),
        (lambda t: Odd(t.symbol, t.price, t.volume), ""),
        (lambda t: Trade(t.symbol.upper(), t.price, t.volume), "price volume"),
        (branches, "symbol"),
        (one_branch_changes, "price volume"),
        (bound_again, ""),
        (bound_by_a_walrus, ""),
        (bound_by_match, ""),
        (inner, ""),
        (another_class, ""),
        (sometimes_nothing, ""),
        (swapped, "symbol"),
        (max, ""),
    ],
)
def test_of_a_map(function: Callable[..., Any], fields: str) -> None:
    assert kept(function) == fields


@pytest.mark.parametrize(
    ("function", "gives", "fields"),
    [
        (yields, PAID, "symbol"),
        (yields_from_what, PAID, ""),
        (bound_in_a_loop, TRADE, ""),
        (lambda t: [t, Trade(t.symbol, 0.0, 0)], TRADE, "symbol"),
        (lambda t: [Trade(t.symbol, float(i), t.volume) for i in range(3)], TRADE, "symbol volume"),
        (lambda t: [*other(t), t], TRADE, ""),
        (lambda t: other(t), TRADE, ""),
        (lambda t: t, TRADE, ""),  # its items would be the tuples
    ],
)
def test_of_a_flat_map(function: Callable[..., Any], gives: Schema, fields: str) -> None:
    assert kept(function, gives, flat=True) == fields


def test_without_source_nothing_is_known() -> None:
    namespace: dict[str, Any] = {}
    exec("def made(t): return t", namespace)
    assert kept(namespace["made"]) == ""
