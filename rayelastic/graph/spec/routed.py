"""How a function says by which output port a tuple leaves: `rel.to("late", t)`; without, it leaves by the first."""

from __future__ import annotations

from typing import Any

__all__ = ["Routed", "to"]


class Routed:
    """A tuple and the output port that it is meant for."""

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
    """Send a tuple to a named output port, where an operator has several or a function has side outputs.

    Args:
        port: name of the output port.
        value: the tuple, of the schema of that port.

    >>> to("late", (3,))
    to('late', (3,))
    """
    return Routed(port, value)
