"""What keys cost an aggregate, and what a second core brings one with no setting: word count, counts of numbers by key.

    python -m bench.micro.keyed_cores [megabytes=200] [rounds=3] [seconds=4] [after=2] [tuples=20000000]

First what a count by key takes above a count of all, on one thread.

Tuples that the aggregate takes in a second, from `after` seconds after the start on, with all defaults, beside the same
job in one thread. They take turns. The file is of words by Zipf's law, in the cache of the system, and read again and
again.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import rayelastic as rel
from bench.harness import Row, settings
from bench.peers.works.word_count import write_input

BLOCK = 50_000  # sentences that are drawn; the file repeats them
ENDLESS = 1 << 60  # tuples
AGAIN = 1_000  # times that the file is read: never to the end
KEYS = 1_000
LOOK = 0.02  # s
ALONE = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off")
DEFAULTS = rel.JobConfig(elasticity=rel.Elasticity(remember=False))


class Line(NamedTuple):
    line: str


class Word(NamedTuple):
    word: str


class Keyed(NamedTuple):
    key: int


def words(t: Line) -> Iterator[Word]:
    for word in t.line.split():
        yield Word(word)


def by_key(t: Any) -> Keyed:
    return Keyed(t.value % KEYS)


def word_count(path: Path) -> rel.Topology:
    topology = rel.Topology("word_count")
    lines = topology.source(rel.text([str(path)] * AGAIN), name="lines")
    counted = lines.flat_map(words, name="words", schema=Word).key_by("word").aggregate(name="counts", n=rel.count())
    counted.sink(rel.arrow(), name="out")
    return topology


def key_count() -> rel.Topology:
    topology = rel.Topology("key_count")
    keyed = topology.source(rel.sequence(ENDLESS), name="numbers").map(by_key, name="key", schema=Keyed).key_by("key")
    keyed.aggregate(name="counts", n=rel.count()).sink(rel.arrow(), name="out")
    return topology


def seconds_of(tuples: int, *, keyed: bool) -> float:
    """How long one thread counts, by key or all."""
    topology = rel.Topology("key_cost")
    keys = topology.source(rel.sequence(tuples), name="numbers").map(by_key, name="key", schema=Keyed)
    counted = keys.key_by("key").aggregate(name="counts", n=rel.count()) if keyed else keys
    counted.sink(rel.count(), name="out")
    began = time.perf_counter()
    rel.run(topology, ALONE)
    return time.perf_counter() - began


def cost_of_keys(tuples: int, rounds: int) -> Row:
    by_keys, all_of_them = [], []
    for _ in range(rounds + 1):  # the first one compiles
        all_of_them.append(1e9 * seconds_of(tuples, keyed=False) / tuples)
        by_keys.append(1e9 * seconds_of(tuples, keyed=True) / tuples)
    what = f"count by {KEYS:,} keys, one thread"
    return Row("keyed.count", what, "ns/tuple", by_keys[1:], all_of_them[1:], "a count of all")


def rate(
    topology: rel.Topology, config: rel.JobConfig, after: float, seconds: float, operator: str = "counts"
) -> float:
    """Tuples/s that an operator takes, from `after` on, for so many seconds."""
    job = rel.start(topology, config)
    try:
        began = time.perf_counter()
        first = last = (0.0, 0)
        while last[0] < after + seconds:
            time.sleep(LOOK)
            metrics = job.metrics()
            last = (time.perf_counter() - began, metrics.operator(operator).tuples_in)
            if last[0] < after:
                first = last
        return (last[1] - first[1]) / (last[0] - first[0])
    finally:
        job.cancel(drain=False)
        job.close()


def write_words(path: Path, megabytes: int) -> None:
    """Write sentences of words by Zipf's law, the same ones again and again."""
    block = path.with_suffix(".block")
    write_input(block, BLOCK)
    lines = block.read_text().splitlines(keepends=True)
    block.unlink()
    shuffled = random.Random(1)
    with path.open("w") as file:
        while file.tell() < megabytes << 20:
            shuffled.shuffle(lines)
            file.write("".join(lines))


def main() -> None:
    options = settings({"megabytes": 200, "rounds": 3, "seconds": 4, "after": 2, "tuples": 20_000_000})
    cost_of_keys(int(options["tuples"]), int(options["rounds"])).print()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.txt"
        write_words(path, int(options["megabytes"]))
        works: dict[str, Callable[[], rel.Topology]] = {"words": lambda: word_count(path), "numbers": key_count}
        for name, build in works.items():
            ours, alone = [], []
            for _ in range(int(options["rounds"])):
                alone.append(rate(build(), ALONE, options["after"], options["seconds"]))
                ours.append(rate(build(), DEFAULTS, options["after"], options["seconds"]))
            what = {"words": "word count of a file", "numbers": f"count by {KEYS:,} keys"}[name]
            Row(f"keyed.{name}", f"{what}, defaults", "tuples/s", ours, alone, "one thread").print()


if __name__ == "__main__":
    main()
