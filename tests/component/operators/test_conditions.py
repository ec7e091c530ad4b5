"""Conditions as pandas writes them, in a text or of columns, keep the rows that pandas keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import rayelastic as rel

pytestmark = pytest.mark.edges

ROWS = [("a", 1, 4, True), ("b", 3, 1, False), ("c", 5, 4, True), ("d", 0, 0, False)]
SCHEMA = {"u": str, "n": int, "m": int, "ok": bool}

TEXTS = [
    "n > 1 & m > 3", "n == 1 | m == 1", "~(n == 1)", "n > 1 and not m > 3", "u == 'a & b' | u == 'c'",
    "u in ['a', 'b'] & n > 1", "n + m > 4 & ok", "1 < n < 5", "ok & n > 1 | m == 0",
]  # fmt: skip
COLUMNS: dict[str, Callable[[Any], Any]] = {
    "and": lambda c: (c("n") > 1) & (c("m") > 3),
    "or": lambda c: (c("n") == 1) | (c("m") == 1),
    "not": lambda c: ~(c("n") == 1),
    "of a flag": lambda c: c("ok") & (c("n") > 1),
    "with a flag": lambda c: (c("n") > 1) & c("ok"),
    "of flags": lambda c: c("ok") | c("ok"),
    "of bits": lambda c: (c("n") & 4) == 4,
    "of bits of both": lambda c: (c("n") | c("m")) == 5,
    "on the right": lambda c: (4 & c("n")) > 0,
}


def frame() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=list(SCHEMA))


def kept(declare: Callable[[Any], Any]) -> list[str]:
    topology = rel.Topology("conditions")
    declare(topology.source(rel.rows(ROWS, SCHEMA))).sink(rel.list(), name="out")
    return [t.u for t in rel.run(topology)["out"]]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_keeps_what_pandas_keeps(text: str) -> None:
    assert kept(lambda s: s.query(text)) == list(frame().query(text, engine="python").u)


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_keep_what_pandas_keeps(name: str) -> None:
    table = frame()
    assert kept(lambda s: s.filter(COLUMNS[name](rel.col))) == list(table[COLUMNS[name](table.__getitem__)].u)


def test_bits_of_a_column_are_numbers() -> None:
    topology = rel.Topology("bits")
    rows = topology.source(rel.rows(ROWS, SCHEMA))
    rows.with_columns((rel.col("n") & 4).alias("bits")).select("bits").sink(rel.list(), name="out")
    assert [t.bits for t in rel.run(topology)["out"]] == list(frame().n & 4)
