"""Word count in Bytewax, as its documentation writes it, over lines in memory in batches of 1,000."""

from collections.abc import Callable
from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main


def prepare(path: str) -> Callable[[], list[tuple[str, int]]]:
    lines = Path(path).read_text().splitlines()
    out: list[tuple[str, int]] = []
    flow = Dataflow("word_count")
    sentences = op.input("lines", flow, TestingSource(lines, batch_size=1_000))
    words = op.flat_map("words", sentences, str.split)
    counts = op.count_final("counts", words, lambda word: word)
    op.output("out", counts, TestingSink(out))

    def run() -> list[tuple[str, int]]:
        run_main(flow)
        return out

    return run


def result(raw: list[tuple[str, int]]) -> dict[str, int]:
    return dict(raw)
