"""A folder of Parquet files that grows while the job runs, as a sink."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

from rayelastic.connectors.description import OBJECTS
from rayelastic.connectors.files.paths import check_writable
from rayelastic.errors import ErrorCode, SinkError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.spec.operator_spec import Lane

__all__ = ["GrowingSink"]


LONGEST_PERIOD = 86_400.0  # seconds; a table that grows once a day is no longer growing


@dataclass(frozen=True, slots=True)
class GrowingSink:
    """Writes a folder of Parquet files while the job runs, a file per period."""

    refuses: ClassVar[frozenset[DataType]] = OBJECTS

    path: str
    period: float
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
        check_writable(self.path, operator)


def _check_seconds(period: object, operator: str) -> None:
    if isinstance(period, bool) or not isinstance(period, int | float) or not 0 < period < LONGEST_PERIOD:
        raise SinkError(
            f"a period of {period!r} seconds",
            operator=operator,
            hint="Pass seconds, such as 5",
            code=ErrorCode.OUT_OF_RANGE,
        )
