"""Word count in Bytewax, as its documentation writes it, over lines in memory in batches of 1,000."""

from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource


def declare(path: str, out: list[Any]) -> Dataflow:
    lines = Path(path).read_text().splitlines()
    flow = Dataflow("word_count")
    sentences = op.input("lines", flow, TestingSource(lines, batch_size=1_000))
    words = op.flat_map("words", sentences, str.split)
    counts = op.count_final("counts", words, lambda word: word)
    op.output("out", counts, TestingSink(out))
    return flow


def result(raw: list[tuple[str, int]]) -> dict[str, int]:
    return dict(raw)
