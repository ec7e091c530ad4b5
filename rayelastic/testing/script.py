"""A source that follows a script: rows, waiting until the test releases it, and failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rayelastic.connectors.generate.declaration import CallableSource
from rayelastic.connectors.generate.declaration import callable as callable_source

SLICE = 0.005  # seconds of waiting at a gate, between which a stop gets through
SLOW = 0.002  # seconds; a source that takes longer for a row emits it at once (1 ms, native python_source.cpp)


class Gate:
    """A place where a script waits until the test opens it, in this process.

    >>> gate = Gate()
    >>> source = script([(1,), gate, (2,)], {"n": int})
    >>> gate.is_open
    False
    >>> gate.open()
    >>> gate.wait_reached(timeout=0)  # no job has come to it
    False
    """

    def __init__(self) -> None:
        self._opened = threading.Event()
        self._reached = threading.Event()

    def __deepcopy__(self, memo: object) -> Gate:
        """Return this gate, so that copies of an object wait for the same test."""
        return self

    @property
    def is_open(self) -> bool:
        """Whether a script may pass."""
        return self._opened.is_set()

    def open(self) -> None:
        """Let the script continue, now and whenever it arrives here again."""
        self._opened.set()

    def wait_reached(self, timeout: float) -> bool:
        """Wait until the script is here, with all earlier rows emitted; return whether it came in time."""
        return self._reached.wait(timeout)

    def _pass(self) -> None:
        self._reached.set()
        while not self._opened.wait(SLICE):
            pass


@dataclass
class Raise:
    """A failure of the source.

    Args:
        error: what it raises.
        times: how often; then the script goes on past it, so that a job that is started again comes through. 0: always.

    >>> source = script([(1,), Raise(OSError("lost the connection"), times=1), (2,)], {"n": int})
    """

    error: Exception
    times: int = 0
    _raised: int = 0

    def _pass(self) -> None:
        if self.times and self._raised >= self.times:
            return
        self._raised += 1
        raise self.error


def script(steps: Sequence[Any], schema: Any) -> CallableSource[Any]:
    """Make a source that follows a script. Each start follows it from the beginning.

    Args:
        steps: Tuples of the schema, and between them Gate and Raise.
        schema: The schema of the tuples, see Schema.of.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("flaky")
    >>> flaky = script([(1,), Raise(OSError("lost the connection"), times=1), (2,)], {"n": int})
    >>> topology.source(flaky, name="numbers").sink(rel.list(), name="out")
    <sink out>
    >>> rel.run(topology)
    Traceback (most recent call last):
    rayelastic.errors.JobFailedError: job 'flaky', operator 'numbers': OSError: lost the connection...
    >>> [t.n for t in rel.run(topology)["out"]]
    [1, 2]
    """
    kept = [*steps]

    def follow() -> Iterator[Any]:
        for number, step in enumerate(kept):
            if isinstance(step, Gate | Raise):
                step._pass()
                continue
            if number + 1 < len(kept) and isinstance(kept[number + 1], Gate):
                time.sleep(SLOW)
            yield step

    return callable_source(follow, schema)
