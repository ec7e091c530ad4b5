"""Programs of other systems, ported: each gives what its original does, or a reference made another way."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

import rayelastic as rel
from examples.ported import (
    complete_join,
    count_with_timeout,
    drop_duplicates,
    dynamic_rules,
    dynamic_sessions,
    fraud,
    fraud_detection,
    http_enrichment,
    labelled_by_model,
    search_sessions,
    top_words,
)
from examples.ported.count_with_timeout import SILENCE, Counted, Seen
from examples.ported.dynamic_sessions import Event
from examples.ported.fraud_detection import LARGE, MINUTE, SMALL, Alert, Payment
from examples.ported.search_sessions import PAUSE, Action
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
        expected += [(user, *span) for span in spans]
    assert sorted(map(tuple, rel.run(dynamic_sessions.build(rows))["out"])) == sorted(expected)
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


@pytest.mark.parametrize("seed", range(5))
def test_fraud_detection(seed: int) -> None:
    dice = random.Random(seed)
    rows = [Payment(dice.randrange(9), at, dice.choice((0.1, 20.0, 700.0))) for at in times(seed, 400, 5)]
    expected = []
    for account in range(9):
        mine = sorted((row for row in rows if row.account == account), key=lambda row: row.at)
        for one, two in pairwise([*mine, Payment(account, 10**9, 0.0)]):
            if one.amount < SMALL:
                if two.at > one.at + MINUTE:
                    expected.append(Alert(account, one.at + MINUTE, "nothing behind small"))
                elif two.amount > LARGE:
                    expected.append(Alert(account, two.at, "large behind small"))
    assert sorted(rel.run(fraud_detection.build(rows))["out"]) == sorted(expected)
    assert {alert.why for alert in expected} == {"nothing behind small", "large behind small"}


@pytest.mark.parametrize("seed", range(5))
def test_search_sessions(seed: int) -> None:
    dice = random.Random(seed)
    rows = [Action(dice.choice("abcd"), at, dice.random() < 0.4) for at in times(seed, 300, 7)]
    expected = []
    for user in "abcd":
        sessions: list[list[Action]] = []
        for row in sorted((row for row in rows if row.user == user), key=lambda row: row.at):
            if not sessions or row.at > sessions[-1][-1].at + PAUSE:
                sessions.append([])
            sessions[-1].append(row)
        for mine in sessions:
            clicks = sum(row.is_click for row in mine)
            searches = len(mine) - clicks
            rate = clicks / searches if searches else 0.0
            expected.append((user, mine[0].at, mine[-1].at + PAUSE, searches, clicks, rate))
    assert sorted(map(tuple, rel.run(search_sessions.build(rows))["out"])) == sorted(expected)
    assert len(expected) > 5


@pytest.mark.parametrize("seed", range(5))
def test_fraud(seed: int) -> None:
    dice = random.Random(seed)
    rows = [fraud.Payment(dice.randrange(5), at, dice.choice((0.5, 20.0, 700.0))) for at in times(seed, 300, 9)]
    expected = []
    for one in (row for row in rows if row.amount < 1):
        behind = [row for row in rows if row.account == one.account and one.at < row.at <= one.at + fraud.MINUTE]
        same = [row for row in rows[rows.index(one) + 1 :] if row.account == one.account and row.at == one.at]
        expected.append(fraud.Alert(one.account, one.at, any(row.amount > 500 for row in behind + same)))
    assert sorted(rel.run(fraud.build(rows))["out"]) == sorted(expected)
    assert len({alert.is_fraud for alert in expected}) == 2


@pytest.mark.parametrize("seed", range(5))
def test_dynamic_rules(seed: int) -> None:
    dice = random.Random(seed)
    orders = [dynamic_rules.Order(dice.choice("abc"), at, dice.randrange(100)) for at in times(seed, 200, 3)]
    changes = enumerate(times(seed + 1, 30, 20))
    rules = [dynamic_rules.Rule(f"rule {n % 4}", at, dice.randrange(100), dice.random() < 0.7) for n, at in changes]
    expected = []
    for order in orders:
        latest = {rule.name: rule for rule in sorted(rules, key=lambda rule: rule.at) if rule.at <= order.at}
        broken = [rule.name for rule in latest.values() if rule.holds and order.sum > rule.most]
        expected += [dynamic_rules.Broken(order.customer, order.at, name) for name in broken]
    assert sorted(rel.run(dynamic_rules.build(orders, rules))["out"]) == sorted(expected)
    assert len(expected) > 20


@pytest.mark.parametrize("seed", range(5))
def test_complete_join(seed: int) -> None:
    dice = random.Random(seed)
    users = [dice.sample(range(300), 250) for _ in range(3)]
    names = [complete_join.Name(user, f"name of {user}") for user in users[0]]
    emails = [complete_join.Email(user, f"{user}@x.org") for user in users[1]]
    phones = [complete_join.Phone(user, f"{user:05}") for user in users[2]]
    found = rel.run(complete_join.build(names, emails, phones))["out"]
    complete = sorted(set.intersection(*map(set, users)))
    assert sorted(map(tuple, found)) == [(n, f"name of {n}", f"{n}@x.org", f"{n:05}") for n in complete]


@pytest.mark.parametrize("seed", range(5))
def test_drop_duplicates(seed: int) -> None:
    dice = random.Random(seed)
    rows = [drop_duplicates.Event(dice.choice("abcdef"), n // 2) for n in range(300)]
    begun: dict[str, int] = {}
    expected = []
    for row in rows:
        if row.at > begun.get(row.id, -11) + 10:
            begun[row.id] = row.at
            expected.append(row)
    assert rel.run(drop_duplicates.build(rows))["out"] == expected


@pytest.mark.parametrize("seed", range(5))
def test_labelled_by_model(seed: int) -> None:
    dice = random.Random(seed)
    centres = labelled_by_model.CENTRES
    kinds = [dice.choice(list(centres)) for _ in range(300)]
    rows = [
        labelled_by_model.Parcel(n, centres[kind][0] + dice.uniform(-9, 9), centres[kind][1] + dice.uniform(-9, 9))
        for n, kind in enumerate(kinds)
    ]
    assert rel.run(labelled_by_model.build(rows))["out"] == list(enumerate(kinds))
