"""Keeps a job and its coordinator's journal in Ray's own store, the GCS, which outlives processes and other nodes.

A key for each line. A key that is there already can't be written, so of two coordinators that go on from the same line
only one can: the other learns that it isn't the job's any more. Must not know what the lines tell.
"""

from __future__ import annotations

from contextlib import suppress

from rayelastic.errors import ErrorCode, JobExistsError, UnavailableError
from rayelastic.on_ray.connect import NAMESPACE
from rayelastic.on_ray.private import adapter
from rayelastic.runtime.rescale.change_journal import JournalStore

JOB = "job:"  # of the key of a job, which is there until it is closed
DIGITS = 12  # of a line's number in its key, so that keys sort as numbers do


class GcsStore(JournalStore):
    """The lines of one job.

    Args:
        job_id: of the job.
    """

    def __init__(self, job_id: str) -> None:
        self._prefix = f"journal:{job_id}:"
        self._job = f"{JOB}{job_id}"
        self._next = 0
        self._doubtful: bytes | None = None  # what may be there under the next number, though it couldn't be written

    def keep_job(self, pickled: bytes) -> None:
        """Keep what a coordinator is made from: the arguments of an actor may end with the driver that gave them."""
        adapter.kv_put(self._job, pickled, NAMESPACE)

    def job(self) -> bytes:
        """Return what was kept."""
        return adapter.kv_get(self._job, NAMESPACE) or b""

    def lines(self) -> list[str]:
        """Return what there is, in order."""
        keys = adapter.kv_keys(self._prefix, NAMESPACE)
        values = [adapter.kv_get(key, NAMESPACE) for key in keys]
        if keys:
            self._next = int(keys[-1].removeprefix(self._prefix)) + 1
        return [value.decode() for value in values if value is not None]

    def append(self, line: str, *, alone: bool) -> None:
        """Add a line; removes those before it if they don't matter any more.

        Raises:
            JobExistsError: another coordinator has added one.
            UnavailableError: the store doesn't answer; the line may be there all the same.
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
            self._next, self._doubtful = self._next + 1, None  # it came there, only the answer didn't
        key = self._key(self._next)
        self._next, self._doubtful = self._next + 1, None
        if alone:
            with suppress(Exception):  # those that stay tell nothing new, and go with the next line that is alone
                for old in adapter.kv_keys(self._prefix, NAMESPACE):
                    if old < key:
                        adapter.kv_delete(old, NAMESPACE)

    def _put(self, value: bytes) -> bool:
        """Put a line under the next number; whether there is one already."""
        try:
            return adapter.kv_put(self._key(self._next), value, NAMESPACE, overwrite=False)
        except Exception as error:  # Ray's own: its store is being restarted, or doesn't answer
            self._doubtful = self._doubtful or value
            raise UnavailableError(
                f"a line of the journal {self._prefix!r} can't be written: {error}",
                hint="The job continues; check that Ray's GCS runs",
                code=ErrorCode.JOURNAL_NOT_WRITTEN,
            ) from error

    def close(self) -> None:
        """Remove everything: whoever closes a job's journal has ended the job."""
        adapter.kv_delete(self._prefix, NAMESPACE, prefix=True)
        adapter.kv_delete(self._job, NAMESPACE)

    def _key(self, number: int) -> str:
        return f"{self._prefix}{number:0{DIGITS}}"
