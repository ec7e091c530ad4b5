"""Elements and coordinators are killed at random: in checkpoints, on the way back, while replicas change; on Ray.

Whoever reads the sinks' files and tables afterwards finds each row once, with the value that it had to have. Sixty
kills in the gate, a thousand in `./dev nightly`; one kill in five while replicas change. How many of them came into a
change while a checkpoint was under way or waited for it is told at the end.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
import ray
from pyarrow import parquet

import rayelastic as rel
from rayelastic.errors import RayelasticError
from rayelastic.runtime.values.status import JobStatus
from tests.cluster.test_recovery import PATIENCE, check, counted
from tests.postgres import needs_postgres, postgres_server

KILLS = 20  # of a job
IN_THE_GATE = 3  # jobs
JOBS = IN_THE_GATE + 50
KINDS = 3  # of jobs: with Parquet files, with a list beside them, with a PostgreSQL table beside them
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


class Kills:
    """What the kills came into, as it was just before each."""

    def __init__(self) -> None:
        self.all = 0
        self.changing = 0  # a change was asked for, and not answered
        self.both = 0  # of these: a checkpoint was under way too, or waited for the change

    def __str__(self) -> str:
        return f"{self.all} kills, {self.changing} while replicas changed, {self.both} of them in a checkpoint too"


def words_and_prices(name: str, folder: Path, server: str = "") -> rel.Topology:
    """Counts words of a text and the average prices of a table, row by row; slowly until there is a file `go`.

    The prices come into a table of a PostgreSQL server, if one is given, with the name of the job.
    """
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
        "prices", rel.postgres(server, name) if server else rel.parquet(str(folder / "prices"))
    )
    return made


def check_words_and_prices(job: rel.Job, folder: Path, server: str = "") -> None:
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
    if server:
        with psycopg.connect(server) as connection:
            held = connection.execute(f'SELECT n, symbol, value, volume FROM "{job.name}"').fetchall()
    else:
        table = parquet.read_table(folder / "prices").to_pydict()
        held = list(zip(table["n"], table["symbol"], table["value"], table["volume"], strict=True))
    assert sorted(held) == averages


def killed_at_random(job: rel.Job, operators: list[str], dice: random.Random, kills: Kills) -> None:
    for number in range(KILLS):
        job.pause(dice.uniform(0.0, 1.2))
        changing = None
        if number % CHANGING == 0:
            changing = threading.Thread(target=changed, args=(job, dice.choice(operators), dice.randint(1, 3)))
            changing.start()
            job.pause(dice.uniform(0.0, 0.3))
        pids = [one.pid for one in status_of(job).pes if one.pid and not one.state.is_final]
        coordinator, in_checkpoint = coordinator_of(job)
        kills.all += 1
        if changing is not None and changing.is_alive():
            kills.changing += 1
            kills.both += in_checkpoint
        with contextlib.suppress(ProcessLookupError):  # it was killed just now
            os.kill(dice.choice(pids) if pids and dice.random() > COORDINATORS else coordinator, signal.SIGKILL)
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


def coordinator_of(job: rel.Job) -> tuple[int, bool]:
    """Its process, and whether it takes a checkpoint or is about to."""

    def told(actor: Any) -> tuple[int, bool]:
        taking = actor._coordinator._safety._loop._taking
        if is_free := taking.acquire(blocking=False):
            taking.release()
        return os.getpid(), not is_free

    until = time.monotonic() + PATIENCE
    while True:
        try:
            found: tuple[int, bool] = ray.get(job._control._actor.__ray_call__.remote(told))  # type: ignore[attr-defined]
        except ray.exceptions.ActorUnavailableError:  # it was killed just now
            assert time.monotonic() < until
            job.pause(0.1)
        else:
            return found


def changed(job: rel.Job, operator: str, replicas: int) -> None:
    with contextlib.suppress(RayelasticError, TimeoutError):  # somebody dies meanwhile
        job.rescale(job.plan().region_of(operator).region.name, replicas)


@pytest.fixture(scope="module")
def kills(request: pytest.FixtureRequest) -> Iterator[Kills]:
    made = Kills()
    yield made
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        sys.stdout.write(f"\n{made}\n")  # also where all goes well


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as conninfo:
        yield conninfo


def config() -> rel.JobConfig:
    return rel.JobConfig(regions="manual", checkpoint=rel.Checkpoint(every=0.5, restarts=1000))


def seeds(kind: int) -> list[Any]:
    """Those of the gate, and for the nightly run those alone that the gate has no time for."""
    return [n if n < IN_THE_GATE else pytest.param(n, marks=pytest.mark.nightly) for n in range(kind, JOBS, KINDS)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", seeds(0))
def test_random_kills_where_files_are_read_and_written(
    ray_cluster: None, tmp_path: Path, kills: Kills, seed: int
) -> None:
    job = rel.submit(words_and_prices(f"random{seed}", tmp_path), config())
    killed_at_random(job, ["counts", "vwap"], random.Random(seed), kills)
    check_words_and_prices(job, tmp_path)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", seeds(1))
def test_random_kills_where_a_function_is_read_and_a_list_is_kept(
    ray_cluster: None, tmp_path: Path, kills: Kills, seed: int
) -> None:
    job = rel.submit(counted(f"random{seed}", tmp_path), config())
    killed_at_random(job, ["counts"], random.Random(seed), kills)
    check(job, tmp_path)


@needs_postgres
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", seeds(2))
def test_random_kills_where_files_and_a_postgresql_table_are_written(
    ray_cluster: None, tmp_path: Path, server: str, kills: Kills, seed: int
) -> None:
    job = rel.submit(words_and_prices(f"random{seed}", tmp_path, server), config())
    killed_at_random(job, ["counts", "vwap"], random.Random(seed), kills)
    check_words_and_prices(job, tmp_path, server)
