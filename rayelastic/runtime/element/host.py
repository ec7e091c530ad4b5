"""Where processing elements live: the one interface between the coordinator and the world that hosts them.

`InProcessHost` keeps them in the calling process (`rel.run`); `rayelastic.on_ray` has the host that puts each into a
Ray actor. The coordinator can't tell the difference.
"""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from rayelastic.plan.node_placement import Node
from rayelastic.runtime.element.processing_element import ProcessingElement
from rayelastic.runtime.operators.user_objects import with_copy
from rayelastic.runtime.watch.machine_load import available_cpus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.values.specs import PESpec


class PEHandle(Protocol):
    """A processing element, wherever it lives."""

    @property
    def pe(self) -> str:
        """The id of the processing element."""
        ...

    def within(self, timeout: float) -> ElementApi:
        """Return the processing element itself, as far as the caller can tell.

        Args:
            timeout: seconds that each call of a method waits for its answer. The call raises PELostError if the
                process of the element is gone, and TimeoutError if there is no answer in time.
        """
        ...

    def is_alive(self) -> bool:
        """Tells whether its process is there, without asking it: it may be busy."""
        ...

    def kill(self, *, at_once: bool = False) -> None:
        """End the processing element and frees what it holds; safe to repeat.

        Args:
            at_once: don't ask it, as it doesn't answer.
        """
        ...


class PEHost(Protocol):
    """Makes processing elements."""

    @property
    def can_lose(self) -> bool:
        """Whether they live in processes of their own, which may be lost while the job's coordinator goes on."""
        ...

    def start_pe(self, spec: PESpec) -> PEHandle:
        """Make a processing element; it does nothing yet."""
        ...

    def recycle(self, handle: PEHandle) -> None:
        """End a processing element, and keep its process ready for another one if it is sound."""
        ...

    def make_ready(self, count: int, node: str = "") -> None:
        """Keep so many processes ready for elements to come, on a node or on any, if starting one takes time."""
        ...

    def close(self) -> None:
        """End what was kept ready."""
        ...

    def find_pes(self) -> Sequence[PEHandle]:
        """Find the processing elements of this job that are there, whoever made them; of two with one id the newer."""
        ...

    def nodes(self) -> tuple[Node, ...]:
        """Return the machines that can host processing elements."""
        ...

    def avoid(self, nodes: frozenset[str]) -> None:
        """Has nothing start on some machines from now on, in place of those named before; `nodes` leaves them out."""
        ...

    def request(self, cpus: int) -> None:
        """Ask whoever can start machines for so many CPUs more than there are; 0: what there is will do."""
        ...


class InProcessHandle:
    """A processing element in this process."""

    def __init__(self, element: ProcessingElement) -> None:
        self._element = element

    @property
    def pe(self) -> str:
        """The id of the processing element."""
        return self._element.spec.pe

    def within(self, timeout: float) -> ElementApi:  # noqa: ARG002  (nothing can be lost here)
        """Return the processing element."""
        return self._element

    def is_alive(self) -> bool:
        """Tells that its process is there: it is this one."""
        return True

    def kill(self, *, at_once: bool = False) -> None:  # noqa: ARG002  (it does answer)
        """End the processing element; the process goes on."""
        self._element.close()


class InProcessHost:
    """Keeps processing elements in the calling process; their links are real sockets on the loopback address."""

    def __init__(self) -> None:
        self._made: dict[str, InProcessHandle] = {}

    @property
    def can_lose(self) -> bool:
        """They end with this process alone."""
        return False

    def start_pe(self, spec: PESpec) -> InProcessHandle:
        """Make a processing element in this process; of a job that takes checkpoints with objects of its own.

        Raises:
            StateError: a user's object can't be copied; names the operator.
        """
        if spec.by_epoch:  # another start must not find what this one has left in them
            spec = replace(spec, operators=tuple(map(with_copy, spec.operators)))
        self._made[spec.pe] = InProcessHandle(ProcessingElement(spec))
        return self._made[spec.pe]

    def recycle(self, handle: PEHandle) -> None:
        """End a processing element."""
        handle.kill()

    def make_ready(self, count: int, node: str = "") -> None:
        """Nothing has to be."""

    def close(self) -> None:
        """Nothing was."""

    def find_pes(self) -> Sequence[PEHandle]:
        """Return those that this host has made, the last ones of each id."""
        return list(self._made.values())

    def nodes(self) -> tuple[Node, ...]:
        """Return this machine, as far as this process may use it."""
        return (Node(socket.gethostname(), float(available_cpus())),)

    def avoid(self, nodes: frozenset[str]) -> None:
        """There is this machine alone."""

    def request(self, cpus: int) -> None:
        """Nobody can: there is this machine alone."""
