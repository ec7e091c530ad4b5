"""Wakes operators that wait for the clock, because without tuples nothing else would run them.

Must not know what they do then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rayelastic.runtime.values.specs import PESpec

ALARM_PERIOD = 0.01  # seconds: the slice in which native operators wait (waiting.hpp)


class Alarm:
    """Pokes operators once per period, until it is stopped.

    Args:
        poke: The scheduler's function.
        operators: Their numbers in the scheduler.
        name: The thread's name.
    """

    def __init__(self, poke: Callable[[int], None], operators: Sequence[int], name: str) -> None:
        self._poke = poke
        self._operators = tuple(operators)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start its thread."""
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._stopped.set()
        if self._thread.ident is not None:  # an interrupt may have come before it was started
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(ALARM_PERIOD):
            for operator in self._operators:
                self._poke(operator)


def alarm_of(spec: PESpec, poke: Callable[[int], None], ids: Mapping[str, int]) -> Alarm | None:
    """Return the alarm of a PE; None if it needs none.

    Args:
        spec: The PE.
        poke: Its scheduler's function.
        ids: {operator: its number in the scheduler}.
    """
    waiting = [ids[operator.name] for operator in spec.operators if operator.body.uses_clock]
    return Alarm(poke, waiting, f"alarm-{spec.pe}") if waiting else None
