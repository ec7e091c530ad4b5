"""Compiled code shared by processes: one file per key, in a folder that only its owner can write to.

A file is written under another name and renamed, so that many processes may write and read at once. It contains all
inputs of its code, whose hash is its name. A file that can't be read or doesn't match its checksum counts as missing. A
folder or a file that others can write to isn't used, because its content is executed. A checksum beside it proves
nothing against who can write both. Links aren't followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import stat
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_log = logging.getLogger(__name__)

_MAGIC = "rayelastic-code-3"


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The cached result for one function; if it can't be compiled, only `output` is set, to the reason as JSON.

    Args:
        entry: The symbol of its rel_process function.
        image: The object file.
        imports: The names that it imports.
        in_place: Whether the output buffer may be the input buffer.
        output: 'declared', 'input', 'class:<name>', or the columns of the inferred schema as JSON.
        inputs: All that it depends on (keys.py); its hash is the key.
    """

    entry: str
    image: bytes
    imports: tuple[str, ...]
    in_place: bool
    output: str
    inputs: bytes = b""


def key_of(inputs: bytes) -> str:
    """Return the key of an entry with these inputs."""
    return hashlib.sha256(inputs).hexdigest()


def problem_of(folder: Path) -> str:
    """Return why machine code from a folder isn't trusted; empty: it is, or there is no folder."""
    try:
        return _not_own(folder.lstat(), stat.S_ISDIR)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error)


def _not_own(status: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """Return why a file or folder isn't this user's alone; empty: it is."""
    if not is_kind(status.st_mode):
        return "it is a link, or of another kind"
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others may write there"
    return ""


class CodeCache:
    """Entries by key, in memory and in a folder.

    Args:
        directory: Created if missing; None: memory alone.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._entries: dict[str, CacheEntry] = {}
        self._warned = False

    def get(self, key: str) -> CacheEntry | None:
        """Return the entry of a key, None if there is none."""
        if key not in self._entries and self._usable():
            assert self._directory is not None
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                self._entries[key] = _decoded(_read_own(_path(self._directory, key)), key)
        return self._entries.get(key)

    def put(self, entry: CacheEntry) -> None:
        """Store an entry; if the folder isn't writable, the next process compiles again."""
        key = key_of(entry.inputs)
        self._entries[key] = entry
        raw = _encoded(entry)
        with contextlib.suppress(ValueError, KeyError, TypeError):
            if not self._usable() or _decoded(raw, key) != entry:  # a test may have replaced the writing function
                return
        assert self._directory is not None
        with contextlib.suppress(OSError):
            handle, aside = tempfile.mkstemp(dir=self._directory, prefix=".writing-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(raw)
                Path(aside).replace(_path(self._directory, key))
            except OSError:
                Path(aside).unlink(missing_ok=True)

    def _usable(self) -> bool:
        if self._directory is None:
            return False
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return False
        problem = problem_of(self._directory)
        if problem and not self._warned:
            self._warned = True
            _log.warning("machine code in %s isn't used: %s (rayelastic doctor)", self._directory, problem)
        return not problem


def _path(directory: Path, key: str) -> Path:
    return directory / f"{key}.rel"


def _read_own(path: Path) -> bytes:
    """Return the content of a file that this user alone can write; raise OSError or ValueError of any other."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if problem := _not_own(status, stat.S_ISREG):
            raise ValueError(problem)
        if status.st_nlink > 1:
            raise ValueError("it has a second name")
        return file.read()


def _encoded(entry: CacheEntry) -> bytes:
    inputs = zlib.compress(entry.inputs)
    head = {
        "format": _MAGIC,
        "entry": entry.entry,
        "imports": entry.imports,
        "in_place": entry.in_place,
        "output": entry.output,
        "inputs": len(inputs),
    }
    rest = json.dumps(head).encode() + b"\n" + inputs + entry.image
    return hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _decoded(raw: bytes, key: str) -> CacheEntry:
    digest, _, rest = raw.partition(b"\n")
    if hashlib.sha256(rest).hexdigest().encode() != digest:
        raise ValueError("not an entry, or a damaged one")
    line, _, rest = rest.partition(b"\n")
    head = json.loads(line)
    if head["format"] != _MAGIC:
        raise ValueError("an entry of another release")
    inputs, image = zlib.decompress(rest[: head["inputs"]]), rest[head["inputs"] :]
    if key_of(inputs) != key:
        raise ValueError("an entry of something else")
    return CacheEntry(head["entry"], image, tuple(head["imports"]), head["in_place"], head["output"], inputs)
