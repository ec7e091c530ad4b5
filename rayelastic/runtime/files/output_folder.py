"""Files that a sink writes, on this machine or on another file system: each appears when it is complete.

A file is written under a name that starts with a dot, which readers of folders leave out, and renamed later. A local
one is on the disk before that, and its new name after. On a file system of objects (S3) renaming is a copy. Each writer
has hidden names of its own, so that one that was given up, but still runs, touches nothing of its successor's.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Container
from pathlib import PurePosixPath
from typing import Any

from rayelastic.errors import SinkError
from rayelastic.graph.edges.locations import LocationError, file_system, local_path, shown_location

__all__ = ["OutputFolder"]

_HIDDEN = re.compile(r"\.(.+)\.[0-9a-f]{8}\.partial")
_OF_OBJECTS = ("s3", "gcs", "abfs")  # file systems without folders of their own


class OutputFolder:
    """A folder to write files into; made with its first file.

    Args:
        location: a path or URI of the folder.
        is_file: whether the location may be that of a file: it is, if it has a suffix. Then the folder is the one
            around it, and `file` its name.

    Raises:
        SinkError: a URI that can't be used.
    """

    def __init__(self, location: str, *, is_file: bool = False) -> None:
        from pyarrow import fs

        self._shown = shown_location(location)
        try:
            local = local_path(location)
            self._files, path = (fs.LocalFileSystem(), local) if local is not None else file_system(location)
        except LocationError as error:
            raise SinkError(error.problem, way_out=error.way_out) from error
        where = PurePosixPath(path)
        self.file = where.name if is_file and where.suffix else ""
        self._path = where.parent if self.file else where
        self._local = local is not None
        self._token = secrets.token_hex(4)

    def names(self) -> list[str]:
        """The names of the files in it."""
        from pyarrow import fs

        found = self._files.get_file_info(fs.FileSelector(str(self._path), allow_not_found=True))
        return [one.base_name for one in found if one.type is fs.FileType.File]

    def discard_hidden(self, pattern: re.Pattern[str], keep: Container[str] = ()) -> None:
        """Removes what runs that ended badly have left.

        Args:
            pattern: of the names that such files would have been given.
            keep: hidden names that stay.
        """
        for name in self.names():
            found = _HIDDEN.fullmatch(name)
            if found is not None and name not in keep and pattern.fullmatch(found[1]):
                self.delete(name)

    def hidden_name(self, name: str) -> str:
        """What a file is called until it is shown."""
        return f".{name}.{self._token}.partial"

    def open(self, name: str) -> Any:
        """Begins a file, which is hidden.

        Raises:
            SinkError: nothing can be written there.
        """
        try:
            if self._files.type_name not in _OF_OBJECTS:
                self._files.create_dir(str(self._path), recursive=True)
            return self._files.open_output_stream(self._at(self.hidden_name(name)))
        except OSError as error:
            raise self._error(error) from error

    def read(self, name: str) -> Any:
        """Opens a file that is there, for reading anywhere in it.

        Raises:
            OSError: it can't be read.
        """
        return self._files.open_input_file(self._at(name))

    def close(self, file: Any, name: str) -> None:
        """Ends a file that was begun; it stays hidden, and what was written outlives the machine's loss of power.

        Raises:
            SinkError: its end couldn't be written.
        """
        try:
            file.close()
            if self._local:
                _sync(self._at(self.hidden_name(name)))
        except OSError as error:
            raise self._error(error) from error

    def show(self, hidden: str, name: str) -> None:
        """Gives a hidden file its name, in place of what has it; safe to repeat.

        Raises:
            SinkError: it isn't there, and no file of that name either, or it can't be renamed.
        """
        try:
            self._files.move(self._at(hidden), self._at(name))
            if self._local:
                _sync(str(self._path))
        except OSError as error:
            there = set(self.names())
            if hidden in there or name not in there:
                raise self._error(error) from error

    def delete(self, name: str) -> None:
        """Removes a file, if it is there.

        Raises:
            SinkError: it can't be removed.
        """
        try:
            self._files.delete_file(self._at(name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._error(error) from error

    def _at(self, name: str) -> str:
        return str(self._path / name)

    def _error(self, error: OSError) -> SinkError:
        return SinkError(f"{self._shown!r} can't be written: {error}", way_out="Check rights, space and connection")


def _sync(path: str) -> None:
    """Has a file or folder written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
