"""Where the process of the command line begins: it ends quietly by Ctrl-C while Python still imports what it needs."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable
from types import FrameType

STOPPED = 130  # the exit status of a program that Ctrl-C has ended, for shells


def main() -> int:
    """Run the command line of this process; return its exit status."""
    before = signal.signal(signal.SIGINT, _end)  # an exception might be swallowed by whoever imports
    run: Callable[[], int] = importlib.import_module("rayelastic.cli").main
    signal.signal(signal.SIGINT, before)
    return run()


def _end(_: int, __: FrameType | None) -> None:
    os.write(2, b"stopped\n")
    os._exit(STOPPED)  # nothing runs yet
