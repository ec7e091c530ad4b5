"""Word count (Joker section 5, feature J34): counts how often each word of a text occurs.

A word is an item of `str.split()`: characters without white space, with case and punctuation.

    rayelastic run topologies/word_count.py --input 'books/*.txt'
    rayelastic submit topologies/word_count.py --spark
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import rayelastic as rel


class Line(NamedTuple):
    """A line of text."""

    line: str


class Word(NamedTuple):
    """One occurrence of a word."""

    word: str


def words(t: Line) -> Iterator[Word]:
    """Every word of a line."""
    for word in t.line.split():
        yield Word(word)


def default_input() -> list[str]:
    """Real text that every machine has: the sources of Python's standard library.

    Tests are left out, as some are in other encodings on purpose, and so are installed packages. Spark treats files
    whose names start with an underscore as hidden, so these are left out, too.
    """
    library = Path(sysconfig.get_path("stdlib"))
    left_out = {"site-packages", "dist-packages", "test", "tests", "idle_test", "lib2to3", "__pycache__"}
    return sorted(
        str(path) for path in library.rglob("[!_]*.py") if not left_out & set(path.relative_to(library).parts[:-1])
    )


def build(
    input: str | None = None, output: str | None = "results/word_count", spark: bool = False, executors: int = 1
) -> rel.Topology:
    """Declare the topology.

    Args:
        input: a text file, a folder or a glob of UTF-8 text; the sources of Python's standard library if not given.
        output: the folder that the counts are written to, as Parquet; None, without Spark: they return to the driver
            as a table.
        spark: read the text with Spark and return the counts as a Spark DataFrame.
        executors: Spark executors, each with one core.
    """
    paths = [input] if input else default_input()
    topology = rel.Topology("word_count")
    if spark:
        session = rel.spark.session("word_count", num_executors=executors)
        lines = topology.source(rel.spark.source(session.read.text(paths).toDF("line"), schema=Line), name="lines")
        sink: Any = rel.spark.sink(session)
    else:
        lines = topology.source(rel.text(paths), name="lines")
        sink = rel.arrow() if output is None else rel.parquet(output)
    lines.flat_map(words, name="words").key_by("word").aggregate(name="counts", n=rel.count()).sink(sink, name="out")
    return topology


def report(
    result: rel.JobResult,
    output: str | None = "results/word_count",
    spark: bool = False,
    top: int = 20,
    input: str | None = None,
) -> str:
    """Return what was counted, where the result is, and the most frequent words.

    Args:
        result: what the job left.
        output: the folder of the counts, as for `build`.
        spark: the result is a Spark DataFrame, which is written to the folder now.
        top: how many words to show.
        input: what was read, as for `build`.
    """
    import pyarrow.dataset as dataset

    if spark:
        result["out"].write.mode("overwrite").parquet(output)
    table = result["out"] if output is None else dataset.dataset(output, format="parquet").to_table()
    first = table.sort_by([("n", "descending"), ("word", "ascending")]).slice(0, top).to_pylist()
    total = sum(table["n"].to_pylist())
    width = max((len(row["word"]) for row in first), default=0)
    lines = [f"{row['word']:<{width}}  {row['n']:>9,}" for row in first]
    kept = "" if output is None else f"; all counts: {Path(output).resolve()}"
    text = "the sources of Python's standard library (--input 'books/*.txt' counts others)" if input is None else input
    head = [f"counted {text}:", f"{total:,} words, {table.num_rows:,} distinct{kept}", "the most frequent:"]
    return "\n".join([*head, *lines])
