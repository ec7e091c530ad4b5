"""Converts runs to the arrays, batches or frames of a library and back, for functions of a whole run.

The engine passes and accepts NumPy arrays and Arrow batches; pandas and Polars frames are converted here.
"""

from __future__ import annotations

from typing import Any

from rayelastic.graph.records.schema import Schema


def frame_of(run: Any, library: str) -> Any:
    """Return the argument of the user's function: `run` itself, or a frame of its Arrow batch."""
    if library == "pandas":
        return run.to_pandas()
    if library == "polars":
        import polars as pl  # type: ignore[import-not-found, unused-ignore]

        return pl.from_arrow(run)
    return run


def run_of(made: Any, library: str, output: Schema) -> Any:
    """Return a result for the engine: a frame as an Arrow batch, a mask as an Arrow array."""
    if library == "pandas":
        import pandas as pd
        import pyarrow as pa

        if isinstance(made, pd.DataFrame):
            return pa.RecordBatch.from_pandas(made, schema=output.to_arrow(), preserve_index=False)
        return pa.array(made)
    if library == "polars":
        import polars as pl
        import pyarrow as pa

        if isinstance(made, pl.DataFrame):
            batches = made.to_arrow().cast(output.to_arrow()).combine_chunks().to_batches()
            return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=output.to_arrow())
        return made.to_arrow()
    return made
