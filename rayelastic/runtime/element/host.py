"""The interface between the coordinator and the processes that host PEs.

`InProcessHost` keeps them in the calling process (`rel.run`); the host in `rayelastic.on_ray` puts each into a Ray
actor. The coordinator doesn't distinguish them.
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
    """A PE in any process."""

    @property
    def pe(self) -> str:
        """The id of the PE."""
        ...

    def within(self, timeout: float) -> ElementApi:
        """Return the PE, or a proxy of it.

        Args:
            timeout: Seconds that each call of a method waits for its answer. The call raises PELostError if the process
                of the element is gone, and TimeoutError if there is no answer in time.
        """
        ...

    def is_alive(self) -> bool:
        """Return whether its process exists, without a call: it may be busy."""
        ...

    def is_reachable(self) -> bool:
        """Probe its machine, whatever its process is busy with; return whether it answers."""
        ...

    def kill(self, *, at_once: bool = False) -> None:
        """End the PE and free what it holds; safe to repeat.

        Args:
            at_once: End it without a call, because it doesn't answer.
        """
        ...


class PEHost(Protocol):
    """Makes PEs."""

    @property
    def can_lose(self) -> bool:
        """Whether they live in their own processes, which may be lost while the job's coordinator continues."""
        ...

    def start_pe(self, spec: PESpec) -> PEHandle:
        """Make a PE; it does nothing yet."""
        ...

    def start_holder(self, spec: PESpec) -> PEHandle:
        """Make a PE without operators on exactly its node, for the files there; it uses no CPU of the cluster."""
        ...

    def recycle(self, handle: PEHandle) -> None:
        """End a PE, and keep its process ready for another one if it is sound."""
        ...

    def make_ready(self, count: int, node: str = "") -> None:
        """Keep so many spare processes for later elements, on a node or on any, if starting one takes time."""
        ...

    def close(self) -> None:
        """End the spare processes."""
        ...

    def find_pes(self) -> Sequence[PEHandle]:
        """Find the existing PEs of this job, whoever made them; of two with one id the newer."""
        ...

    def nodes(self) -> tuple[Node, ...]:
        """Return the machines that can host PEs."""
        ...

    def hosts(self) -> frozenset[str]:
        """Return the machines that exist, whether or not they have CPUs left, without excluded ones."""
        ...

    @property
    def silent(self) -> frozenset[str]:
        """The machines of `hosts` that didn't answer lately; `nodes` omits them, and nothing starts there."""
        ...

    def avoid(self, nodes: frozenset[str]) -> None:
        """Exclude some machines from new starts, instead of those excluded before; `nodes` omits them."""
        ...

    def request(self, cpus: int) -> None:
        """Request so many additional CPUs from the cluster's autoscaler; 0: the existing ones suffice."""
        ...


class InProcessHandle:
    """A PE in this process."""

    def __init__(self, element: ProcessingElement) -> None:
        self._element = element

    @property
    def pe(self) -> str:
        """The id of the PE."""
        return self._element.spec.pe

    def within(self, timeout: float) -> ElementApi:  # noqa: ARG002  (nothing can be lost here)
        """Return the PE."""
        return self._element

    def is_alive(self) -> bool:
        """Return True: its process is this one."""
        return True

    def is_reachable(self) -> bool:
        """Return True: its machine is this one."""
        return True

    def kill(self, *, at_once: bool = False) -> None:  # noqa: ARG002  (it does answer)
        """End the PE; the process goes on."""
        self._element.close()


class InProcessHost:
    """Keeps PEs in the calling process; their links are real sockets on the loopback address."""

    def __init__(self) -> None:
        self._made: dict[str, InProcessHandle] = {}

    @property
    def can_lose(self) -> bool:
        """False: they end with this process."""
        return False

    def start_pe(self, spec: PESpec) -> InProcessHandle:
        """Make a PE in this process; if the job takes checkpoints, with copies of users' objects.

        Raises:
            StateError: A user's object can't be copied; the message names the operator.
        """
        if spec.takes_checkpoints:  # a restart must not see the state that this run leaves in them
            spec = replace(spec, operators=tuple(map(with_copy, spec.operators)))
        self._made[spec.pe] = InProcessHandle(ProcessingElement(spec))
        return self._made[spec.pe]

    def start_holder(self, spec: PESpec) -> InProcessHandle:
        """Make a PE in this process."""
        return self.start_pe(spec)

    def recycle(self, handle: PEHandle) -> None:
        """End a PE."""
        handle.kill()

    def make_ready(self, count: int, node: str = "") -> None:
        """Do nothing: an element needs no process."""

    def close(self) -> None:
        """Do nothing: there are no spare processes."""

    def find_pes(self) -> Sequence[PEHandle]:
        """Return the elements that this host has made, the last one of each id."""
        return list(self._made.values())

    def nodes(self) -> tuple[Node, ...]:
        """Return this machine, with the CPUs that this process may use."""
        return (Node(socket.gethostname(), float(available_cpus())),)

    def hosts(self) -> frozenset[str]:
        """Return this machine."""
        return frozenset([socket.gethostname()])

    @property
    def silent(self) -> frozenset[str]:
        """Return none: this machine answers."""
        return frozenset()

    def avoid(self, nodes: frozenset[str]) -> None:
        """Do nothing: there is only this machine."""

    def request(self, cpus: int) -> None:
        """Do nothing: there is only this machine."""
