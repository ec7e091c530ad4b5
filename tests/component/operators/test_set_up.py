"""Objects as functions that are set up in each process, with pools of their own; new text from vectorised functions."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.errors import JobFailedError, LaneError
from tests.component.operators.running import CONFIGS, results
from tests.raising import raises


class Row(NamedTuple):
    text: str
    other: str | None
    raw: bytes
    n: int


LONG = "a text of more than twelve bytes"
ROWS = [Row("a", None, b"x", 1), Row(LONG, "é" * 9, b"y" * 40, 2), Row("", LONG, b"", 3)]


class Pooled:
    """Opens a pool in its own process, and waits for it while it holds what Python functions have to hold."""

    def initialize(self) -> None:
        assert not hasattr(self, "pool"), "twice"
        self.pool = ThreadPoolExecutor(4)
        self.together = threading.Barrier(2)

    def twice(self, n: int) -> int:
        return 2 * n

    def waited(self, n: int) -> int:
        """Both of its threads have to run at the same time."""
        both = [self.pool.submit(self.together.wait, 60) for _ in range(2)]
        return self.pool.submit(self.twice, n).result() + 0 * sum(one.result() for one in both)


class OfTuple(Pooled):
    def __call__(self, t: Row) -> Row:
        return t._replace(n=self.waited(t.n))


class OfNumpy(Pooled):
    def __call__(self, run: np.ndarray) -> dict[str, Any]:
        return {name: run[name] for name in ("text", "other", "raw")} | {"n": [self.waited(n) for n in run["n"]]}


class OfArrow(Pooled):
    def __call__(self, run: pa.RecordBatch) -> pa.RecordBatch:
        columns = [*run.columns[:3], pa.array([self.waited(n) for n in run["n"].to_pylist()])]
        return pa.RecordBatch.from_arrays(columns, names=run.schema.names)


class OfPandas(Pooled):
    def __call__(self, run: pd.DataFrame) -> pd.DataFrame:
        return run.assign(n=[self.waited(n) for n in run["n"]])


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@pytest.mark.parametrize("function", [OfTuple, OfNumpy, OfArrow, OfPandas])
def test_objects_with_a_pool_of_their_own(function: type, config: rel.JobConfig) -> None:
    fn = function()
    rows = [row for row in ROWS * 10 if row.other is not None or function is not OfNumpy]
    found = results(Row, rows, lambda s: s.map(fn, name="f", schema=Row), config)
    assert found == [row._replace(n=2 * row.n) for row in rows]
    assert not hasattr(fn, "pool"), "the user's own object is left alone"


def test_set_up_that_fails_and_lanes_that_cant_be() -> None:
    class Fails:
        def initialize(self) -> None:
            raise OSError("no such model")

        def __call__(self, t: Row) -> Row:
            return t

    with raises(JobFailedError, "function-raised", "f", "OSError"):
        results(Row, ROWS, lambda s: s.map(Fails(), name="f", schema=Row))
    with raises(LaneError, "not-compiled"):
        results(Row, ROWS, lambda s: s.map(Fails(), name="f", schema=Row, lane="compiled"))


TEXTS = st.text(max_size=20)
GIVEN = st.lists(
    st.builds(Row, TEXTS, st.none() | TEXTS, st.binary(max_size=20), st.integers(0, 9)), min_size=1, max_size=20
)


def numpy_made(run: np.ndarray) -> dict[str, Any]:
    """Text of all kinds beside text that is handed on."""
    texts = np.array([f"number {n} of a longer text" if n % 2 else str(n) for n in run["n"]])
    others = np.array([None if n % 3 == 0 else "other" * n for n in run["n"]], dtype=object)
    raw = np.array([b"raw " * n for n in run["n"]], dtype=object)
    return {"text": texts, "other": others, "raw": raw, "kept": run["text"], "n": run["n"]}


class Made(NamedTuple):
    text: str
    other: str | None
    raw: bytes
    kept: str
    n: int


@settings(max_examples=40, deadline=None, derandomize=True)
@given(GIVEN, st.sampled_from([2, 64]))
def test_numpy_gives_new_text(rows: list[Row], run: int) -> None:
    config = rel.JobConfig(threads=rel.Threads(count=1, model="manual", run_records=run), elasticity="off")
    expected = [
        Made(
            f"number {t.n} of a longer text" if t.n % 2 else str(t.n),
            None if t.n % 3 == 0 else "other" * t.n,
            b"raw " * t.n,
            t.text,
            t.n,
        )
        for t in rows
    ]
    assert results(Row, rows, lambda s: s.map(numpy_made, name="f", schema=Made), config) == expected


def arrow_upper(run: pa.RecordBatch) -> pa.RecordBatch:
    return run.set_column(0, "text", pc.utf8_upper(run["text"]))


def pandas_upper(run: pd.DataFrame) -> pd.DataFrame:
    return run.assign(text=run["text"].str.upper())


@pytest.mark.parametrize("function", [arrow_upper, pandas_upper])
def test_arrow_and_pandas_change_text(function: Any) -> None:
    assert results(Row, ROWS, lambda s: s.map(function, name="f", schema=Row)) == [
        t._replace(text=t.text.upper()) for t in ROWS
    ]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([1, 2, 3], "new text is a column of str or bytes"),
        (np.array(["a", 2, "c"], dtype=object), "expected str, got int"),
        (np.array(["a", None, "c"], dtype=object), "expected str, got NoneType"),
        (np.array(["\ud800", "b", "c"], dtype=object), "surrogates not allowed"),
        (np.array(["a", "b"]), "2 values where 3 are due"),
    ],
)
def test_columns_that_are_no_text(column: Any, said: str) -> None:
    def fails(run: np.ndarray) -> dict[str, Any]:
        return {"text": column}

    with raises(JobFailedError, "function-raised", "f") as refused:
        results(Row, ROWS, lambda s: s.map(fails, name="f", schema={"text": str}))
    assert said in str(refused.value)
