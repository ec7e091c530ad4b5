"""Keeps the error with which a source or sink failed, to decide whether its server or store is unreachable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rayelastic.errors import ErrorCode, code_of


@dataclass(slots=True)
class Problem:
    """The error with which a source or sink failed; the native operator only has its text.

    Args:
        error: The error.
        code: Its code, if the job's failure has it, too.
    """

    error: Exception | None = None
    code: ErrorCode | None = None

    def text(self, error: Exception) -> str:
        """Keep it, and return the text with which the source fails."""
        self.error = error
        return f"{type(error).__name__}: {error}"

    def coded(self, error: Exception) -> str:
        """Do the same; the job fails with the error's code."""
        self.code = code_of(error, ErrorCode.SOURCE_FAILED)
        return self.text(error)

    def of(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a function that does the same, and keeps its error."""

        def called(argument: Any) -> Any:
            try:
                return function(argument)
            except Exception as error:
                self.error = error
                raise

        return called
