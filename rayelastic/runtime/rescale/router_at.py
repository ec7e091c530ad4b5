"""A router of a running job, as a change commands it: a command succeeds, the stream has ended, or the change fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rayelastic._native import RouterAnswer
from rayelastic.errors import LinkError
from rayelastic.plan.hash_ring import runs_of

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import PlanLink
    from rayelastic.plan.routing import Edge
    from rayelastic.runtime.element.api import RoutingApi
    from rayelastic.runtime.port.data_port import PortAddress

WHY = {
    RouterAnswer.LATE: "it is busy",
    RouterAnswer.REFUSED: "a later coordinator was there",
}


RELEASES = 30  # checks of a busy router for buffered records; each has 20 s


class StreamEndedError(LinkError):
    """All routers of a region have had all their tuples: they buffer none any more, and send no mark."""


class RouterAt:
    """The router on one edge in one element. Its commands are safe to repeat, and raise LinkError if it rejects them.

    Each returns whether the router has executed it; False: it has had all its tuples, and they are in the replicas.

    Args:
        routing: The element's interface.
        pe: The element.
        edge: The router's edge.
        epoch: The commands' epoch; routers reject an older one.
    """

    def __init__(self, routing: RoutingApi, pe: str, edge: Edge, epoch: int) -> None:
        self.pe = pe
        self.edge = edge
        self._routing = routing
        self._epoch = epoch

    def attach(self, replica: int, link: PlanLink, address: PortAddress) -> bool:
        """Open a link to a replica at its address."""
        return self._done("attach", self._routing.attach(self.edge.name, replica, link, address, self._epoch))

    def hold(self, partitions: Sequence[int], owner: int, mark: int) -> bool:
        """Buffer the records of partitions from now on; a mark follows the last one that went to their owner."""
        runs = tuple(runs_of(partitions))
        return self._done("hold", self._routing.hold(self.edge.name, runs, owner, mark, self._epoch))

    def route(self, partitions: Sequence[int], target: int) -> bool:
        """Send the records of partitions to a replica from now on, the buffered ones first.

        The router is busy with these as long as the replica needs for them, and a change must not fail because of that.
        """
        runs = tuple(runs_of(partitions))
        for _ in range(RELEASES):
            answer = self._routing.route(self.edge.name, runs, target, self._epoch)
            if answer is not RouterAnswer.LATE:
                break
        return self._done("route", answer)

    def detach(self, replica: int) -> bool:
        """Close the link to a replica that receives no tuples any more."""
        return self._done("detach", self._routing.detach(self.edge.name, replica, self._epoch))

    def _done(self, command: str, answer: RouterAnswer) -> bool:
        if answer in WHY:
            raise LinkError(f"the router '{self.edge.name}' of {self.pe} didn't {command}: {WHY[answer]}")
        return answer is RouterAnswer.DONE
