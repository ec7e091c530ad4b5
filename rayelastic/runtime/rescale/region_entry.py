"""All routers upstream of a region, as a change commands them. Those whose stream has ended take no part.

So a region with several input ports can change after one of its streams has ended, such as rules or a table. The state
that replicas made of that stream migrates with the keys, and a new one learns that the edge has ended. Knows routers
and replicas by their interface; neither batches nor journals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from rayelastic.errors import PELostError
from rayelastic.plan.routing import routed_link, routers_of
from rayelastic.runtime.rescale.batches import plan_pe
from rayelastic.runtime.rescale.router_at import RouterAt, StreamEndedError

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.port.data_port import PortAddress

COMMAND_TIMEOUT = 30.0  # seconds for a command to a router, and for its answer
END_TIMEOUT = 60.0  # seconds to process the rest of an ended stream
END_LOOK = 1.0  # seconds between two checks whether the element still exists


class Elements(Protocol):
    """The elements of a job, as commands to routers see them."""

    def element(self, pe: str, timeout: float) -> ElementApi:
        """Return an element whose methods wait so many seconds; PELostError and TimeoutError as for PEHandle.within."""
        ...

    def is_running(self, pe: str) -> bool:
        """Return whether an element has been started, and neither ended nor been lost."""
        ...

    def is_lost(self, pe: str) -> bool:
        """Return whether an element is known to be lost; one that has ended by itself isn't."""
        ...


class RegionEntry:
    """The routers upstream of a region, in elements that run when this object is made.

    Args:
        elements: The elements of the job.
        plan: The plan with all replicas that the change knows.
        region: The region's name.
        epoch: The commands' epoch; routers reject an older one.
    """

    def __init__(self, elements: Elements, plan: ExecPlan, region: str, epoch: int) -> None:
        self._elements = elements
        self._plan = plan
        self._region = region
        self._epoch = epoch
        self._all = list(routers_of(plan, region))
        self._running = [(pe, edge) for pe, edge in self._all if elements.is_running(pe)]
        self._edges = list(dict.fromkeys(edge.name for _, edge in self._all))

    def routers(self, without: Sequence[str] = ()) -> list[RouterAt]:
        """Return the routers.

        Args:
            without: Elements to leave out.

        Raises:
            PELostError: An element is gone.
        """
        return [
            RouterAt(self._elements.element(pe, COMMAND_TIMEOUT).routing, pe, edge, self._epoch)
            for pe, edge in self._running
            if pe not in without
        ]

    def attach(self, replica: int, address: PortAddress, started: Sequence[str], passing: Callable[[], None]) -> None:
        """Make all routers open a link to a new replica.

        Args:
            replica: Its number.
            address: Its address.
            started: Elements that the change starts: their routers know it.
            passing: Called before each.

        Raises:
            StreamEndedError: All streams into the region have ended.
            PELostError: An element is gone.
        """
        to_pe = plan_pe(self._plan, self._region, replica)
        if gone := next((pe for pe, _ in self._all if self._elements.is_lost(pe)), None):
            raise PELostError(f"{gone} is gone and feeds region {self._region}")
        live = {edge.name for pe, edge in self._all if pe in started}
        for router in self.routers(without=started):
            passing()
            if router.attach(replica, routed_link(router.edge, router.pe, to_pe), address):
                live.add(router.edge.name)
        if not live:
            raise self._ended()
        self._end(to_pe, [edge for edge in self._edges if edge not in live])

    def part(self, replica: int) -> None:
        """Notify a replica that is removed again that no more links come; a lost one needn't know."""
        with contextlib.suppress(PELostError, TimeoutError):
            self._end(plan_pe(self._plan, self._region, replica), self._edges)

    def hold(
        self, partitions: Sequence[int], owner: int, mark: Callable[[], int], passing: Callable[[], None]
    ) -> tuple[int, list[str]]:
        """Make all routers buffer the records of partitions, after a mark that goes to their owner.

        If a stream has ended, the mark follows everything that the owner makes of it: it is sent again then.

        Args:
            partitions: The partitions; none: only the mark.
            owner: The replica that has had them.
            mark: Returns a new one.
            passing: Called before each command.

        Returns:
            The mark, and the elements that send it.

        Raises:
            StreamEndedError: All streams into the region have ended.
            TimeoutError: The owner doesn't finish the ended stream.
        """
        routers, ended = self.routers(), set[str]()
        while True:
            for edge in self._edges:
                if edge not in ended and all(router.edge.name != edge for router in routers):
                    ended.add(edge)
                    self._await_end(plan_pe(self._plan, self._region, owner), edge)
            number, live = mark(), []
            for router in routers:
                passing()
                if router.hold(partitions, owner, number):
                    live.append(router)
            if routers and not live:
                raise self._ended()
            if len(live) == len(routers):
                return number, [router.pe for router in live]
            routers = live

    def route(self, partitions: Sequence[int], target: int, passing: Callable[[], None]) -> None:
        """Make all routers send the records of partitions to a replica from now on.

        Args:
            partitions: Held ones, or those that go there already.
            target: The replica.
            passing: Called before each command.
        """
        for router in self.routers():
            passing()
            router.route(partitions, target)

    def _end(self, pe: str, edges: Sequence[str]) -> None:
        for edge in edges:
            self._elements.element(pe, COMMAND_TIMEOUT).routing.end(edge)

    def _await_end(self, pe: str, edge: str) -> None:
        routing = self._elements.element(pe, END_TIMEOUT + COMMAND_TIMEOUT).routing
        for _ in range(round(END_TIMEOUT / END_LOOK)):
            if routing.await_end(self._region, edge, END_LOOK):
                return
            if self._elements.is_lost(pe):
                raise PELostError(f"{pe} is gone with the tuples of {edge}")
        raise TimeoutError(f"{pe} hasn't processed all of {edge}, which has ended, after {END_TIMEOUT:g} s")

    def _ended(self) -> StreamEndedError:
        return StreamEndedError(f"all streams into region {self._region} have ended: {', '.join(self._edges)}")
