"""Programs of other systems, ported: each gives what its original does, or a reference made another way."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

import rayelastic as rel
from examples.ported import count_with_timeout, dynamic_sessions, http_enrichment, top_words
from examples.ported.count_with_timeout import SILENCE, Counted, Seen
from examples.ported.dynamic_sessions import Event, Session
from examples.ported.top_words import Top, Word

DISORDER = 5  # seconds before or behind


def times(seed: int, number: int, pace: int) -> list[int]:
    dice = random.Random(seed)
    return [n * pace + DISORDER + dice.randrange(-DISORDER, DISORDER + 1) for n in range(number)]


def test_http_enrichment() -> None:
    with http_enrichment.service() as port:
        known = rel.run(http_enrichment.build(port))["out"]
    assert known == [(number, f"all about {number}") for number in range(200)]


@pytest.mark.parametrize("seed", range(5))
def test_count_with_timeout(seed: int) -> None:
    dice = random.Random(seed)
    rows = [Seen(dice.choice("abcde"), at) for at in times(seed, 300, 9)]
    expected = []
    for key in "abcde":
        mine = sorted(row.at for row in rows if row.key == key)
        silent = [n for n, (one, two) in enumerate(pairwise([*mine, 10**9]), start=1) if two > one + SILENCE]
        expected += [Counted(key, n, mine[n - 1] + SILENCE) for n in silent]
    assert sorted(rel.run(count_with_timeout.build(rows))["out"]) == sorted(expected)
    assert len(expected) > 5


@pytest.mark.parametrize("seed", range(5))
def test_dynamic_sessions(seed: int) -> None:
    dice = random.Random(seed)
    rows = [Event(dice.choice("abc"), at, dice.choice((1, 5, 20))) for at in times(seed, 300, 4)]
    expected = []
    for user in "abc":
        spans: list[list[int]] = []  # start, end, count
        for _, at, gap in sorted(row for row in rows if row.user == user):
            if spans and at <= spans[-1][1]:
                spans[-1][1:] = max(spans[-1][1], at + gap), spans[-1][2] + 1
            else:
                spans.append([at, at + gap, 1])
        expected += [Session(user, *span) for span in spans]
    assert sorted(rel.run(dynamic_sessions.build(rows))["out"]) == sorted(expected)
    assert len(expected) > 5


@pytest.mark.parametrize("seed", range(5))
def test_top_words(seed: int) -> None:
    dice = random.Random(seed)
    rows = [Word(dice.choice("aabbbccdef"), at) for at in times(seed, 300, 1)]
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for word, at in rows:
        counts[at // 10 * 10][word] += 1
    expected = [
        Top(start, place, word, count)
        for start in sorted(counts)
        for place, (word, count) in enumerate(sorted(counts[start].items(), key=lambda one: (-one[1], one[0]))[:3], 1)
    ]
    assert rel.run(top_words.build(rows))["out"] == expected
