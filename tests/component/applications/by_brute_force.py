"""What ported programs give, made another way: with all tuples there, in the order of their times."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

from examples.ported.count_with_timeout import SILENCE, Counted, Seen
from examples.ported.dynamic_sessions import Event
from examples.ported.fraud import MINUTE, Alert, Payment
from examples.ported.top_words import Top, Word

__all__ = ["alerts", "counted", "dynamic_sessions", "top_words"]


def counted(rows: Sequence[Seen]) -> list[Counted]:
    """Of count_with_timeout."""
    found = []
    for key in {row.key for row in rows}:
        mine = sorted(row.at for row in rows if row.key == key)
        silent = [n for n, (one, two) in enumerate(pairwise([*mine, 10**9]), start=1) if two > one + SILENCE]
        found += [Counted(key, n, mine[n - 1] + SILENCE) for n in silent]
    return found


def dynamic_sessions(rows: Sequence[Event]) -> list[tuple[str, int, int, int]]:
    """Of the program of that name."""
    found = []
    for user in {row.user for row in rows}:
        spans: list[list[int]] = []  # start, end, count
        for _, at, gap in sorted(row for row in rows if row.user == user):
            if spans and at <= spans[-1][1]:
                spans[-1][1:] = max(spans[-1][1], at + gap), spans[-1][2] + 1
            else:
                spans.append([at, at + gap, 1])
        found += [(user, start, end, count) for start, end, count in spans]
    return found


def alerts(rows: Sequence[Payment]) -> list[Alert]:
    """Of fraud."""
    found = []
    for number, one in enumerate(rows):
        if one.amount >= 1:
            continue
        behind = [row for row in rows if row.account == one.account and one.at < row.at <= one.at + MINUTE]
        same = [row for row in rows[number + 1 :] if row.account == one.account and row.at == one.at]
        found.append(Alert(one.account, one.at, any(row.amount > 500 for row in behind + same)))
    return found


def top_words(rows: Sequence[Word]) -> list[Top]:
    """Of the program of that name."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for word, at in rows:
        counts[at // 10 * 10][word] += 1
    return [
        Top(start, place, word, count)
        for start in sorted(counts)
        for place, (word, count) in enumerate(sorted(counts[start].items(), key=lambda one: (-one[1], one[0]))[:3], 1)
    ]
