"""The location of a job's checkpoints: its key, the job that writes there, and whether a checkpoint was complete.

A key beside checkpoints lets another job restore them after the first one was lost with its secret. It protects them
from everybody who may not read the folder. In an object store it wouldn't, so no key is stored there. A job that sets
no location has a folder of its own on the local disk of each node.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.connectors.files.locations import local_path
from rayelastic.connectors.output.folder import OutputFolder
from rayelastic.connectors.output.owner import OutputOwner
from rayelastic.connectors.output.record import SinkContext
from rayelastic.errors import ErrorCode, SinkError, SinkTakenError, StateError, UnreadableError
from rayelastic.plan.settings.checkpoint import SHORTEST_KEY
from rayelastic.runtime.checkpoint.files import CHECKPOINT_NAME, FILE_MODE, SnapshotFolder, write_private
from rayelastic.runtime.port.handshake import derive_secret
from rayelastic.runtime.values.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Collection

    from rayelastic.plan.settings.checkpoint import Checkpoint
    from rayelastic.runtime.journal import ChangeJournal
    from rayelastic.runtime.values.specs import JobSpec

KEY = "key"  # only in a local folder
COMPLETE = "complete"  # exists once a checkpoint was complete: `restore="latest"` restores one from then on, or fails
WRITER = "writer"  # in a local folder: locked by the writing job
KEY_BYTES = 32
SKIPPED = 1000  # ids skipped after a coordinator died, because folders and barriers of its attempts may be left


# --- a folder of the job's own on each node ---------------------------------------------------------------------------


def local_folder(job_id: str) -> Path:
    """Return the folder of one run of a job."""
    return Path.home() / ".cache" / "rayelastic" / "checkpoints" / job_id


def is_local(location: str, job_id: str) -> bool:
    """Return whether each node has its own share of a checkpoint of one run.

    >>> is_local(f"{local_folder('7f')}/00000001", "7f"), is_local("/mnt/saved/00000001", "7f")
    (True, False)
    """
    return Path(location).parent == local_folder(job_id)


def remove_local(job_id: str, but: Collection[str]) -> None:
    """Remove a run's checkpoints except those of some names; the rows of sinks beside them stay."""
    for folder in local_folder(job_id).glob("[0-9]*"):
        if folder.name not in but:
            shutil.rmtree(folder, ignore_errors=True)  # another element of this node may be removing it


# --- ids --------------------------------------------------------------------------------------------------------------


def highest_id(job: JobSpec, settings: Checkpoint | None, journal: ChangeJournal) -> int:
    """Return the highest id that a checkpoint or savepoint of a job may have had, under any coordinator.

    Its sinks have received no higher one.

    Args:
        job: The job.
        settings: The settings of its checkpoints; None: it takes none.
        journal: Knows those of earlier coordinators.

    Raises:
        StateError: Their location can't be accessed, or written to.
    """
    highest = max((saved.checkpoint for saved in journal.checkpoints), default=job.checkpoint)
    if settings is not None and settings.location is not None and not journal.checkpoints:
        # Earlier runs may have left checkpoints there, which would otherwise count as newer ones.
        folder = SnapshotFolder(Snapshot(settings.location))
        highest = max(highest, *(int(name) for name in folder.numbered()[:1]), 0)
        folder.try_out()
    return highest + SKIPPED * max(0, journal.incarnation - 1)


# --- keys -------------------------------------------------------------------------------------------------------------


def key_of_job(job: JobSpec, settings: Checkpoint) -> bytes:
    """Return the key that signs what a job saves: that of its settings, or one that only this job has."""
    return settings.key or derive_secret(job.secret, "checkpoint")


def key_of_location(location: str) -> bytes | None:
    """Return the key beside checkpoints, created now if there is none; None: their location is a store.

    Raises:
        StateError: It can't be read or written, or others may read it.
    """
    if (path := local_path(location)) is None:
        return None
    if (key := _read(Path(path))) is not None:
        return key
    write_key(path, secrets.token_bytes(KEY_BYTES))
    return _read(Path(path))


def write_key(folder: str, key: bytes) -> None:
    """Write a key beside checkpoints in a local folder, if there is none.

    Raises:
        StateError: It can't be written.
    """
    SnapshotFolder(Snapshot(folder)).make()
    temporary = Path(folder) / f".{KEY}-{secrets.token_hex(4)}"
    try:
        write_private(temporary, key)
        with contextlib.suppress(FileExistsError):  # another job was first, and its key is valid
            os.link(temporary, Path(folder) / KEY)
    except OSError as error:
        raise _bad_key(f"no key can be kept in {folder}: {error}", "Pass Checkpoint(..., key=...)") from None
    finally:
        temporary.unlink(missing_ok=True)


def key_of_snapshot(snapshot: Snapshot) -> bytes | None:
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
        raise _bad_key(f"{folder / KEY} can't be read: {error}", "Pass the key itself") from None
    if held.st_uid != os.geteuid() or held.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or len(key) < SHORTEST_KEY:
        problem = f"{folder / KEY} may be read by others than its owner"
        raise _bad_key(problem, "Set its mode to 0600, or pass the key itself")
    return key


def _bad_key(problem: str, hint: str) -> StateError:
    return StateError(problem, hint=hint, code=ErrorCode.BAD_SIGNING_KEY)


# --- the job that writes there ----------------------------------------------------------------------------------------


class Claim:
    """The right to write checkpoints to a location, which one job has at a time.

    In a local folder it is a lock, which ends with its process. A store has no locks, nor have some file systems. There
    it is an owner record, as beside outputs.

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
            raise _taken(f"the location of checkpoints {error.problem}") from None
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
            raise _taken(f"{other.strip() or 'another job'} writes its checkpoints to {path}") from None
        except OSError:
            if file is not None:
                os.close(file)
            return False
        by = f"job '{self._context.job}' (process {os.getpid()} on {os.uname().nodename})"
        os.ftruncate(file, 0)
        os.pwrite(file, f"{self._context.run}\n{by}\n".encode(), 0)
        self._file = file
        return True


def _taken(problem: str) -> StateError:
    hint = "Use another location, or wait until that job has ended"
    return StateError(problem, hint=hint, code=ErrorCode.LOCATION_TAKEN)
