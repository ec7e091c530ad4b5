"""A job without threads, sockets and clocks, whose elements obey a performer and tell what it did wrong.

Its tuples are (partition, sequence): at every call some flow; those on a slow link wait there until somebody waits for
a mark behind them, and links are emptied in the worst order. So a step that is left out, or comes too early, loses,
doubles or reorders one. Routers answer as native_sched/src/net/router_commands.cpp.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, cast

from rayelastic._native import RouterAnswer
from rayelastic.errors import PELostError
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.hash_ring import PARTITIONS, Runs, partitions_in, range_of
from rayelastic.plan.routing import Edge, RouterPlan, elastic_regions, exits_of, routings_of
from rayelastic.runtime.element.api import ElementApi
from rayelastic.runtime.port.data_port import PortAddress
from rayelastic.runtime.remote import Call, Remote, perform

KEYS = tuple(range(76, PARTITIONS, 575))  # the partitions that have tuples
STATE_BYTES = 100  # of each


class Row(NamedTuple):
    partition: int
    sequence: int


class Mark(NamedTuple):
    number: int


Item = Row | Mark
Fault = Callable[[str, str], None]  # called with an element and a method; may raise


@dataclass
class FakeRouter:
    """The router of one edge in one element."""

    world: FakeCluster
    pe: str
    edge: Edge
    owners: list[int]
    targets: dict[int, str]
    local: int | None
    epoch: int = 0
    ended: bool = False
    held: dict[int, list[Row]] = field(default_factory=dict)

    @staticmethod
    def of(world: FakeCluster, pe: str, plan: RouterPlan) -> FakeRouter:
        targets = {replica: link.to_pe for replica, link in plan.links.items()}
        targets |= {} if plan.local is None else {plan.local: pe}
        return FakeRouter(world, pe, plan.edge, list(plan.ring.owners), targets, plan.local)

    def take(self, item: Item) -> None:
        match item:
            case Mark():
                for pe in self.targets.values():
                    self.world.send(self.edge, self.pe, pe, item)
            case Row(partition, _) if partition in self.held:
                self.held[partition].append(item)
            case Row(partition, _):
                self.world.send(self.edge, self.pe, self.targets[self.owners[partition]], item)

    def attach(self, target: int, pe: str) -> RouterAnswer:
        if self.ended:
            return RouterAnswer.ENDED
        if target in self.targets and self.targets[target] in self.world.alive:
            return RouterAnswer.DONE
        self.targets[target] = pe
        return RouterAnswer.DONE

    def detach(self, target: int) -> RouterAnswer:
        if target in self.targets and (target == self.local or target in self.owners):
            return RouterAnswer.REFUSED
        self.targets.pop(target, None)
        return RouterAnswer.DONE

    def hold(self, partitions: Sequence[int], owner: int, mark: int) -> RouterAnswer:
        if self.ended and not self.held:
            self.world.deliver(self.edge, sender=self.pe)
            return RouterAnswer.ENDED
        if owner not in self.targets:
            return RouterAnswer.REFUSED
        for partition in partitions:
            self.held.setdefault(partition, [])
            self.owners[partition] = -1
        self.world.send(self.edge, self.pe, self.targets[owner], Mark(mark))
        return RouterAnswer.DONE

    def route(self, partitions: Sequence[int], target: int) -> RouterAnswer:
        if self.ended and not self.held:
            return RouterAnswer.ENDED
        if target not in self.targets or self.targets[target] not in self.world.alive:
            return RouterAnswer.REFUSED
        self.world.check_one_copy(self.edge.target, partitions)
        for partition in partitions:
            self.owners[partition] = target
            for row in self.held.pop(partition, []):
                self.take(row)
        return RouterAnswer.DONE


class FakeRouting:
    """The commands to the routers of one element."""

    def __init__(self, element: FakeElement) -> None:
        self._element = element

    def attach(self, edge: str, target: int, link: Any, address: PortAddress, epoch: int) -> RouterAnswer:
        assert link.to_pe == address.host, "a link leads where its end listens"
        return self._fenced(edge, epoch, lambda router: router.attach(target, link.to_pe))

    def detach(self, edge: str, target: int, epoch: int) -> RouterAnswer:
        return self._fenced(edge, epoch, lambda router: router.detach(target))

    def hold(self, edge: str, runs: Runs, owner: int, mark: int, epoch: int) -> RouterAnswer:
        return self._fenced(edge, epoch, lambda router: router.hold(partitions_in(runs), owner, mark))

    def route(self, edge: str, runs: Runs, target: int, epoch: int) -> RouterAnswer:
        return self._fenced(edge, epoch, lambda router: router.route(partitions_in(runs), target))

    def await_mark(self, point: str, mark: int, count: int, patience: float) -> bool:
        element = self._element
        for edge in () if element.stuck else element.taken:
            if point in (edge.name, element.world.region_of(edge.target)):
                element.world.deliver(edge, element.pe)
        return element.seen[point, mark] >= count

    def end(self, edge: str) -> None: ...

    def await_end(self, region: str, edge: str, patience: float) -> bool:
        return True

    def _fenced(self, edge: str, epoch: int, act: Callable[[FakeRouter], RouterAnswer]) -> RouterAnswer:
        router = self._element.routers[edge]
        if epoch < router.epoch:
            return RouterAnswer.REFUSED
        router.epoch = epoch
        if (answer := self._element.world.answers.pop((self._element.pe, edge), None)) is not None:
            return answer
        return act(router)


class FakeElement:
    """A PE: routers, and the state of its replicas' keys."""

    def __init__(self, world: FakeCluster, plan: ExecPlan, pe: str) -> None:
        self.world, self.pe = world, pe
        self.operators = plan.pes[pe]
        hosted = routings_of(plan, [pe], world.elastic)[pe]
        self.routers = {made.edge.name: FakeRouter.of(world, pe, made) for made in hosted.routers}
        self.taken = [edge for edge in (Edge(*both) for both in plan.edges) if edge.target in self.operators]
        self.state: dict[str, dict[int, int]] = {region: {} for region in hosted.taps}
        self.seen: Counter[tuple[str, int]] = Counter()
        self.epochs: list[int] = []
        self.routing = FakeRouting(self)
        self.stuck = False  # nothing comes here for a while

    def take(self, edge: Edge, item: Item) -> None:
        region = self.world.region_of(edge.target)
        if isinstance(item, Mark):
            self.seen[region if region in self.state else edge.name, item.number] += 1
        elif region in self.state:
            self._count(self.state[region], item, region)
        else:
            self._count(self.world.got, item, "the sink")
        if region in self.state:
            self.world.leave(region, self, item)

    def _count(self, counts: dict[int, int], row: Row, where: str) -> None:
        if row.sequence != counts.get(row.partition, 0):
            self.world.wrong.append(f"{row} came to {where} in {self.pe} where {counts.get(row.partition, 0)} was due")
        counts[row.partition] = row.sequence + 1

    def send_state(
        self, operators: Sequence[str], ranges: Any, to_pe: str, address: PortAddress, epoch: int
    ) -> tuple[int, int]:
        region = self.world.region_of(operators[0])
        if to_pe not in self.world.alive:
            raise PELostError(f"{to_pe} doesn't take it")
        there = self.world.elements[to_pe]
        there.drop_state(operators, ranges)
        copied = {partition: self.state[region][partition] for partition in self._within(region, ranges)}
        there.state[region].update(copied)
        return len(copied), len(copied) * STATE_BYTES

    def drop_state(self, operators: Sequence[str], ranges: Any) -> int:
        region = self.world.region_of(operators[0])
        for partition in (dropped := list(self._within(region, ranges))):
            del self.state[region][partition]
        return len(dropped)

    def state_size(self, operators: Sequence[str]) -> tuple[int, int]:
        keys = len(self.state[self.world.region_of(operators[0])])
        return keys, keys * STATE_BYTES

    def advance(self, epoch: int) -> None:
        self.epochs.append(epoch)

    def _within(self, region: str, ranges: Any) -> Iterator[int]:
        for partition in self.state[region]:
            low, high = range_of(partition)
            if any(first <= low and high <= last for first, last in ranges):
                yield partition


class FakeCluster:
    """The elements of a job, in front of which tuples flow.

    Args:
        plan: in force.
        operators: of the topology, by name.
    """

    def __init__(self, plan: ExecPlan, operators: Mapping[str, OperatorSpec]) -> None:
        self.plan, self.operators = plan, operators
        self.elastic: Collection[str] = elastic_regions(plan)
        self._regions = {name: planned.region.name for planned in plan.regions for name in planned.region.operators}
        self._exits = {planned.region.name: list(exits_of(plan, planned.region.name)) for planned in plan.regions}
        self._sink = plan.pe_of("out")
        self.elements: dict[str, FakeElement] = {}
        self.alive: set[str] = set()
        self.noticed: set[str] = set()  # those that are known to be lost
        self.links: dict[tuple[Edge, str, str], deque[Item]] = defaultdict(deque)
        self.sent: Counter[int] = Counter()
        self.got: dict[int, int] = {}
        self.wrong: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self.timeouts: list[tuple[str, float]] = []
        self.before: Fault = lambda *_: None
        self.after: Fault = lambda *_: None
        self.answers: dict[tuple[str, str], RouterAnswer] = {}  # by element and edge: what the next command is answered
        self.is_fast = False  # what is sent arrives at once
        self.retired: list[str] = []
        self.given_up: list[str] = []
        self.start(plan, tuple(plan.pes))
        self.calls.clear()
        self.entry = self.elements["pe0"].routers[Edge(*plan.edges[0]).name]

    # --- what a performer sees --------------------------------------------------------------------------------------

    def element(self, pe: str, timeout: float) -> ElementApi:
        if pe not in self.elements:
            raise PELostError(f"there is no {pe} any more")
        return cast("ElementApi", Remote(partial(self._answer, pe, timeout)))

    def address(self, pe: str) -> PortAddress:
        if pe not in self.elements:
            raise PELostError(f"{pe} doesn't listen")
        return PortAddress(pe, 1)

    def is_running(self, pe: str) -> bool:
        return pe in self.elements and pe not in self.noticed

    def is_lost(self, pe: str) -> bool:
        return pe in self.noticed

    def start(self, plan: ExecPlan, pes: Sequence[str]) -> None:
        for pe in pes:
            if pe not in self.elements:
                self.elements[pe] = FakeElement(self, plan, pe)
                self.alive.add(pe)
                self._called(pe, "start")

    def retire(self, pe: str) -> None:
        if (element := self.elements.get(pe)) is None:
            return
        if pe in self.alive:
            self.settle()
            attached = [router.pe for router in self._routers() if pe in router.targets.values() and router.pe != pe]
            if attached or any(element.state.values()):
                self.wrong.append(f"{pe} is retired, with {element.state} and links from {attached}")
        self._remove(pe)
        self.retired.append(pe)

    def give_up(self, pe: str) -> None:
        self._remove(pe)
        self.given_up.append(pe)

    # --- what a test does -------------------------------------------------------------------------------------------

    def flow(self) -> None:
        """A tuple of each key comes from the source, which never stops."""
        router = self.entry
        if not router.ended and router.pe in self.alive:
            for partition in KEYS:
                router.take(Row(partition, self.sent[partition]))
                self.sent[partition] += 1

    def lose(self, pe: str) -> None:
        """The process of an element goes, with all that is in it."""
        self.alive.discard(pe)
        for link in [link for link in self.links if pe in link[1:]]:
            del self.links[link]

    def settle(self) -> None:
        """Everything on the links arrives, that of the newest link first."""
        while waiting := [link for link, items in self.links.items() if items]:
            edge, sender, receiver = waiting[-1]
            self._arrive(edge, sender, receiver)

    def check(self, plan: ExecPlan) -> None:
        """Tuples flow by a plan: none was lost, doubled or reordered, and each key is in one place alone."""
        self.flow()
        self.check_tuples()
        for region in self.elastic:
            owners, pes = plan.region(region).ring.owners, plan.region(region).pipelines[0].pes
            for partition in KEYS:
                places = {pe: counts[partition] for pe, counts in self._places(region) if partition in counts}
                expected = {pes[owners[partition]]: self.sent[partition]}
                assert places == expected, f"partition {partition} of {region}"
        assert {pe for pe in self.elements if pe in self.alive} == set(plan.pes) & self.alive
        assert [router for router in self._routers() if router.held] == []
        for router in self._routers():
            assert set(router.targets.values()) <= set(plan.pes), router.edge

    def check_tuples(self) -> None:
        """All that have flown have arrived, once and in order."""
        self.settle()
        assert self.got == dict(self.sent)
        assert self.wrong == []

    # --- how it is done ---------------------------------------------------------------------------------------------

    def send(self, edge: Edge, sender: str, receiver: str, item: Item) -> None:
        if receiver in self.alive:
            self.links[link := (edge, sender, receiver)].append(item)
            if self.is_fast:
                self._arrive(*link)
        elif isinstance(item, Row):
            self.wrong.append(f"{item} was sent to {receiver}, which is gone")

    def deliver(self, edge: Edge, receiver: str = "", sender: str = "") -> None:
        for link in [link for link in self.links if link[0] == edge and (receiver == link[2] or sender == link[1])]:
            self._arrive(*link)

    def leave(self, region: str, element: FakeElement, item: Item) -> None:
        for edge in self._exits[region]:
            if edge.name in element.routers:
                element.routers[edge.name].take(item)
            elif edge.target in element.operators:
                element.take(edge, item)
            else:
                self.send(edge, element.pe, self._sink, item)

    def region_of(self, operator: str) -> str:
        return self._regions[operator]

    def check_one_copy(self, operator: str, partitions: Sequence[int]) -> None:
        """A watermark, or the end, would have both copies give their windows."""
        for partition in set(partitions) & set(KEYS):
            places = [pe for pe, counts in self._places(self.region_of(operator)) if partition in counts]
            if len(places) > 1:
                self.wrong.append(f"partition {partition} flows again, and is in {places}")

    def _arrive(self, edge: Edge, sender: str, receiver: str) -> None:
        items = self.links[edge, sender, receiver]
        while items:
            self.elements[receiver].take(edge, items.popleft())

    def _places(self, region: str) -> Iterator[tuple[str, dict[int, int]]]:
        for pe in self.alive:
            if region in self.elements[pe].state:
                yield pe, self.elements[pe].state[region]

    def _routers(self) -> Iterator[FakeRouter]:
        for pe in self.alive:
            yield from self.elements[pe].routers.values()

    def _remove(self, pe: str) -> None:
        self.lose(pe)
        self.elements.pop(pe, None)

    def _answer(self, pe: str, timeout: float, call: Call) -> Any:
        self.timeouts.append((call.method, timeout))
        self.flow()
        try:
            self._called(pe, call.method)
            if pe not in self.alive:
                raise PELostError(f"{pe} is gone")
            answer = perform(self.elements[pe], call)
            self.after(pe, call.method)
        except PELostError:
            if pe not in self.alive:
                self.noticed.add(pe)
            raise
        return answer

    def _called(self, pe: str, method: str) -> None:
        self.calls.append((pe, method))
        self.before(pe, method)
