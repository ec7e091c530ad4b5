"""The files of a sink, on this machine or on another file system: each appears when it is complete.

A file is written under a name that starts with a dot, which readers of folders ignore, and renamed later. A local one
is synced to disk before that, and its new name after. On an object store (S3) renaming is a copy.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rayelastic.connectors.files.locations import LocationError, file_system, local_path, may_return, shown_location
from rayelastic.errors import SinkError, SinkLostError

__all__ = ["OutputFolder", "WrittenFile", "hidden_name"]

_OF_OBJECTS = ("s3", "gcs", "abfs")  # object stores, without folders of their own
PIECE = 1 << 20  # the bytes of one read
READERS = 4  # files that are read concurrently


def hidden_name(name: str) -> str:
    """Return the name of a file until it is shown.

    >>> hidden_name("part-0.csv")
    '.part-0.csv.partial'
    """
    return f".{name}.partial"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A complete file.

    Args:
        name: Its name once it is shown.
        rows: The number of its rows.
        size: Its bytes.
        digest: Its SHA-256 in hex.
    """

    name: str
    rows: int
    size: int
    digest: str


class OutputFolder:
    """A folder of output files; made with its first file.

    Args:
        location: A path or URI of the folder.
        is_file: Whether the location may be a file's: it is, if it has a suffix. Then the folder is the one around it,
            and `file` its name.

    Raises:
        SinkError: The URI can't be used.
    """

    def __init__(self, location: str, *, is_file: bool = False) -> None:
        from pyarrow import fs

        try:
            local = local_path(location)
            self._files, path = (fs.LocalFileSystem(), local) if local is not None else file_system(location)
        except LocationError as error:
            raise (SinkLostError if error.is_outage else SinkError)(
                error.problem, hint=error.hint, code=error.code
            ) from error
        self._location = location
        self.is_local = local is not None
        is_file = is_file and bool(PurePosixPath(path).suffix)
        where = PurePosixPath(os.path.realpath(path) if self.is_local else path)
        self.shown = str(where) if self.is_local else shown_location(location).rstrip("/")  # the same for all paths
        self.file = where.name if is_file else ""
        self._path = where.parent if self.file else where

    def names(self) -> list[str]:
        """Return the names of the files in it."""
        return list(self.sizes())

    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the files in it, or in a folder in it, and their bytes.

        Raises:
            SinkError: it can't be listed.
        """
        from pyarrow import fs

        try:
            listing = self._files.get_file_info(fs.FileSelector(str(self._path / below), allow_not_found=True))
        except OSError as error:
            raise self.error(error) from error
        return {info.base_name: info.size for info in listing if info.type is fs.FileType.File}

    def changed_at(self, name: str) -> float | None:
        """Return when a file was last written, in seconds of its file system's wall clock; None: it doesn't exist.

        Raises:
            SinkError: It can't be accessed.
        """
        with self.raising():
            mtime: int | None = self._files.get_file_info(self._at(name)).mtime_ns
        return None if mtime is None else mtime / 1e9

    def digests(self, names: list[str]) -> dict[str, str]:
        """Return the SHA-256 of files, in hex, except unreadable ones."""
        with ThreadPoolExecutor(READERS, "digests") as readers:
            return {
                name: digest for name, digest in zip(names, readers.map(self._digest, names), strict=True) if digest
            }

    def discard_hidden(self, which: Callable[[str], bool], keep: frozenset[str] = frozenset()) -> None:
        """Remove hidden files that failed runs have left.

        Args:
            which: Returns whether a shown name is of such a file.
            keep: Shown names of files to keep.
        """
        for name in self.names():
            if (found := _HIDDEN.fullmatch(name)) is not None and found[1] not in keep and which(found[1]):
                self.delete(name)

    def open(self, name: str) -> Any:
        """Begin a file, which is hidden.

        Raises:
            SinkError: It can't be written there.
        """
        try:
            self.make()
            return self._files.open_output_stream(self._at(hidden_name(name)))
        except OSError as error:
            raise self.error(error) from error

    def make(self, below: str = "") -> None:
        """Make the folder, or one in it; an object store needs none."""
        if self._files.type_name not in _OF_OBJECTS:
            self._files.create_dir(str(self._path / below), recursive=True)

    def read(self, name: str) -> Any:
        """Open an existing file for random reads.

        Raises:
            OSError: it can't be read.
        """
        return self._files.open_input_file(self._at(name))

    def close(self, file: Any, name: str) -> None:
        """End a file; it stays hidden, and its content survives a loss of power.

        Raises:
            SinkError: Its end couldn't be written.
        """
        try:
            file.close()
            if self.is_local:
                _sync(self._at(hidden_name(name)))
        except OSError as error:
            raise self.error(error) from error

    def show(self, name: str, shown: str) -> None:
        """Show a hidden file under its name, and replace another one of that name; safe to repeat.

        Args:
            name: The name that it was opened with.
            shown: Its name from now on.

        Raises:
            SinkError: Neither exists, or it can't be renamed.
        """
        try:
            self._files.move(self._at(hidden_name(name)), self._at(shown))
            if self.is_local:
                _sync(str(self._path))
        except OSError as error:
            names = set(self.names())
            if hidden_name(name) in names or shown not in names:
                raise self.error(error) from error

    def delete(self, name: str) -> None:
        """Remove a file, if it is there.

        Raises:
            SinkError: it can't be removed.
        """
        try:
            self._files.delete_file(self._at(name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise self.error(error) from error

    def delete_folder(self, below: str) -> None:
        """Remove an empty folder in it; one that isn't empty stays."""
        if self.is_local and not self.sizes(below):
            try:
                Path(self._at(below)).rmdir()
            except OSError:  # another process has written there, or removed it
                return

    def write(self, name: str, data: bytes, *, new: bool) -> bool:
        """Write a small file that readers see at once.

        Args:
            name: Its name, possibly in a folder in this one.
            data: Its content.
            new: Only if the name is free; otherwise replace it. An object store can't check that.

        Returns:
            Whether it was written.

        Raises:
            SinkError: It can't be written.
        """
        try:
            if not self.is_local:
                with self._files.open_output_stream(self._at(name)) as stream:
                    stream.write(data)
                return True
            path = self._at(name) if new else f"{self._at(name)}.{os.getpid()}"
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_EXCL if new else 0), 0o644), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if not new:
                Path(path).replace(self._at(name))
        except FileExistsError:
            return False
        except OSError as error:
            raise self.error(error) from error
        return True

    def touch(self, name: str) -> None:
        """Set the time of a local file to now; raise OSError if it doesn't exist."""
        os.utime(self._at(name))

    def error(self, error: OSError) -> SinkError:
        """Return the error to raise for one of the file system; a SinkLostError if a retry may succeed."""
        kind = SinkLostError if may_return(error, self._location) else SinkError
        return kind(f"{self.shown!r} can't be written: {error}", hint="Check rights, space and connection")

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Convert the file system's errors in the block by `error`."""
        try:
            yield
        except OSError as error:
            raise self.error(error) from error

    def _at(self, name: str) -> str:
        return str(self._path / name)

    def _digest(self, name: str) -> str:
        sha = hashlib.sha256()
        try:
            with self.read(name) as file:
                while piece := file.read(PIECE):
                    sha.update(piece)
        except OSError as error:
            if may_return(error, self._location):
                raise self.error(error) from error
            return ""
        return sha.hexdigest()


_HIDDEN = re.compile(r"\.(.+)\.partial")


def _sync(path: str) -> None:
    """Sync a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
