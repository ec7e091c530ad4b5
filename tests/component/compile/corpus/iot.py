"""Sensors: units, calibration, smoothing, alarms, frames of bytes."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

from corpus.event import Event

LIMITS = {"temp": (-40.0, 125.0), "hum": (0.0, 100.0), "press": (300.0, 1100.0)}
COEFFICIENTS = [0.0012, 1.0031, -0.42]
STATES = ("ok", "warn", "alarm")


class Reading(NamedTuple):
    sensor: str
    value: float


class Alarm(NamedTuple):
    sensor: str
    level: int
    text: str


class Smooth(NamedTuple):
    n: int = 0
    mean: float = 0.0
    m2: float = 0.0


class Latch(NamedTuple):
    on: bool = False
    since: int = 0


class Last(NamedTuple):
    value: float = math.nan
    at: int = 0


def to_celsius(t: Event) -> float:
    return (t.value - 32) * 5 / 9


def to_kelvin(t: Event) -> Reading:
    return Reading(t.user.lower(), t.value + 273.15)


def clamp(t: Event) -> float:
    low, high = LIMITS.get(t.method, (-1e9, 1e9))
    return max(low, min(high, t.value))


def calibrated(t: Event) -> float:
    result = 0.0
    for c in COEFFICIENTS:
        result = result * t.value + c
    return result


def in_range(t: Event) -> bool:
    return not math.isnan(t.value) and -50.0 <= t.value <= 150.0


def is_stuck(t: Event) -> bool:
    return t.score is not None and t.score == t.value


def deviation(t: Event, s: Smooth) -> Reading:
    s.n += 1
    delta = t.value - s.mean
    s.mean += delta / s.n
    s.m2 += delta * (t.value - s.mean)
    return Reading(t.user, math.sqrt(s.m2 / s.n) if s.m2 >= 0 else 0.0)


def exponential(t: Event, s: Last) -> float:
    alpha = 0.2
    if math.isnan(s.value):
        s.value = t.value
    else:
        s.value = alpha * t.value + (1 - alpha) * s.value
    return s.value


def latch(t: Event, s: Latch) -> Alarm:
    if not s.on and t.value > 80:
        s.on = True
        s.since = t.id
    elif s.on and t.value < 70:
        s.on = False
    return Alarm(t.user, 1 if s.on else 0, f"since {s.since}" if s.on else "-")


def rate_of_change(t: Event, s: Last) -> float:
    if s.at == 0:
        rate = 0.0
    else:
        elapsed = t.size - s.at
        rate = (t.value - s.value) / elapsed if elapsed else 0.0
    s.value = t.value
    s.at = t.size
    return rate


def level(t: Event) -> str:
    index = 0
    if t.value > 60:
        index = 1
    if t.value > 90:
        index = 2
    return STATES[index]


def dew_point(t: Event) -> float:
    humidity = max(1.0, min(100.0, t.price))
    if not -40 < t.value < 60:
        return -999.0
    alpha = math.log(humidity / 100.0) + 17.27 * t.value / (237.3 + t.value)
    return 237.3 * alpha / (17.27 - alpha)


def checksum(t: Event) -> int:
    total = 0
    for b in t.payload:
        total = (total + b) & 0xFF
    return total ^ 0xFF


def crc16(t: Event) -> int:
    crc = 0xFFFF
    for byte in t.payload:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0xA001 if crc & 1 else crc >> 1
    return crc


def register(t: Event) -> int:
    if len(t.payload) < 4:
        return -1
    return int.from_bytes(t.payload[2:4], "big")


def unpacked(t: Event) -> float:
    if len(t.payload) < 6:
        return 0.0
    channel, raw = struct.unpack("<Hi", t.payload[:6])
    return raw / 1000 if channel < 8 else 0.0


def readings(t: Event) -> Iterator[Reading]:
    for part in t.tags.split(";"):
        name, sep, value = part.partition("=")
        if not sep:
            continue
        try:
            yield Reading(name.strip(), float(value))
        except ValueError:
            continue


def hex_frame(t: Event) -> str:
    return t.payload.hex()


def twos_complement(t: Event) -> int:
    raw = t.size & 0xFFFF
    return raw - 0x10000 if raw & 0x8000 else raw


def alarms(t: Event) -> Iterator[Alarm]:
    for name, (low, high) in LIMITS.items():
        if name in t.tags and not low <= t.value <= high:
            yield Alarm(t.user, 2 if t.value > high else 1, f"{name} {t.value:.1f}")
