"""What the programs of ported works share: each declares a topology, which is built and run anew each time."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import rayelastic as rel

__all__ = ["lanes_of", "running"]

Build = Callable[[], rel.Topology]


def running(reads: Callable[[str], Build]) -> Callable[[str], Callable[[], list[Any]]]:
    """Return a program's `prepare`: reads the input, and gives what builds the topology and runs it.

    Args:
        reads: the input at a path; gives what builds the topology of it.
    """

    def prepare(path: str) -> Callable[[], list[Any]]:
        build = reads(path)

        def run() -> list[Any]:
            out: list[Any] = rel.run(build())["out"]
            return out

        return run

    return prepare


def lanes_of(work: str, path: str) -> str:
    """Say which operators of a work's program run in which lane.

    Args:
        work: its name.
        path: of a small input.
    """
    program = importlib.import_module(f"bench.peers.works.{work}.rayelastic")
    found: dict[str, list[str]] = {}
    for name, spec in program.topology(path)().operators.items():
        found.setdefault(spec.lane.value, []).append(name)
    return "; ".join(f"{lane}: {', '.join(names)}" for lane, names in found.items())
