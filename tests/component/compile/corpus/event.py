"""The tuple that every function of the corpus takes: what a log line, a sensor, a payment or a packet has."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple


class Event(NamedTuple):
    """One event."""

    id: int
    at: dt.datetime
    user: str
    line: str
    path: str
    method: str
    status: int
    size: int
    price: float
    quantity: int
    value: float
    lat: float
    lon: float
    payload: bytes
    tags: str
    country: str
    active: bool
    note: str | None
    score: float | None
    retries: int | None
    took: dt.timedelta
