"""Waits for the answer of an actor call, and converts Ray's errors into our own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rayelastic.errors import PELostError, UnavailableError

if TYPE_CHECKING:
    from ray import ObjectRef


def answer(reference: ObjectRef[Any], who: str, what: str, timeout: float) -> Any:
    """Wait for the answer of a call.

    Args:
        reference: The result of the call.
        who: The callee, for messages.
        what: The method, for messages.
        timeout: Seconds.

    Raises:
        PELostError: The callee's process is gone, for good.
        UnavailableError: The callee can't be reached at the moment: the call may have run or not.
        TimeoutError: No answer in time: the call may have run or not.
        Exception: The method's own exception.
    """
    import ray
    from ray import exceptions

    try:
        return ray.get(reference, timeout=timeout)
    except exceptions.GetTimeoutError as error:
        raise TimeoutError(f"{who} didn't answer {what!r} within {timeout:g} s") from error
    except exceptions.ActorUnavailableError as error:
        raise UnavailableError(f"{who} can't be reached: {_reason(error)}") from error
    except exceptions.RayActorError as error:
        raise PELostError(
            f"{who} is gone: {_reason(error).rstrip('.')}",
            hint="If it crashed, its log, which the driver shows, names the operator and has the traceback",
        ) from error
    except exceptions.RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from None
        raise


def _reason(error: Exception) -> str:
    """Return the sentence of Ray's long text with the reason."""
    text = " ".join(str(error).split())
    for pattern in (r"(The actor died because of an error raised in its creation task.*)",
                    r"Worker exit detail: (.*?)(?: (?:Some common causes|There are some potential root causes).*)?$",
                    r"(The actor is dead because .*?)(?:\. |$)",
                    r"(The node .*?)(?:\. |$)"):  # fmt: skip
        if match := re.search(pattern, text):
            return match[1].strip()
    return text
