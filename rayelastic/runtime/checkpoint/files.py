"""Snapshots of jobs in a directory or object store: their files, their signature, and the detection of damage.

A snapshot is a folder of chunks and a `manifest.json`. Each chunk is an export of one operator's state (native
`export_chunk`). The manifest is written last: a folder without one isn't a snapshot. It has the SHA-256 of every
chunk, and an HMAC of itself under the user's key, if there is one (reliability rule D7, R15). Python values are only
unpickled if that HMAC is right. Knows neither PEs nor schedulers.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.locations import (
    LocationError,
    below,
    beside,
    file_system,
    local_path,
    may_return,
    shown_location,
)
from rayelastic.errors import DamagedError, ErrorCode, StateError, UnreadableError
from rayelastic.runtime.checkpoint.packing import packed, unpacked
from rayelastic.runtime.values.snapshot import READABLE, Manifest, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow.fs import FileSystem

    from rayelastic.runtime.values.snapshot import Files

MANIFEST = "manifest.json"
CHUNK_BYTES = 4 << 20  # of one file of state
CHECKPOINT_NAME = re.compile(r"\d{8,}")  # of the folder of a checkpoint
SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")  # of a file in the folder; can't name one outside
FILE_MODE, FOLDER_MODE = 0o600, 0o700  # of local files, reliability rule D7


class SnapshotFolder:
    """The files of a snapshot.

    Args:
        snapshot: Its location and key.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        from pyarrow import fs

        self._snapshot = snapshot
        location = str(snapshot.location)
        self._shown = shown_location(location)  # in messages
        self._files: FileSystem
        try:
            if (local := local_path(location)) is not None:
                self._files, self._folder = fs.LocalFileSystem(), str(Path(local).absolute())
            else:
                self._files, self._folder = file_system(location)
        except LocationError as error:
            raise UnreadableError(f"snapshot {error.problem}", hint=error.hint) from None
        self._local = isinstance(self._files, fs.LocalFileSystem)

    @property
    def location(self) -> str:
        """The location."""
        return str(self._snapshot.location)

    def numbered(self) -> list[str]:
        """Return the checkpoints in it, by the names of their folders, the newest first.

        Raises:
            StateError: It can't be accessed.
        """
        from pyarrow import fs

        entries = self._info(fs.FileSelector(self._folder, allow_not_found=True))
        names = (entry.base_name for entry in entries if entry.type is fs.FileType.Directory)
        return sorted((name for name in names if CHECKPOINT_NAME.fullmatch(name)), key=int, reverse=True)

    def has(self, name: str = MANIFEST) -> bool:
        """Return whether a file is in it, by default that of a complete one; raise StateError without access."""
        from pyarrow import fs

        return bool(self._info(f"{self._folder}/{name}").type is not fs.FileType.NotFound)

    def _info(self, what: Any) -> Any:
        try:
            return self._files.get_file_info(what)
        except OSError as error:
            raise self._unreadable(f"can't be looked at: {error}", "Pass a folder that may be read") from None

    def prepare(self) -> None:
        """Make the folder; raise StateError if it has a snapshot already, or isn't writable."""
        if self.has():
            raise self._error("exists already", "Pass another folder, or remove that one")
        self.make()

    def try_out(self) -> None:
        """Check that it can hold snapshots, by writing and removing an empty one; raise StateError if not."""
        trial = SnapshotFolder(Snapshot(below(self.location, f"trial-{secrets.token_hex(4)}")))
        trial.make()
        try:
            trial.write("trial", b"nothing")
        finally:
            trial.remove()

    def enter(self, *, own: bool) -> None:
        """Make an element able to write to the coordinator's folder; raise StateError if it can't.

        It isn't created on another disk, because a checkpoint there could be neither restored nor removed.

        Args:
            own: Each node has its own share, on its own disk.
        """
        if own or not self._local:
            self.make()  # folders of a store are only names
        elif Path(self._folder).is_dir():
            self._check_ours()
        else:
            problem = f"isn't there on {socket.gethostname()}: that node has another disk than the coordinator"
            raise self._error(problem, "Pass a place that every node of the cluster sees")

    def make(self) -> None:
        """Make the folder, if it doesn't exist; raise StateError if it isn't writable."""
        try:
            if self._local:
                for above in filter(lambda parent: not parent.exists(), reversed(Path(self._folder).parents)):
                    above.mkdir(FOLDER_MODE, exist_ok=True)  # `parents=True` would let others read them
                Path(self._folder).mkdir(FOLDER_MODE, exist_ok=True)
                self._check_ours()
            else:
                self._files.create_dir(self._folder, recursive=True)
        except OSError as error:
            raise self._unwritable(error) from None

    def write(self, name: str, data: bytes) -> str:
        """Write a file and return its SHA-256 in hex."""
        path = f"{self._folder}/{name}"
        try:
            if self._local:
                write_private(Path(path), data)
            else:
                with self._files.open_output_stream(path) as stream:
                    stream.write(data)
        except OSError as error:
            raise self._unwritable(error) from None
        return hashlib.sha256(data).hexdigest()

    def write_state(self, name: str, data: bytes) -> tuple[str, int]:
        """Write an export, packed; return the SHA-256 of the file in hex, and its bytes."""
        stored = packed(data)
        return self.write(name, stored), len(stored)

    def take(self, name: str, other: SnapshotFolder) -> bool:
        """Share a file of another snapshot; False: that is impossible, or the file is missing.

        On a local disk it is one file with two names, elsewhere the store copies it.
        """
        target, source = f"{self._folder}/{name}", f"{other._folder}/{name}"
        try:
            if self._local and other._local:
                Path(target).unlink(missing_ok=True)
                os.link(source, target, follow_symlinks=False)
            elif self._local or other._local:
                return False
            else:
                self._files.copy_file(source, target)
        except OSError:
            return False
        return True

    def _check_ours(self) -> None:
        """Raise StateError for a folder in which others could replace files."""
        held = Path(self._folder).stat()
        if held.st_uid != os.geteuid() or held.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise self._error("is a folder that other users may write to", "Pass one of your own, of mode 0700 or 0755")

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""
        with contextlib.suppress(OSError):
            self._files.delete_file(f"{self._folder}/{name}")

    def remove(self) -> None:
        """Remove the whole snapshot."""
        with contextlib.suppress(OSError):
            self._files.delete_dir(self._folder)

    def discard(self) -> None:
        """Remove the manifest, so that it isn't a snapshot any more."""
        self.delete(MANIFEST)

    def write_manifest(self, manifest: Manifest) -> str:
        """Complete the snapshot; return the SHA-256 of the manifest's file in hex."""
        body = json.dumps(manifest.to_json(), sort_keys=True)
        digest, signature = hashlib.sha256(body.encode()).hexdigest(), _sign(self._snapshot.key, body)
        return self.write(MANIFEST, json.dumps({"body": body, "sha256": digest, "hmac": signature}).encode())

    def manifest(self) -> Manifest:
        """Read the manifest; raise StateError if it is damaged, wrongly signed, or of another format."""
        data = self.raw(MANIFEST)
        try:
            document = json.loads(data)
            body, digest, signature = document["body"], document["sha256"], document["hmac"]
            held = json.loads(body)
            right = hmac.compare_digest(hashlib.sha256(body.encode()).hexdigest(), digest)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._damaged(MANIFEST) from None
        if not right:
            raise self._damaged(MANIFEST)
        key = self._snapshot.key
        if key is not None and not hmac.compare_digest(_sign(key, body) or "", str(signature)):
            hint = "Pass the key that it was written with"
            raise self._error("isn't signed with this key", hint, ErrorCode.BAD_SIGNING_KEY)
        if held.get("format") not in READABLE:
            raise self._error(
                f"has format {held.get('format')!r}, this version reads {' and '.join(map(str, READABLE))}",
                "Restore it with the version that wrote it",
                ErrorCode.OLDER_VERSION,
            )
        try:
            manifest = Manifest.from_json(held, self._snapshot.drop, signed=key is not None)
        except (LookupError, TypeError, AttributeError, ValueError):
            raise self._damaged(MANIFEST) from None
        return manifest.renamed(self._snapshot.rename)

    def chunks(self, files: Files) -> Iterator[bytes]:
        """Read files one after the other; raise StateError for one that has changed."""
        for name, digest in files:
            if SAFE_NAME.fullmatch(name) is None:
                raise self._damaged(name)
            data = self.raw(name)
            if not hmac.compare_digest(hashlib.sha256(data).hexdigest(), digest):
                raise self._damaged(name)
            yield data

    def states(self, files: Files) -> Iterator[bytes]:
        """Yield the exports in files that `write_state` wrote; raise StateError as `chunks` does."""
        return map(unpacked, self.chunks(files))

    def raw(self, name: str) -> bytes:
        """Return a file as it is, unchecked; raise StateError if it is missing or unreadable."""
        try:
            with self._files.open_input_stream(f"{self._folder}/{name}") as stream:
                data: bytes = stream.read()
                return data
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            problem = f"has no {name}: it isn't a snapshot, or is incomplete" if missing else f"can't be read: {error}"
            hint = "Pass the folder of job.snapshot(...), job.stop(...) or the checkpoints"
            if missing:
                raise DamagedError(f"snapshot {self._shown} {problem}", hint=hint) from None
            raise self._unreadable(problem, hint) from None

    def _unreadable(self, problem: str, hint: str) -> StateError:
        return UnreadableError(f"snapshot {self._shown} {problem}", hint=hint)

    def _unwritable(self, error: OSError) -> StateError:
        error_of = self._unreadable if may_return(error, self.location) else self._error
        return error_of(f"can't be written: {error}", "Pass a folder with write permission and free space")

    def _damaged(self, name: str) -> StateError:
        problem = f"snapshot {self._shown} is damaged: {name} has changed"
        return DamagedError(problem, hint="Use an earlier snapshot")

    def _error(self, problem: str, hint: str, code: ErrorCode = ErrorCode.BAD_LOCATION) -> StateError:
        return StateError(f"snapshot {self._shown} {problem}", hint=hint, code=code)


def write_private(path: Path, data: bytes) -> None:
    """Write a local file durably, which its owner alone may read."""
    path.unlink(missing_ok=True)  # of a failed attempt; a symlink is removed, never its target
    mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, mode, FILE_MODE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def rows_of(snapshot: Snapshot, *, alone: bool = False) -> Snapshot:
    """Return the location of the rows that sinks have in memory: beside all checkpoints, because they share them.

    Args:
        snapshot: The checkpoint, or savepoint.
        alone: Whether they are in it, as in a savepoint.
    """
    return snapshot if alone else Snapshot(beside(str(snapshot.location), "rows"), key=snapshot.key)


def _sign(key: bytes | None, body: str) -> Any:
    return None if key is None else hmac.new(key, body.encode(), hashlib.sha256).hexdigest()
