"""Extracts the useful line of an error of Spark."""

from __future__ import annotations

import re

_JAVA_FRAME = re.compile(r"\s*\n\s+at .*|\n(Driver stacktrace|Caused by|\t\.\.\. \d+ more).*", re.DOTALL)
_TASK = re.compile(r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^)]*\): ")
_EXCEPTION = re.compile(r"^(?:[\w$]+\.)*([A-Z][\w$]*(?:Error|Exception|Failure)): ")


def spark_reason(error: BaseException) -> str:
    r"""Return the reason within an error of Spark, py4j or RayDP: of hundreds of lines of Java stack, the useful one.

    A Python exception in a task is its last line, as in Python; one in Java by its class and message.

    >>> spark_reason(Exception(
    ...     "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 "
    ...     "in stage 1.0 (TID 7) (10.0.0.1 executor 0): java.lang.ArithmeticException: / by zero\n\tat A.b(C.java:1)"))
    'ArithmeticException: / by zero'
    """
    text = str(error)
    if (at := text.rfind("Traceback (most recent call last):")) >= 0:
        return _last_line(text[at:])
    if match := _TASK.search(text):
        text = text[match.end() :]
    if "An error occurred while calling" in text:
        text = text.partition("\n: ")[2] or text
    text = " ".join(_JAVA_FRAME.split(text, maxsplit=1)[0].split())
    return _EXCEPTION.sub(r"\1: ", text) or type(error).__name__


def _last_line(traceback: str) -> str:
    """Return the line of a Python traceback that names the exception, with the rest of its message."""
    lines = _JAVA_FRAME.split(traceback, maxsplit=1)[0].splitlines()
    start = next((i for i, line in enumerate(lines[1:], 1) if line and not line.startswith(" ")), len(lines) - 1)
    message = " ".join(line.strip() for line in lines[start:] if line.strip())
    return _EXCEPTION.sub(r"\1: ", message)
