"""Where a sink keeps what it has in memory, until the job ends or goes back to it."""

from __future__ import annotations

from typing import Protocol


class BlobStore(Protocol):
    """A folder of named bytes; SnapshotFolder is one."""

    def write(self, name: str, data: bytes) -> str:
        """Writes a file and gives its SHA-256 in hex."""
        ...
