"""The one place where a method becomes a message and a message a method again, so that nobody else spells methods.

Whoever calls has a Protocol's methods (`ElementApi`, `CoordinatorApi`), which a type checker follows. Must not know
what they do, nor what carries the message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

__all__ = ["Call", "Remote", "Send", "perform"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call on its way.

    Args:
        method: its name; that of a part of the object with a dot before it.
        arguments: by position.
    """

    method: str
    arguments: tuple[Any, ...] = ()


Send = Callable[[Call], Any]  # gives the answer to a call, or raises


class Remote:
    """Stands for an object that lives elsewhere: its methods are sent. Those of a part of it are, too.

    Args:
        send: carries a call there.

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
        AttributeError: there is no such public method.

    >>> perform("a-b", Call("split", ("-",)))
    ['a', 'b']
    >>> perform("a-b", Call("__class__.mro"))
    Traceback (most recent call last):
    AttributeError: __class__.mro is not a public method
    """
    if any(part.startswith("_") for part in call.method.split(".")):
        raise AttributeError(f"{call.method} is not a public method")
    return attrgetter(call.method)(target)(*call.arguments)
