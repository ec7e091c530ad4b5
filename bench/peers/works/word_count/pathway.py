"""Word count in Pathway, as its documentation writes it, over lines in memory."""

# mypy: disable-error-code="misc, untyped-decorator"
# ruff: noqa: ARG005 -- what Pathway calls has the parameters that Pathway gives

from collections.abc import Callable
from pathlib import Path

import pathway as pw


class Line(pw.Schema):
    line: str


@pw.udf
def words_of(line: str) -> list[str]:
    return line.split()


def prepare(path: str) -> Callable[[], dict[str, int]]:
    rows = [(line,) for line in Path(path).read_text().splitlines()]
    out: dict[str, int] = {}

    def run() -> dict[str, int]:
        pw.internals.parse_graph.G.clear()
        lines = pw.debug.table_from_rows(Line, rows)
        words = lines.select(word=words_of(lines.line)).flatten(pw.this.word)
        counts = words.groupby(words.word).reduce(words.word, n=pw.reducers.count())
        pw.io.subscribe(counts, lambda key, row, time, is_addition: out.__setitem__(row["word"], row["n"]))
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        return out

    return run


def result(raw: dict[str, int]) -> dict[str, int]:
    return dict(raw)
