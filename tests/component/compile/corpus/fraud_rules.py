"""Fraud rules: scores, velocity, blocked lists, odd accounts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from corpus.event import Event

BLOCKED = frozenset({"KP", "IR", "SY"})
RISKY = {"NG": 0.3, "RU": 0.4, "US": 0.05}
THROWAWAY = ("mailinator.com", "trashmail.com", "example.org")
WEIGHTS = {"amount": 0.5, "country": 0.3, "night": 0.2}


@dataclass(frozen=True)
class Policy:
    limit: float = 500.0
    per_day: int = 5

    def __call__(self, amount: float, count: int) -> bool:
        return amount > self.limit or count > self.per_day


POLICY = Policy()


class Verdict(NamedTuple):
    account: str
    risk: float
    reason: str


class Spent(NamedTuple):
    total: float = 0.0
    count: int = 0
    country: str = ""
    largest: float = 0.0


class Flag(NamedTuple):
    account: str
    rule: int


def risk(t: Event) -> Verdict:
    score = 0.0
    reason = "none"
    if t.price > 1000:
        score += WEIGHTS["amount"]
        reason = "amount"
    if t.country in RISKY:
        score += WEIGHTS["country"] * RISKY[t.country]
        reason = "country"
    if t.at.hour < 6:
        score += WEIGHTS["night"]
        reason = "night"
    return Verdict(t.user, min(score, 1.0), reason)


def is_blocked(t: Event) -> bool:
    return t.country.upper() in BLOCKED


def is_throwaway(t: Event) -> bool:
    return t.user.lower().rsplit("@", 1)[-1] in THROWAWAY


def velocity(t: Event, s: Spent) -> Verdict:
    s.count += 1
    s.total += t.price
    rate = s.total / s.count
    return Verdict(t.user, rate, "fast" if s.count > 5 and rate > 100 else "ok")


def moved(t: Event, s: Spent) -> int:
    changed = s.country != "" and s.country != t.country
    s.country = t.country
    s.count = s.count + 1 if changed else 0
    return s.count


def jump(t: Event, s: Spent) -> Verdict:
    factor = t.price / s.largest if s.largest > 0 else 1.0
    s.largest = max(s.largest, t.price)
    return Verdict(t.user, factor, "jump" if factor > 10 else "")


def policy(t: Event) -> bool:
    return POLICY(t.price, t.quantity)


def flags(t: Event) -> Iterator[Flag]:
    rules = [t.price > 900, t.country == "", t.user.isdigit(), t.active and t.price < 0, t.note is None]
    for number, hit in enumerate(rules, start=1):
        if hit:
            yield Flag(t.user, number)


def logistic(t: Event) -> float:
    z = 0.8 * t.value - 0.01 * t.price - 1.5
    if z < -500:
        return 0.0
    if z > 500:
        return 1.0
    return 1.0 / (1.0 + math.exp(-z))


def looks_generated(t: Event) -> bool:
    name = t.user.split("@")[0]
    digits = sum(c.isdigit() for c in name)
    return len(name) > 0 and digits / len(name) > 0.5


def entropy(t: Event) -> float:
    counts: dict[str, int] = {}
    for c in t.user:
        if c in counts:
            counts[c] += 1
        else:
            counts[c] = 1
    total = len(t.user)
    result = 0.0
    for n in counts.values():
        p = n / total
        result -= p * math.log2(p)
    return result


def distinct_letters(t: Event) -> int:
    return len(set(t.user.lower()))


def longest_run(t: Event) -> int:
    best = run = 0
    previous = ""
    for c in t.user:
        run = run + 1 if c == previous else 1
        best = max(best, run)
        previous = c
    return best


def masked_card(t: Event) -> str:
    digits = "".join(c for c in t.tags if c.isdigit())
    return "*" * (len(digits) - 4) + digits[-4:]


def is_benford(t: Event) -> bool:
    text = str(abs(t.quantity))
    return text[0] in ("1", "2", "3")


def retry_risk(t: Event) -> float:
    retries = t.retries or 0
    return 1 - 0.5 ** min(max(retries, 0), 10)


def with_score(t: Event) -> Verdict:
    score = t.score if t.score is not None else 0.5
    return Verdict(t.user, score, t.note or "")


def same_bin(t: Event) -> bool:
    a, b = t.tags[:6], t.user[:6]
    return a == b and a.isnumeric()


def reasons(t: Event) -> str:
    found = []
    if t.price > 900:
        found.append("amount")
    if t.country not in ("US", "DE", "GB"):
        found.append("country")
    if not t.active:
        found.append("inactive")
    return ",".join(found) if found else "-"


def bucket(t: Event) -> int:
    limits = [10, 50, 100, 500, 1000]
    for i, limit in enumerate(limits):
        if t.price < limit:
            return i
    return len(limits)
