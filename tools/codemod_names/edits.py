"""Edits of a text, by offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """The replacement of text[start:end]."""

    start: int
    end: int
    text: str = ""


def applied(text: str, edits: Sequence[Edit]) -> str:
    for edit in sorted(edits, key=lambda one: (one.start, one.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def shifted(edits: Sequence[Edit], by: int) -> list[Edit]:
    return [Edit(edit.start + by, edit.end + by, edit.text) for edit in edits]


class Offsets:
    """Converts between lines and offsets."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True) or [""]
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))

    def of(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def of_bytes(self, line: int, column: int) -> int:
        """As `ast` counts."""
        return self.of(line, len(self.lines[line - 1].encode()[:column].decode()))
