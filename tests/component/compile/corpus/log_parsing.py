"""Log parsing: lines of web servers, system logs and applications."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import NamedTuple

from corpus.event import Event

CLF = re.compile(r'^(\S+) \S+ (\S+) \[([^\]]+)\] "([A-Z]+) (\S+) HTTP/[\d.]+" (\d{3}) (\d+|-)')
LEVELS = {"DEBUG": 10, "INFO": 20, "WARN": 30, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
FAILED = re.compile(r"Failed password for (?:invalid user )?(\w+) from ([\d.]+) port (\d+)")
DURATION = re.compile(r"took (\d+(?:\.\d+)?)(ms|s)")
KEY_VALUE = re.compile(r"(\w+)=(\S+)")


class Access(NamedTuple):
    host: str
    verb: str
    path: str
    status: int
    size: int


class Pair(NamedTuple):
    key: str
    value: str


class Attempt(NamedTuple):
    user: str
    address: str
    port: int


class Counted(NamedTuple):
    key: str
    count: int


class Seen(NamedTuple):
    count: int = 0
    last: str = ""


def parse_access(t: Event) -> Access:
    m = CLF.match(t.line)
    if not m:
        return Access("", "", "", 0, 0)
    host, _user, _when, verb, path, status, size = m.groups()
    return Access(host, verb, path, int(status), 0 if size == "-" else int(size))


def access_status(t: Event) -> int:
    parts = t.line.split('"')
    if len(parts) < 3:
        return -1
    try:
        return int(parts[2].split()[0])
    except (ValueError, IndexError):
        return -1


def severity(t: Event) -> int:
    for name, level in LEVELS.items():
        if name in t.line:
            return level
    return 0


def failed_login(t: Event) -> Iterator[Attempt]:
    m = FAILED.search(t.line)
    if m:
        yield Attempt(m.group(1), m.group(2), int(m.group(3)))


def took_ms(t: Event) -> float:
    match = DURATION.search(t.line)
    if match is None:
        return 0.0
    number = float(match.group(1))
    return number if match.group(2) == "ms" else number * 1000.0


def pairs(t: Event) -> Iterator[Pair]:
    for part in t.line.split():
        if "=" in part:
            key, value = part.split("=", 1)
            yield Pair(key, value.strip('"'))


def all_pairs(t: Event) -> Iterator[Pair]:
    for key, value in KEY_VALUE.findall(t.line):
        yield Pair(key, value)


def is_error(t: Event) -> bool:
    return t.status >= 500 or "Traceback" in t.line or t.line.lower().startswith("error")


def is_noise(t: Event) -> bool:
    return t.path.endswith((".css", ".js", ".png", ".ico")) or t.path.startswith("/health")


def syslog_host(t: Event) -> str:
    fields = t.line.split(None, 4)
    return fields[3] if len(fields) > 4 else "unknown"


def program(t: Event) -> str:
    for field in t.line.split():
        if field.endswith(":"):
            return field.rstrip(":").split("[")[0]
    return ""


def process_id(t: Event) -> int:
    start = t.line.find("[")
    end = t.line.find("]", start)
    if start == -1 or end == -1:
        return 0
    inner = t.line[start + 1 : end]
    return int(inner) if inner.isdigit() else 0


def masked(t: Event) -> str:
    return re.sub(r"\d+", "N", t.line)


def template(t: Event) -> str:
    words = ["*" if any(c.isdigit() for c in word) else word for word in t.line.split()]
    return " ".join(words)


def level_of(t: Event) -> str:
    first = t.line.split(" ", 1)[0].upper().strip("[]:")
    return first if first in LEVELS else "NONE"


def when(t: Event) -> int:
    try:
        return int(dt.datetime.strptime(t.line[:19], "%Y-%m-%d %H:%M:%S").hour)
    except ValueError:
        return -1


def word_counts(t: Event) -> Iterator[Counted]:
    counts: dict[str, int] = {}
    for word in t.line.lower().split():
        counts[word] = counts.get(word, 0) + 1
    for word, count in counts.items():
        yield Counted(word, count)


def shortened(t: Event, limit: int = 20) -> str:
    if len(t.line) <= limit:
        return t.line
    return t.line[: limit - 3] + "..."


def repeated(t: Event, s: Seen) -> Counted:
    if t.line == s.last:
        s.count += 1
    else:
        s.count = 1
        s.last = t.line
    return Counted(t.user, s.count)


def last_octet(t: Event) -> int:
    address = t.line.rpartition(" ")[2]
    octets = address.split(".")
    if len(octets) != 4 or not all(o.isdigit() for o in octets):
        return -1
    return int(octets[-1])
