"""Identifies a process on a machine, so that another one can check whether it is gone."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ProcessId"]

ENDED = "ZX"  # states of ended processes in /proc/<pid>/stat
STARTED = 19  # the place of the start time in /proc/<pid>/stat after the name (proc(5): field 22)


@dataclass(frozen=True, slots=True)
class ProcessId:
    """The unique identity of a process.

    Args:
        host: The name of its machine.
        space: The boot of the machine and the namespace of `pid`; empty: unknown, as outside Linux.
        pid: Its number.
        started: Its start time, as the kernel writes it.
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
        """Return whether it still runs; None: it isn't visible from this process."""
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
    """Return the start time of a process; empty: it doesn't exist, or is a zombie."""
    try:
        behind_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        fields = behind_name.split()
        return "" if fields[0] in ENDED else fields[STARTED]
    except (OSError, IndexError):
        return ""
