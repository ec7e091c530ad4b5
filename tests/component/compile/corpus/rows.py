"""Rows for the corpus: half of what such programs expect, half of what they don't. The seed is fixed."""

from __future__ import annotations

import datetime as dt
import math
import random
from typing import Any

from corpus.event import Event

ODD_TEXTS = [
    "", " ", "a", "\x00", "a\x00b", "\x1c\x1d\x1e\x1f", "\x85x\u2028y\u00a0", "ß", "İstanbul", "ΣΑΣ ς", "ǅ ǆ", "ﬁ ﬃ", "e\u0301", "👩‍👩‍👧 🇩🇪",
    "٣٤", "²", "١٢.٥", "-0", "+7", "1_000", "0x1f", "99999999999999999999", "9223372036854775808", "nan", "inf", "1e400", "--", "%s %d",
    "x" * 300, "ab " * 40, "=", "a=1;b=2;;c=x=3", ";", ",,", ".", "...", "/", "//", "?", "a?b=1&c", "\"", "[", "][", "\t\r\n", "\ufeffx",
]  # fmt: skip
LINES = [
    '10.0.0.1 - bob [10/Oct/2000:13:55:36 -0700] "GET /a/b.html HTTP/1.0" 200 2326',
    '10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "POST /login HTTP/1.1" 404 -',
    "Jun  9 06:06:20 combo sshd[19937]: Failed password for root from 10.1.2.3 port 4242",
    "Jun  9 06:06:21 combo sshd[1993]: Failed password for invalid user admin from 10.1.2.4 port 77 ssh2",
    "2024-02-29 23:59:59 ERROR worker took 12.5ms user=bob status=\"x\"",
    "2023-02-29 00:00:00 WARN no such day",
    "INFO the quick brown fox of the hill, and the dog: it is (a) dog",
    "ERROR Traceback (most recent call last) took 3s",
    "Mozilla/5.0 (X11) AppleWebKit/537.36 Chrome/121.0.0.0 Safari/537.36 Edg/121.0",
    "Mozilla/5.0 Firefox/115.0", "Googlebot/2.1", "<p>Hi <b>bob@example.org</b>!</p>", "A man a plan a canal Panama",
    '{"event": "click", "n": 3}', "[1, 2]", "I\u2019m \u201cfine\u201d", "book music film music",
]  # fmt: skip
PATHS = [
    "/", "/cart", "/cart/", "/checkout?utm_campaign=spring&x=1", "/products/17/reviews", "/product/9223372036854775807", "/static/site.CSS", "/a.b.js",
    "https://example.org:8080/a%20b?q=%C3%A9", "www.example.org.", "a.b.c.example.co.uk", "/health/live", "/a//b///", "dog", "item-1",
]  # fmt: skip
TAGS = [
    "temp=21.5;hum=40;press=x", "book=3;film=12;music=7;x=12", "10.0.0.1", "192.168.1.255", "256.1.2.3", "8.8.8.8", "52.5,13.4", "1,2,3",
    "de-DE,de;q=0.9,en;q=0.8,*;q=x", "4111 1111 1111 1111", "$1,234.50", "2024-05-06T07:08:09", "2024-05-06", "a;b;a;c", "b,a,b", "the dog music",
]  # fmt: skip
USERS = [
    "bob",
    "Ann",
    "ann.lee+x@mailinator.com",
    "user12345",
    "4539578763621486",
    "aaabbb",
    "bigCamelCaseName",
    "Émile Zola",
    "O'Hara Scarlett",
]
METHODS = ["GET", "POST", "BUY", "SELL", "CANCEL", "temp", "hum", "press", "view", "Click", "book", "music"]
COUNTRIES = ["US", "GB", "DE", "JP", "NG", "kp", " de ", "xx"]
STATUSES = [200, 201, 301, 304, 404, 418, 500, 503, 0, -1, 99]
INTEGERS = [
    0,
    1,
    -1,
    2,
    6,
    17,
    22,
    53,
    99,
    100,
    255,
    256,
    443,
    5000,
    65535,
    65536,
    1_000_000,
    2**31 - 1,
    -(2**31),
    2**53 + 1,
    2**63 - 1,
    -(2**63),
]
FLOATS = [
    0.0, -0.0, 1.0, 0.5, 21.5, 45.0, 67.5, 75.25, 85.0, 99.995, 101.0, 999.99, 1000.0, 12345.678, 1e9, 1e16, 1e300, -3.25, 2.675, 5e-324,
    math.nan, math.inf, -math.inf,
]  # fmt: skip
DEGREES = [
    0.0,
    -0.0,
    52.52,
    13.405,
    51.5,
    -0.13,
    35.7,
    139.7,
    90.0,
    -90.0,
    180.0,
    -180.0,
    5.0,
    9.99,
    1e-9,
    400.0,
    math.nan,
]
PAYLOADS = [
    b"", b"\x00", b"\x89PNG\r\n", b"GIF89a", b"\x1f\x8b\x08", b"\x03www\x07example\x03org\x00", b"E\x00\x00\x54\xff\xfe", b"\xff" * 7, bytes(range(40)),
    b"\x05ab", b"\x02\x00\xe8\x03\x00\x00", b"caf\xc3\xa9",
]  # fmt: skip
TIMES = [
    dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2024, 2, 29, 9, 0), dt.datetime(2024, 3, 2, 17, 29, 59), dt.datetime(2023, 12, 25, 5, 5, 5, 5), dt.datetime(1900, 2, 28, 12, 30),
    dt.datetime(2024, 5, 6, 16, 47, 13, 123456),
]  # fmt: skip
LENGTHS = [
    dt.timedelta(0), dt.timedelta(milliseconds=250), dt.timedelta(milliseconds=251), dt.timedelta(microseconds=-1), dt.timedelta(days=-3, seconds=7),
    dt.timedelta(hours=26, minutes=3, seconds=4.5), dt.timedelta(days=20_000),
]  # fmt: skip


def rows(count: int, seed: int = 7) -> list[tuple[Any, ...]]:
    """Events, the same ones for a seed."""
    draw = random.Random(seed)

    def text(usual: list[str]) -> str:
        return draw.choice(usual) if draw.random() < 0.7 else draw.choice(ODD_TEXTS)

    def number(small: int) -> int:
        return draw.randrange(small) if draw.random() < 0.5 else draw.choice(INTEGERS)

    def amount() -> float:
        return round(draw.uniform(-50, 1500), 2) if draw.random() < 0.5 else draw.choice(FLOATS)

    def degree(limit: float) -> float:
        return draw.uniform(-limit, limit) if draw.random() < 0.5 else draw.choice(DEGREES)

    return [
        tuple(
            Event(
                id=number(1000),
                at=draw.choice(TIMES)
                if draw.random() < 0.5
                else TIMES[-1] + dt.timedelta(seconds=draw.randrange(10**7)),
                user=text(USERS),
                line=text(LINES),
                path=text(PATHS),
                method=text(METHODS),
                status=draw.choice(STATUSES),
                size=number(5000),
                price=amount(),
                quantity=number(500),
                value=amount(),
                lat=degree(90),
                lon=degree(180),
                payload=draw.choice(PAYLOADS),
                tags=text(TAGS),
                country=text(COUNTRIES),
                active=draw.random() < 0.5,
                note=None if draw.random() < 0.3 else text(LINES),
                score=None if draw.random() < 0.3 else amount(),
                retries=None if draw.random() < 0.3 else number(9),
                took=draw.choice(LENGTHS),
            )
        )
        for _ in range(count)
    ]
