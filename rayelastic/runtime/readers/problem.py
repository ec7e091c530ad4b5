"""The error that a source or sink failed with, kept for whoever asks whether its server or store is away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rayelastic.graph.edges.formats.byte_streams import Content

__all__ = ["Problem", "noted"]


@dataclass(slots=True)
class Problem:
    """The error that a source or sink failed with: the native operator knows its text alone."""

    error: Exception | None = None

    def text(self, error: Exception) -> str:
        """Keep it, and return what the source fails with."""
        self.error = error
        return f"{type(error).__name__}: {error}"

    def of(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a function that does the same, whose error is kept."""

        def called(argument: Any) -> Any:
            try:
                return function(argument)
            except Exception as error:
                self.error = error
                raise

        return called


class _Noted:
    """A stream whose error is kept."""

    def __init__(self, content: Content, problem: Problem) -> None:
        self._content = content
        self._problem = problem

    def readinto(self, buffer: Any) -> int:
        try:
            return self._content.readinto(buffer)
        except Exception as error:
            self._problem.error = error
            raise


def noted(open_content: Callable[[str], Content], problem: Problem) -> Callable[[str], _Noted]:
    """Return what opens a location as another function does, and keeps the error that it or its stream raises."""

    def opened(location: str) -> _Noted:
        try:
            return _Noted(open_content(location), problem)
        except Exception as error:
            problem.error = error
            raise

    return opened
