"""A stream of 100,000 rows/s from Spark into VWAP on Ray: is each row there once, and how late does it come out?

    python -m bench.micro.spark_rate [--rows 100000] [--seconds 60]

Spark's rate source makes the rows, Structured Streaming pushes its micro-batches into the job, and each bargain is
stamped in front of the sink. What has to come out is computed again with NumPy: every quote carries the number of its
row. The job is over when the query is stopped, which may be in the middle of a micro-batch: what counts is what the
source took.

Latency is from the row's own time to its stamp. The rate source gives the rows of a second when the second is over, so
half a second of the median is its own; the second line counts from there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import rayelastic as rel
from rayelastic.topologies import vwap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRADES = 15  # of an average
QUOTE_EVERY = 4  # rounds over the symbols: one of quotes, then three of trades
ROUND_SECONDS = 0.01  # between two rows of a symbol; longer than the millisecond that event time has
STEP = 1024.0  # a row's number in its price: exact in a double, as are sums of so many
WARM_UP = 10.0  # seconds in which Spark starts its Python workers and catches up
TOLERANCE = 1e-9  # relative, of an average: sums in another order
START_TIMEOUT = 120.0  # seconds until the first row arrives
MILLISECOND = 1000.0


class Stamped(NamedTuple):
    """A bargain and when it reached the sink, in milliseconds since 1970."""

    symbol: str
    at: int
    ask: float
    average: float
    arrived: float


def stamp(run: np.ndarray) -> dict[str, Any]:
    """One clock reading a run."""
    kept = {name: run[name] for name in ("symbol", "at", "ask", "average")}
    return {**kept, "arrived": np.full(len(run), time.time() * MILLISECOND)}


@dataclass(frozen=True, slots=True)
class Rate:
    """What is offered.

    Args:
        rows: a second.
        seconds: how long.
    """

    rows: int
    seconds: float

    @property
    def symbols(self) -> int:
        """Such that a symbol comes every ROUND_SECONDS."""
        return max(1, round(self.rows * ROUND_SECONDS))

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the events; one partition, for event time has to come in order."""
        rate = spark.readStream.format("rate").option("rowsPerSecond", self.rows).option("numPartitions", 1).load()
        return rate.selectExpr(
            f"concat('S', value % {self.symbols}) AS symbol",
            "unix_millis(timestamp) AS at",
            f"IF((value DIV {self.symbols}) % {QUOTE_EVERY} = 0, 'Quote', 'Trade') AS kind",
            f"100 + value / {STEP}D + (value * 7919 % 64) / 64D AS price",
            "CAST(1 + value * 31 % 100 AS double) AS volume",
            f"100 + value / {STEP}D AS ask",
            "CAST(1 + value % 50 AS double) AS ask_size",
        )

    def expected(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the rows that are quotes with an average, ascending, and the averages.

        Args:
            count: rows that went in.
        """
        rounds = -(-count // self.symbols)
        number = np.arange(rounds * self.symbols).reshape(rounds, self.symbols)  # one column a symbol
        volume = 1.0 + number * 31 % 100
        paid = (100 + number / STEP + (number * 7919 % 64) / 64.0) * volume
        quotes = np.arange(rounds) % QUOTE_EVERY == 0
        paid, volume = np.cumsum(paid[~quotes], axis=0), np.cumsum(volume[~quotes], axis=0)
        paid[TRADES:], volume[TRADES:] = paid[TRADES:] - paid[:-TRADES], volume[TRADES:] - volume[:-TRADES]
        rows = np.flatnonzero(quotes)
        traded = rows - rows // QUOTE_EVERY  # trades of a symbol before its quote
        rows, last = rows[traded >= TRADES], traded[traded >= TRADES] - 1
        asked, averages = number[rows].ravel(), (paid[last] / volume[last]).ravel()
        there = asked < count
        return asked[there], averages[there]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    rate = Rate(given.rows, given.seconds)
    import ray

    with tempfile.TemporaryDirectory(prefix="spark-rate-") as folder:
        try:
            with rel.spark.session("rate", executor_cores=2) as spark:
                count, seconds, table = run(spark, rate, Path(folder))
        finally:
            ray.shutdown()
        return report(rate, count, seconds, table)


def run(spark: SparkSession, rate: Rate, folder: Path) -> tuple[int, float, Any]:
    """Rows that the source took, the seconds from its first row to the stop, and what came out."""
    import pyarrow.parquet as parquet

    topology = rel.Topology("vwap")
    source = rel.spark.stream(rate.frame(spark), vwap.Event, checkpoint=str(folder / "checkpoint"))
    bargains = vwap.bargains(topology.source(source, name="events"), TRADES)
    stamped = bargains.map(stamp, name="stamp", schema=Stamped, lane="vectorised")
    stamped.sink(rel.parquet(str(folder / "bargains")), name="out")
    job = rel.submit(topology)
    try:
        until = time.monotonic() + START_TIMEOUT
        while job.metrics().operator("events").tuples_out == 0:
            job.pause(0.1)
            if job.status.state.is_final or time.monotonic() > until:
                break
        began = time.monotonic()
        job.pause(rate.seconds)
        source.cancel()
        seconds = time.monotonic() - began
        result = job.wait()
    finally:
        job.close()
    return result.metrics.operator("events").tuples_out, seconds, parquet.read_table(folder / "bargains")


def report(rate: Rate, count: int, seconds: float, table: Any) -> int:
    """Print what was lost, doubled, wrong and late; return the exit status."""
    ask, average = table["ask"].to_numpy(), table["average"].to_numpy()
    number = np.rint((ask - 100) * STEP).astype(np.int64)
    expected, averages = rate.expected(count)
    order = np.argsort(number, kind="stable")
    distinct, first = np.unique(number[order], return_index=True)
    lost = int(np.setdiff1d(expected, distinct).size)
    unknown = int(np.setdiff1d(distinct, expected).size)
    doubled = int(number.size - distinct.size)
    known = np.searchsorted(expected, distinct)
    known[known == expected.size] = 0
    same = expected[known] == distinct if expected.size else np.zeros(distinct.size, bool)
    wrong = int((~np.isclose(average[order][first][same], averages[known[same]], rtol=TOLERANCE, atol=0)).sum())
    print(f"{rate.rows:,} rows/s for {seconds:.1f} s: {count:,} rows in, {number.size:,} bargains out")
    print(f"lost {lost}, doubled {doubled}, unknown {unknown}, with another average {wrong}")
    whole = table["arrived"].to_numpy() - table["at"].to_numpy()
    given = whole - MILLISECOND * (1 - (number % rate.rows) / rate.rows)  # since its second was over
    started = number < rate.rows * WARM_UP
    for what, late in (("event to sink", whole), ("since the source gave the row", given)):
        for when, chosen in (("", late), (f" after {WARM_UP:.0f} s", late[~started])):
            if chosen.size:
                p50, p99 = np.percentile(chosen, [50, 99])
                print(f"{what}{when}: p50 {p50:,.0f} ms, p99 {p99:,.0f} ms, most {chosen.max():,.0f} ms")
    whole_rate = count >= rate.rows * (seconds - 2) and number.size > 0  # its last seconds may be under way
    if not whole_rate:
        print(f"the job took fewer than {rate.rows:,} rows/s")
    return 1 if lost or doubled or unknown or wrong or not whole_rate else 0


if __name__ == "__main__":
    sys.exit(main())
