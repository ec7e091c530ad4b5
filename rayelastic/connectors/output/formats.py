"""What a format of output files does: write rows, and copy the rows of one file into another."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["COPY_BYTES", "FileFormat"]

COPY_BYTES = 1 << 20  # the size of a read when a file is copied


class FileFormat(Protocol):
    """The format of a file of rows."""

    suffix: str

    def begin(self, file: Any) -> Any:
        """Return pyarrow's writer, with `write_batch` and `close`, on a newly opened file."""
        ...

    def copy(self, before: Any, rows: int, writer: Any, file: Any) -> None:
        """Append the first rows of another file to the file of a writer."""
        ...
