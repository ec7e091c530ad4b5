"""The one place where a method becomes a message and a message a method again, so that nobody else spells methods.

Whoever calls has a Protocol's methods (`ElementApi`, `CoordinatorApi`), which a type checker follows. Must not know
what they do, nor what carries the message.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

__all__ = ["Remote", "Send", "perform"]

Send = Callable[[str, tuple[Any, ...]], Any]  # takes a method and its arguments; gives its answer, or raises


class Remote:
    """Stands for an object that lives elsewhere: its methods are sent. Those of a part of it are, too.

    Args:
        send: carries a method there.

    >>> Remote(lambda method, arguments: (method, arguments)).routing.hold("a->b", 1)
    ('routing.hold', ('a->b', 1))
    """

    def __init__(self, send: Send, method: str = "") -> None:
        self._send = send
        self._method = method

    def __getattr__(self, name: str) -> Remote:
        if name.startswith("_"):
            raise AttributeError(f"{name} is not public")
        return Remote(self._send, f"{self._method}.{name}" if self._method else name)

    def __call__(self, *arguments: Any) -> Any:
        """Sends the call; returns the answer."""
        return self._send(self._method, arguments)


def perform(target: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    """Calls what a `Remote` has sent.

    Raises:
        AttributeError: there is no such public method.

    >>> perform("a-b", "split", ("-",))
    ['a', 'b']
    >>> perform("a-b", "__class__.mro", ())
    Traceback (most recent call last):
    AttributeError: __class__.mro is not a public method
    """
    if any(part.startswith("_") for part in method.split(".")):
        raise AttributeError(f"{method} is not a public method")
    return attrgetter(method)(target)(*arguments)
