"""The PEs of a job: made, started, called, retired and ended. Decides nothing; knows no tuples.

Knows elements by their handles (host.py), so that they may be plain objects or actors.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rayelastic.errors import ErrorCode, PELostError
from rayelastic.graph.operators.joins.build_first import sources_that_wait
from rayelastic.graph.spec.event_time import time_units
from rayelastic.plan.config import Regions
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.plan_change import foreign_keys, predecessors
from rayelastic.plan.routing import Edge, elastic_regions, routings_of
from rayelastic.runtime.remote import Call, Remote, perform
from rayelastic.runtime.rounds import ask_all, call_all, outcomes, tell_all
from rayelastic.runtime.values.specs import PESpec
from rayelastic.runtime.values.status import PEStatus, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rayelastic.plan.exec_plan import PlanLink
    from rayelastic.plan.routing import PERouting
    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.element.host import PEHandle, PEHost
    from rayelastic.runtime.port.data_port import PortAddress
    from rayelastic.runtime.values.snapshot import Manifest, Snapshot
    from rayelastic.runtime.values.specs import JobSpec

CALL_TIMEOUT = 10.0  # seconds for any other control call
START_TIMEOUT = 120.0  # seconds for a PE to open its port, connect and start; a cold machine compiles here
RESULT_TIMEOUT = 120.0  # seconds to transfer what its sinks have collected
ADOPT_TIMEOUT = 5.0  # seconds for an element to report its state to a new coordinator
RETIRE_TIMEOUT = 30.0  # seconds for an element without input to process its tuples and to end
RETIRE_LOOK = 1.0  # seconds between two checks whether it has
ANSWER_TIMEOUT = 3.0  # seconds for its answer, as on a link; Ray may need a minute to detect the loss of a host


def has_nothing_to_end(handle: PEHandle) -> bool:
    """Return whether no link leads to an element, and it has never had a tuple, so that no producer signals its end.

    This happens when a coordinator died before it attached the element, and the producers have ended or are lost.
    """
    sample = handle.within(ANSWER_TIMEOUT).sample()
    is_fed = any(name.endswith(f">{handle.pe}") for name in sample.links)
    return not is_fed and not any(operator.tuples_in or operator.queued for operator in sample.operators)


class JobCluster:
    """The PEs of a job.

    Args:
        job: The job.
        host: Makes them.
        started: Called with the handle of each started one, and its state.
        takes_checkpoints: Whether the job takes checkpoints: its sinks are completed when all elements have ended.
        secret: The secret that they prove to each other; empty: the job's first one.
        retires: Called with the handle of each one that has processed all its tuples, before it is ended.
    """

    def __init__(
        self,
        job: JobSpec,
        host: PEHost,
        started: Callable[[PEHandle, PEStatus], None],
        *,
        takes_checkpoints: bool = False,
        secret: bytes = b"",
        retires: Callable[[PEHandle], None] = lambda _: None,
    ) -> None:
        self.secret = secret or job.secret  # of elements that start from now on
        self._job = job
        self._host = host
        self._started = started
        self._retires = retires
        self.takes_checkpoints = takes_checkpoints
        self._lock = threading.Lock()
        self._handles: dict[str, PEHandle] = {}
        self._addresses: dict[str, PortAddress | None] = {}
        self._ended: set[str] = set()
        self._lost: set[str] = set()  # of these
        elastic = job.config.regions not in (None, Regions.FIXED)
        self.elastic = elastic_regions(job.plan) if elastic else ()

    @property
    def can_lose_one(self) -> bool:
        """Whether one may be lost, or fall silent, while the coordinator continues."""
        return self._host.can_lose

    @property
    def handles(self) -> dict[str, PEHandle]:
        """The handles of the existing ones, by id."""
        with self._lock:
            return dict(self._handles)

    def start(
        self,
        plan: ExecPlan,
        pes: Sequence[str],
        restore: Snapshot | None = None,
        manifest: Manifest | None = None,
        works: Callable[[], None] | None = None,
        deliver: Callable[[Sequence[tuple[PEHandle, PESpec]]], None] | None = None,
    ) -> None:
        """Start elements of a plan: all open their ports, then connect, then run. Running ones aren't touched.

        Args:
            plan: The plan with them.
            pes: The elements to start.
            restore: The snapshot that all of them restore; None: none, as for later replicas, whose keys others have.
            manifest: That snapshot's manifest, if it has been read.
            works: Called when all are connected, before the first of them runs: a later loss may be caused by the data
                that it processes.
            deliver: Called when all have a process, before they open: copies what they restore to their nodes.

        Raises:
            RayelasticError: One couldn't be started.
        """
        handles = self.handles
        wanted = set(pes)
        specs = self._specs(plan, [pe for pe in plan.pes if pe in wanted and pe not in handles])
        if manifest is not None:
            before = predecessors(ExecPlan.from_dict(manifest.plan), plan)
            specs = [
                replace(spec, predecessors=before[spec.pe], manifest=manifest.part(before[spec.pe])) for spec in specs
            ]
        elif restore is not None:
            foreign = foreign_keys(plan)
            specs = [replace(spec, foreign=foreign.get(spec.pe, {})) for spec in specs]
        specs = [replace(spec, restore=restore) for spec in specs]
        fresh = {spec.pe: self._host.start_pe(spec) for spec in specs}
        with self._lock:
            self._handles.update(fresh)
            self._ended.difference_update(fresh)
            self._lost.difference_update(fresh)
        if deliver is not None and fresh:
            deliver(list(zip(fresh.values(), specs, strict=True)))
        self._addresses.update(ask_all(fresh, lambda element: element.open(), START_TIMEOUT))
        peers = {spec.pe: {pe: self._addresses[pe] for pe in spec.peers} for spec in specs}
        call_all(fresh, lambda handle: handle.within(START_TIMEOUT).connect(peers[handle.pe]))
        if works is not None:
            works()
        ask_all(fresh, lambda element: element.start(), START_TIMEOUT)
        statuses, _ = outcomes(fresh, lambda handle: handle.within(CALL_TIMEOUT).status())
        for pe, handle in fresh.items():
            self._started(handle, statuses.get(pe) or PEStatus(pe, State.RUNNING))  # its watcher reports a loss

    def adopt(self) -> None:
        """Take over the elements that an earlier coordinator of the job has started, if they answer."""
        adopted: dict[str, PEHandle] = {}
        found = {handle.pe: handle for handle in self._host.find_pes()}
        statuses: dict[str, PEStatus] = {}
        for pe, (status, address) in call_all(found, self._asked).items():
            handle, statuses[pe] = found[pe], status
            if status.state is State.CREATED:  # no plan uses it yet
                with contextlib.suppress(PELostError):
                    handle.kill()
                continue
            adopted[handle.pe] = handle
            self._addresses[handle.pe] = address
            if status.state.is_final:
                self.ends(handle.pe)
        with self._lock:
            self._handles.update(adopted)
        for pe, handle in adopted.items():
            self._started(handle, statuses[pe])

    def _asked(self, handle: PEHandle) -> tuple[PEStatus, PortAddress | None]:
        """Return the state of an element, and its address; for one that is gone, that it never ran."""
        for _ in range(max(1, round(self._job.config.network.patience / ADOPT_TIMEOUT))):
            try:
                element = handle.within(ADOPT_TIMEOUT)
                return element.status(), element.address()
            except TimeoutError:  # it is busy, or its library holds the GIL
                if not handle.is_alive():
                    break
            except PELostError:
                break
        return PEStatus(handle.pe, State.CREATED), None

    def element(self, pe: str, timeout: float) -> ElementApi:
        """Return an element; a call that detects its loss records it; see PEHandle.within.

        Raises:
            PELostError: It is gone.
        """
        if (handle := self.handles.get(pe)) is None:
            raise PELostError(f"PE {pe} no longer exists", code=ErrorCode.PE_MISSING)
        element = handle.within(timeout)

        def send(call: Call) -> Any:
            try:
                return perform(element, call)
            except PELostError:
                self.loses(pe)
                raise

        return cast("ElementApi", Remote(send))

    def address(self, pe: str) -> PortAddress:
        """Return the address of an element.

        Raises:
            PELostError: It has none.
        """
        address = self._addresses.get(pe)
        if address is None:
            raise PELostError(f"PE {pe} doesn't listen", code=ErrorCode.PE_MISSING)
        return address

    def is_running(self, pe: str) -> bool:
        """Return whether an element has been started, and has neither ended nor been lost."""
        with self._lock:
            return pe in self._handles and pe not in self._ended

    def is_lost(self, pe: str) -> bool:
        """Return whether an element is known to be lost; one that has ended by itself isn't."""
        with self._lock:
            return pe in self._lost

    def loses(self, pe: str) -> None:
        """Record that an element has been lost."""
        with self._lock:
            self._ended.add(pe)
            self._lost.add(pe)

    def ends(self, pe: str) -> None:
        """Record that an element has ended or been lost."""
        with self._lock:
            self._ended.add(pe)

    def retire(self, pe: str) -> None:
        """Wait for an element without input to end, and free what it holds; safe to repeat."""
        if (handle := self.handles.get(pe)) is None:
            return
        try:
            for _ in range(round(RETIRE_TIMEOUT / RETIRE_LOOK)):
                if not self.is_running(pe):
                    break
                status = handle.within(RETIRE_LOOK + ANSWER_TIMEOUT).wait(RETIRE_LOOK)
                if status.state.is_final:
                    break
                if has_nothing_to_end(handle):
                    self.give_up(pe)
                    return
            self._retires(handle)
        except (PELostError, TimeoutError):
            self.give_up(pe)
        else:
            self._remove(handle, at_once=False)

    def give_up(self, pe: str) -> None:
        """End an element that doesn't answer, without a call; safe to repeat."""
        if (handle := self.handles.get(pe)) is not None:
            self._remove(handle, at_once=True)

    def _remove(self, handle: PEHandle, *, at_once: bool) -> None:
        self.ends(handle.pe)
        with self._lock:  # first: a failure while it ends must not fail the job
            self._handles.pop(handle.pe, None)
        with contextlib.suppress(PELostError):
            handle.kill(at_once=at_once)
        self._sweep(self._addresses.pop(handle.pe, None))

    def hold_levels(self, held: bool) -> None:
        """Hold the loops of all elements while regions change, or restart them."""
        tell_all(self.handles, lambda element: element.hold_levels(held), CALL_TIMEOUT)

    def give_up_all(self) -> None:
        """End every element, sound or not, all at once: new ones replace them, in their processes."""
        with self._lock:  # first: a failure while they end must not fail the job
            handles, self._handles = self._handles, {}
            self._ended.update(handles)

        def end(handle: PEHandle) -> None:
            with contextlib.suppress(PELostError):
                self._host.recycle(handle)

        call_all(handles, end)
        for pe in handles:
            self._sweep(self._addresses.pop(pe, None))

    def kill(self) -> None:
        """End every element, all at once, because some may take a while."""

        def end(handle: PEHandle) -> None:
            with contextlib.suppress(PELostError):
                handle.kill()

        call_all(self.handles, end)
        for address in list(self._addresses.values()):
            self._sweep(address)

    def _specs(self, plan: ExecPlan, pes: Sequence[str]) -> list[PESpec]:
        arriving: dict[str, list[PlanLink]] = defaultdict(list)
        leaving: dict[str, list[PlanLink]] = defaultdict(list)
        for link in plan.links:
            arriving[link.to_pe].append(link)
            leaving[link.from_pe].append(link)
        elastic = [name for name in self.elastic if plan.region(name).is_together]
        waiting, units = sources_that_wait(self._job.operators), time_units(self._job.operators)
        routings = routings_of(plan, pes, elastic)
        return [
            replace(
                self._spec(plan, pe, routings[pe], arriving[pe], leaving[pe]),
                waiting=tuple(one for one in waiting if {one.source, one.join} <= set(plan.pes[pe])),
                time_units={name: units[name] for name in plan.pes[pe] if name in units},
            )
            for pe in pes
        ]

    def _spec(
        self, plan: ExecPlan, pe: str, routing: PERouting, arriving: Iterable[PlanLink], leaving: Iterable[PlanLink]
    ) -> PESpec:
        job = self._job
        return PESpec(
            pe=pe,
            job=job.name,
            job_id=job.job_id,
            secret=self.secret,
            operators=tuple(job.operators[name] for name in plan.pes[pe]),
            links_in=tuple(link for link in arriving if Edge(link.stream, link.end) not in routing.routed),
            links_out=tuple(link for link in leaving if Edge(link.stream, link.end) not in routing.routed),
            config=job.config,
            epoch=plan.epoch,
            routing=routing,
            takes_checkpoints=self.takes_checkpoints,
            node=plan.nodes.get(pe, ""),
        )

    @staticmethod
    def _sweep(address: PortAddress | None) -> None:
        """Remove the Unix socket that an element of this node left behind because it was killed."""
        if address is not None and address.unix_path:
            shutil.rmtree(Path(address.unix_path).parent, ignore_errors=True)
