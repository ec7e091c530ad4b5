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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.files.locations import (
    LocationError,
    below,
    beside,
    file_system,
    is_uri,
    local_path,
    may_return,
    shown_location,
)
from rayelastic.connectors.inputs import Input
from rayelastic.connectors.output.record import Output
from rayelastic.errors import ConfigError, DamagedError, ErrorCode, StateError, UnreadableError
from rayelastic.graph.records.shown import shown
from rayelastic.runtime.manifest import Manifest, Part
from rayelastic.runtime.packing import packed, unpacked

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = ["FORMAT", "Manifest", "Part", "Snapshot", "SnapshotFolder", "rows_folder"]

FORMAT = 4  # of manifest and files
READ = (2, 3, FORMAT)  # readable formats; in 2 no file was packed, before 4 no sink kept a ledger of its parts
MANIFEST = "manifest.json"
SHORTEST_KEY = 16  # bytes
CHUNK_BYTES = 4 << 20  # of one file of state
CHECKPOINT_NAME = re.compile(r"\d{8,}")  # of the folder of a checkpoint
SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")  # of a file in the folder; can't name one outside
FILE_MODE, FOLDER_MODE = 0o600, 0o700  # of local files, reliability rule D7


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The location of a job's saved state.

    Args:
        location: A folder, or a URI that `pyarrow.fs` knows, such as 's3://bucket/folder'. Every PE has
            to reach it. A relative path is relative to the calling process. A missing local folder is made; only its
            owner may be allowed to write there.
        key: Secret bytes (16 or more) that sign the snapshot. Required if an operator keeps Python values.
        drop: Operators whose state isn't restored, because the topology lacks them. Also sources to read from the
            start, and sinks to begin anew, replacing the output of the first run.
        rename: {name in the snapshot: name in the topology}, of renamed operators.

    Raises:
        ConfigError: An invalid location, too short a key, or two operators of one name.

    >>> Snapshot("/tmp/counts", key=b"0123456789abcdef")
    Snapshot(location='/tmp/counts', drop=(), rename={})
    """

    location: str | Path
    key: bytes | None = field(default=None, repr=False)
    drop: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        location: object = self.location
        if not (isinstance(location, str | Path) and str(location)):
            hint = "Pass a folder, or a URI such as s3://b/f"
            raise ConfigError(f"Snapshot({location!r}): no location", hint=hint, code=ErrorCode.BAD_LOCATION)
        object.__setattr__(self, "location", str(location) if is_uri(str(location)) else str(Path(location).absolute()))
        key: object = self.key
        if key is not None and not (isinstance(key, bytes) and len(key) >= SHORTEST_KEY):
            hint = "Make one with secrets.token_bytes(32) and keep it where the job can read it"
            problem = f"Snapshot(key=...) needs {SHORTEST_KEY} bytes or more"
            raise ConfigError(problem, hint=hint, code=ErrorCode.BAD_SIGNING_KEY)
        drop: object = self.drop
        names = () if isinstance(drop, str | bytes) or not isinstance(drop, Iterable) else tuple(drop)
        if (drop and not names) or not all(isinstance(name, str) for name in names):  # the letters of a text aren't
            hint = "Pass drop=('name', 'another')"
            raise ConfigError(f"Snapshot(drop={shown(drop)}): no names", hint=hint, code=ErrorCode.WRONG_TYPE)
        object.__setattr__(self, "drop", names)
        object.__setattr__(self, "rename", dict(self.rename))
        if len(set(self.rename.values())) < len(self.rename):
            raise ConfigError(
                f"Snapshot(rename={self.rename}): two operators have one new name",
                hint="Rename each to another name, and drop the state of one",
                code=ErrorCode.DUPLICATE_NAME,
            )


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

        try:
            found = self._files.get_file_info(fs.FileSelector(self._folder, allow_not_found=True))
        except OSError as error:
            raise self._unreadable(f"can't be looked at: {error}", "Pass a folder that may be read") from None
        names = (one.base_name for one in found if one.type is fs.FileType.Directory)
        return sorted((name for name in names if CHECKPOINT_NAME.fullmatch(name)), key=int, reverse=True)

    def is_there(self) -> bool:
        """Return whether it is a complete snapshot; raise StateError if it can't be accessed."""
        return self.has(MANIFEST)

    def has(self, name: str) -> bool:
        """Return whether a file is in it; raise StateError if it can't be accessed."""
        from pyarrow import fs

        try:
            return bool(self._files.get_file_info(f"{self._folder}/{name}").type is not fs.FileType.NotFound)
        except OSError as error:
            raise self._unreadable(f"can't be looked at: {error}", "Pass a folder that may be read") from None

    def prepare(self) -> None:
        """Make the folder; raise StateError if it has a snapshot already, or isn't writable."""
        if self.is_there():
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
                for above in filter(lambda one: not one.exists(), reversed(Path(self._folder).parents)):
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
                self._write_local(Path(path), data)
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
        here, there = f"{self._folder}/{name}", f"{other._folder}/{name}"
        try:
            if self._local and other._local:
                Path(here).unlink(missing_ok=True)
                os.link(there, here, follow_symlinks=False)
            elif self._local or other._local:
                return False
            else:
                self._files.copy_file(there, here)
        except OSError:
            return False
        return True

    @staticmethod
    def _write_local(path: Path, data: bytes) -> None:
        path.unlink(missing_ok=True)  # of a failed attempt; a symlink is removed, never its target
        mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path, mode, FILE_MODE), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

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

    def write_manifest(
        self,
        job: str,
        forms: Mapping[str, str],
        parts: Sequence[Part],
        plan: Mapping[str, Any],
        *,
        alone: bool = False,
        told: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Complete the snapshot; see Manifest. `told` has its shapes and automatic names."""
        files: dict[str, list[tuple[str, str]]] = {}
        for part in parts:
            for operator, written in part.files.items():
                files.setdefault(operator, []).extend(written)
        body = json.dumps(
            {
                "format": FORMAT,
                "job": job,
                "plan": dict(plan),
                "alone": alone,
                **(told or {}),
                "forms": dict(forms),
                "positions": {source: at for part in parts for source, at in part.positions.items()},
                "files": files,
                "inputs": {source: asdict(what) for part in parts for source, what in part.inputs.items()},
                "outputs": {sink: asdict(what) for part in parts for sink, what in part.outputs.items()},
            },
            sort_keys=True,
        )
        key = self._snapshot.key
        document = {"body": body, "sha256": hashlib.sha256(body.encode()).hexdigest(), "hmac": _sign(key, body)}
        self.write(MANIFEST, json.dumps(document).encode())

    def manifest(self) -> Manifest:
        """Read the manifest; raise StateError if it is damaged, wrongly signed, or of another format."""
        data = self._read(MANIFEST)
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
        if held.get("format") not in READ:
            raise self._error(
                f"has format {held.get('format')!r}, this version reads {' and '.join(map(str, READ))}",
                "Restore it with the version that wrote it",
                ErrorCode.OLDER_VERSION,
            )
        try:
            manifest = self._manifest_of(held)
        except (LookupError, TypeError, AttributeError, ValueError):
            raise self._damaged(MANIFEST) from None
        return manifest.renamed(self._snapshot.rename)

    def _manifest_of(self, held: dict[str, Any]) -> Manifest:
        files = {name: [(str(f), str(d)) for f, d in some] for name, some in held["files"].items()}
        inputs = {name: Input(**one) for name, one in held["inputs"].items()}
        lost = () if held["format"] == FORMAT else held["outputs"].keys() - set(self._snapshot.drop)
        outputs = {name: Output.saved(name, one, name not in lost) for name, one in held["outputs"].items()}
        positions = {name: int(at) for name, at in held["positions"].items()}
        signed, plan, alone = self._snapshot.key is not None, held.get("plan", {}), bool(held.get("alone"))
        shapes, automatic = dict(held.get("shapes", {})), dict(held.get("automatic", {}))
        return Manifest(
            held["job"], dict(held["forms"]), positions, files, inputs, outputs, signed, plan, alone, shapes, automatic
        )

    def chunks(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        """Read files one after the other; raise StateError for one that has changed."""
        for name, digest in files:
            if SAFE_NAME.fullmatch(name) is None:
                raise self._damaged(name)
            data = self._read(name)
            if not hmac.compare_digest(hashlib.sha256(data).hexdigest(), digest):
                raise self._damaged(name)
            yield data

    def states(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        """Yield the exports in files that `write_state` wrote; raise StateError as `chunks` does."""
        return map(unpacked, self.chunks(files))

    def _read(self, name: str) -> bytes:
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


def rows_beside(snapshot: Snapshot) -> Snapshot:
    """Return the location of rows that sinks have in memory: beside all checkpoints, because they share them."""
    return Snapshot(beside(str(snapshot.location), "rows"), key=snapshot.key)


def rows_folder(snapshot: Snapshot, *, alone: bool = False) -> SnapshotFolder:
    """Return the same, as a folder; alone: in the snapshot itself, as for a savepoint."""
    return SnapshotFolder(snapshot if alone else rows_beside(snapshot))


def _sign(key: bytes | None, body: str) -> Any:
    return None if key is None else hmac.new(key, body.encode(), hashlib.sha256).hexdigest()
