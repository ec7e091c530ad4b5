"""Converts method calls to messages and back, so that no other module spells methods.

Callers use a Protocol's methods (`ElementApi`, `CoordinatorApi`), which type checkers follow. Must not know what they
do, nor the transport.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A method call as a message.

    Args:
        method: Its name; for a method of a part of the object, the part and a dot before it.
        arguments: By position.
    """

    method: str
    arguments: tuple[Any, ...] = ()


Send = Callable[[Call], Any]  # returns the answer to a call, or raises


class Remote:
    """A proxy of an object in another process: calls of its methods, and those of its parts, are sent.

    Args:
        send: Transports a call.

    >>> Remote(lambda call: call).routing.hold("a->b", 1)
    Call(method='routing.hold', arguments=('a->b', 1))
    """

    def __init__(self, send: Send, method: str = "") -> None:
        self._send = send
        self._method = method

    def __getattr__(self, name: str) -> Remote:
        if name.startswith("_"):
            raise AttributeError(f"{name} is not public")
        return Remote(self._send, f"{self._method}.{name}" if self._method else name)

    def __call__(self, *arguments: Any) -> Any:
        """Send the call; return the answer."""
        return self._send(Call(self._method, arguments))


def perform(target: Any, call: Call) -> Any:
    """Call what a `Remote` has sent.

    Raises:
        AttributeError: It isn't a public method.

    >>> perform("a-b", Call("split", ("-",)))
    ['a', 'b']
    >>> perform("a-b", Call("__class__.mro"))
    Traceback (most recent call last):
    AttributeError: __class__.mro is not a public method
    """
    if any(part.startswith("_") for part in call.method.split(".")):
        raise AttributeError(f"{call.method} is not a public method")
    return attrgetter(call.method)(target)(*call.arguments)
