"""Geography: distances, cells, boxes, places."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from corpus.event import Event

RADIUS = 6371.0
PLACES = {"berlin": (52.52, 13.405), "london": (51.507, -0.128), "tokyo": (35.677, 139.65)}
BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"
SQUARE = [(0.0, 0.0), (0.0, 10.0), (10.0, 10.0), (10.0, 0.0)]


class Place(NamedTuple):
    name: str
    distance: float


class Cell(NamedTuple):
    x: int
    y: int


class Track(NamedTuple):
    lat: float = 0.0
    lon: float = 0.0
    points: int = 0
    metres: float = 0.0


class Box(NamedTuple):
    south: float
    west: float
    north: float
    east: float

    def holds(self, lat: float, lon: float) -> bool:
        return self.south <= lat <= self.north and self.west <= lon <= self.east


GERMANY = Box(47.3, 5.9, 55.1, 15.0)


def haversine(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    p1, p2 = math.radians(lat1), math.radians(lat2)
    a = math.sin((p2 - p1) / 2) ** 2 + math.cos(p1) * math.cos(p2) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    return 2 * RADIUS * math.asin(math.sqrt(min(1.0, a)))


def to_berlin(t: Event) -> float:
    lat, lon = PLACES["berlin"]
    return haversine(t.lat, t.lon, lat, lon)


def nearest(t: Event) -> Place:
    best, distance = "", 1e9
    for name, (lat, lon) in PLACES.items():
        d = haversine(t.lat, t.lon, lat, lon)
        if d < distance:
            best, distance = name, d
    return Place(best, distance)


def nearest_name(t: Event) -> str:
    return min(PLACES, key=lambda name: abs(PLACES[name][0] - t.lat) + abs(PLACES[name][1] - t.lon))


def is_valid(t: Event) -> bool:
    return -90 <= t.lat <= 90 and -180 <= t.lon <= 180


def is_in_germany(t: Event) -> bool:
    return GERMANY.holds(t.lat, t.lon)


def cell(t: Event) -> Cell:
    return Cell(math.floor(t.lon * 10), math.floor(t.lat * 10))


def neighbours(t: Event) -> Iterator[Cell]:
    x, y = int(t.lon), int(t.lat)
    for dx in (-1, 0, 1):
        for dy in (-1, 0, 1):
            if dx or dy:
                yield Cell(x + dx, y + dy)


def tile(t: Event) -> Cell:
    zoom = 12
    lat = max(-85.0, min(85.0, t.lat))
    n = 2**zoom
    x = int((t.lon + 180.0) / 360.0 * n)
    y = int((1.0 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2.0 * n)
    return Cell(x, y)


def geohash(t: Event) -> str:
    lat_low, lat_high, lon_low, lon_high = -90.0, 90.0, -180.0, 180.0
    result, bits, even, value = [], 0, True, 0
    while len(result) < 6:
        if even:
            mid = (lon_low + lon_high) / 2
            if t.lon >= mid:
                value = value * 2 + 1
                lon_low = mid
            else:
                value *= 2
                lon_high = mid
        else:
            mid = (lat_low + lat_high) / 2
            if t.lat >= mid:
                value = value * 2 + 1
                lat_low = mid
            else:
                value *= 2
                lat_high = mid
        even = not even
        bits += 1
        if bits == 5:
            result.append(BASE32[value])
            bits, value = 0, 0
    return "".join(result)


def wrapped(t: Event) -> float:
    return (t.lon + 180.0) % 360.0 - 180.0


def bearing(t: Event) -> float:
    lat, lon = PLACES["london"]
    y = math.sin(math.radians(lon - t.lon)) * math.cos(math.radians(lat))
    x = math.cos(math.radians(t.lat)) * math.sin(math.radians(lat)) - math.sin(math.radians(t.lat)) * math.cos(
        math.radians(lat)
    ) * math.cos(math.radians(lon - t.lon))
    return (math.degrees(math.atan2(y, x)) + 360) % 360


def compass(t: Event) -> str:
    names = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"]
    return names[round(t.value % 360 / 45) % 8]


def travelled(t: Event, s: Track) -> float:
    if s.points:
        s.metres += haversine(s.lat, s.lon, t.lat, t.lon) * 1000
    s.lat, s.lon = t.lat, t.lon
    s.points += 1
    return s.metres


def parsed(t: Event) -> float:
    try:
        lat, lon = t.tags.split(",")
        return float(lat) + float(lon)
    except ValueError:
        return 0.0


def to_dms(t: Event) -> str:
    degrees = int(abs(t.lat))
    minutes = int((abs(t.lat) - degrees) * 60)
    hemisphere = "N" if t.lat >= 0 else "S"
    return f"{degrees:02d}°{minutes:02d}'{hemisphere}"


def is_inside(t: Event) -> bool:
    inside = False
    j = len(SQUARE) - 1
    for i in range(len(SQUARE)):
        yi, xi = SQUARE[i]
        yj, xj = SQUARE[j]
        if (yi > t.lat) != (yj > t.lat) and t.lon < (xj - xi) * (t.lat - yi) / (yj - yi) + xi:
            inside = not inside
        j = i
    return inside


def rounded(t: Event) -> str:
    return f"{round(t.lat, 3)},{round(t.lon, 3)}"


def within(t: Event) -> Iterator[Place]:
    for name, (lat, lon) in PLACES.items():
        d = math.hypot(lat - t.lat, lon - t.lon)
        if d < 5:
            yield Place(name.title(), d)


def zone(t: Event) -> int:
    return int((t.lon + 180) / 6) % 60 + 1


def continent(t: Event) -> str:
    return {"DE": "europe", "GB": "europe", "JP": "asia", "US": "america"}.get(t.country.strip().upper(), "unknown")
