"""Works that are examples of Bytewax, and their ports in examples/ported as one program of the peers' benchmark.

A work is lines of text, each of which is an item of work done. Its name comes to the program in `WORK`.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rayelastic as rel
from bench.peers.work import Work, lines
from examples.ported import anomalies, baskets, brc, complete_join, orderbook, search_sessions, wiki_stream


@dataclass(frozen=True, slots=True)
class Ported:
    """A program of others.

    Args:
        description: one line for the table's head.
        items: how many lines the full input has.
        item: what a line is, in the singular.
        line: makes one, of dice and its number.
        topology: of the path of the input; what is returned is built anew for each run.
        row: what is compared of a tuple that came out.
    """

    description: str
    items: int
    item: str
    line: Callable[[random.Random, int], str]
    topology: Callable[[str], Callable[[], rel.Topology]]
    row: Callable[[Any], Any] = tuple


def rows_of(path: str, parse: Callable[[str], Any]) -> list[Any]:
    return [parse(line) for line in Path(path).read_text().splitlines()]


def metrics(path: str) -> Callable[[], rel.Topology]:
    rows = rows_of(path, lambda line: anomalies.Metric(line.split()[0], float(line.split()[1])))
    return lambda: anomalies.build(rows)


def bought(path: str) -> Callable[[], rel.Topology]:
    rows = rows_of(path, baskets.Basket)
    return lambda: baskets.build(rows)


def users(path: str) -> Callable[[], rel.Topology]:
    rows = rows_of(path, lambda line: (int(line.split(" ", 1)[0]), line.split(" ", 1)[1].split(";")))
    names = [complete_join.Name(user, parts[0]) for user, parts in rows]
    emails = [complete_join.Email(user, parts[1]) for user, parts in rows]
    phones = [complete_join.Phone(user, parts[2]) for user, parts in rows]
    return lambda: complete_join.build(names, emails, phones)


def offer(dice: random.Random, _: int) -> str:
    side = dice.choice(("buy", "sell"))
    price = dice.randrange(9900, 10000) if side == "buy" else dice.randrange(10000, 10100)
    change = [side, str(price / 100), str(dice.choice((0, 1, 2)))]
    return json.dumps({"product": str(dice.randrange(20)), "changes": [change]})


def searches(path: str) -> Callable[[], rel.Topology]:
    fields = rows_of(path, str.split)
    rows = [search_sessions.Action(user, int(at), click == "1") for user, at, click in fields]
    return lambda: search_sessions.build(rows)


def edit(dice: random.Random, number: int) -> str:
    return json.dumps({"server_name": f"{dice.randrange(50)}.org", "timestamp": number / 100 + 0.001})


def edits(path: str) -> Callable[[], rel.Topology]:
    rows = rows_of(path, wiki_stream.Event)
    return lambda: wiki_stream.build(rows)


PORTED = {
    "anomalies": Ported(
        "measurements beside the last ten of their kind", 200_000, "metric",
        lambda dice, _: f"{dice.randrange(100)} {dice.uniform(0, 10)}", metrics,
        lambda t: (t.key, t.value, t.is_anomalous),
    ),
    "baskets": Ported(
        "how often two of 60 things are bought together", 100_000, "basket",
        lambda dice, _: ",".join(f"thing {number}" for number in dice.sample(range(60), 4)), bought,
        lambda t: (str(t[:2]), t[2]),
    ),
    "brc": Ported(
        "least, mean and greatest temperature of each of 400 stations", 1_000_000, "line",
        lambda dice, _: f"station {dice.randrange(400)};{dice.randrange(-300, 400) / 10}",
        lambda path: lambda: brc.build(path), lambda t: (t.station, t.least, round(t.mean, 9), t.greatest),
    ),
    "complete_join": Ported(
        "names, addresses and numbers of users, when all three are there", 50_000, "user",
        lambda dice, user: f"{user} name of {user};{user}@x.org;{dice.randrange(1000):03}", users,
    ),
    "orderbook": Ported(
        "the best offers of each of 20 products, where they are far apart", 50_000, "message", offer,
        lambda path: lambda: orderbook.build(path),
    ),
    "search_sessions": Ported(
        "how many of the searches in each session of 200 users were clicked on", 50_000, "action",
        lambda dice, at: f"user{dice.randrange(200)} {at} {dice.randrange(2)}", searches,
    ),
    "wiki_stream": Ported(
        "how many each of 50 servers has in windows of two seconds", 50_000, "edit", edit, edits,
    ),
}  # fmt: skip
WORKS = {
    f"ported_{name}": Work(
        f"ported_{name}", one.description, one.items, one.item, one.items, f"{one.item}s", ".txt", lines(one.line)
    )
    for name, one in PORTED.items()
}


def chosen() -> Ported:
    return PORTED[os.environ["WORK"].removeprefix("ported_")]


def prepare(path: str) -> Callable[[], list[Any]]:
    build = chosen().topology(path)

    def run() -> list[Any]:
        out: list[Any] = rel.run(build())["out"]
        return out

    return run


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(map(chosen().row, raw))))


def lanes_of(work: Work, path: str) -> str:
    """Say which operators of a work's program run in which lane.

    Args:
        work: one of these.
        path: of a small input.
    """
    found: dict[str, list[str]] = {}
    for name, spec in PORTED[work.name.removeprefix("ported_")].topology(path)().operators.items():
        found.setdefault(spec.lane.value, []).append(name)
    return "; ".join(f"{lane}: {', '.join(names)}" for lane, names in found.items())
