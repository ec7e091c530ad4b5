"""A PE's report of its CPU use, for the loop that shares out the CPUs of its host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostUse:
    """The CPU use of a PE so far.

    Args:
        cpu_seconds: Seconds for which CPUs ran its threads.
        waited_seconds: Seconds for which threads of its process were ready to run, and something else ran.
        cpus: The CPUs that its process may use.
    """

    cpu_seconds: float
    waited_seconds: float
    cpus: int
