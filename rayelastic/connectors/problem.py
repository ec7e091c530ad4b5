"""Keeps the error with which a source or sink failed, to decide whether its server or store is unreachable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rayelastic.connectors.files.byte_streams import Content

__all__ = ["Problem", "noted"]


@dataclass(slots=True)
class Problem:
    """The error with which a source or sink failed; the native operator only has its text."""

    error: Exception | None = None

    def text(self, error: Exception) -> str:
        """Keep it, and return the text with which the source fails."""
        self.error = error
        return f"{type(error).__name__}: {error}"

    def of(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a function that does the same, and keeps its error."""

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
    """Return a function that opens a location as another one does, and keeps the errors of it and of its stream."""

    def opened(location: str) -> _Noted:
        try:
            return _Noted(open_content(location), problem)
        except Exception as error:
            problem.error = error
            raise

    return opened
