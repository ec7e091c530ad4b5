"""Which process on which machine did something, so that another one can say whether it is gone."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ProcessId"]

ENDED = "ZX"  # states in /proc/<pid>/stat of processes that run no more
STARTED = 19  # the place of the start time in /proc/<pid>/stat behind the name (proc(5): field 22)


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process, unlike any other at any time.

    Args:
        host: name of its machine.
        space: boot of the machine and namespace in which `pid` is a number; empty: unknown, as outside Linux.
        pid: its number.
        started: when it was started, in the kernel's words.
    """

    host: str
    space: str
    pid: int
    started: str

    @staticmethod
    def here() -> ProcessId:
        """Return this process."""
        return ProcessId(socket.gethostname(), _space(), os.getpid(), _started(os.getpid()))

    @property
    def is_alive(self) -> bool | None:
        """Whether it still runs; None: that can't be seen from this process."""
        if not self.space or self.space != _space():
            return None
        return _started(self.pid) == self.started


def _space() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process was started; empty: there is none, or it has ended and its parent hasn't asked how."""
    try:
        behind_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        fields = behind_name.split()
        return "" if fields[0] in ENDED else fields[STARTED]
    except (OSError, IndexError):
        return ""
