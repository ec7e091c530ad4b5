"""A store of files that may not answer: a folder of this machine behind a URI, as pyarrow's file systems are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

SCHEME = "kept://store"


class Store(fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no stubs
    """A file system over a folder. While it is away its methods raise what stores do: an OSError without a number.

    While it is full nothing can be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.away = self.full = False
        self.bytes_left: int | None = None  # that can be read before it goes away; None: it stays
        self._files = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
        folder.mkdir(parents=True, exist_ok=True)

    def uri(self, key: str) -> str:
        """Return the URI of a file in it."""
        return f"{SCHEME}/{key}"

    def _now(self) -> fs.FileSystem:
        if self.away:
            raise OSError("the store doesn't answer")
        return self._files

    def get_type_name(self) -> str:
        return "kept"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self._now().get_file_info(paths)

    def get_file_info_selector(self, selector: fs.FileSelector) -> Any:
        return self._now().get_file_info(selector)

    def _for_writing(self) -> fs.FileSystem:
        if self.full:
            raise OSError("the store has no room")
        return self._now()

    def create_dir(self, path: str, recursive: bool) -> None:
        self._for_writing().create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self._now().delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self._now().delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        self._now().delete_file(path)

    def move(self, src: str, dest: str) -> None:
        self._now().move(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        self._now().copy_file(src, dest)

    def open_input_stream(self, path: str) -> Any:
        return self._opened(self._now().open_input_file(path))

    def open_input_file(self, path: str) -> Any:
        return self._opened(self._now().open_input_file(path))

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        return self._opened(self._for_writing().open_output_stream(path))

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError

    def _opened(self, file: Any) -> Any:
        import pyarrow as pa

        return pa.PythonFile(_File(self, file), mode="w" if file.writable() else "r")


class _File:
    """An open file of the store."""

    def __init__(self, store: Store, file: Any) -> None:
        self._store = store
        self._file = file

    def read(self, size: int = -1) -> bytes:
        self._store._now()
        data = bytes(self._file.read(size if size >= 0 else None))
        if self._store.bytes_left is not None:
            self._store.bytes_left -= len(data)
            if self._store.bytes_left < 0:
                self._store.away, self._store.bytes_left = True, None
        return data

    def write(self, data: Any) -> int:
        self._store._now()
        return int(self._file.write(data))

    def flush(self) -> None:
        self._file.flush()

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        self._file.close()

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)


def serve(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Store:
    """Have this process find a store by its URIs."""
    store, plain = Store(folder), fs.FileSystem

    class Found:
        @staticmethod
        def from_uri(uri: str) -> tuple[fs.FileSystem, str]:
            if not uri.startswith(SCHEME):
                return tuple(plain.from_uri(uri))
            return fs.PyFileSystem(store), uri.removeprefix(f"{SCHEME}/")

    monkeypatch.setattr(fs, "FileSystem", Found)
    return store
