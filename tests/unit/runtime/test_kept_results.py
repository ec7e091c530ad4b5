"""Results of a finished job that outlive its coordinator."""

from __future__ import annotations

import json

import pyarrow as pa

from rayelastic.errors import PELostError
from rayelastic.runtime.job.kept_results import decoded, encoded
from rayelastic.runtime.values.status import SinkResult
from tests.raising import raises

TABLE = pa.table({"word": ["a", "b", None], "n": [1, 2, 3]})


def test_results_come_back_as_they_were() -> None:
    results = {
        "file": SinkResult("file", 7, "/data/out.parquet"),
        "count": SinkResult("count", 9),
        "list": SinkResult("list", 3, TABLE),
        "empty": SinkResult("empty", 0, TABLE.slice(0, 0)),
    }
    assert decoded(json.loads(json.dumps(encoded(results)))) == results


def test_more_rows_than_a_journal_may_have_are_told() -> None:
    results = {"small": SinkResult("small", 3, TABLE), "large": SinkResult("large", 500, pa.table({"n": range(500)}))}
    kept = encoded(results, most=1500)
    assert decoded({"small": kept["small"]}) == {"small": results["small"]}
    with raises(PELostError, "results-lost", "large", "500"):
        decoded(kept)
