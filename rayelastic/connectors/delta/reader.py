"""Reads one version of a Delta table: the Parquet files that its log names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic.connectors.files.locations import shown_location
from rayelastic.connectors.parquet.reader import ParquetReader
from rayelastic.errors import ErrorCode, StateError

if TYPE_CHECKING:
    from rayelastic.connectors.inputs import Input


class DeltaReader(ParquetReader):
    """Reads the files of the version that the job began with."""

    def seek(self, position: int, saved: Input | None) -> int:
        """Begin at a row of the saved version.

        Raises:
            StateError: It is of another table, or damaged.
            SourceError: The version can't be read any more.
        """
        if saved is not None and saved.position is not None:
            try:
                table, version = str(saved.position["table"]), int(saved.position["version"])
            except (KeyError, TypeError, ValueError):
                raise StateError("its position in the snapshot is damaged", code=ErrorCode.DAMAGED_POSITION) from None
            body, here = self.body, shown_location(self.body.table)
            is_other = body.is_chosen and version != body.version
            if table != here or is_other:
                now = f"version {body.version}" if is_other else f"table {here!r}"
                raise StateError(
                    f"the snapshot has its position in version {version} of table {table!r}, and it reads {now} now",
                    hint="Name that table and no version, or drop the source from the snapshot: "
                    "rel.Snapshot(..., drop=['its name'])",
                    code=ErrorCode.CHANGED_INPUT,
                )
            if version != body.version:
                self.body = body.at(version)
        return super().seek(position, saved)

    def position(self, emitted: int) -> object:  # noqa: ARG002  (the number of rows is beside it)
        """Return the table and its version."""
        return {"table": shown_location(self.body.table), "version": self.body.version}
