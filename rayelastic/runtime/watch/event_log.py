"""The event log: one line of JSON per event, with its job and PE.

    {"event": "adapted", "job": "words", "pe": "pe0", "threads": 2, "reason": "both CPUs are free"}

Events go to Python's logger `rayelastic.events`. In a user's process it is left unconfigured, so that the user's
logging decides. The runtime's own processes (actors on Ray) call `write_events`, which adds time and level.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

LOGGER = "rayelastic.events"
LINES_A_SECOND = 100  # of what operators print; more is counted and dropped
BURST = 1000  # lines that may come at once
LONGEST_LINE = 8192  # characters; longer text is cut into lines
OPEN_SECONDS = 1.0  # after which an unfinished line is shown when more text comes, such as a progress bar's
_END = re.compile(r"\r\n|\n|\r")
_log = logging.getLogger(LOGGER)
_log.addHandler(logging.NullHandler())  # nothing is set up, so nothing is written


def tell(event: str, *, job: str, pe: str = "", level: int = logging.INFO, **fields: Any) -> None:
    """Log an event.

    Args:
        event: What happened, in a word or two.
        job: The job.
        pe: The PE, if it was one.
        level: The level of Python's logging.
        fields: Further values; what JSON can't hold is written as text.
    """
    if _log.isEnabledFor(level):
        record = {"event": event, "job": job, **({"pe": pe} if pe else {}), **fields}
        _log.log(level, json.dumps(record, default=str, ensure_ascii=False))


class _Line(logging.Formatter):
    """Puts time and level before the event, in the same JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        head = json.dumps({"time": f"{stamp}.{int(record.msecs):03d}Z", "level": record.levelname.lower()})
        return f"{head[:-1]}, {record.getMessage()[1:]}"


def write_events(level: str, stream: TextIO | None = None) -> None:
    """Write the events of this process, a line each; safe to repeat.

    Args:
        level: 'debug', 'info', 'warning' or 'error': the lowest that is written.
        stream: The destination; standard error by default.
    """
    for handler in list(_log.handlers):
        if isinstance(handler.formatter, _Line):
            _log.removeHandler(handler)
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(_Line())
    _log.addHandler(handler)
    _log.setLevel(level.upper())
    _log.propagate = False


class RateLimited:
    """A text stream that forwards so many lines a second, and reports how many it dropped.

    On Ray, what operators print goes to the driver over the network: a print for each tuple would stop the job. Lines
    end at a newline or a carriage return.

    Args:
        stream: The destination.
        rate: Lines a second.
        burst: Lines that may come at once.
        clock: Returns seconds, monotonic.
    """

    def __init__(
        self,
        stream: TextIO,
        rate: float = LINES_A_SECOND,
        burst: int = BURST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._allowed = float(burst)
        self._at = clock()
        self._left_out = 0
        self._open = ""  # an incomplete line, no longer than the longest
        self._opened_at = self._at
        self._returned = False  # the last line ended with a carriage return, which a newline may follow

    def write(self, text: str) -> int:
        """Forward complete lines within the rate."""
        with self._lock:
            now = self._clock()
            self._allowed = min(float(self._burst), self._allowed + (now - self._at) * self._rate)
            self._at = now
            more = text[1:] if self._returned and text.startswith("\n") else text
            if text:
                self._returned = text.endswith("\r")
            *lines, last = _END.split(self._open + more)
            for line in lines:
                for start in range(0, len(line) or 1, LONGEST_LINE):
                    self._pass_on(line[start : start + LONGEST_LINE])
            if lines or not self._open:
                self._opened_at = now
            while len(last) >= LONGEST_LINE or (last and now - self._opened_at >= OPEN_SECONDS):
                self._pass_on(last[:LONGEST_LINE])
                last, self._opened_at = last[LONGEST_LINE:], now
            self._open = last
        return len(text)

    def _pass_on(self, line: str) -> None:
        if self._allowed < 1:
            self._left_out += 1
            return
        self._allowed -= 1
        if self._left_out:
            self._stream.write(f"({self._left_out} lines were left out: more than {self._rate:g} a second)\n")
            self._left_out = 0
        self._stream.write(line + "\n")

    def flush(self) -> None:
        """Flush the forwarded lines."""
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # encoding, fileno, isatty, ...
