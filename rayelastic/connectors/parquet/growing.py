"""A folder of Parquet files that grows while the job runs, as a sink."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from rayelastic.connectors.description import FileSink
from rayelastic.errors import ErrorCode, SinkError
from rayelastic.graph.spec.operator_spec import Lane

LONGEST_PERIOD = 86_400.0  # seconds; a table that grows once a day is no longer growing


@dataclass(frozen=True, slots=True)
class GrowingSink(FileSink):
    """Writes a folder of Parquet files while the job runs, a file per period."""

    period: float = field(kw_only=True)
    lane: Lane = Lane.VECTORISED
    reason: str = "Arrow batches to Parquet files, one a period"

    def check(self, operator: str) -> None:
        """Raise SinkError if nothing can be written there, or the period is invalid."""
        _check_seconds(self.period, operator)
        if PurePosixPath(self.path.partition("?")[0]).suffix:
            raise SinkError(
                f"{self.path!r} names a file, and the table needs a folder",
                operator=operator,
                hint="Name a folder",
                code=ErrorCode.NOT_A_FOLDER,
            )
        FileSink.check(self, operator)


def _check_seconds(period: object, operator: str) -> None:
    if isinstance(period, bool) or not isinstance(period, int | float) or not 0 < period < LONGEST_PERIOD:
        raise SinkError(
            f"a period of {period!r} seconds",
            operator=operator,
            hint="Pass seconds, such as 5",
            code=ErrorCode.OUT_OF_RANGE,
        )
