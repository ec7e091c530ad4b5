"""The input of a source, as a snapshot or checkpoint records it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Piece:
    """A file, or rows in memory.

    Args:
        size: Bytes, or rows.
        start: A hash of the first of them; empty: not computed, as over a network.
        end: A hash of the last of them.
    """

    size: int
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a source can begin, so that it needn't read what it has emitted.

    Args:
        file: The number of the file.
        byte: The byte in it at which a row begins.
        rows: The number of rows before that one.
    """

    file: int
    byte: int
    rows: int


@dataclass(frozen=True, slots=True)
class Input:
    """The input of a source. Converted to JSON by `asdict`.

    Args:
        kind: Its kind, as text.
        pieces: Its files, in order, or its rows; none: a function makes them.
        place: A place near its position, if the number of rows doesn't determine it.
        position: The position of a source that reports it, a value for JSON; None: of all others.
    """

    kind: str
    pieces: tuple[Piece, ...] = ()
    place: Place | None = None
    position: Any = None

    def __post_init__(self) -> None:
        pieces: Sequence[Any] = self.pieces  # possibly from JSON
        place: Any = self.place
        object.__setattr__(self, "pieces", tuple(Piece(**one) if isinstance(one, dict) else one for one in pieces))
        object.__setattr__(self, "place", Place(**place) if isinstance(place, dict) else place)
