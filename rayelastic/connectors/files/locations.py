"""URIs of files: `file://` is a local path, others are of a file system that pyarrow knows (s3, gs, abfs, hdfs).

A location is an absolute local path or such a URI; it can be shipped, and the process that reads it opens it. Knows no
formats.
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import math
import re
import stat
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rayelastic.errors import ErrorCode, SourceError, SourceLostError

_URI = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]+://|file:/)")
_COLLAPSED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^/]")  # a URI that went through pathlib
_LOCAL = re.compile(r"file:(?://(?:localhost)?(?=/)|(?=/(?!/)))", re.IGNORECASE)
_MAGIC = re.compile(r"[*\[]")
SCHEMES = "file, s3, gs, abfs or hdfs"
EDGE = 4096  # bytes at the start and at the end of a file that identify it while it is read
EDGE_BYTES = 64 << 10  # the same for later runs
_LASTING = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
    *(errno.EINVAL, errno.EBADF, errno.ENAMETOOLONG, errno.ELOOP, errno.ESPIPE, errno.ENOSYS, errno.EFBIG),
}


class LocationError(Exception):
    """A URI that can't be used; the message shows the reason without the URI's secrets."""

    def __init__(
        self,
        problem: str,
        hint: str = "Check the URI, and that this machine may reach it",
        *,
        is_outage: bool = False,
        code: ErrorCode | None = None,
    ) -> None:
        super().__init__(problem)
        self.code = code
        self.problem = problem
        self.hint = hint
        self.is_outage = is_outage  # the store doesn't answer


def is_uri(location: str) -> bool:
    """Distinguish a URI from a local path.

    >>> is_uri("s3://bucket/key"), is_uri("file:/data/a.csv"), is_uri("data/a:b.csv")
    (True, True, False)
    """
    return _URI.match(location) is not None


def local_path(location: str) -> str | None:
    """Return the path of a `file://` URI or a plain path; None for other file systems.

    Raises:
        LocationError: A `file://` URI of another host, or a URI that lost a slash in pathlib.Path.

    >>> local_path("file:///data/a%20b.csv"), local_path("data/a.csv"), local_path("s3://bucket/key")
    ('/data/a b.csv', 'data/a.csv', None)
    """
    match = _LOCAL.match(location)
    if match is not None:
        return urllib.parse.unquote(location[match.end() :])
    if location.lower().startswith("file:/"):
        raise LocationError(f"{location!r} names a file of another host", "Write file:///folder/file")
    if is_uri(location):
        return None
    if _COLLAPSED.match(location) is not None:
        raise LocationError(f"{location!r} is a URI that went through pathlib.Path", "Pass the URI as text")
    return location


def shown_location(location: str) -> str:
    """Return a location without the keys that a URI may contain.

    >>> shown_location("s3://key:secret@bucket/a.csv?region=eu")
    's3://key:***@bucket/a.csv'
    """
    return re.sub(r":[^/:@]*@", ":***@", location.partition("?")[0]) if is_uri(location) else location


def may_return(error: BaseException, location: str) -> bool:
    """Return whether a retry may succeed: the server is down, or the disk is full.

    Args:
        error: The exception that reading or writing raised.
        location: The file. A store's errors have no number; a local error without one is about the content.
    """
    if not isinstance(error, OSError) or error.errno in _LASTING:
        return False
    return error.errno is not None or (is_uri(location) and local_path(location) is None)


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A file at the time when reading began, to be compared with the file at the end.

    Args:
        size: Its size in bytes.
        written: The time of its last change, in ns since 1970.
        inode: Device and number of a local file; empty for a store.
        edges: A hash of its first and last bytes; empty for a store, or if it wasn't computed.
    """

    size: int
    written: int
    inode: tuple[int, int] | tuple[()] = ()
    edges: str = ""

    @staticmethod
    def of(location: str, *, edges: bool = True) -> FileIdentity | None:
        """Return the identity of a file; None if it isn't a regular file.

        Raises:
            OSError: It can't be accessed.
            LocationError: The URI can't be used.
        """
        local = local_path(location)
        if local is None:
            files, inner = file_system(location)
            about = files.get_file_info(inner)
            return FileIdentity(int(about.size or 0), int(about.mtime_ns or 0))
        held = Path(local).stat()
        if not stat.S_ISREG(held.st_mode):
            return None
        inode = (held.st_dev, held.st_ino)
        return FileIdentity(held.st_size, held.st_mtime_ns, inode, _edges(local, held.st_size) if edges else "")

    def change(self, location: str) -> str:
        """Describe how the file has changed since; empty if it hasn't, or has only grown."""
        try:
            now = FileIdentity.of(location, edges=False)
        except FileNotFoundError:
            return "was removed"
        if now is None or now.inode != self.inode:
            return "was replaced by another file"
        if now.size < self.size:
            return f"had {self.size} bytes and has {now.size} now"
        if now.size == self.size or not self.inode:
            return "was written anew" if now.written != self.written or now.size != self.size else ""
        local = local_path(location)
        anew = self.edges and local is not None and _edges(local, self.size) != self.edges
        return "was written anew" if anew else ""

    def check(self, location: str) -> None:
        """Raise SourceError if the file has shrunk or changed, because then its end isn't the end of its rows."""
        if change := self.change(location):
            raise SourceError(
                f"{shown_location(location)!r} {change} while the job read it",
                hint="Write each file under another name, and rename it when it is complete",
                code=ErrorCode.CHANGED_FILE,
            )


def identities(locations: Iterable[str]) -> dict[str, FileIdentity]:
    """Return the identities of local files, by location; those of stores are left out, as each takes a request."""
    identities = {}
    for location in locations:
        with suppress(OSError, LocationError):  # its reader raises the error
            if local_path(location) is not None and (identity := FileIdentity.of(location, edges=False)) is not None:
                identities[location] = identity
    return identities


def _edges(path: str, size: int) -> str:
    with Path(path).open("rb") as file:
        first = file.read(min(EDGE, size))
        file.seek(max(0, size - EDGE))
        return hashlib.sha256(first + file.read(min(EDGE, size))).hexdigest()


def file_edges(location: str) -> tuple[int, int, Callable[[int, int], bytes]]:
    """Return the size of a file, the size of the edges that identify it, and a function that reads a range of bytes.

    Raises:
        OSError: It can't be accessed.
        LocationError: The URI can't be used.
    """
    local = local_path(location)
    if local is None:
        files, inner = file_system(location)
        size = int(files.get_file_info(inner).size or 0)
        return size, 0, lambda start, end: b""  # noqa: ARG005  (its size says much, and more takes two requests)

    def between(start: int, end: int) -> bytes:
        with Path(local).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    return Path(local).stat().st_size, EDGE_BYTES, between


def size_of(location: str) -> float:
    """Return the bytes of a local file; infinity for one of a store, of another machine, or a deleted one."""
    try:
        return math.inf if is_uri(location) else Path(location).stat().st_size
    except OSError:
        return math.inf


def below(location: str, name: str) -> str:
    """Return the location of a name in a folder; a URI keeps its query.

    >>> below("s3://bucket/saved?region=eu", "00000001"), below("/data/saved/", "00000001")
    ('s3://bucket/saved/00000001?region=eu', '/data/saved/00000001')
    """
    path, mark, query = location.partition("?") if is_uri(location) else (location, "", "")
    return f"{path.rstrip('/')}/{name}{mark}{query}"


def beside(location: str, name: str) -> str:
    """Return the location of a name in the same folder as another location; a URI keeps its query.

    >>> beside("s3://bucket/saved/00000001?region=eu", "rows"), beside("/data/saved/00000001", "rows")
    ('s3://bucket/saved/rows?region=eu', '/data/saved/rows')
    """
    path, mark, query = location.partition("?") if is_uri(location) else (location, "", "")
    return below(path.rstrip("/").rpartition("/")[0] + mark + query, name)


def file_system(uri: str) -> tuple[Any, str]:
    """Connect to the file system of a URI; return its pyarrow.fs.FileSystem and the path in it.

    Raises:
        LocationError: An unknown scheme, not a URI, or the file system doesn't answer.
    """
    from pyarrow import fs

    try:
        files, path = fs.FileSystem.from_uri(uri)
    except (ValueError, OSError, NotImplementedError) as error:
        known = "Unrecognized" not in str(error)
        problem = f"{shown_location(uri)!r} can't be opened: {_without(uri, str(error))}"
        raise (
            LocationError(problem, is_outage=may_return(error, uri))
            if known
            else LocationError(
                f"{shown_location(uri)!r} is of a scheme that isn't known", f"Pass a path, or a URI of {SCHEMES}"
            )
        ) from error
    return files, path


def matching(uri: str, *, directories: bool) -> tuple[list[str], str]:
    """List the files of a URI of a file, a folder, or with `*` and `[...]`, sorted, and the folder with all of them.

    Raises:
        LocationError: As for file_system, no file, or a folder if directories are excluded.
    """
    from pyarrow import fs

    path, mark, query = uri.partition("?")
    head, _, rest = path.partition("://")
    parts = rest.split("/")
    fixed = next((number for number, part in enumerate(parts) if _MAGIC.search(part)), len(parts))
    base = f"{head}://{'/'.join(parts[:fixed])}"
    files, folder = file_system(base + mark + query)
    try:
        about = files.get_file_info(folder)
        if fixed == len(parts) and about.type is fs.FileType.File:
            return [uri], ""
        if fixed == len(parts) and about.type is fs.FileType.NotFound:
            raise LocationError(
                f"there is no file {shown_location(uri)!r}", "Check the URI", code=ErrorCode.MISSING_FILE
            )
        if fixed == len(parts) and not directories:
            raise LocationError(
                f"{shown_location(uri)!r} is a folder",
                f"Name files: {shown_location(uri)}/*",
                code=ErrorCode.IS_A_FOLDER,
            )
        listing = files.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=True))
    except OSError as error:
        raise LocationError(f"{shown_location(uri)!r} can't be listed: {_without(uri, str(error))}") from error
    inner = sorted(info.path[len(folder) :].lstrip("/") for info in listing if info.type is fs.FileType.File)
    pattern = _pattern("/".join(parts[fixed:]))
    kept = [name for name in inner if fixed == len(parts) or pattern.fullmatch(name)]
    base = base.rstrip("/")
    return [f"{base}/{urllib.parse.quote(name)}{mark}{query}" for name in kept], base


def readable(location: str) -> Any:
    """Open a location for reading; return a seekable file object.

    Raises:
        LocationError: The file system of the URI doesn't answer.
        OSError: It can't be opened.
    """
    from pyarrow import fs

    path = local_path(location)
    files, path = (fs.LocalFileSystem(), path) if path is not None else file_system(location)
    return files.open_input_file(path)


@contextmanager
def reading(path: str, how: Callable[[], str], hint: str, operator: str | None = None) -> Iterator[None]:
    """Raise a SourceError that names the file for errors of pyarrow and file systems.

    Args:
        path: The file.
        how: What failed: "as JSON", "behind row 7".
        hint: What the user should check.
        operator: The source, if it is known.

    Raises:
        SourceError: The file can't be read, or its content can't be used.
    """
    from pyarrow import ArrowException

    try:
        yield
    except LocationError as error:
        kind = SourceLostError if error.is_outage else SourceError
        raise kind(error.problem, operator=operator, hint=error.hint, code=error.code) from error
    except (ArrowException, ValueError, NotImplementedError, OSError) as error:
        problem = f"{shown_location(path)!r} can't be read {how()}: {error}"
        if may_return(error, path):
            raise SourceLostError(problem, operator=operator, hint=hint) from error
        raise SourceError(problem, operator=operator, hint=hint, code=ErrorCode.MALFORMED_FILE) from error


def _pattern(glob: str) -> re.Pattern[str]:
    """Make a regular expression of a glob: `*` matches within a folder, `**` across folders."""
    parts = []
    for number, part in enumerate(glob.split("/")):
        last = number == glob.count("/")
        if part == "**":
            parts.append(".*" if last else "(?:[^/]+/)*")
        else:
            expression = fnmatch.translate(part).removeprefix("(?s:").removesuffix(r")\Z").replace(".*", "[^/]*")
            parts.append(expression if last else expression + "/")
    return re.compile("".join(parts))


def _without(uri: str, text: str) -> str:
    """Remove the secrets of a URI from a message."""
    return text.replace(uri, shown_location(uri)).partition("; Details:")[0]
