"""A router of a running job, as a change commands it: it carries a command out, or the change fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rayelastic._native import RouterAnswer
from rayelastic.errors import LinkError

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import PlanLink
    from rayelastic.runtime.element.api import RoutingApi
    from rayelastic.runtime.port.data_port import PortAddress

__all__ = ["RouterAt", "StreamEndedError"]

WHY = {
    RouterAnswer.LATE: "it is busy",
    RouterAnswer.REFUSED: "a later coordinator was there",
    RouterAnswer.ENDED: "it has had all its tuples",
}


class StreamEndedError(LinkError):
    """A router has had all its tuples: it holds nothing any more, and sends no mark."""


class RouterAt:
    """The router on one edge in one element. Its commands are safe to repeat, and raise LinkError if it refuses them.

    Args:
        routing: of the element.
        pe: the element, for messages.
        edge: the name of the edge.
        epoch: of the commands; routers refuse an older one.
    """

    def __init__(self, routing: RoutingApi, pe: str, edge: str, epoch: int) -> None:
        self._routing = routing
        self._pe = pe
        self._edge = edge
        self._epoch = epoch

    def attach(self, replica: int, link: PlanLink, address: PortAddress) -> None:
        """Opens a link to a replica that listens at an address."""
        self._must("attach", self._routing.attach(self._edge, replica, link, address, self._epoch))

    def hold(self, partitions: Sequence[int], owner: int, mark: int) -> None:
        """Keeps back the records of partitions from now on; a mark follows the last one that went to their owner."""
        self._must("hold", self._routing.hold(self._edge, partitions, owner, mark, self._epoch))

    def route(self, partitions: Sequence[int], target: int) -> None:
        """Sends the records of partitions to a replica from now on, if any come."""
        self._may("route", self._routing.route(self._edge, partitions, target, self._epoch))

    def detach(self, replica: int) -> None:
        """Says goodbye to a replica to which nothing is routed any more."""
        self._may("detach", self._routing.detach(self._edge, replica, self._epoch))

    def _may(self, command: str, answer: RouterAnswer) -> None:
        if answer is not RouterAnswer.ENDED:
            self._must(command, answer)

    def _must(self, command: str, answer: RouterAnswer) -> None:
        if answer is not RouterAnswer.DONE:
            error = StreamEndedError if answer is RouterAnswer.ENDED else LinkError
            raise error(f"the router '{self._edge}' of {self._pe} didn't {command}: {WHY[answer]}")
