"""A journal's lines in a file, for coordinators that die in tests: the next one reads what the last one wrote."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from rayelastic.errors import ErrorCode, JobExistsError


class FileStore:
    """Lines in a file that only one process uses.

    Args:
        path: The file.

    Raises:
        JobExistsError: Another coordinator of the job uses it.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "a+b", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released when the process ends, in any way
        except OSError as error:
            self._file.close()
            raise JobExistsError(
                f"another coordinator has the journal {path}",
                hint="A job has one coordinator: attach to it",
                code=ErrorCode.SECOND_COORDINATOR,
            ) from error
        self._whole = os.fstat(self._file.fileno()).st_size  # bytes of complete lines

    def lines(self) -> list[str]:
        """Return the stored lines, in order."""
        self._file.seek(0)
        text = self._file.readall()
        whole = text[: text.rfind(b"\n") + 1]
        self._whole = len(whole)
        self._take_back()  # of a process that died during the write, and so hasn't acted
        return whole.decode().splitlines()

    def append(self, line: str, *, alone: bool) -> None:
        """Add a line; it is on the disk when this returns. When it raises, the line is removed, if possible."""
        self._take_back()  # of an earlier failure, if it wasn't possible then
        left = memoryview(f"{line}\n".encode())
        after = self._whole + len(left)
        try:
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except BaseException:
            with suppress(OSError):
                self._take_back()
            raise
        self._whole = after

    def _take_back(self) -> None:
        """Remove an incomplete last line, which would corrupt the next one."""
        if os.fstat(self._file.fileno()).st_size > self._whole:
            self._file.truncate(self._whole)

    def close(self) -> None:
        """Release the file for another coordinator."""
        self._file.close()
