"""Stores a job and its coordinator's journal in Ray's own store, the GCS, which outlives processes and other nodes.

It uses a key for each line. An existing key can't be overwritten. So of two coordinators that continue from the same
line, only one succeeds, and the other stops. Must not know the meaning of the lines.
"""

from __future__ import annotations

import hashlib
import hmac
from contextlib import suppress

from rayelastic.errors import ErrorCode, JobExistsError, StateError, UnavailableError
from rayelastic.on_ray.connect import NAMESPACE
from rayelastic.on_ray.private import adapter
from rayelastic.runtime.journal import JournalStore

JOB = "job:"  # of the key of a job, which exists until it is closed
DIGITS = 12  # of a line's number in its key, so that keys sort as numbers do


class GcsStore(JournalStore):
    """The lines of one job.

    Args:
        job_id: The job's id.
    """

    def __init__(self, job_id: str) -> None:
        self._prefix = f"journal:{job_id}:"
        self._job = f"{JOB}{job_id}"
        self._next = 0
        self._doubtful: bytes | None = None  # a line that may be stored under the next number after a failed write

    def keep_job(self, pickled: bytes) -> bytes:
        """Store a coordinator's input, because the arguments of an actor may end with the driver that passed them.

        Returns:
            Its digest, without which it isn't read: other programs of the cluster can write to the store.
        """
        adapter.kv_put(self._job, pickled, NAMESPACE)
        return hashlib.sha256(pickled).digest()

    def job(self, digest: bytes) -> bytes:
        """Return the stored input.

        Raises:
            StateError: It isn't what was stored.
        """
        pickled = adapter.kv_get(self._job, NAMESPACE) or b""
        if not hmac.compare_digest(hashlib.sha256(pickled).digest(), digest):
            raise StateError(
                f"the entry {self._job!r} in Ray's store {'was replaced' if pickled else 'is gone'}; it wasn't read",
                hint="Another program of this cluster changed it. Find it, cancel the job, and submit it again",
                code=ErrorCode.CHANGED_JOB,
            )
        return pickled

    def lines(self) -> list[str]:
        """Return the stored lines, in order."""
        keys = adapter.kv_keys(self._prefix, NAMESPACE)
        values = [adapter.kv_get(key, NAMESPACE) for key in keys]
        if keys:
            self._next = int(keys[-1].removeprefix(self._prefix)) + 1
        return [value.decode() for value in values if value is not None]

    def append(self, line: str, *, alone: bool) -> None:
        """Add a line; remove those before it if they are obsolete.

        Raises:
            JobExistsError: Another coordinator has added one.
            UnavailableError: The store doesn't answer; the line may be stored nevertheless.
        """
        value = line.encode()
        while self._put(value):
            key = self._key(self._next)
            if self._doubtful is None or adapter.kv_get(key, NAMESPACE) != self._doubtful:
                raise JobExistsError(
                    f"another coordinator writes {self._prefix!r}",
                    hint="A job has one coordinator: attach to it",
                    code=ErrorCode.SECOND_COORDINATOR,
                )
            self._next, self._doubtful = self._next + 1, None  # it was stored, only the answer was lost
        key = self._key(self._next)
        self._next, self._doubtful = self._next + 1, None
        if alone:
            with suppress(Exception):  # remaining ones are obsolete, and are removed with the next line that is alone
                for old in adapter.kv_keys(self._prefix, NAMESPACE):
                    if old < key:
                        adapter.kv_delete(old, NAMESPACE)

    def _put(self, value: bytes) -> bool:
        """Store a line under the next number; return whether one exists already."""
        try:
            return adapter.kv_put(self._key(self._next), value, NAMESPACE, overwrite=False)
        except Exception as error:  # an error of Ray: its store is being restarted, or doesn't answer
            self._doubtful = self._doubtful or value
            raise UnavailableError(
                f"a line of the journal {self._prefix!r} can't be written: {error}",
                hint="The job continues; check that Ray's GCS runs",
                code=ErrorCode.JOURNAL_NOT_WRITTEN,
            ) from error

    def close(self) -> None:
        """Remove everything: closing a job's journal means that the job has ended."""
        adapter.kv_delete(self._prefix, NAMESPACE, prefix=True)
        adapter.kv_delete(self._job, NAMESPACE)

    def _key(self, number: int) -> str:
        return f"{self._prefix}{number:0{DIGITS}}"
