"""Time: buckets, business hours, gaps, calendars."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import NamedTuple

from corpus.event import Event

EPOCH = dt.datetime(1970, 1, 1)
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
OPEN, CLOSE = dt.time(9, 0), dt.time(17, 30)
HOLIDAYS = {(1, 1), (12, 25), (12, 26)}


class Bucket(NamedTuple):
    start: dt.datetime
    user: str


class Gap(NamedTuple):
    user: str
    seconds: float


class Previous(NamedTuple):
    at: dt.datetime = EPOCH
    count: int = 0


class Daily(NamedTuple):
    day: str = ""
    total: float = 0.0


def minute(t: Event) -> Bucket:
    return Bucket(t.at.replace(second=0, microsecond=0), t.user)


def five_minutes(t: Event) -> dt.datetime:
    return t.at - dt.timedelta(minutes=t.at.minute % 5, seconds=t.at.second, microseconds=t.at.microsecond)


def hour_of_week(t: Event) -> int:
    return t.at.weekday() * 24 + t.at.hour


def day_name(t: Event) -> str:
    return DAYS[t.at.weekday()]


def is_weekend(t: Event) -> bool:
    return t.at.weekday() >= 5


def is_open(t: Event) -> bool:
    return t.at.weekday() < 5 and OPEN <= t.at.time() < CLOSE


def is_holiday(t: Event) -> bool:
    return (t.at.month, t.at.day) in HOLIDAYS


def quarter(t: Event) -> str:
    return f"{t.at.year}-Q{(t.at.month - 1) // 3 + 1}"


def month(t: Event) -> str:
    return f"{t.at.year:04d}-{t.at.month:02d}"


def stamp(t: Event) -> str:
    return t.at.strftime("%Y-%m-%dT%H:%M")


def seconds(t: Event) -> float:
    return (t.at - EPOCH).total_seconds()


def age_days(t: Event) -> int:
    return (dt.datetime(2024, 1, 1) - t.at).days


def ended(t: Event) -> dt.datetime:
    return t.at + dt.timedelta(milliseconds=t.size % 100_000)


def gap(t: Event, s: Previous) -> Gap:
    seconds = (t.at - s.at).total_seconds() if s.count else 0.0
    s.at = t.at
    s.count += 1
    return Gap(t.user, seconds)


def daily(t: Event, s: Daily) -> float:
    day = str(t.at.date())
    if day != s.day:
        s.day = day
        s.total = 0.0
    s.total += t.price
    return s.total


def is_slow(t: Event) -> bool:
    return t.took > dt.timedelta(milliseconds=250)


def took_ms(t: Event) -> int:
    return t.took // dt.timedelta(milliseconds=1)


def half_hours(t: Event) -> Iterator[Bucket]:
    start = t.at.replace(minute=0, second=0, microsecond=0)
    for i in range(2):
        yield Bucket(start + i * dt.timedelta(minutes=30), t.user)


def human(t: Event) -> str:
    total = int(t.took.total_seconds())
    hours, rest = divmod(total, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}h{minutes:02}m{secs:02}s"


def parsed(t: Event) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(t.tags)
    except ValueError:
        return EPOCH
