"""Counts words of a text and the average prices of a table, row by row, and looks at what its sinks hold at the end.

Whoever reads them is an outsider: each row is there once, with the value that it had to have.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from pyarrow import parquet

import rayelastic as rel

WORDS, SYMBOLS = 89, 23
PACE, BURST = 0.1, 100  # seconds between so many rows, until there is a file `go`
PATIENCE = 600.0  # seconds


class Trade(NamedTuple):
    n: int
    symbol: str
    price: int  # cents
    quantity: int


class Word(NamedTuple):
    n: int
    word: str


class Priced(NamedTuple):
    n: int
    symbol: str
    value: int
    quantity: int


def trade(n: int) -> Trade:
    return Trade(n, f"S{n * 7 % SYMBOLS}", 1000 + n * 13 % 97, 1 + n % 11)


def words_of(n: int) -> list[Word]:
    return [Word(2 * n + i, f"word{(n * 31 + i * 17) % WORDS}") for i in range(2)]


def line(n: int) -> str:
    return " ".join([str(n), *(one.word for one in words_of(n))])


def write_files(folder: Path, rows: int) -> None:
    with (folder / "lines.txt").open("w") as file:
        file.writelines(f"{line(n)}\n" for n in range(rows))
    with (folder / "trades.csv").open("w") as file:
        file.write("n,symbol,price,quantity\n")
        file.writelines(",".join(map(str, trade(n))) + "\n" for n in range(rows))


def of_files(name: str, folder: Path, rows: int, server: str = "") -> rel.Topology:
    """The job over files that it writes first: `rows` lines of two words, and as many trades."""
    write_files(folder, rows)
    made = rel.Topology(name)
    lines = made.source(rel.text(str(folder / "lines.txt")), name="lines")
    trades = made.source(rel.csv(str(folder / "trades.csv"), schema=Trade), name="trades")
    words_and_prices(lines, trades, folder, server)
    return made


def words_and_prices(lines: Any, trades: Any, folder: Path, server: str = "") -> None:
    """What becomes of streams of lines and trades; slowly until there is a file `go`.

    The prices come into a table of a PostgreSQL server, if one is given, with the name of the job.
    """
    go = folder / "go"

    def paced(n: int) -> None:
        if n % BURST == 0 and not go.exists():
            threading.Event().wait(PACE)

    def split(t: Any) -> Iterator[Word]:
        number, *words = t.line.split()
        paced(int(number))
        for i, word in enumerate(words):
            yield Word(2 * int(number) + i, word)

    def priced(t: Any) -> Priced:
        paced(t.n)
        return Priced(t.n, t.symbol, t.price * t.quantity, t.quantity)

    words = lines.flat_map(split, name="split", schema=Word, lane="python")
    counts = words.key_by("word").aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count())
    counts.sink(rel.parquet(str(folder / "words")), name="words")
    prices = trades.map(priced, name="priced", schema=Priced, lane="python").key_by("symbol")
    prices.aggregate(
        name="vwap", emit="update", n=rel.last("n"), value=rel.sum("value"), volume=rel.sum("quantity")
    ).sink(rel.postgres(server, lines.topology.name) if server else rel.parquet(str(folder / "prices")), name="prices")


def finish(job: rel.Job, folder: Path, rows: int, server: str = "") -> None:
    """Lets the job come to its end, and looks at every row."""
    (folder / "go").touch()
    job.wait(PATIENCE)
    seen: Counter[str] = Counter()
    expected = []
    for word in (word for n in range(rows) for word in words_of(n)):
        seen[word.word] += 1
        expected.append((word.n, word.word, seen[word.word]))
    table = parquet.read_table(folder / "words").to_pydict()
    assert_same(zip(table["n"], table["word"], table["all"], strict=True), expected)
    values: Counter[str] = Counter()
    volumes: Counter[str] = Counter()
    averages = []
    for n, symbol, price, quantity in map(trade, range(rows)):
        values[symbol] += price * quantity
        volumes[symbol] += quantity
        averages.append((n, symbol, values[symbol], volumes[symbol]))
    if server:
        with psycopg.connect(server) as connection:
            held = connection.execute(f'SELECT n, symbol, value, volume FROM "{job.name}"').fetchall()
    else:
        table = parquet.read_table(folder / "prices").to_pydict()
        held = list(zip(table["n"], table["symbol"], table["value"], table["volume"], strict=True))
    assert_same(held, averages)


def assert_same(given: Any, expected: list[Any]) -> None:
    """Each row is there once; says how many are lost, doubled or wrong, and the first of each."""
    found = Counter(given)
    numbers, wanted = Counter(row[0] for row in found.elements()), {row[0] for row in expected}
    lost = sorted(wanted - numbers.keys())
    doubled = sorted(n for n, count in numbers.items() if count > 1)
    wrong = sorted(found.keys() - set(expected))
    told = {"lost": (len(lost), lost[:5]), "doubled": (len(doubled), doubled[:5]), "wrong": (len(wrong), wrong[:5])}
    assert told == dict.fromkeys(told, (0, [])), told
