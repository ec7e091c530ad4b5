"""Files that a sink writes, on this machine or on another file system: each appears when it is complete.

A file is written under a name that starts with a dot, which readers of folders leave out, and renamed later. A local
one is on the disk before that, and its new name after. On a file system of objects (S3) renaming is a copy.
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

from rayelastic.errors import SinkError, SinkLostError
from rayelastic.graph.edges.locations import LocationError, file_system, local_path, may_return, shown_location

__all__ = ["OutputFolder", "WrittenFile", "hidden_name"]

_OF_OBJECTS = ("s3", "gcs", "abfs")  # file systems without folders of their own
PIECE = 1 << 20  # bytes that are read at once
READERS = 4  # files that are read at the same time


def hidden_name(name: str) -> str:
    """Return what a file is called until it is shown.

    >>> hidden_name("part-0.csv")
    '.part-0.csv.partial'
    """
    return f".{name}.partial"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A complete file.

    Args:
        name: what it is called once it is shown.
        rows: in it.
        size: bytes.
        digest: its SHA-256 in hex.
    """

    name: str
    rows: int
    size: int
    digest: str


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

        try:
            local = local_path(location)
            self._files, path = (fs.LocalFileSystem(), local) if local is not None else file_system(location)
        except LocationError as error:
            raise (SinkLostError if error.is_outage else SinkError)(error.problem, hint=error.hint) from error
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
            found = self._files.get_file_info(fs.FileSelector(str(self._path / below), allow_not_found=True))
        except OSError as error:
            raise self.error(error) from error
        return {one.base_name: one.size for one in found if one.type is fs.FileType.File}

    def changed_at(self, name: str) -> float | None:
        """When a file was last written, in seconds of its file system's wall clock; None: it isn't there.

        Raises:
            SinkError: it can't be looked at.
        """
        with self.raising():
            mtime: int | None = self._files.get_file_info(self._at(name)).mtime_ns
        return None if mtime is None else mtime / 1e9

    def digests(self, names: list[str]) -> dict[str, str]:
        """The SHA-256 of files, in hex; of one that can't be read no value."""
        with ThreadPoolExecutor(READERS, "digests") as readers:
            return {
                name: digest for name, digest in zip(names, readers.map(self._digest, names), strict=True) if digest
            }

    def discard_hidden(self, which: Callable[[str], bool], keep: frozenset[str] = frozenset()) -> None:
        """Remove hidden files that runs have left which ended badly.

        Args:
            which: of the names that such files would have been given.
            keep: names that hidden files keep.
        """
        for name in self.names():
            if (found := _HIDDEN.fullmatch(name)) is not None and found[1] not in keep and which(found[1]):
                self.delete(name)

    def open(self, name: str) -> Any:
        """Begin a file, which is hidden.

        Raises:
            SinkError: nothing can be written there.
        """
        try:
            self.make()
            return self._files.open_output_stream(self._at(hidden_name(name)))
        except OSError as error:
            raise self.error(error) from error

    def make(self, below: str = "") -> None:
        """Make the folder, or one in it; of a store of objects nothing has to be."""
        if self._files.type_name not in _OF_OBJECTS:
            self._files.create_dir(str(self._path / below), recursive=True)

    def read(self, name: str) -> Any:
        """Open a file that is there, for reading anywhere in it.

        Raises:
            OSError: it can't be read.
        """
        return self._files.open_input_file(self._at(name))

    def close(self, file: Any, name: str) -> None:
        """End a file that was begun; it stays hidden, and what was written outlives the machine's loss of power.

        Raises:
            SinkError: its end couldn't be written.
        """
        try:
            file.close()
            if self.is_local:
                _sync(self._at(hidden_name(name)))
        except OSError as error:
            raise self.error(error) from error

    def show(self, name: str, shown: str) -> None:
        """Gives a hidden file its name, in place of what has it; safe to repeat.

        Args:
            name: that it was opened with.
            shown: what it is called from now on.

        Raises:
            SinkError: it isn't there, and no file of that name either, or it can't be renamed.
        """
        try:
            self._files.move(self._at(hidden_name(name)), self._at(shown))
            if self.is_local:
                _sync(str(self._path))
        except OSError as error:
            there = set(self.names())
            if hidden_name(name) in there or shown not in there:
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
            except OSError:  # somebody has written there, or removed it
                return

    def write(self, name: str, data: bytes, *, new: bool) -> bool:
        """Write a small file that readers see at once.

        Args:
            name: of it, perhaps in a folder in this one.
            data: what it has.
            new: only if there is none of that name; otherwise in place of it. A store of objects can't tell.

        Returns:
            Whether it was written.

        Raises:
            SinkError: it can't be written.
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
        """Has a local file be as if it were written now; raises OSError if it isn't there."""
        os.utime(self._at(name))

    def error(self, error: OSError) -> SinkError:
        """What is raised where the file system refuses; a SinkLostError if it may write again later."""
        kind = SinkLostError if may_return(error, self._location) else SinkError
        return kind(f"{self.shown!r} can't be written: {error}", hint="Check rights, space and connection")

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Has what the file system raises in the block be what `error` makes of it."""
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
    """Has a file or folder written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
