"""The live part of elastic regions in a PE: routers, gathers and taps, and their commands.

Built from a `PERouting`; native_sched/include/rayelastic/net/router.hpp explains how keys migrate. Decides nothing and
knows no plan: commands name an edge, partitions and a target, and are rejected if their epoch is old.
"""

from __future__ import annotations

import threading
from hashlib import blake2b
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic._native import RouterAnswer
from rayelastic.errors import ErrorCode, LinkError, StateError
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.spec.ports import IN, OUT, port_of
from rayelastic.plan.hash_ring import partitions_in
from rayelastic.plan.routing import Edge, routed_link
from rayelastic.runtime.element.reach.dialling import address_of, native_link
from rayelastic.runtime.element.wiring import input_number, output_number
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.state.descriptor import columns_of
from rayelastic.runtime.state.keys import shown_key
from rayelastic.runtime.values.failure import bounded
from rayelastic.runtime.values.hot_key import LEAST, HotKey, merged

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence

    from rayelastic.plan.exec_plan import PlanLink
    from rayelastic.plan.hash_ring import Runs
    from rayelastic.plan.routing import GatherPlan, RouterPlan
    from rayelastic.runtime.port.data_port import Hello, PortAddress
    from rayelastic.runtime.values.specs import PESpec

LINK_FRAME_BYTES = 32 << 10  # of links to and from replicas
LINK_WINDOW_BYTES = 256 << 10  # of these: small, because the bytes in flight must arrive before a key can migrate
MOST_KEY = 60  # characters of a key in a report
FIRST_END_MARK = 1 << 62  # as in mark_log.hpp
COMMAND_TIMEOUT = 20.0  # seconds for a router to execute a command; it may be blocked on output first


def _end_mark(edge: str) -> int:
    """Return the mark after the last record of an edge; the coordinator's marks are less (mark_log.hpp)."""
    return FIRST_END_MARK | int.from_bytes(blake2b(edge.encode(), digest_size=7).digest())


def _is_home(plan: GatherPlan, last: str) -> bool:
    return plan.in_turn and plan.edge.source == last


class Routing:
    """The routers, gathers and taps of one PE.

    Args:
        spec: The PE.
        dial: Opens an authenticated connection to another PE, for a link.
    """

    def __init__(self, spec: PESpec, dial: Callable[[PlanLink, PortAddress, int], socket.socket]) -> None:
        self._spec = spec
        self._dial = dial
        self._lock = threading.Lock()
        self._links: dict[str, _native.Link] = {}
        self._peers: dict[str, str] = {}  # by the link's name
        self._targets: dict[
            tuple[str, int], tuple[str, PortAddress]
        ] = {}  # (edge, target): its link, and the other end
        self._operators = {operator.name: operator for operator in spec.operators}
        self._scheduler: _native.Scheduler | None = None
        self._numbers: dict[str, int] = {}  # of routers in the scheduler
        self._shown: dict[str, tuple[bytes, bool, str]] = {}  # by edge, its hot key and its text
        self._gathers = {
            plan.edge.name: _native.Gather(
                f"{plan.edge.name} in",
                self._source_schema(plan.edge) if plan.in_turn else self._target_schema(plan.edge),
                int(plan.local),
                tolerant=True,
                in_turn=plan.in_turn,
                any_order=plan.any_order,
                end_mark=0 if plan.in_turn else _end_mark(plan.edge.name),
            )
            for plan in spec.routing.gathers
        }
        self._routers = {
            plan.edge.name: _native.Router(
                f"{plan.edge.name} router",
                self._source_schema(plan.edge),
                list(plan.keys),
                list(plan.ring.owners),
                [] if plan.local is None else [plan.local],
                in_turn=plan.in_turn,
                everywhere=plan.everywhere,
                end_mark=_end_mark(plan.edge.name),
            )
            for plan in spec.routing.routers
        }
        self._taps = {
            region: _native.Tap(
                [self._gathers[plan.edge.name] for plan in spec.routing.gathers if plan.edge.source == last],
                next((self._gathers[plan.edge.name] for plan in spec.routing.gathers if _is_home(plan, last)), None),
            )
            for region, last in spec.routing.taps.items()
        }

    @property
    def links(self) -> Mapping[str, _native.Link]:
        """The existing links, by name, with those that have ended since the last one was made."""
        with self._lock:
            return dict(self._links)

    @property
    def gathers(self) -> Sequence[_native.Gather]:
        """The gathers, each of which receives a stream over any number of links."""
        return tuple(self._gathers.values())

    # --- how it starts ------------------------------------------------------------------------------------------

    def connect(self, peers: Mapping[str, PortAddress | None]) -> None:
        """Open the links that leave this element at the start.

        Args:
            peers: The address of each PE.
        """
        for plan in self._spec.routing.routers:
            for target, link in plan.links.items():
                self._attach(plan.edge.name, target, link, address_of(peers, link), self._spec.epoch)
        for link in self._spec.routing.links_out:
            self._keep(link, self._dial(link, address_of(peers, link), self._spec.epoch), link.to_pe)

    def arrives(self, connection: socket.socket, hello: Hello) -> bool:
        """Accept a link that another PE has opened; return whether it belongs here.

        Raises:
            LinkError: The stream that it belongs to has ended.
        """
        for plan in self._spec.routing.gathers:
            link = routed_link(plan.edge, hello.sender, self._spec.pe)
            if hello.channel != f"link:{link.name}":
                continue
            if not self._gathers[plan.edge.name].add(self._keep(link, connection, hello.sender)):
                raise LinkError(
                    f"{plan.edge.end} has received its last tuple", link=link.name, code=ErrorCode.STREAM_ENDED
                )
            return True
        return False

    def wire(self, scheduler: _native.Scheduler, numbers: Mapping[str, int]) -> None:
        """Add routers, gathers and taps to a scheduler that isn't started, and connect them with its operators.

        Args:
            scheduler: The scheduler with the operators.
            numbers: The operators' numbers, by name.
        """
        routing = self._spec.routing
        self._scheduler = scheduler
        taps: dict[str, tuple[int, ...]] = {}
        in_turn = {plan.edge.source: self._gathers[plan.edge.name] for plan in routing.gathers if plan.in_turn}
        for region, last in routing.taps.items():
            schema = self._operators[last].output_schema
            if schema is not None:
                native = _native.Operator.tap(f"{region} tap", native_schema(schema), self._taps[region])
                tap = scheduler.add(native)
                scheduler.connect(numbers[last], tap)
                home = in_turn.get(last)
                taps[last] = (tap,) if home is None else (tap, scheduler.add(_native.Operator.gather(home)))

        def lead(edge: Edge, to: int, input_port: int = 0) -> None:
            for tap in taps.get(edge.source, ()):
                scheduler.connect(tap, to, 0, input_port)
            if edge.source not in taps:
                output = output_number(self._operators[edge.source], port_of(edge.stream, OUT))
                scheduler.connect(numbers[edge.source], to, output, input_port)

        def entry(edge: Edge) -> int:
            return input_number(self._operators[edge.target], port_of(edge.end, IN))

        # What arrives by links alone has no producer here, though replicas of that operator may be here.
        elsewhere = {plan.edge for plan in routing.gathers if not plan.local}
        elsewhere.update(Edge(link.stream, link.end) for link in routing.links_out)
        here = {edge for edge in routing.routed - elsewhere if edge.source in self._operators}
        routers: dict[Edge, int] = {}  # by the edges that lead to them
        for plan in routing.routers:
            number = self._numbers[plan.edge.name] = scheduler.add(
                _native.Operator.router(self._routers[plan.edge.name])
            )
            routers.update(dict.fromkeys(plan.streams, number))
            if plan.local is not None:
                scheduler.connect(number, numbers[plan.edge.target], 0, entry(plan.edge))
        united = routers.keys() - {plan.edge for plan in routing.routers}
        for gather in [plan for plan in routing.gathers if not plan.in_turn]:
            number = scheduler.add(_native.Operator.gather(self._gathers[gather.edge.name]))
            if gather.edge in united:
                scheduler.connect(number, routers[gather.edge])
            else:
                scheduler.connect(number, numbers[gather.edge.target], 0, entry(gather.edge))
        for link in routing.links_out:
            edge = Edge(link.stream, link.end)
            leaving = _native.Operator.link_out(link.name, self._source_schema(edge), self._links[link.name])
            lead(edge, scheduler.add(leaving))
        for edge in sorted(here):
            if edge in routers:
                lead(edge, routers[edge])
            elif edge.target in self._operators:
                lead(edge, numbers[edge.target], entry(edge))

    # --- commands ---------------------------------------------------------------------------------------------------

    def attach(self, edge: str, target: int, link: PlanLink, address: PortAddress, epoch: int) -> RouterAnswer:
        """Open a link to a replica that a router doesn't know yet; done also if it knows it already.

        A replica at another address has taken the place of a lost one, which the link may not have noticed.
        """
        counters, known = self._routers[edge].counters(), self._targets.get((edge, target))
        if known == (link.name, address) and target not in counters.broken:
            return RouterAnswer.DONE
        if counters.closed:  # a link that closes at once would end the edge for other routers, too
            return RouterAnswer.ENDED
        if known is not None and target not in counters.broken:
            answer = self.detach(edge, target, epoch)
            if answer is not RouterAnswer.DONE:
                return answer
        return self._answer(edge, self._attach(edge, target, link, address, epoch))

    def detach(self, edge: str, target: int, epoch: int) -> RouterAnswer:
        """Close the link to a replica that receives no tuples any more."""
        answer = self._answer(edge, self._routers[edge].detach(target, epoch))
        if answer is RouterAnswer.DONE:
            self._targets.pop((edge, target), None)
        return answer

    def hold(self, edge: str, runs: Runs, owner: int, mark: int, epoch: int) -> RouterAnswer:
        """Buffer the records of partitions from now on; a mark follows the last one that went to their owner."""
        return self._answer(edge, self._routers[edge].hold(partitions_in(runs), owner, mark, epoch))

    def route(self, edge: str, runs: Runs, target: int, epoch: int) -> RouterAnswer:
        """Send the records of partitions to a replica from now on, the buffered ones first."""
        return self._answer(edge, self._routers[edge].route(partitions_in(runs), target, epoch))

    def await_mark(self, point: str, mark: int, count: int, patience: float) -> bool:
        """Wait until a mark has passed a point.

        Args:
            point: An elastic region that has a replica here (its tap), or the name of an edge (its gather).
            mark: The mark's number.
            count: How often it has to arrive: once from each router.
            patience: Seconds.

        Returns:
            Whether it has, or nothing more will ever arrive there.
        """
        where = self._taps[point] if point in self._taps else self._gathers[point]
        return where.wait_mark(mark, count, patience)

    def end(self, edge: str) -> None:
        """End an edge into this element once its links have ended; no new link opens. Safe to repeat."""
        if edge in self._gathers:
            self._gathers[edge].seal()

    def await_end(self, region: str, edge: str, patience: float) -> bool:
        """Wait until the replica of a region here has processed all of an edge whose routers have ended.

        Args:
            region: An elastic region.
            edge: The name of an edge into the region.
            patience: Seconds.

        Returns:
            Whether it has.
        """
        by_router = any(plan.edge.name == edge and plan.local is not None for plan in self._spec.routing.routers)
        return self._taps[region].wait_mark(_end_mark(edge), by_router + (edge in self._gathers), patience)

    def lost_peers(self) -> dict[str, str]:
        """Return {PE: why} of broken links; the coordinator decides whether that matters."""
        with self._lock:
            return {self._peers[name]: link.failure for name, link in self._links.items() if link.failure}

    def hot_keys(self) -> dict[str, HotKey]:
        """Return {region: its most frequent key} of the regions whose tuples this element partitions by key."""
        keys_by_region: dict[str, list[HotKey]] = {}
        for plan in self._spec.routing.routers:
            if (seen := self._routers[plan.edge.name].hottest()) is not None:
                key, null, share, looks = seen
                one = HotKey(self._key(plan, key, null), share, looks) if share >= LEAST else HotKey("", 0.0, looks)
                keys_by_region.setdefault(plan.region, []).append(one)
        return {region: merged(several) for region, several in keys_by_region.items()}

    def flow(self) -> dict[str, tuple[int, int]]:
        """Return the tuples that replicas here pass to gathers here directly, counted as if over links, from 1."""
        ends = {
            plan.edge.name: self._gathers[plan.edge.name].flow for plan in self._spec.routing.gathers if plan.in_turn
        }
        return {name: (put + 1, passed + 1) for name, (put, passed) in ends.items()}

    def close(self) -> None:
        """Unblock the threads that wait in a link."""
        for link in self.links.values():
            link.interrupt()

    # --- implementation -------------------------------------------------------------------------------------------

    def _attach(self, edge: str, target: int, link: PlanLink, address: PortAddress, epoch: int) -> int:
        kept = self._keep(link, self._dial(link, address, epoch), link.to_pe)
        self._targets[edge, target] = link.name, address
        return self._routers[edge].attach(target, kept, epoch)

    def _answer(self, edge: str, ticket: int) -> RouterAnswer:
        if self._scheduler is None:
            raise StateError(f"the router of {edge} doesn't run yet", code=ErrorCode.PE_NOT_STARTED)
        self._scheduler.poke(self._numbers[edge])
        return self._routers[edge].wait(ticket, COMMAND_TIMEOUT)

    def _keep(self, link: PlanLink, connection: socket.socket, peer: str) -> _native.Link:
        patience = self._spec.config.network.patience
        kept = native_link(connection, link.name, peer, patience, LINK_FRAME_BYTES, LINK_WINDOW_BYTES)
        with self._lock:
            self._forget_ended()
            self._links[link.name] = kept
            self._peers[link.name] = peer
        return kept

    def _forget_ended(self) -> None:
        """Drop the links of replicas that have gone, which may become many."""
        for name in [name for name, link in self._links.items() if link.ended]:
            del self._links[name], self._peers[name]

    def _key(self, plan: RouterPlan, key: bytes, null: bool) -> str:
        """Return the text of a key; the last one is cached."""
        known = self._shown.get(plan.edge.name)
        if known is None or known[:2] != (key, null):
            try:
                schema = laid_out("Key", columns_of(self._sent(plan.edge), plan.keys))
                text = shown_key(key, schema, null=null)
            except _native.StateError:  # its producer didn't check the text
                text = repr(key)
            known = self._shown[plan.edge.name] = key, null, bounded(text, MOST_KEY)
        return known[2]

    def _sent(self, edge: Edge) -> Schema:
        if not edge.stream:  # several streams of one schema
            return self._received(edge)
        source = self._operators[edge.source]
        return source.outputs[output_number(source, port_of(edge.stream, OUT))].schema

    def _source_schema(self, edge: Edge) -> _native.Schema:
        return native_schema(self._sent(edge))

    def _received(self, edge: Edge) -> Schema:
        target = self._operators[edge.target]
        return target.inputs[input_number(target, port_of(edge.end, IN))].schema

    def _target_schema(self, edge: Edge) -> _native.Schema:
        return native_schema(self._received(edge))
