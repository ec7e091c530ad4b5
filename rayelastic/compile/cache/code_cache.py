"""Compiled code shared by processes: one file per key, in a folder that only its owner can write to.

A file is written under another name and renamed, so that many processes may write and read at once. It contains all
inputs of its code, whose hash is its name. A file that can't be read or doesn't match its checksum counts as missing. A
folder that others can write to isn't used, because its files are executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CacheEntry", "CodeCache", "key_of"]

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


class CodeCache:
    """Entries by key, in memory and in a folder.

    Args:
        directory: Created if missing; None: memory alone.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._entries: dict[str, CacheEntry] = {}

    def get(self, key: str) -> CacheEntry | None:
        """Return the entry of a key, None if there is none."""
        if key not in self._entries and self._usable():
            assert self._directory is not None
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                self._entries[key] = _decoded(_path(self._directory, key).read_bytes(), key)
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
            status = self._directory.stat()
        except OSError:
            return False
        return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _path(directory: Path, key: str) -> Path:
    return directory / f"{key}.rel"


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
