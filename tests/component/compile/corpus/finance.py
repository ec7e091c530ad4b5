"""Finance: trades, quotes, positions, fees."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from corpus.event import Event

FEES = {"US": 0.0035, "GB": 0.0051, "DE": 0.0049, "JP": 0.002}
TICK = 0.01
BANDS = [(100.0, 0.01), (1_000.0, 0.05), (10_000.0, 0.1)]


class Side(Enum):
    BUY = 1
    SELL = -1


@dataclass(frozen=True)
class Rule:
    low: float
    high: float
    rate: float

    def applies(self, amount: float) -> bool:
        return self.low <= amount < self.high


RULES = (Rule(0.0, 100.0, 0.02), Rule(100.0, 1000.0, 0.01), Rule(1000.0, 1e12, 0.005))


class Money(NamedTuple):
    account: str
    amount: float


class Bar(NamedTuple):
    count: int = 0
    high: float = 0.0
    low: float = 0.0
    close: float = 0.0


class Vwap(NamedTuple):
    turnover: float = 0.0
    volume: int = 0


class Position(NamedTuple):
    quantity: int = 0
    cost: float = 0.0


class Marked(NamedTuple):
    account: str
    quantity: int
    profit: float


def turnover(t: Event) -> float:
    return t.price * t.quantity


def with_fee(t: Event) -> Money:
    fee = FEES.get(t.country, 0.006)
    return Money(t.user, t.price * t.quantity * (1 + fee))


def rounded_to_tick(t: Event) -> float:
    return round(t.price / TICK) * TICK if math.isfinite(t.price) else 0.0


def signed(t: Event) -> int:
    side = Side.BUY if t.method == "BUY" else Side.SELL
    return side.value * t.quantity


def fee_by_rule(t: Event) -> float:
    amount = abs(t.price)
    for rule in RULES:
        if rule.applies(amount):
            return amount * rule.rate
    return 0.0


def spread_bp(t: Event) -> float:
    mid = (t.price + t.value) / 2
    if mid == 0:
        return 0.0
    return abs(t.price - t.value) / mid * 10_000


def band(t: Event) -> float:
    for limit, rate in BANDS:
        if t.price <= limit:
            return rate
    return 0.2


def vwap(t: Event, s: Vwap) -> Money:
    s.turnover += t.price * t.size
    s.volume += t.size
    return Money(t.user, s.turnover / s.volume if s.volume else 0.0)


def bar(t: Event, s: Bar) -> Bar:
    if s.count == 0:
        s.high = s.low = t.price
    s.count += 1
    s.high = max(s.high, t.price)
    s.low = min(s.low, t.price)
    s.close = t.price
    return Bar(s.count, s.high, s.low, s.close)


def position(t: Event, s: Position) -> Marked:
    if t.method in ("BUY", "SELL"):
        sign = 1 if t.method == "BUY" else -1
        s.quantity += sign * (t.size % 1000)
        s.cost += sign * (t.size % 1000) * t.price
    return Marked(t.user, s.quantity, s.quantity * t.price - s.cost)


def log_return(t: Event) -> float:
    if t.price <= 0 or t.value <= 0:
        return 0.0
    return math.log(t.price / t.value)


def is_large(t: Event) -> bool:
    return t.price * t.quantity > 1_000_000 and t.method != "CANCEL"


def is_round_lot(t: Event) -> bool:
    return t.quantity > 0 and t.quantity % 100 == 0


def compound(t: Event) -> float:
    total = t.price
    for _ in range(t.size % 12):
        total *= 1 + 0.05 / 12
    return total


def annuity(t: Event) -> float:
    rate = abs(t.value) % 1 / 12
    months = t.size % 360 + 1
    if rate == 0:
        return t.price / months
    return t.price * rate / (1 - (1 + rate) ** -months)


def legs(t: Event) -> Iterator[Money]:
    remaining = t.size
    while remaining > 0:
        part = min(remaining, 5000)
        yield Money(t.user, part * 0.5)
        remaining -= part
        if remaining > 100_000:
            break


def formatted(t: Event) -> str:
    return f"{t.user}: {t.price:,.2f} x {t.quantity}"


def cents(t: Event) -> int:
    try:
        return int(t.price * 100)
    except (OverflowError, ValueError):
        return 0


def from_text(t: Event) -> float:
    text = t.tags.replace(",", "").replace("$", "").strip()
    try:
        return float(text)
    except ValueError:
        return math.nan


def check_digit(t: Event) -> bool:
    total = 0
    for i, c in enumerate(reversed(t.user)):
        if not "0" <= c <= "9":
            return False
        d = ord(c) - ord("0")
        if i % 2 == 1:
            d *= 2
            if d > 9:
                d -= 9
        total += d
    return total % 10 == 0
