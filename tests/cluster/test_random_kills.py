"""Elements and coordinators are killed at random: in checkpoints, on the way back, while replicas change; on Ray.

Whoever reads the sinks' files afterwards finds each row once, with the value that it had to have. Sixty kills in the
gate, a thousand in `./dev nightly`; one kill in five while replicas change.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import ray
from pyarrow import parquet

import rayelastic as rel
from rayelastic.errors import RayelasticError
from rayelastic.runtime.values.status import JobStatus
from tests.cluster.test_recovery import PATIENCE, check, counted

KILLS = 20  # of a job
IN_THE_GATE = 3  # jobs, of
JOBS = IN_THE_GATE + 50  # the nightly run has those alone that the gate has no time for
COORDINATORS = 0.2  # of the kills
CHANGING = 5  # one kill in so many comes while replicas change
ROWS = 100_000  # of each file; a thousand a second at most, until all kills are done
WORDS, SYMBOLS = 89, 23


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


def words_and_prices(name: str, folder: Path) -> rel.Topology:
    """Counts words of a text and the average prices of a table, row by row; slowly until there is a file `go`."""
    go = folder / "go"
    with (folder / "lines.txt").open("w") as file:
        file.writelines(" ".join([str(n), *(one.word for one in words_of(n))]) + "\n" for n in range(ROWS))
    with (folder / "trades.csv").open("w") as file:
        file.write("n,symbol,price,quantity\n")
        file.writelines(",".join(map(str, trade(n))) + "\n" for n in range(ROWS))

    def paced(n: int) -> None:
        if n % 100 == 0 and not go.exists():
            threading.Event().wait(0.1)

    def split(t: Any) -> Iterator[Word]:
        number, *words = t.line.split()
        paced(int(number))
        for i, word in enumerate(words):
            yield Word(2 * int(number) + i, word)

    def priced(t: Trade) -> Priced:
        paced(t.n)
        return Priced(t.n, t.symbol, t.price * t.quantity, t.quantity)

    made = rel.Topology(name)
    words = made.source("lines", rel.text(str(folder / "lines.txt"))).flat_map(
        "split", split, schema=Word, lane="python"
    )
    counts = words.key_by("word").aggregate("counts", emit="update", n=rel.last("n"), all=rel.count())
    counts.sink("words", rel.parquet(str(folder / "words")))
    trades = made.source("trades", rel.csv(str(folder / "trades.csv"), schema=Trade))
    prices = trades.map("priced", priced, schema=Priced, lane="python").key_by("symbol")
    prices.aggregate("vwap", emit="update", n=rel.last("n"), value=rel.sum("value"), volume=rel.sum("quantity")).sink(
        "prices", rel.parquet(str(folder / "prices"))
    )
    return made


def check_words_and_prices(job: rel.Job, folder: Path) -> None:
    (folder / "go").touch()
    job.wait(PATIENCE)
    seen: Counter[str] = Counter()
    expected = []
    for word in (word for n in range(ROWS) for word in words_of(n)):
        seen[word.word] += 1
        expected.append((word.n, word.word, seen[word.word]))
    table = parquet.read_table(folder / "words").to_pydict()
    assert sorted(zip(table["n"], table["word"], table["all"], strict=True)) == expected
    values: Counter[str] = Counter()
    volumes: Counter[str] = Counter()
    averages = []
    for n, symbol, price, quantity in map(trade, range(ROWS)):
        values[symbol] += price * quantity
        volumes[symbol] += quantity
        averages.append((n, symbol, values[symbol], volumes[symbol]))
    table = parquet.read_table(folder / "prices").to_pydict()
    found = sorted(zip(table["n"], table["symbol"], table["value"], table["volume"], strict=True))
    assert found == averages


def killed_at_random(job: rel.Job, operators: list[str], dice: random.Random) -> None:
    for number in range(KILLS):
        job.pause(dice.uniform(0.0, 1.2))
        changing = None
        if number % CHANGING == 0:
            changing = threading.Thread(target=changed, args=(job, dice.choice(operators), dice.randint(1, 3)))
            changing.start()
            job.pause(dice.uniform(0.0, 0.3))
        pids = [one.pid for one in status_of(job).pes if one.pid and not one.state.is_final]
        with contextlib.suppress(ProcessLookupError):  # it was killed just now
            os.kill(dice.choice(pids) if pids and dice.random() > COORDINATORS else coordinator_of(job), signal.SIGKILL)
        if changing is not None:
            changing.join()
        assert not status_of(job).state.is_final


def status_of(job: rel.Job) -> JobStatus:
    """As soon as there is a coordinator that tells it."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return job.status
        except TimeoutError:
            assert time.monotonic() < until


def coordinator_of(job: rel.Job) -> int:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            pid: int = ray.get(job._control._actor.__ray_call__.remote(lambda _: os.getpid()))  # type: ignore[attr-defined]
        except ray.exceptions.ActorUnavailableError:  # it was killed just now
            assert time.monotonic() < until
            job.pause(0.1)
        else:
            return pid


def changed(job: rel.Job, operator: str, replicas: int) -> None:
    with contextlib.suppress(RayelasticError, TimeoutError):  # somebody dies meanwhile
        job.rescale(job.plan().region_of(operator).region.name, replicas)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "seed", [*range(IN_THE_GATE), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(IN_THE_GATE, JOBS))]
)
def test_random_kills(ray_cluster: None, tmp_path: Path, seed: int) -> None:
    config = rel.JobConfig(regions="manual", checkpoint=rel.Checkpoint(every=0.5, restarts=1000))
    if seed % 2 == 0:
        job = rel.submit(words_and_prices(f"random{seed}", tmp_path), config)
        killed_at_random(job, ["counts", "vwap"], random.Random(seed))
        check_words_and_prices(job, tmp_path)
    else:
        job = rel.submit(counted(f"random{seed}", tmp_path), config)
        killed_at_random(job, ["counts"], random.Random(seed))
        check(job, tmp_path)
