"""File names as users write them: one or several, globs, '~', URIs, directories of a source. Reads nothing."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from rayelastic.connectors.files.locations import LocationError, file_system, local_path, matching, shown_location
from rayelastic.errors import ErrorCode, SinkError, SourceError

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def expanded(paths: Paths, operator: str, *, directories: bool) -> tuple[str, ...]:
    """List the files of paths, URIs and globs, paths absolute, each pattern's matches sorted.

    Args:
        paths: One path or URI, or several; `*`, `?`, `[...]` and `**` are globs (`?` not in URIs).
        operator: The operator, for the message.
        directories: Whether a directory stands for all files below it.

    Raises:
        SourceError: A pattern without matches, a directory if they are excluded, or an unreadable file.
    """
    return tuple(path for path, _ in found_files(paths, operator, directories=directories))


def found_files(paths: Paths, operator: str, *, directories: bool) -> list[tuple[str, str]]:
    """List files as `expanded` does, each with its root: the directory, the folder before a glob, or ''."""
    files: list[tuple[str, str]] = []
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise SourceError(
            "no path",
            operator=operator,
            hint="Pass a file, a glob or several of them",
            code=ErrorCode.MISSING_FILE,
        )
    for path in given:
        files.extend(_found(os.fspath(path), operator, directories))
    return files


def _found(given: str, operator: str, directories: bool) -> list[tuple[str, str]]:
    try:
        local = local_path(given)
        if local is None:
            remote, root = matching(given, directories=directories)
            if not remote:
                raise LocationError(
                    f"no file matches {shown_location(given)!r}", "Check the URI", code=ErrorCode.MISSING_FILE
                )
            return [(name, root) for name in remote]
    except LocationError as error:
        raise SourceError(error.problem, operator=operator, hint=error.hint, code=error.code) from error
    pattern = str(Path(local).expanduser())
    matches = _matches(pattern, directories)
    if not matches:
        raise SourceError(
            f"no file matches {given!r}", operator=operator, hint=_nearest(pattern), code=ErrorCode.MISSING_FILE
        )
    for name in matches:
        _check_readable(name, operator)
    return [(str(Path(name).absolute()), _root(pattern)) for name in matches]


def _root(pattern: str) -> str:
    """Return the root folder of a path or glob; '' for a file."""
    path = Path(pattern).absolute()
    if not path.exists():
        while glob.has_magic(str(path)):
            path = path.parent
    return str(path) if path.is_dir() else ""


def written_to(given: str | os.PathLike[str], operator: str) -> str:
    """Return the location of a sink's path: an absolute local path or a URI.

    Raises:
        SinkError: The URI can't be used.
    """
    try:
        local = local_path(os.fspath(given))
    except LocationError as error:
        raise SinkError(error.problem, operator=operator, hint=error.hint, code=error.code) from error
    return os.fspath(given) if local is None else str(Path(local).expanduser().absolute())


def single(paths: Paths, operator: str, function: str) -> str:
    """Return the location of a sink's path, absolute, because the sink may run in another working directory.

    Raises:
        SinkError: Several paths, or a URI that can't be used.
    """
    if not isinstance(paths, str | os.PathLike):
        raise SinkError(
            "a sink writes to one path",
            operator=operator,
            hint=f"Pass rel.{function} one path",
            code=ErrorCode.WRONG_TYPE,
        )
    return written_to(paths, operator)


def _matches(pattern: str, directories: bool) -> Iterable[str]:
    """List the files of one path or glob, each once."""
    is_glob = glob.has_magic(pattern) and not Path(pattern).exists()
    names: dict[str, None] = {}
    for match in sorted(glob.glob(pattern, recursive=True)) if is_glob else [pattern]:  # noqa: PTH207  (absolute ones)
        path = Path(match)
        if path.is_dir() and directories:
            names.update(dict.fromkeys(sorted(str(f) for f in path.rglob("*") if f.is_file())))
        elif not path.is_dir() or not is_glob:
            names[match] = None
    return names


def _check_readable(name: str, operator: str) -> None:
    path = Path(name)
    if path.is_dir():
        hint = f"Name files, for example {name.rstrip('/')}/*"
        raise SourceError(f"{name!r} is a directory", operator=operator, hint=hint, code=ErrorCode.IS_A_FOLDER)
    if not path.exists():
        raise SourceError(
            f"there is no file {name!r}", operator=operator, hint=_nearest(name), code=ErrorCode.MISSING_FILE
        )
    if not os.access(name, os.R_OK):
        raise SourceError(
            f"{name!r} can't be read",
            operator=operator,
            hint="Change its permissions for this user",
            code=ErrorCode.NO_PERMISSION,
        )


def _nearest(name: str) -> str:
    """Describe which part of a path exists."""
    parent = Path(name).absolute().parent
    while glob.has_magic(str(parent)) or not parent.exists():
        parent = parent.parent
    return f"Check the path: {parent} exists, what follows it doesn't"


def check_writable(path: str, operator: str) -> None:
    """Check that a file or directory can be created at the path; for a URI, that its file system answers.

    Raises:
        SinkError: The nearest existing directory above it isn't a directory, or isn't writable.
    """
    try:
        local = local_path(path)
        if local is None:
            file_system(path)
            return
    except LocationError as error:
        raise SinkError(error.problem, operator=operator, hint=error.hint, code=error.code) from error
    target = Path(local)
    if target.exists():
        if not os.access(target, os.W_OK):
            raise SinkError(
                f"{path!r} can't be written",
                operator=operator,
                hint="Choose another path, or change its permissions",
                code=ErrorCode.NO_PERMISSION,
            )
        return
    parent = target.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise SinkError(
            f"{path!r}: {parent} isn't a directory",
            operator=operator,
            hint="Choose another path",
            code=ErrorCode.NOT_WRITABLE,
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise SinkError(
            f"{path!r}: no file can be created in {parent}",
            operator=operator,
            hint="Choose another path",
            code=ErrorCode.NOT_WRITABLE,
        )
