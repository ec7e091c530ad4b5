"""Recommendation and scoring: weights, similarity, ranking, experiments."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from corpus.event import Event

WEIGHTS = {"view": 1.0, "click": 2.0, "cart": 5.0, "buy": 10.0}
VARIANTS = ["control", "blue", "green"]
IDEAL = [0.3, 0.1, 0.6]
CATEGORIES = {"book": 1, "music": 2, "film": 3}


class Scored(NamedTuple):
    item: str
    score: float


class Pair(NamedTuple):
    first: str
    second: str


class Rating(NamedTuple):
    n: int = 0
    total: float = 0.0


class Taste(NamedTuple):
    book: int = 0
    music: int = 0
    film: int = 0


def weighted(t: Event) -> Scored:
    return Scored(t.path, WEIGHTS.get(t.method.lower(), 0.0) * (t.score or 1.0))


def decayed(t: Event) -> float:
    hours = max(t.took.total_seconds(), 0.0) / 3600
    return t.price * math.exp(-math.log(2) * hours / 24)


def pairs(t: Event) -> Iterator[Pair]:
    items = sorted(set(t.tags.split(",")))
    for i in range(len(items)):
        for j in range(i + 1, len(items)):
            yield Pair(items[i], items[j])


def baskets(t: Event) -> Iterator[Pair]:
    items = t.tags.split(";")
    for i, a in enumerate(items):
        for b in items[i + 1 :]:
            if a != b:
                yield Pair(min(a, b), max(a, b))


def jaccard(t: Event) -> float:
    a, b = set(t.line.lower().split()), set(t.tags.lower().split())
    if not a and not b:
        return 1.0
    return len(a & b) / len(a | b)


def cosine(t: Event) -> float:
    vector = [t.price, t.value, t.lat]
    dot = sum(x * y for x, y in zip(vector, IDEAL))
    norm = math.sqrt(sum(x * x for x in vector)) * math.sqrt(sum(y * y for y in IDEAL))
    return dot / norm if norm else 0.0


def top_word(t: Event) -> str:
    counts: dict[str, int] = {}
    for w in t.line.split():
        counts[w] = counts.get(w, 0) + 1
    if not counts:
        return ""
    return max(counts, key=lambda w: counts[w])


def common(t: Event) -> str:
    most = Counter(t.line.split()).most_common(1)
    return most[0][0] if most else ""


def variant(t: Event) -> str:
    return VARIANTS[t.id % len(VARIANTS)]


def hashed_variant(t: Event) -> str:
    digest = hashlib.sha256(t.user.encode()).digest()
    return VARIANTS[digest[0] % 3]


def rolling_hash(t: Event) -> int:
    h = 5381
    for c in t.user:
        h = (h * 33 + ord(c)) & 0xFFFFFFFF
    return h


def rating(t: Event, s: Rating) -> Scored:
    if t.score is not None:
        s.n += 1
        s.total += t.score
    return Scored(t.path, (s.total + 5 * 3.0) / (s.n + 5))


def taste(t: Event, s: Taste) -> str:
    kind = CATEGORIES.get(t.method, 0)
    if kind == 1:
        s.book += 1
    elif kind == 2:
        s.music += 1
    elif kind == 3:
        s.film += 1
    best = max(s.book, s.music, s.film)
    return "book" if best == s.book else "music" if best == s.music else "film"


def wilson(t: Event) -> float:
    n = abs(t.quantity) % 1000
    if n == 0:
        return 0.0
    p = abs(t.size) % (n + 1) / n
    z = 1.96
    return (p + z * z / (2 * n) - z * math.sqrt((p * (1 - p) + z * z / (4 * n)) / n)) / (1 + z * z / n)


def softmax(t: Event) -> float:
    scores = [min(abs(v), 50.0) for v in (t.price, t.value, t.lat)]
    top = max(scores)
    exps = [math.exp(s - top) for s in scores]
    return exps[0] / sum(exps)


def edit_distance(t: Event) -> int:
    a, b = t.user[:12], t.country[:12]
    previous = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        current = [i]
        for j, cb in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (ca != cb)))
        previous = current
    return previous[-1]


def prefix(t: Event) -> int:
    n = 0
    for a, b in zip(t.user, t.tags):
        if a != b:
            break
        n += 1
    return n


def ranked(t: Event) -> Iterator[Scored]:
    items = []
    for part in t.tags.split(";"):
        name, _, value = part.partition("=")
        if value.isdecimal():
            items.append((int(value), name))
    items.sort(reverse=True)
    for score, name in items[:3]:
        yield Scored(name, float(score))


def first_category(t: Event) -> str:
    return next((c for c in CATEGORIES if c in t.line), "none")


def title(t: Event, default: str = "untitled", limit: int = 30) -> str:
    text = (t.note or default).strip()
    return text[:limit].rstrip() if text else default
