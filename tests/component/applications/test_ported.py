"""Programs of other systems, ported: each gives what its original does, or a reference made another way."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
from collections import Counter, defaultdict
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from examples.ported import (
    anomalies,
    baskets,
    brc,
    clicks_of_impressions,
    collatz,
    complete_join,
    count_with_timeout,
    drop_duplicates,
    dynamic_rules,
    dynamic_sessions,
    find_outliers,
    fraud,
    fraud_detection,
    http_enrichment,
    labelled_by_model,
    linear_regression,
    orderbook,
    polled_counter,
    search_sessions,
    structured_sessions,
    top_words,
    wiki_stream,
)
from examples.ported.count_with_timeout import Seen
from examples.ported.dynamic_sessions import Event
from examples.ported.fraud_detection import LARGE, MINUTE, SMALL, Alert, Payment
from examples.ported.search_sessions import PAUSE, Action
from examples.ported.top_words import Word
from tests.component.applications import by_brute_force

DISORDER = 5  # seconds before or behind


def times(seed: int, number: int, pace: int) -> list[int]:
    dice = random.Random(seed)
    return [n * pace + DISORDER + dice.randrange(-DISORDER, DISORDER + 1) for n in range(number)]


def test_http_enrichment() -> None:
    known = asyncio.run(http_enrichment.beside_service(lambda port: rel.run(http_enrichment.build(port))["out"]))
    assert known == [(number, f"all about {number}") for number in range(200)]


@pytest.mark.parametrize("seed", range(5))
def test_count_with_timeout(seed: int) -> None:
    dice = random.Random(seed)
    rows = [Seen(dice.choice("abcde"), at) for at in times(seed, 300, 9)]
    expected = by_brute_force.counted(rows)
    assert sorted(rel.run(count_with_timeout.build(rows))["out"]) == sorted(expected)
    assert len(expected) > 5


@pytest.mark.parametrize("seed", range(5))
def test_dynamic_sessions(seed: int) -> None:
    dice = random.Random(seed)
    rows = [Event(dice.choice("abc"), at, dice.choice((1, 5, 20))) for at in times(seed, 300, 4)]
    expected = by_brute_force.dynamic_sessions(rows)
    assert sorted(map(tuple, rel.run(dynamic_sessions.build(rows))["out"])) == sorted(expected)
    assert len(expected) > 5


@pytest.mark.parametrize("seed", range(5))
def test_top_words(seed: int) -> None:
    dice = random.Random(seed)
    rows = [Word(dice.choice("aabbbccdef"), at) for at in times(seed, 300, 1)]
    assert rel.run(top_words.build(rows))["out"] == by_brute_force.top_words(rows)


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
    expected = by_brute_force.alerts(rows)
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


@pytest.mark.parametrize("seed", range(3))
def test_find_outliers(seed: int) -> None:
    dice = random.Random(seed)
    rows = [find_outliers.Reading(dice.choice("ab"), dice.gauss(0, 4 if n % 20 == 0 else 1)) for n in range(400)]
    before: dict[str, list[float]] = defaultdict(list)
    expected = []
    for row in rows:
        seen = before[row.sensor]
        limit = find_outliers.SPREADS * statistics.pstdev(seen) if len(seen) > 1 else float("inf")
        if abs(row.value - statistics.fmean(seen or [0])) > limit:
            expected.append(row)
        seen.append(row.value)
    assert rel.run(find_outliers.build(rows))["out"] == expected
    assert len(expected) > 2


def test_collatz() -> None:
    def steps(number: int) -> int:
        return 0 if number == 1 else 1 + steps(number // 2 if number % 2 == 0 else 3 * number + 1)

    found = rel.run(collatz.build(1000))["out"]
    assert sorted(found) == [(number, 1, steps(number)) for number in range(2, 1002)]


def test_linear_regression() -> None:
    dice = random.Random(1)
    points = [linear_regression.Point(x / 7, 3 + 2 * x / 7 + dice.gauss(0, 1)) for x in range(500)]
    slope, intercept = statistics.linear_regression(*zip(*points, strict=True))
    (found,) = rel.run(linear_regression.build(points))["out"]
    assert found == pytest.approx((intercept, slope), rel=1e-9)


def test_brc(tmp_path: Path) -> None:
    dice = random.Random(1)
    measured = [(dice.choice(("Oslo", "Łódź", "Roma")), dice.randrange(-300, 400) / 10) for _ in range(2000)]
    (tmp_path / "measured.txt").write_text("".join(f"{station};{degrees}\n" for station, degrees in measured))
    expected = []
    for station in sorted({station for station, _ in measured}):
        mine = [degrees for name, degrees in measured if name == station]
        expected.append((station, min(mine), pytest.approx(statistics.fmean(mine)), max(mine)))
    assert sorted(map(tuple, rel.run(brc.build(str(tmp_path / "measured.txt")))["out"])) == expected


def test_polled_counter() -> None:
    assert [t.value for t in rel.run(polled_counter.build(20))["out"]] == list(range(20))


@pytest.mark.parametrize("seed", range(3))
def test_structured_sessions(seed: int) -> None:
    dice = random.Random(seed)
    rows = [structured_sessions.Line(" ".join(dice.choices("abcdef", k=3)), at) for at in times(seed, 200, 4)]
    expected = []
    for word in "abcdef":
        sessions: list[list[int]] = []
        for at in sorted(row.at for row in rows for one in row.line.split() if one == word):
            if not sessions or at > sessions[-1][-1] + structured_sessions.GAP:
                sessions.append([])
            sessions[-1].append(at)
        expected += [(word, mine[0], mine[-1] + structured_sessions.GAP, len(mine)) for mine in sessions]
    assert sorted(map(tuple, rel.run(structured_sessions.build(rows))["out"])) == sorted(expected)


@pytest.mark.parametrize("seed", range(3))
def test_clicks_of_impressions(seed: int) -> None:
    dice = random.Random(seed)
    impressions = [clicks_of_impressions.Impression(dice.randrange(40), at) for at in times(seed, 200, 60)]
    clicks = [clicks_of_impressions.Click(dice.randrange(40), at) for at in times(seed + 1, 200, 60)]
    expected: list[tuple[Any, ...]] = []
    for ad, at in impressions:
        mine = [c.clicked for c in clicks if c.ad == ad and at <= c.clicked <= at + clicks_of_impressions.HOUR]
        expected += [(ad, at, clicked) for clicked in mine] or [(ad, at, None)]
    found = rel.run(clicks_of_impressions.build(impressions, clicks))["out"]
    assert Counter(map(tuple, found)) == Counter(expected)
    assert {clicked is None for *_, clicked in expected} == {False, True}


def test_baskets() -> None:
    dice = random.Random(1)
    bought = [dice.sample(["tea", "milk", "rice", "salt", "oil", "nuts"], dice.randrange(1, 5)) for _ in range(500)]
    expected = Counter(pair for things in bought for pair in combinations(sorted(things), 2))
    found = rel.run(baskets.build([baskets.Basket(",".join(things)) for things in bought]))["out"]
    assert {(one, other): n for one, other, n in found} == expected


@pytest.mark.parametrize("seed", range(3))
def test_anomalies(seed: int) -> None:
    dice = random.Random(seed)
    rows = [anomalies.Metric(dice.choice("ab"), dice.uniform(0, 50 if n % 30 == 0 else 10)) for n in range(400)]
    last: dict[str, list[float]] = defaultdict(list)
    expected = []
    for key, value in rows:
        last[key] = [*last[key], value][-anomalies.LAST :]
        mean, spread = statistics.fmean(last[key]), statistics.pstdev(last[key])
        is_far = abs(value - mean) > anomalies.FAR * spread
        expected.append((key, value, pytest.approx(mean), pytest.approx(spread, abs=1e-6), is_far))
    assert [tuple(t) for t in rel.run(anomalies.build(rows))["out"]] == expected
    assert {row[-1] for row in expected} == {False, True}


@pytest.mark.parametrize("seed", range(3))
def test_orderbook(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    books: dict[str, dict[str, dict[float, float]]] = {p: {"buy": {}, "sell": {}} for p in ("BTC", "ETH")}
    lines, expected = [], []
    for _ in range(400):
        product, side = dice.choice(("BTC", "ETH")), dice.choice(("buy", "sell"))
        price = round(dice.uniform(99, 100) if side == "buy" else dice.uniform(100, 101), 2)
        size = dice.choice((0, 1, 2))
        lines.append(json.dumps({"product": product, "changes": [[side, str(price), str(size)]]}))
        books[product][side][price] = size
        bids, asks = ({p: s for p, s in books[product][one].items() if s} for one in ("buy", "sell"))
        if bids and asks:
            bid, ask = max(bids), min(asks)
            if (ask - bid) / ask > orderbook.WIDE:
                expected.append((product, bid, bids[bid], ask, asks[ask], ask - bid))
    (tmp_path / "messages.jsonl").write_text("\n".join(lines))
    assert [tuple(t) for t in rel.run(orderbook.build(str(tmp_path / "messages.jsonl")))["out"]] == expected
    assert len(expected) > 20


@pytest.mark.parametrize("seed", range(3))
def test_wiki_stream(seed: int) -> None:
    dice = random.Random(seed)
    edits = [(dice.choice(("a.org", "b.org", "c.org")), at + dice.random()) for at in times(seed, 300, 1)]
    rows = [wiki_stream.Event(json.dumps({"server_name": server, "timestamp": at})) for server, at in edits]
    counts = Counter((server, at // 2 * 2) for server, at in edits)
    largest: dict[str, int] = {}
    expected = []
    for (server, start), n in sorted(counts.items()):
        largest[server] = max(largest.get(server, 0), n)
        expected.append((server, start, n, largest[server]))
    assert sorted(map(tuple, rel.run(wiki_stream.build(rows))["out"])) == expected
