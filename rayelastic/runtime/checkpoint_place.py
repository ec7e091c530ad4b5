"""The files beside checkpoints at their location: their key, the writing job, and whether one was complete.

A key beside checkpoints lets another job restore them after the first one was lost with its secret. It protects them
from everybody who may not read the folder. In an object store it wouldn't, so no key is stored there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
from pathlib import Path

from rayelastic.connectors.files.locations import local_path
from rayelastic.connectors.output.folder import OutputFolder
from rayelastic.connectors.output.owner import OutputOwner
from rayelastic.connectors.output.record import SinkContext
from rayelastic.errors import ErrorCode, SinkError, SinkTakenError, StateError, UnreadableError
from rayelastic.runtime.snapshot import CHECKPOINT_NAME, FILE_MODE, SHORTEST_KEY, Snapshot, SnapshotFolder

__all__ = ["Claim", "had_complete", "keep_key", "kept_key", "known_key", "note_complete"]

KEY = "key"  # only in a local folder
COMPLETE = "complete"  # exists once a checkpoint was complete
WRITER = "writer"  # in a local folder: locked by the writing job
KEY_BYTES = 32


def kept_key(location: str) -> bytes | None:
    """Return the key beside checkpoints, created now if there is none; None: their location is a store.

    Raises:
        StateError: It can't be read or written, or others may read it.
    """
    if (path := local_path(location)) is None:
        return None
    if (key := _read(Path(path))) is not None:
        return key
    keep_key(path, secrets.token_bytes(KEY_BYTES))
    return _read(Path(path))


def keep_key(folder: str, key: bytes) -> None:
    """Write a key beside checkpoints in a local folder, if there is none.

    Raises:
        StateError: It can't be written.
    """
    SnapshotFolder(Snapshot(folder)).make()
    temporary = Path(folder) / f".{KEY}-{secrets.token_hex(4)}"
    try:
        with os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE), "wb"
        ) as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):  # another job was first, and its key is valid
            os.link(temporary, Path(folder) / KEY)
    except OSError as error:
        raise StateError(
            f"no key can be kept in {folder}: {error}",
            hint="Pass Checkpoint(..., key=...)",
            code=ErrorCode.BAD_SIGNING_KEY,
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def known_key(snapshot: Snapshot) -> bytes | None:
    """Return the key of a snapshot: its user's, or the one beside checkpoints; None: it has none.

    Raises:
        StateError: There is one that can't be read, or that others may read.
    """
    if snapshot.key is not None or (path := local_path(str(snapshot.location))) is None:
        return snapshot.key
    folder = Path(path)
    return _read(folder.parent if CHECKPOINT_NAME.fullmatch(folder.name) else folder)


def _read(folder: Path) -> bytes | None:
    try:
        with os.fdopen(os.open(folder / KEY, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            held, key = os.fstat(file.fileno()), file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StateError(
            f"{folder / KEY} can't be read: {error}", hint="Pass the key itself", code=ErrorCode.BAD_SIGNING_KEY
        ) from None
    if held.st_uid != os.geteuid() or held.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or len(key) < SHORTEST_KEY:
        raise StateError(
            f"{folder / KEY} may be read by others than its owner",
            hint="Set its mode to 0600, or pass the key itself",
            code=ErrorCode.BAD_SIGNING_KEY,
        )
    return key


def note_complete(location: str) -> None:
    """Record that a checkpoint was complete: from now on `restore="latest"` restores one or fails.

    Raises:
        StateError: It can't be written.
    """
    SnapshotFolder(Snapshot(location)).write(COMPLETE, b"a checkpoint was complete here\n")


def had_complete(location: str) -> bool:
    """Return whether a checkpoint was complete at a location.

    Raises:
        StateError: It can't be accessed.
    """
    return SnapshotFolder(Snapshot(location)).has(COMPLETE)


class Claim:
    """The right to write checkpoints to a location, which one job has at a time.

    In a local folder it is a lock, which ends with its process. A store has no locks, nor have some file systems. There
    it is an owner record, as beside outputs (output_owner.py).

    Args:
        location: The location of the checkpoints.
        job: The claiming job.
        run: Its id, the same for its next coordinator.
        resumes: This is a later coordinator, which claims at its first checkpoint.

    Raises:
        StateError: Another job has it.
        UnreadableError: The store doesn't answer.
    """

    def __init__(self, location: str, job: str, run: str, *, resumes: bool = False) -> None:
        self._location = location
        self._context = SinkContext(job=job, run=run)
        self._file: int | None = None
        self._owner: OutputOwner | None = None
        self._has_lock = self._locks()
        if not resumes:  # the store may be unreachable while elements run: the next checkpoint claims
            self.check()

    def check(self) -> None:
        """Raise StateError if another job has it, or has taken it over; UnreadableError if that is unknown."""
        if self._has_lock:
            return
        try:
            if self._owner is None:
                self._owner = OutputOwner(OutputFolder(self._location), self._context, self._context.run)
            self._owner.check()
        except SinkTakenError as error:
            raise StateError(
                f"the location of checkpoints {error.problem}", hint=_OF_ITS_OWN, code=ErrorCode.LOCATION_TAKEN
            ) from None
        except SinkError as error:
            raise UnreadableError(f"the location of checkpoints {error.problem}", hint=error.hint) from None

    def release(self) -> None:
        """Release it; safe to repeat."""
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)
        if self._owner is not None:
            self._owner.release(changed=True)

    def _locks(self) -> bool:
        """Lock a local folder; return whether that is possible there."""
        if (path := local_path(self._location)) is None:
            return False
        SnapshotFolder(Snapshot(self._location)).make()
        file: int | None = None
        try:
            file = os.open(Path(path) / WRITER, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            assert file is not None
            its_run, _, other = os.pread(file, 1000, 0).decode(errors="replace").partition("\n")
            os.close(file)
            if its_run == self._context.run:
                return True
            raise StateError(
                f"{other.strip() or 'another job'} writes its checkpoints to {path}",
                hint=_OF_ITS_OWN,
                code=ErrorCode.LOCATION_TAKEN,
            ) from None
        except OSError:
            if file is not None:
                os.close(file)
            return False
        by = f"job '{self._context.job}' (process {os.getpid()} on {os.uname().nodename})"
        os.ftruncate(file, 0)
        os.pwrite(file, f"{self._context.run}\n{by}\n".encode(), 0)
        self._file = file
        return True


_OF_ITS_OWN = "Use another location, or wait until that job has ended"
