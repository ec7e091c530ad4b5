"""Puts each PE into a Ray actor of its own, and calls it there."""

from __future__ import annotations

import contextlib
import random
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from rayelastic.errors import ErrorCode, PELostError, UnavailableError
from rayelastic.on_ray.calls import answer
from rayelastic.on_ray.cluster import free_cpus
from rayelastic.on_ray.connect import NAMESPACE
from rayelastic.on_ray.lease import LEASE
from rayelastic.on_ray.machines import Machines
from rayelastic.on_ray.pe_actor import PE_CLASS, PEActor
from rayelastic.on_ray.private import adapter
from rayelastic.on_ray.spares import ANYWHERE, Spares
from rayelastic.on_ray.store.cpu_requests import CpuRequest
from rayelastic.on_ray.store.node_use import NodeUse, left_to
from rayelastic.plan.node_placement import Node
from rayelastic.runtime.remote import Call, Remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ray import ObjectRef
    from ray.actor import ActorHandle

    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.element.host import PEHandle
    from rayelastic.runtime.values.specs import PESpec

CONTROL_THREADS = 16  # control calls that an actor answers at once; a watching call holds one
HOST_TIMEOUT = 10.0  # seconds for a process that is there to say what it hosts, or to make what it shall
CLOSE_TIMEOUT = 3.0  # seconds for a PE to close its port and links before its process is ended


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """How the actors of PEs are placed.

    Args:
        num_cpus: CPUs that Ray counts for each.
        spread: put them on different nodes if there are several; otherwise they stay together as long as they fit.
        pe_class: the import path of what each hosts.
        job_id: they outlive their maker, who can be replaced, and are found by it; empty: they end with their maker.
        owner: the user whose job it is; empty: nobody is asked.
    """

    num_cpus: float
    spread: bool = False
    pe_class: str = PE_CLASS
    job_id: str = ""
    owner: str = ""


class RayHandle:
    """A PE in an actor.

    Args:
        pe: its id.
        actor: the actor that hosts it.
        machines: the machines that didn't answer lately.
    """

    def __init__(self, pe: str, actor: ActorHandle[PEActor], machines: Machines | None = None) -> None:
        self.pe = pe
        self.actor = actor
        self._machines = machines or Machines()

    def within(self, timeout: float) -> ElementApi:
        """Return the PE, whose methods wait for its answer; the death of its process ends the wait.

        They raise PELostError if its process is gone, TimeoutError if there is no answer in time (it may have run or
        not; UnavailableError if Ray hasn't found a place for it yet), and what the method raised.
        """

        def send(call: Call) -> Any:
            who = f"PE {self.pe!r}"
            try:
                return answer(self.actor.call.remote(call), who, call.method, timeout)
            except TimeoutError as error:
                if isinstance(error, UnavailableError) or not adapter.actor_has_no_place(self.actor):
                    raise
                raise UnavailableError(
                    f"Ray didn't place {who} within {timeout:g} s: {free_cpus()}",
                    hint="End other jobs and actors, add nodes, or ask for a smaller rel.Threads(ray_cpus=...)",
                    code=ErrorCode.NO_ROOM,
                ) from error

        return cast("ElementApi", Remote(send))

    def is_alive(self) -> bool:
        """Tells whether Ray has its process for dead; of one whose library holds the GIL, Ray knows that it isn't."""
        return not adapter.actor_is_dead(self.actor)

    def is_reachable(self) -> bool:
        """Probe its machine; Ray may need 15 seconds to notice that one is gone."""
        return self._machines.answers(self.actor)

    def kill(self, *, at_once: bool = False) -> None:
        """End the actor: it closes what it holds if it still answers, then its process goes. Safe to repeat."""
        import ray

        if not at_once:
            with contextlib.suppress(Exception):  # it may be stuck, dead, or closed: its process ends in any case
                self.within(CLOSE_TIMEOUT).close()
        ray.kill(self.actor, no_restart=True)


class RayHost:
    """Makes PEs in actors.

    Args:
        settings: how they are placed.
    """

    def __init__(self, settings: PlacementSettings) -> None:
        self._settings = settings
        self._spares = Spares(lambda node: self._actor(None, node))
        self._avoided: frozenset[str] = frozenset()
        self._machines = Machines()

    @property
    def can_lose(self) -> bool:
        """Each has a process of its own; a coordinator that can't be replaced takes them along."""
        return bool(self._settings.job_id)

    def start_pe(self, spec: PESpec) -> RayHandle:
        """Has a spare host it, or asks Ray for an actor and returns at once; calls to that wait until it runs."""
        import ray

        while (spare := self._spares.take(spec.node)) is not None:
            try:
                answer(spare.host.remote(spec), f"the spare for {spec.pe}", "host", HOST_TIMEOUT)
            except PELostError:  # it died behind its last answer: the next one will do
                continue
            except TimeoutError:  # it got stuck, or no CPU; nobody else may come to think that it hosts this
                ray.kill(spare, no_restart=True)
            else:
                return self._handle(spec.pe, spare)
        return self._handle(spec.pe, self._actor(spec))

    def start_holder(self, spec: PESpec) -> RayHandle:
        """Ask Ray for an actor on exactly one node that takes no CPU, and return at once."""
        return self._handle(spec.pe, self._actor(spec, holder=True))

    def start_early(self, count: int) -> list[ActorHandle[PEActor]]:
        """Start the processes of a job's first elements beside that of its coordinator, which adopts them.

        They end by themselves if it doesn't.
        """
        return [self._actor(None, early=True) for _ in range(count)]

    def adopt(self, early: Sequence[ActorHandle[PEActor]]) -> None:
        """Take over what was started early: the next elements live there, wherever that is."""
        for actor in early:
            self._spares.adopt(actor, ANYWHERE)

    def recycle(self, handle: PEHandle) -> None:
        """End a PE; if it ends by itself, and soon, its process is a spare from then on.

        If its machine doesn't answer either, nothing starts there for a while: Ray may need 15 s to notice that the
        machine is gone. If it isn't, the element does no harm: links reject its epoch, sinks commit only when asked.
        """
        assert isinstance(handle, RayHandle)
        if self._machines.is_silent(handle.actor):
            handle.kill(at_once=True)
            return
        try:
            answer(handle.actor.clear.remote(), f"PE {handle.pe!r}", "clear", CLOSE_TIMEOUT)
        except Exception:  # it is gone, or stuck, or something of it stays behind
            if not handle.is_reachable():
                self._spares.leave(self.silent)
            handle.kill(at_once=True)
        else:
            self._spares.adopt(handle.actor)

    def make_ready(self, count: int, node: str = "") -> None:
        """Keep so many processes ready for elements to come, on a node or on any."""
        here = self.nodes()
        self._spares.keep(count, here[0].name if not node and len(here) == 1 else node)

    def close(self) -> None:
        """End the spare processes, and release the requested resources."""
        self._spares.close()
        with contextlib.suppress(Exception):  # Ray's own: the request of a closed job doesn't count in any case
            self.request(0)
        with contextlib.suppress(Exception):  # as little does what it used
            NodeUse(self._settings.job_id).tell({})

    def _handle(self, pe: str, actor: ActorHandle[PEActor]) -> RayHandle:
        return RayHandle(pe, actor, self._machines)

    def _actor(
        self, spec: PESpec | None, node: str = "", *, early: bool = False, holder: bool = False
    ) -> ActorHandle[PEActor]:
        import ray

        settings, spare = self._settings, spec is None and not early
        detached: dict[str, Any] = {}
        if settings.job_id:
            name = f"{_prefix(settings.job_id)}{secrets.token_hex(8)}"
            detached = {"name": name, "namespace": NAMESPACE, "lifetime": "detached"}
        made: ActorHandle[PEActor] = (
            ray.remote(PEActor)
            .options(
                num_cpus=0 if holder else settings.num_cpus,
                max_restarts=0,  # a new incarnation is the coordinator's decision, never Ray's
                max_concurrency=CONTROL_THREADS,
                scheduling_strategy=self._strategy(spec.node if spec is not None else node, spare=spare, holder=holder),
                **detached,
            )
            .remote(settings.pe_class, spec, LEASE if settings.job_id else None)
        )
        return made

    def find_pes(self) -> list[RayHandle]:
        """Find the actors of the job's PEs, and its spares; of two with one id the newer."""
        import ray

        prefix = _prefix(self._settings.job_id)
        names = [actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)]
        asked: list[tuple[ActorHandle[PEActor], ObjectRef[Any]]] = []
        for name in names:
            with contextlib.suppress(ValueError):  # it is another job's, or has ended meanwhile
                if name.startswith(prefix):
                    actor = ray.get_actor(name, namespace=NAMESPACE)
                    asked.append((actor, actor.about.remote()))
        newest: dict[str, tuple[int, RayHandle]] = {}
        for actor, told in asked:
            with contextlib.suppress(PELostError, TimeoutError):
                pe, epoch, _ = answer(told, "a PE", "about", HOST_TIMEOUT)
                if not pe:
                    self._spares.adopt(actor)
                elif pe not in newest or epoch > newest[pe][0]:
                    newest[pe] = epoch, self._handle(pe, actor)
        return [handle for _, handle in newest.values()]

    def nodes(self) -> tuple[Node, ...]:
        """Return the machines of the cluster that may be used, with the CPUs that other jobs leave of them."""
        import ray

        alive = (node for node in ray.nodes() if node["Alive"])
        cpus = [(node["NodeManagerHostname"], node["Resources"].get("CPU", 0.0)) for node in alive]
        others: dict[str, list[float]] = {}
        with contextlib.suppress(Exception):  # Ray's own, whose store may be starting again: there is a next period
            others = NodeUse(self._settings.job_id).others()
        excluded = self._avoided | self.silent
        usable = ((name, left_to(count, others.get(name, []))) for name, count in cpus if name not in excluded)
        return tuple(Node(name, count) for name, count in usable if count)

    @property
    def silent(self) -> frozenset[str]:
        """The machines that didn't answer lately, most of which Ray still has for alive."""
        return self._machines.silent

    def hosts(self) -> frozenset[str]:
        """Return the machines of the cluster that offer CPUs, used or not; all of them if fewer than two do."""
        import ray

        alive = [node for node in ray.nodes() if node["Alive"] and node["NodeManagerHostname"] not in self._avoided]
        with_cpus = frozenset(node["NodeManagerHostname"] for node in alive if node["Resources"].get("CPU"))
        return with_cpus if len(with_cpus) > 1 else frozenset(node["NodeManagerHostname"] for node in alive)

    def avoid(self, nodes: frozenset[str]) -> None:
        """Has nothing start on some machines from now on; ends the processes that are kept ready there."""
        self._avoided = nodes
        self._spares.leave(nodes)

    def request(self, cpus: int) -> None:
        """Ask Ray's autoscaler, where there is one, for so many CPUs more, beside what other jobs ask for."""
        if self._settings.job_id:
            CpuRequest(self._settings.job_id).set(cpus)

    def _strategy(self, node: str, *, spare: bool, holder: bool) -> Any:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        alive = {one["NodeManagerHostname"]: one["NodeID"] for one in ray.nodes() if one["Alive"]}
        if node in alive and (holder or node not in self.silent):
            return NodeAffinitySchedulingStrategy(alive[node], soft=not holder)
        if (self._avoided or self.silent) and (free := [other.name for other in self.nodes() if other.name in alive]):
            return NodeAffinitySchedulingStrategy(alive[random.choice(free)], soft=True)
        return "SPREAD" if (spare or self._settings.spread) and len(alive) > 1 else "DEFAULT"


def _prefix(job_id: str) -> str:
    return f"pe:{job_id}:"


__all__ = ["PELostError", "PlacementSettings", "RayHandle", "RayHost"]
