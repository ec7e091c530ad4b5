"""Why a PE or a job failed, as a value that crosses processes: texts, and the user's own exception.

In one process it is the exception itself. Elsewhere it is its pickle, and only the driver unpickles that: the
coordinator may lack the user's modules.
"""

from __future__ import annotations

import contextlib
import pickle
from dataclasses import dataclass, field

from rayelastic.errors import ErrorCode

MOST_REASON = 4 << 10  # characters: it goes to the driver, into the log and into the job's journal
MOST_TRACEBACK = 32 << 10  # characters; of a deep recursion Python omits the middle itself
MOST_PICKLED = 64 << 10  # bytes: a failure goes through the coordinator and to every reader of the status


class Cause:
    """An exception that can be sent, or the text of one that can't.

    Args:
        error: The exception, in the process that raised it.
        pickled: What another process sent; empty: it couldn't be pickled, and the failure's text replaces it.

    >>> sent = pickle.loads(pickle.dumps(Cause(KeyError("price"))))
    >>> sent.error()
    KeyError('price')
    """

    __slots__ = ("_error", "_pickled")

    def __init__(self, error: BaseException | None, pickled: bytes = b"") -> None:
        self._error, self._pickled = error, pickled

    def error(self) -> BaseException | None:
        """Return the exception; None if this process can't restore it."""
        if self._error is None and self._pickled:
            with contextlib.suppress(Exception):
                loaded = pickle.loads(self._pickled)  # noqa: S301 of a process of the job, over Ray
                self._error = loaded if isinstance(loaded, BaseException) else None
        return self._error

    def __reduce__(self) -> tuple[type[Cause], tuple[None, bytes]]:
        return Cause, (None, self._pickled or _pickled(self._error))


def _pickled(error: BaseException | None) -> bytes:
    import cloudpickle

    with contextlib.suppress(Exception):
        pickled: bytes = cloudpickle.dumps(error)
        return pickled if len(pickled) <= MOST_PICKLED else b""
    return b""


def bounded(text: str, most: int) -> str:
    """Return the text, or its start and end with a note about the omitted part.

    >>> bounded("q" * 100, 8)
    'qqqq... (92 characters left out) ...qqqq'
    """
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}... ({len(text) - most // 2 * 2} characters left out) ...{text[-(most // 2) :]}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a PE or a job failed. Very long texts are cut.

    Args:
        reason: One line in plain words, which doesn't begin with the name of `operator`.
        operator: The operator whose code or source failed; `None` if it was not an operator.
        failing_tuple: The tuple that was being processed, as text; `None` if unknown.
        traceback: The traceback of the user's code as text; empty if there is none.
        lost_link: A link broke; if another PE failed too, that is the cause.
        outside: A sink's destination failed: a job with checkpoints recovers, as after a loss.
        outage: A server or store outside the job doesn't answer: a job with checkpoints waits for it.
        code: what went wrong, for programs.
        cause: The user's own exception, if there is one.
    """

    reason: str
    operator: str | None = None
    failing_tuple: str | None = None
    traceback: str = ""
    lost_link: bool = False
    outside: bool = False
    outage: bool = False
    code: ErrorCode = ErrorCode.JOB_FAILED
    cause: Cause | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        reason = self.reason.removeprefix(f"operator '{self.operator}': ")  # of an error that names it, too
        object.__setattr__(self, "reason", bounded(reason, MOST_REASON))
        object.__setattr__(self, "traceback", bounded(self.traceback, MOST_TRACEBACK))
        if self.failing_tuple is not None:
            object.__setattr__(self, "failing_tuple", bounded(self.failing_tuple, MOST_REASON))
