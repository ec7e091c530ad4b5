"""The content of files for readers of text and CSV: from any file system, decompressed, decoded to UTF-8.

The first bytes of a file show its compression, never its name. Several members or frames in a file are one content.
Errors are SourceErrors with the file's name and the place. Knows no rows.
"""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rayelastic.connectors.files.locations import (
    FileIdentity,
    LocationError,
    local_path,
    may_return,
    readable,
    shown_location,
)
from rayelastic.errors import ErrorCode, SourceError, SourceLostError
from rayelastic.graph.records.shown import shown

LONGEST_LINE = 64 << 20  # bytes of a line of text or JSON, or of a row of CSV; as in line_reader.cpp
_MARKS = (  # byte order marks of other encodings; those of UTF-32 begin like those of UTF-16
    (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"),
)  # fmt: skip
_MARK_BYTES = 4
_READ_MARKS = ("utf-16", "utf-32", "utf-8-sig")  # codecs that drop the mark themselves

CHUNK_BYTES = 1 << 18  # read from a file at once
_FIRST_BYTES = 10  # of a file, which show its compression
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")
_ARCHIVES = {b"PK\x03\x04": "a zip archive", b"PK\x05\x06": "a zip archive", b"\x1f\x9d": "compressed by `compress`"}


class _Decompressor(Protocol):
    """The common interface of zlib, bz2 and lzma."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class Content(io.RawIOBase):
    """The content of a file, as the bytes of UTF-8 text.

    Args:
        location: The file.
        encoding: The text's encoding; None: unchanged bytes, unless a byte order mark shows UTF-16 or UTF-32.

    Raises:
        SourceError: It can't be opened or read, is damaged, isn't of the encoding, or has shrunk or changed meanwhile.
        SourceLostError: Its store doesn't answer.
    """

    def __init__(self, location: str, encoding: str | None = None) -> None:
        super().__init__()
        self._shown = shown_location(location)
        self._given = 0
        self._packing = ""
        self._location = location
        self._stream: Any = None
        try:
            self._identity = FileIdentity.of(location)
            self._stream = readable(location)
            if local_path(location) is None:
                self._stream = _Stored(self._stream, self._shown)
            self._stream, self._packing = _unpacked(self._stream, self._shown)
        except LocationError as error:
            kind = SourceLostError if error.is_outage else SourceError
            raise kind(error.problem, hint=error.hint, code=error.code) from error
        except OSError as error:
            kind = SourceLostError if may_return(error, location) else SourceError
            raise kind(f"{self._shown!r} can't be read: {error}", hint="Check the path") from error
        self._is_marked = encoding is None  # whether a byte order mark is possible
        if encoding is not None:
            self._stream = _Recoded(self._stream, encoding)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read up to the buffer's size; return the number of bytes, 0 at the end."""
        target = memoryview(buffer).cast("B")
        try:
            got: int = self._stream.readinto(target)
            if self._is_marked:
                got = self._marked(target, got)
        except _UndecodableError as error:
            hint = "Pass the encoding= that it was written in"
            raise SourceError(f"{self._shown!r} {error}", hint=hint, code=ErrorCode.MALFORMED_FILE) from None
        except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
            what = f"is damaged ({self._packing})" if self._packing else "can't be read"
            if self._identity is not None:
                self._identity.check(self._location)  # a file that shrank looks damaged to a decompressor
            problem = f"{self._shown!r} {what} after byte {self._given:,} of its content: {error}"
            if may_return(error, self._location):
                raise SourceLostError(problem, hint="Check the store") from error
            hint = "Get an undamaged copy" if self._packing else "Check the file"
            raise SourceError(problem, hint=hint, code=ErrorCode.MALFORMED_FILE) from error
        self._given += got
        if got == 0 and len(target) > 0 and self._identity is not None:
            self._identity.check(self._location)
        return got

    def fill(self, buffer: memoryview) -> int:
        """Fill a buffer, partly only at the end. Return the number of bytes."""
        filled = 0
        while filled < len(buffer) and (got := self.readinto(buffer[filled:])):
            filled += got
        return filled

    def _marked(self, target: memoryview, got: int) -> int:
        """Drop a byte order mark, and decode the text if it is one of UTF-16 or UTF-32."""
        self._is_marked = False
        while got < _MARK_BYTES and (more := self._stream.readinto(target[got:])):
            got += more
        first = bytes(target[:_MARK_BYTES]) if got >= _MARK_BYTES else bytes(target[:got])
        encoding = next((name for mark, name in _MARKS if first.startswith(mark)), None)
        if first.startswith(codecs.BOM_UTF8):
            text = bytes(target[len(codecs.BOM_UTF8) : got]) or self._stream.read(len(target))
            target[: len(text)] = text
            return len(text)
        if encoding is None:
            return got
        self._stream = _Recoded(self._stream, encoding, bytes(target[:got]))
        decoded: int = self._stream.readinto(target)
        return decoded

    def close(self) -> None:
        """Close the file."""
        if not self.closed and self._stream is not None:
            self._stream.close()
        super().close()


def check_encoding(encoding: object, operator: str) -> None:
    """Raise SourceError if the encoding of text is unknown."""
    try:
        if encoding is not None:
            io.TextIOWrapper(io.BytesIO(), encoding)  # type: ignore[arg-type]
    except (LookupError, TypeError, ValueError):
        raise SourceError(
            f"encoding={shown(encoding)} is unknown",
            operator=operator,
            hint="Pass an encoding that Python knows, such as 'latin-1' or 'utf-16'",
            code=ErrorCode.UNKNOWN_ENCODING,
        ) from None


class _Stored(io.RawIOBase):
    """A file of a store, which raises the store's errors as such; those of decompressors are about the content."""

    def __init__(self, raw: Any, shown: str) -> None:
        super().__init__()
        self._raw = raw
        self._shown = shown

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._asking():
            return int(self._raw.readinto(buffer))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._raw.seek(offset, whence))

    def tell(self) -> int:
        return int(self._raw.tell())

    def size(self) -> int:
        with self._asking():
            return int(self._raw.size())

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SourceLostError(
                f"{self._shown!r} can't be read: {error}", hint="Check the store, and that this machine may reach it"
            ) from error


class _Members(io.RawIOBase):
    """The content of one or several compressed members in a row; zeros may follow each."""

    def __init__(self, raw: Any, make: Callable[[], _Decompressor]) -> None:
        super().__init__()
        self._raw = raw
        self._make = make
        self._member: _Decompressor | None = make()
        self._waiting = b""

    def readinto(self, buffer: Any) -> int:
        while True:
            data = self._next(len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
            if data is None:
                return 0

    def _next(self, most: int) -> bytes | None:
        while self._member is None:
            self._waiting = (self._waiting or self._raw.read(CHUNK_BYTES)).lstrip(b"\0")
            if self._waiting:
                self._member = self._make()
            elif self._raw.tell() == self._raw.size():
                return None
        wants = not self._waiting and getattr(self._member, "needs_input", True)
        if wants:
            self._waiting = self._raw.read(CHUNK_BYTES)
        ended = wants and not self._waiting
        data = self._member.decompress(self._waiting, most)
        self._waiting = getattr(self._member, "unconsumed_tail", b"")
        if self._member.eof:
            self._waiting, self._member = self._member.unused_data, None
        elif ended and not data:
            raise EOFError("it ends in the middle")
        return data

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class _UndecodableError(Exception):
    def __init__(self, error: UnicodeDecodeError, at: int) -> None:
        bad = bytes(error.object[error.start : error.end])
        super().__init__(f"isn't {error.encoding}: {bad!r} at byte {at:,} of its content ({error.reason})")


class _Recoded(io.RawIOBase):
    """Text of another encoding as UTF-8, without its byte order mark."""

    def __init__(self, raw: Any, encoding: str, first: bytes = b"") -> None:
        super().__init__()
        self._raw = raw
        self._first = first  # raw bytes that were already read
        self._is_first = codecs.lookup(encoding).name not in _READ_MARKS
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._waiting = b""
        self._read = 0  # bytes decoded before the last ones
        self._ended = False

    def readinto(self, buffer: Any) -> int:
        while not self._waiting and not self._ended:
            data, self._first = self._first or self._raw.read(CHUNK_BYTES), b""
            self._ended = not data
            kept = len(self._decoder.getstate()[0])
            try:
                text = self._decoder.decode(data, final=self._ended)
                self._waiting = (text.removeprefix("\ufeff") if self._is_first else text).encode()
                self._is_first = self._is_first and not text
            except UnicodeDecodeError as error:
                raise _UndecodableError(error, self._read - kept + error.start) from None
            self._read += len(data)
        got, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(got)] = got
        return len(got)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


def _unpacked(raw: Any, shown: str) -> tuple[Any, str]:
    """Return the decompressed content of a file and its compression; the file itself and '' if it isn't compressed."""
    first = raw.read(_FIRST_BYTES)
    raw.seek(0)
    if (archive := next((what for magic, what in _ARCHIVES.items() if first.startswith(magic)), None)) is not None:
        raise SourceError(
            f"{shown!r} is {archive}, which is unsupported",
            hint="Unpack it, or pack it with gzip",
            code=ErrorCode.UNSUPPORTED_FORMAT,
        )
    if first.startswith(b"\x1f\x8b"):
        return _Members(raw, lambda: zlib.decompressobj(zlib.MAX_WBITS | 16)), "gzip"
    if first.startswith(b"BZh") and first[4:] in _BZIP2_BLOCKS:
        return _Members(raw, bz2.BZ2Decompressor), "bzip2"
    if first.startswith(b"\xfd7zXZ\0"):
        return _Members(raw, lzma.LZMADecompressor), "xz"
    skippable = first[1:4] == b"*M\x18" and first[0] >> 4 == 5
    for magic, name in ((b"\x28\xb5\x2f\xfd", "zstd"), (b"\x04\x22M\x18", "lz4")):
        if first.startswith(magic) or (skippable and name == "zstd"):
            from pyarrow import CompressedInputStream

            return CompressedInputStream(raw, name), name
    return raw, ""
