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
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import rayelastic as rel
from bench.harness import Row, compared, seconds, settings
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


def ns_of(tuples: int, *, keyed: bool) -> float:
    """How long one thread counts a tuple, by key or of all."""
    topology = rel.Topology("key_cost")
    keys = topology.source(rel.sequence(tuples), name="numbers").map(by_key, name="key", schema=Keyed)
    counted = keys.key_by("key").aggregate(name="counts", n=rel.count()) if keyed else keys
    counted.sink(rel.count(), name="out")
    return 1e9 * seconds(lambda: rel.run(topology, ALONE)) / tuples


def cost_of_keys(tuples: int, rounds: int) -> Row:
    what = f"count by {KEYS:,} keys, one thread"
    every, keyed = partial(ns_of, tuples, keyed=False), partial(ns_of, tuples, keyed=True)
    every(), keyed()  # compile
    return compared("keyed.count", what, "ns/tuple", rounds, keyed, every, "a count of all")


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
    options = settings(megabytes=200, rounds=3, seconds=4.0, after=2.0, tuples=20_000_000)
    cost_of_keys(options["tuples"], options["rounds"]).print()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.txt"
        write_words(path, options["megabytes"])
        works: dict[str, Callable[[], rel.Topology]] = {"words": lambda: word_count(path), "numbers": key_count}
        whats = {"words": "word count of a file", "numbers": f"count by {KEYS:,} keys"}
        for name, build in works.items():

            def measured(config: rel.JobConfig, build: Callable[[], rel.Topology] = build) -> Callable[[], float]:
                return lambda: rate(build(), config, options["after"], options["seconds"])

            what, sides = f"{whats[name]}, defaults", (measured(DEFAULTS), measured(ALONE))
            compared(f"keyed.{name}", what, "tuples/s", options["rounds"], *sides, "one thread").print()


if __name__ == "__main__":
    main()
