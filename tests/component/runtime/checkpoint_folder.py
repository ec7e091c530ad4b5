"""A folder of blobs as a checkpoint has them, for tests of those who write and read them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path


class Blobs:
    """Files by name; none is written twice, and what is read is checked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.location = str(folder)
        folder.mkdir(exist_ok=True)

    def write(self, name: str, data: bytes) -> str:
        with (self.folder / name).open("xb") as file:
            file.write(data)
        return hashlib.sha256(data).hexdigest()

    def delete(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    def chunks(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        for name, digest in files:
            data = (self.folder / name).read_bytes()
            assert hashlib.sha256(data).hexdigest() == digest
            yield data
