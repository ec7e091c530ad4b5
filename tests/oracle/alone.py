"""Processes of the pool by themselves: what they leave to their parent, and how long they may take."""

from __future__ import annotations

import signal


def limited(seconds: int) -> None:
    """Ends the process when it has used so much of a processor, in machine code, too; 0: as it was."""
    if seconds:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)


def left_alone() -> None:
    """Ctrl-C is the parent's business, which ends its workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
