"""Puts each processing element into a Ray actor of its own, and calls it there."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayelastic.on_ray.actors import PE_CLASS, PEActor
from rayelastic.on_ray.calls import answer
from rayelastic.plan.node_placement import Node
from rayelastic.runtime.host import PELostError

if TYPE_CHECKING:
    from ray.actor import ActorHandle

    from rayelastic.runtime.specs import PESpec

CONTROL_THREADS = 16  # control calls that an actor answers at once; a watching call holds one
CLOSE_TIMEOUT = 3.0  # seconds for a processing element to close its port and links before its process is ended


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """How the actors of processing elements are placed.

    Args:
        num_cpus: CPUs that Ray counts for each.
        spread: put them on different nodes if there are several; otherwise they stay together as long as they fit.
        pe_class: the import path of what each hosts.
    """

    num_cpus: float
    spread: bool = False
    pe_class: str = PE_CLASS


class RayHandle:
    """A processing element in an actor.

    Args:
        pe: its id.
        actor: the actor that hosts it.
    """

    def __init__(self, pe: str, actor: ActorHandle[PEActor]) -> None:
        self._pe = pe
        self._actor = actor

    @property
    def pe(self) -> str:
        """Its id."""
        return self._pe

    def call(self, method: str, *arguments: Any, timeout: float) -> Any:
        """Calls a method of the processing element and waits for its answer; the death of its process ends the wait.

        Raises:
            PELostError: its process is gone.
            TimeoutError: no answer in time; it may have run or not.
            Exception: what the method raised.
        """
        reference = self._actor.call.remote(method, arguments)
        return answer(reference, f"processing element {self._pe!r}", method, timeout)

    def kill(self) -> None:
        """Ends the actor: it closes what it holds if it still answers, then its process goes. Safe to repeat."""
        import ray

        with contextlib.suppress(Exception):  # it may be stuck, dead, or closed: its process ends in any case
            self.call("close", timeout=CLOSE_TIMEOUT)
        ray.kill(self._actor, no_restart=True)


class RayHost:
    """Makes processing elements in actors; they end with the process that made them.

    Args:
        settings: how they are placed.
    """

    def __init__(self, settings: PlacementSettings) -> None:
        self._settings = settings

    def start_pe(self, spec: PESpec) -> RayHandle:
        """Asks Ray for an actor and returns at once; calls to it wait until it runs."""
        import ray

        settings = self._settings
        nodes = sum(1 for node in ray.nodes() if node["Alive"])
        actor = (
            ray.remote(PEActor)
            .options(
                num_cpus=settings.num_cpus,
                max_restarts=0,  # a new incarnation is the coordinator's decision, never Ray's
                max_concurrency=CONTROL_THREADS,
                scheduling_strategy="SPREAD" if settings.spread and nodes > 1 else "DEFAULT",
            )
            .remote(settings.pe_class, spec)
        )
        return RayHandle(spec.pe, actor)

    def nodes(self) -> tuple[Node, ...]:
        """Returns the machines of the cluster, with all their CPUs."""
        import ray

        alive = (node for node in ray.nodes() if node["Alive"])
        cpus = ((node["NodeManagerHostname"], node["Resources"].get("CPU", 0.0)) for node in alive)
        return tuple(Node(name, count) for name, count in cpus if count)


__all__ = ["PELostError", "PlacementSettings", "RayHandle", "RayHost"]
