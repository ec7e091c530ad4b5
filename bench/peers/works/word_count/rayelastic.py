"""Word count in rayelastic: one PE in this process, compiled lane, reading the file inside the job."""

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

import rayelastic as rel

LANE: Any = os.environ["LANE"]  # compiled or python


class Line(NamedTuple):
    line: str


class Word(NamedTuple):
    word: str


def words(t: Line) -> Iterator[Word]:
    for word in t.line.split():
        yield Word(word)


def prepare(path: str) -> Callable[[], pa.Table]:
    topology = rel.Topology("word_count")
    lines = topology.source(rel.text(path), name="lines")
    counted = (
        lines.flat_map(words, name="words", schema=Word, lane=LANE)
        .key_by("word")
        .aggregate(name="counts", n=rel.count())
    )
    counted.sink(rel.arrow(), name="out")
    return lambda: rel.run(topology)["out"]


def result(raw: pa.Table) -> dict[str, int]:
    return dict(zip(raw["word"].to_pylist(), raw["n"].to_pylist(), strict=True))
