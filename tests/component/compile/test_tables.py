"""Dicts, lists and sets outside a function: tuples and bytes in them, and what goes through them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from harness import FLAT_MAP, MAP, python_result


class Row(NamedTuple):
    s: str
    by: bytes
    i: int
    x: float


LEVELS = {"ERROR": 3, "WARN": 2, "": -1, "a text of more than twelve bytes": 9}
PLACES = {"berlin": (52.52, 13.4), "london": (51.5, -0.12)}
BANDS = [(10.0, 1.5), (100.0, 2.5), (float("inf"), 3.5)]
HOLIDAYS = {(1, 1), (12, 25)}
ROUTES = {("GET", 1): "list", ("POST", 2): "create"}
BY_LENGTH = {"a text of every length up to thirty"[:size]: size for size in range(31)}
MAGIC = {b"\x89PNG": "png", b"GIF8": "gif", b"": "empty"}


def severity(t):
    for name, level in LEVELS.items():
        if name in t.s:
            return level
    return 0


def everything(t):
    return ",".join(LEVELS.keys()), sum(LEVELS.values()) + t.i


def place(t):
    latitude, longitude = PLACES.get(t.s, (0.0, 0.0))
    return latitude + longitude, t.s in PLACES


def known_place(t):
    return PLACES[t.s]


def band(t):
    for limit, rate in BANDS:
        if t.x < limit:
            return rate, BANDS[t.i % 3][0]
    return 0.0, 0.0


def holiday(t):
    return (t.i, t.i) in HOLIDAYS, (12, t.i) in HOLIDAYS


def route(t):
    return ROUTES.get((t.s, t.i), "none")


def file_type(t):
    return MAGIC.get(t.by[:4], "other"), t.by in MAGIC


def length(t):
    return BY_LENGTH.get(t.s, -1)


class Known(NamedTuple):
    s: str | None
    i: int | None


SQUARES = {1: 10, 2: 20}


def level(text):
    return LEVELS.get(text, 0)


def nullable(t):
    try:
        found = LEVELS[t.s]
    except KeyError:
        found = -9
    return LEVELS.get(t.s, 0), level(t.s), found, SQUARES.get(t.i), t.s in LEVELS, t.i in SQUARES, t.s not in LEVELS


def names(t):
    for magic, name in MAGIC.items():
        if t.by.startswith(magic):
            yield name


ROWS = [
    (text, raw, number, number / 3)
    for number, text in enumerate(["", "ERROR: x", "berlin", "GET", "POST", "\0", "a text of more than twelve bytes"])
    for raw in (b"", b"GIF89a", b"\x89PNG\r\n", b"\0", b"GIF8")
] + [("GET", b"", 1, 50.0), ("POST", b"", 2, 1e9), ("POST", b"", 25, float("nan")), ("x", b"", 12, -0.0)]


def test_keys_of_every_length_are_found(compiled: Any) -> None:
    runner = compiled(length, Row)
    rows = [(text, b"", 0, 0.0) for text in [*BY_LENGTH, "a text of another length"]]
    assert [value for (value,) in runner(rows).items] == [*BY_LENGTH.values(), -1]


@pytest.mark.parametrize("function", [severity, everything, place, band, holiday, route, file_type, names])
def test_tables_are_as_in_python(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row, FLAT_MAP if function is names else MAP)
    assert repr(runner(ROWS).items) == repr(python_result(runner.code, ROWS).items)


def test_none_is_no_key(compiled: Any) -> None:
    rows = [(text, number) for text in ("WARN", "", "x", None) for number in (1, 3, None)]
    runner = compiled(nullable, Known)
    assert runner(rows).items == python_result(runner.code, rows).items
    runner = compiled(lambda t: LEVELS[t.s], Known)
    assert runner([("WARN", 1), (None, 1)]).failed == 1


def test_a_place_that_is_not_there(compiled: Any) -> None:
    runner = compiled(known_place, Row)
    assert runner([ROWS[12], ROWS[0]]).failed == python_result(runner.code, [ROWS[12], ROWS[0]]).failed == 1
