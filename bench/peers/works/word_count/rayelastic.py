"""Word count in rayelastic: one PE in this process, compiled lane, reading the file inside the job."""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import pyarrow as pa

import rayelastic as rel


class Line(NamedTuple):
    line: str


class Word(NamedTuple):
    word: str


def words(t: Line) -> Iterator[Word]:
    for word in t.line.split():
        yield Word(word)


def job(path: str, lane: Literal["compiled", "python"]) -> Callable[[], pa.Table]:
    topology = rel.Topology("word_count")
    lines = topology.source(rel.text(path), name="lines")
    counted = (
        lines.flat_map(words, name="words", schema=Word, lane=lane)
        .key_by("word")
        .aggregate(name="counts", n=rel.count())
    )
    counted.sink(rel.arrow(), name="out")

    def run() -> pa.Table:
        return rel.run(topology)["out"]

    return run


def prepare(path: str) -> Callable[[], pa.Table]:
    return job(path, "compiled")


def result(raw: pa.Table) -> dict[str, int]:
    return dict(zip(raw["word"].to_pylist(), raw["n"].to_pylist(), strict=True))
