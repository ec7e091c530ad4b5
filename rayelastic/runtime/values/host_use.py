"""What a processing element tells whoever shares out the CPUs of its host."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HostUse"]


@dataclass(frozen=True, slots=True)
class HostUse:
    """What a processing element used of its host so far.

    Args:
        cpu_seconds: for which CPUs ran its threads.
        waited_seconds: for which threads of its process were ready to run, and something else ran.
        cpus: that its process may use.
    """

    cpu_seconds: float
    waited_seconds: float
    cpus: int
