"""The result of a layout: boxes and lines in pixels, as immutable values. Must not know who draws them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Box:
    """The place of a node, in pixels from the upper left corner.

    >>> Box(0, 0, 10, 10).overlaps(Box(5, 5, 10, 10)), Box(0, 0, 10, 10).overlaps(Box(10, 0, 10, 10))
    (True, False)
    """

    x: float
    y: float
    width: float
    height: float

    def overlaps(self, other: Box) -> bool:
        """Return whether the boxes share an area."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )


@dataclass(frozen=True, slots=True)
class Line:
    """The route of an edge.

    Args:
        origin: where it starts.
        target: where it ends.
        points: of its straight pieces, each of which is level or upright, from the origin's side to the target's.
        back: whether it closes a loop, and so goes against the direction of the others.
    """

    origin: str
    target: str
    points: tuple[tuple[float, float], ...]
    back: bool = False

    def crosses(self, box: Box) -> bool:
        """Return whether it passes through a box.

        >>> Line("a", "b", ((0, 5), (20, 5))).crosses(Box(5, 0, 10, 10))
        True
        >>> Line("a", "b", ((0, 20), (8, 20), (8, 5))).crosses(Box(5, 0, 10, 10))  # with its last piece
        True
        """
        pieces = (Box(min(x, u), min(y, v), abs(u - x), abs(v - y)) for (x, y), (u, v) in pairwise(self.points))
        return any(piece.overlaps(box) for piece in pieces)


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawn graph.

    Args:
        boxes: {node: where it is}.
        lines: one for each edge between two different nodes.
        width: of everything, pixels.
        height: likewise.
    """

    boxes: dict[str, Box]
    lines: tuple[Line, ...]
    width: float
    height: float
