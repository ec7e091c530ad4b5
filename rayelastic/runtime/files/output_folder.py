"""Files that a sink writes, on this machine or on another file system: each appears when it is complete.

A file is written under a name that starts with a dot, which readers of folders leave out, and renamed at its end. On a
file system of objects (S3) renaming is a copy.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from rayelastic.errors import SinkError
from rayelastic.graph.edges.locations import LocationError, file_system, local_path, shown_location

__all__ = ["OutputFolder"]

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

    def names(self) -> list[str]:
        """The names of the files in it."""
        from pyarrow import fs

        found = self._files.get_file_info(fs.FileSelector(str(self._path), allow_not_found=True))
        return [one.base_name for one in found if one.type is fs.FileType.File]

    def open(self, name: str) -> Any:
        """Begins a file.

        Raises:
            SinkError: nothing can be written there.
        """
        try:
            if self._files.type_name not in _OF_OBJECTS:
                self._files.create_dir(str(self._path), recursive=True)
            return self._files.open_output_stream(self._partial(name))
        except OSError as error:
            raise self._error(error) from error

    def read(self, name: str) -> Any:
        """Opens a file that is there, for reading anywhere in it.

        Raises:
            OSError: it can't be read.
        """
        return self._files.open_input_file(str(self._path / name))

    def close(self, file: Any, name: str) -> None:
        """Ends a file that was begun: it has its name from now on.

        Raises:
            SinkError: its end couldn't be written.
        """
        try:
            file.close()
            self._files.move(self._partial(name), str(self._path / name))
        except OSError as error:
            raise self._error(error) from error

    def _partial(self, name: str) -> str:
        return str(self._path / f".{name}.partial")

    def _error(self, error: OSError) -> SinkError:
        return SinkError(f"{self._shown!r} can't be written: {error}", way_out="Check rights, space and connection")
