"""Keeps a job and its coordinator's journal in Ray's own store, the GCS, which outlives processes and other nodes.

A key for each line. A key that is there already can't be written, so of two coordinators that go on from the same line
only one can: the other learns that it isn't the job's any more. Must not know what the lines tell.
"""

from __future__ import annotations

from rayelastic.errors import JobExistsError
from rayelastic.on_ray.connect import NAMESPACE
from rayelastic.runtime.rescale.change_journal import JournalStore

DIGITS = 12  # of a line's number in its key, so that keys sort as numbers do


class GcsStore(JournalStore):
    """The lines of one job.

    Args:
        job_id: of the job.
    """

    def __init__(self, job_id: str) -> None:
        self._prefix = f"journal:{job_id}:"
        self._job = f"job:{job_id}"
        self._next = 0

    def keep_job(self, pickled: bytes) -> None:
        """Keeps what a coordinator is made from: the arguments of an actor may end with the driver that gave them."""
        from ray.experimental import internal_kv

        internal_kv._internal_kv_put(self._job, pickled, namespace=NAMESPACE)

    def job(self) -> bytes:
        """Returns what was kept."""
        from ray.experimental import internal_kv

        kept: bytes = internal_kv._internal_kv_get(self._job, namespace=NAMESPACE)
        return kept

    def lines(self) -> list[str]:
        """Returns what there is, in order."""
        from ray.experimental import internal_kv

        keys = sorted(internal_kv._internal_kv_list(self._prefix, namespace=NAMESPACE))
        values = [internal_kv._internal_kv_get(key, namespace=NAMESPACE) for key in keys]
        if keys:
            self._next = int(keys[-1].decode().removeprefix(self._prefix)) + 1
        return [value.decode() for value in values if value is not None]

    def append(self, line: str, *, alone: bool) -> None:
        """Adds a line; removes those before it if they don't matter any more.

        Raises:
            JobExistsError: another coordinator has added one.
        """
        from ray.experimental import internal_kv

        key = self._key(self._next)
        if internal_kv._internal_kv_put(key, line.encode(), overwrite=False, namespace=NAMESPACE):
            raise JobExistsError(
                f"another coordinator writes {self._prefix!r}", way_out="A job has one coordinator: attach to it"
            )
        self._next += 1
        if alone:
            for old in internal_kv._internal_kv_list(self._prefix, namespace=NAMESPACE):
                if old.decode() < key:
                    internal_kv._internal_kv_del(old, namespace=NAMESPACE)

    def close(self) -> None:
        """Removes everything: whoever closes a job's journal has ended the job."""
        from ray.experimental import internal_kv

        internal_kv._internal_kv_del(self._prefix, del_by_prefix=True, namespace=NAMESPACE)
        internal_kv._internal_kv_del(self._job, namespace=NAMESPACE)

    def _key(self, number: int) -> str:
        return f"{self._prefix}{number:0{DIGITS}}"
