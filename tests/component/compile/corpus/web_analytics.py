"""Web analytics: paths, referrers, agents, sessions, campaigns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote, urlparse

from corpus.event import Event

BOTS = ("bot", "crawl", "spider", "slurp")
BROWSERS = [("Edg/", "edge"), ("Chrome/", "chrome"), ("Firefox/", "firefox"), ("Safari/", "safari")]
PAGES = {"/": "home", "/cart": "cart", "/checkout": "checkout", "/login": "login"}
VERSION = re.compile(r"Chrome/(\d+)\.")
PRODUCT = re.compile(r"^/products?/(?P<id>\d+)(?:/|$)")


class Hit(NamedTuple):
    user: str
    page: str
    weight: float


class Parameter(NamedTuple):
    name: str
    value: str


class Session(NamedTuple):
    hits: int = 0
    entry: str = ""
    bytes: int = 0


class Funnel(NamedTuple):
    step: int = 0


def without_query(t: Event) -> str:
    return t.path.split("?", 1)[0]


def page(t: Event) -> str:
    path = t.path.split("?")[0].rstrip("/") or "/"
    return PAGES.get(path, "other")


def section(t: Event) -> str:
    parts = [p for p in t.path.split("/") if p]
    return parts[0] if parts else ""


def depth(t: Event) -> int:
    return t.path.strip("/").count("/") + 1 if t.path != "/" else 0


def parameters(t: Event) -> Iterator[Parameter]:
    _, found, query = t.path.partition("?")
    if not found:
        return
    for item in query.split("&"):
        name, _, value = item.partition("=")
        if name:
            yield Parameter(name, value)


def campaign(t: Event) -> str:
    for item in t.path.partition("?")[2].split("&"):
        if item.startswith("utm_campaign="):
            return item[len("utm_campaign=") :]
    return "(none)"


def browser(t: Event) -> str:
    for mark, name in BROWSERS:
        if mark in t.line:
            return name
    return "unknown"


def is_bot(t: Event) -> bool:
    agent = t.line.lower()
    return any(bot in agent for bot in BOTS)


def chrome_version(t: Event) -> int:
    m = VERSION.search(t.line)
    return int(m.group(1)) if m else 0


def product(t: Event) -> int:
    if m := PRODUCT.match(t.path):
        return int(m["id"])
    return -1


def status_class(t: Event) -> str:
    return f"{t.status // 100}xx"


def is_success(t: Event) -> bool:
    return 200 <= t.status < 400


def kind(t: Event) -> str:
    match t.status:
        case 200 | 201 | 204:
            return "ok"
        case 301 | 302 | 304:
            return "moved"
        case 404:
            return "missing"
        case code if code >= 500:
            return "broken"
        case _:
            return "other"


def session(t: Event, s: Session) -> Hit:
    if s.hits == 0:
        s.entry = t.path
    s.hits += 1
    s.bytes += max(0, t.size) % 1_000_000
    return Hit(t.user, s.entry, s.bytes / s.hits)


def funnel(t: Event, s: Funnel) -> int:
    steps = ["/", "/cart", "/checkout"]
    if s.step < len(steps) and t.path == steps[s.step]:
        s.step += 1
    return s.step


def host(t: Event) -> str:
    return urlparse(t.path).netloc


def plain_path(t: Event) -> str:
    return unquote(t.path)


def event_name(t: Event) -> str:
    try:
        return str(json.loads(t.line).get("event", ""))
    except (ValueError, AttributeError):
        return ""


def extension(t: Event) -> str:
    name = t.path.rsplit("/", 1)[-1]
    return name.rsplit(".", 1)[1].lower() if "." in name else ""


def language(t: Event) -> str:
    best, weight = "", -1.0
    for part in t.tags.split(","):
        name, _, q = part.strip().partition(";q=")
        try:
            w = float(q) if q else 1.0
        except ValueError:
            w = 0.0
        if w > weight:
            best, weight = name, w
    return best
