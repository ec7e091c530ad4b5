"""The text of a CSV file for its parser: UTF-8, without comment lines, with its quotes counted. Knows no fields."""

from __future__ import annotations

import io
import re
from typing import Any

from rayelastic.connectors.files.byte_streams import LONGEST_LINE, Content
from rayelastic.connectors.files.locations import shown_location
from rayelastic.errors import ErrorCode, SourceError

BLOCK_BYTES = 1 << 20  # read at once when lines are inspected


class CsvText(io.RawIOBase):
    """The content of a CSV file.

    Args:
        location: The file.
        encoding: The text's encoding; None: UTF-8.
        comment: Lines that start with it are left out, unless they are within quotes; None: no line is.
        quote: The character around fields; None: there is none.
        escape: The character that escapes the next one; None: there is none.

    Raises:
        SourceError: As for Content, or a line is longer than `LONGEST_LINE`.
    """

    def __init__(
        self, location: str, encoding: str | None, comment: str | None, quote: str | None, escape: str | None = None
    ) -> None:
        super().__init__()
        self._location = location
        self._content = Content(location, encoding)
        self._comment = comment.encode() if comment else None
        self._quote = quote.encode() if quote else None
        self._escaped = None if escape is None else re.compile(re.escape(escape.encode()) + rb"(?:.|\Z)", re.DOTALL)
        self._is_escaped = False  # the first character of the next bytes
        self._waiting = b""  # without comments, to be returned
        self._rest = b""  # the beginning of a line
        self._buffer = memoryview(b"")
        self._last = b"\n"  # the last byte that was returned
        self._ended = False
        self._inside = False  # whether a line begins within quotes, if quotes are in pairs
        self.quotes = 0  # the number of quotes so far

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; none at the end."""
        size = size if size >= 0 else BLOCK_BYTES
        if self._comment is None:
            data = self._filled(size)
        else:
            while len(self._waiting) < size and not self._ended:
                self._fill()
            data, self._waiting = self._waiting[:size], self._waiting[size:]
        self._last = data[-1:] or self._last
        if len(data) < size and self._last != b"\n" and not self._waiting:  # the end
            data, self._last = data + b"\n", b"\n"  # pyarrow calls a header without a line end an empty file
        if self._quote is not None:
            self.quotes += self._unescaped(data).count(self._quote)
        return data

    def _unescaped(self, data: bytes) -> bytes:
        """Return the text without escaped characters; called with all of the text, in order."""
        if self._escaped is None or not data:
            return data
        rest = data[1:] if self._is_escaped else data
        escapes = list(self._escaped.finditer(rest))
        self._is_escaped = bool(escapes) and len(escapes[-1].group()) == 1
        return self._escaped.sub(b"", rest)

    def readinto(self, buffer: Any) -> int:
        """Read up to the buffer's size."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _filled(self, size: int) -> bytes:
        if len(self._buffer) < size:
            self._buffer = memoryview(bytearray(size))
        return bytes(self._buffer[: self._content.fill(self._buffer[:size])])

    def _fill(self) -> None:
        assert self._comment is not None
        block = self._filled(BLOCK_BYTES)
        self._ended = not block
        text = self._rest + block
        if len(text) > LONGEST_LINE + BLOCK_BYTES:
            problem = f"{shown_location(self._location)!r} has a line that is longer than {LONGEST_LINE >> 20} MiB"
            raise SourceError(problem, hint="Check that it is a CSV file", code=ErrorCode.MALFORMED_FILE)
        end = len(text) if self._ended else text.rfind(b"\n") + 1
        lines, self._rest = text[:end], text[end:]
        if self._comment not in lines:
            self._inside ^= self._odd(lines)
            self._waiting += lines
            return
        kept = []
        for line in lines.splitlines(keepends=True):
            if self._inside or not line.startswith(self._comment):
                self._inside ^= self._odd(line)
                kept.append(line)
        self._waiting += b"".join(kept)

    def _odd(self, text: bytes) -> bool:
        if self._escaped is not None:
            text = self._escaped.sub(b"", text)
        return self._quote is not None and text.count(self._quote) % 2 == 1

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._content.close()
        super().close()
