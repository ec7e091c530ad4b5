"""The text of a CSV file as its parser gets it: UTF-8, without comment lines, its quotes counted. Knows no fields."""

from __future__ import annotations

import io
from typing import Any

from rayelastic.graph.edges.byte_streams import Content

__all__ = ["CsvText"]

BLOCK_BYTES = 1 << 20  # read at once where lines are looked at


class CsvText(io.RawIOBase):
    """The content of a CSV file.

    Args:
        location: of the file.
        encoding: of its text; None: UTF-8.
        comment: lines that start with it are left out, unless they are within quotes; None: no line is.
        quote: what is around fields; None: nothing is.

    Raises:
        SourceError: as of Content.
    """

    def __init__(self, location: str, encoding: str | None, comment: str | None, quote: str | None) -> None:
        super().__init__()
        self._content = Content(location, encoding)
        self._comment = comment.encode() if comment else None
        self._quote = quote.encode() if quote else None
        self._waiting = b""  # without comments, to be given
        self._rest = b""  # the beginning of a line
        self._ended = False
        self._inside = False  # whether a line begins within quotes, as far as quotes are in pairs
        self.quotes = 0  # so many so far

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes; none at the end."""
        size = size if size >= 0 else BLOCK_BYTES
        if self._comment is None:
            data = self._content.read(size)
        else:
            while not self._waiting and not self._ended:
                self._fill()
            data, self._waiting = self._waiting[:size], self._waiting[size:]
        if self._quote is not None:
            self.quotes += data.count(self._quote)
        return data

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer as far as it goes."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _fill(self) -> None:
        assert self._comment is not None
        block = self._content.read(BLOCK_BYTES)
        self._ended = not block
        text = self._rest + block
        end = len(text) if self._ended else text.rfind(b"\n") + 1
        lines, self._rest = text[:end], text[end:]
        if self._comment not in lines:
            self._inside ^= self._odd(lines)
            self._waiting = lines
            return
        kept = []
        for line in lines.splitlines(keepends=True):
            if self._inside or not line.startswith(self._comment):
                self._inside ^= self._odd(line)
                kept.append(line)
        self._waiting = b"".join(kept)

    def _odd(self, text: bytes) -> bool:
        return self._quote is not None and text.count(self._quote) % 2 == 1

    def close(self) -> None:
        """Closes the file."""
        if not self.closed:
            self._content.close()
        super().close()
