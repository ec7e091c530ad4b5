"""`rel.to("late", t)`: a tuple for a named output port; others go to the first port."""

from __future__ import annotations

from typing import Any


class Routed:
    """A tuple and its output port."""

    __slots__ = ("port", "value")

    def __init__(self, port: str, value: Any) -> None:
        self.port = port
        self.value = value

    def __repr__(self) -> str:
        return f"to({self.port!r}, {self.value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Routed) and (self.port, self.value) == (other.port, other.value)

    def __hash__(self) -> int:
        return hash((self.port, self.value))


def to(port: str, value: Any) -> Routed:
    """Send a tuple to a named output port, if an operator has several or a function has side outputs.

    Args:
        port: The output port's name.
        value: The tuple, of the schema of that port.

    >>> to("late", (3,))
    to('late', (3,))
    """
    return Routed(port, value)
