"""Executes a change of plan on a running job: replicas start and stop, and keys migrate between them (J15-J17).

Joker section 3.3. The change is a sequence of idempotent steps, and the journal records its progress. After a crash,
the next coordinator repeats the last step and continues, or undoes the change if an element that it needs is gone. Keys
migrate in batches of partitions. Only the migrating keys wait, no more than a batch at a time. A batch belongs to its
old owner until the journal says that it has migrated.

Knows elements by their interface (`ElementApi`): plain objects and actors are the same. Never touches tuples.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from rayelastic.errors import ChangeError, ErrorCode, LinkError, PELostError, RayelasticError, StateError
from rayelastic.errors.invariants import invariant
from rayelastic.plan.hash_ring import key_ranges
from rayelastic.plan.routing import elastic_regions, exits_of
from rayelastic.runtime.rescale.batches import Batch, batches_of, has_moved_all_keys, held_along, moving, plan_pe
from rayelastic.runtime.rescale.region_entry import COMMAND_TIMEOUT, Elements, RegionEntry
from rayelastic.runtime.rescale.router_at import RouterAt, StreamEndedError
from rayelastic.runtime.values.region_counters import RegionCounters

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.plan_change import PlanChange
    from rayelastic.runtime.element.state_transfer import Ranges
    from rayelastic.runtime.journal import ChangeJournal, OpenChange
    from rayelastic.runtime.port.data_port import PortAddress

BATCH_BYTES = 16 << 20  # of state that migrates together; its keys wait meanwhile
FAREWELLS = 3  # attempts to detach a replica from a router
UNDOINGS = 3  # attempts to undo a change
FLUSH_TIMEOUT = 60.0  # seconds for tuples in flight to a replica to be processed there
FLUSH_LOOK = 1.0  # seconds between two checks whether all elements on the way still exist
COPY_TIMEOUT = 120.0  # seconds for the state of a batch to be copied
GIVE_UP = 2.0  # seconds for a new element to drop its state: nothing is lost with it, and R11 allows 10
INCARNATIONS = 16  # bits of a command's epoch that distinguish coordinators, so that the older one is rejected
MARKS = 20  # bits of a mark that distinguish those of one command epoch


class Cluster(Elements, Protocol):
    """The elements of a job, as a change sees them."""

    def address(self, pe: str) -> PortAddress:
        """Return the address of an element."""
        ...

    def start(self, plan: ExecPlan, pes: Sequence[str]) -> None:
        """Start elements of a plan; running ones aren't touched."""
        ...

    def retire(self, pe: str) -> None:
        """Wait for an element without input to end, and free what it holds; safe to repeat."""
        ...

    def give_up(self, pe: str) -> None:
        """End an element that doesn't answer, without a call; safe to repeat."""
        ...


class AdaptationPerformer:
    """Executes changes of one job, one at a time.

    Args:
        cluster: The elements of the job.
        operators: The topology's operators, by name.
        journal: Records changes.
        incarnation: The coordinator's; elements reject commands of a lower one.
        passing: Called with the name of each step before it; for tests that crash there.
        counters: Counters of regions, updated here.
        clock: Returns seconds, monotonic.
    """

    def __init__(
        self,
        cluster: Cluster,
        operators: Mapping[str, OperatorSpec],
        journal: ChangeJournal,
        incarnation: int,
        passing: Callable[[str], None] = lambda _: None,
        *,
        counters: MutableMapping[str, RegionCounters] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._operators = operators
        self._journal = journal
        self._incarnation = incarnation
        self._passing = passing
        self._counters = {} if counters is None else counters
        self._clock = clock
        self._marks = 0
        self._parting = False

    def perform(self, change: PlanChange) -> ExecPlan:
        """Execute a change.

        Args:
            change: A change of the plan in force.

        Returns:
            The plan in force then.

        Raises:
            ChangeError: It failed, and what was done of it has been undone.
            PELostError: An element is gone that has keys or feeds the region, or the change can be neither completed
                nor undone. The job can't continue as it is.
        """
        check_performable(change)
        if (here := self._journal.open_change) is not None:  # beginning another one would lose the owners of keys
            raise ChangeError(
                f"the change to epoch {here.change.epoch} is half done, and one of its streams has ended",
                code=ErrorCode.CHANGE_HALF_DONE,
            )
        self._passing("begin")
        self._journal.begin(change, self._batch_size(change))
        return self._go_on()

    def recover(self) -> ExecPlan | None:
        """End what an earlier coordinator has begun: complete it if possible, otherwise undo it.

        Returns:
            The plan in force then; None if no change was open.
        """
        if self._journal.open_change is None:
            return None
        try:
            return self._go_on()
        except ChangeError:
            return self._journal.plan

    # --- completion ---------------------------------------------------------------------------------------------

    def _go_on(self) -> ExecPlan:
        here = self._journal.open_change
        assert here is not None
        self._parting = False
        if here.undoing is None:
            try:
                return self._forward(here)
            except (RayelasticError, TimeoutError, ValueError) as error:
                if self._parting:
                    raise
                self._go_back(error)
                raise ChangeError(f"the change to epoch {here.change.epoch} was undone: {error}") from error
        return self._go_back(None)

    def _forward(self, here: OpenChange) -> ExecPlan:
        change = here.change
        self._passing("start")
        self._cluster.start(change.new, change.started_pes)
        for part in change.regions:
            for replica in part.started:
                self._attach(change, part.region, replica)
        if here.moved == 0:
            for part in change.regions:
                for replica in part.started:
                    self._announce(change, part.region, replica)
        along, held = held_along(list(batches_of(here)), here.batch), set[tuple[str, int]]()
        with contextlib.closing(moving(here, self._counters)) as batches:
            for number, batch in enumerate(batches):
                done = None if number < here.moved else functools.partial(self._journal.moved, number + 1)
                is_held = (batch.region, batch.partitions[0]) in held
                self._move(change, batch, done, () if is_held else along[number])
                held |= {(batch.region, partition) for partition in along[number]} if done is not None else set()
        journal = self._journal.open_change
        invariant(journal is not None and journal.moved == len(along), "each batch has moved before replicas stop")
        self._parting = True  # no key migrates back to a detached replica
        for part in change.regions:
            for replica in part.stopped:
                self._detach(change.old, part.region, replica, change)
        self._passing("end")
        self._journal.end(change.new)
        for part in change.regions:
            self._counters[part.region] = self._counted(part.region).with_change()
        for pe in change.stopped_pes:
            self._cluster.retire(pe)
        for pe in change.new.pes:
            with contextlib.suppress(
                PELostError, TimeoutError
            ):  # it has been done; the element's watcher reports its loss
                self._cluster.element(pe, COMMAND_TIMEOUT).advance(change.epoch)
        return change.new

    def _attach(self, change: PlanChange, region: str, replica: int) -> None:
        address = self._cluster.address(plan_pe(change.new, region, replica))
        entry = self._entry(change.new, region, change)
        entry.attach(replica, address, change.started_pes, functools.partial(self._passing, "attach"))

    def _announce(self, change: PlanChange, region: str, replica: int) -> None:
        """Wait until all consumers of a new replica have its watermark: from then on they wait for it, too."""
        next_mark = functools.partial(self._next_mark, change)
        mark, senders = self._entry(change.new, region, change).hold((), replica, next_mark, lambda: None)
        self._flush(change.new, region, plan_pe(change.new, region, replica), mark, senders)

    def _detach(self, plan: ExecPlan, region: str, replica: int, change: PlanChange) -> None:
        for router in self._entry(plan, region, change).routers(without=change.stopped_pes):
            self._passing("detach")
            self._part(router, replica)

    def _part(self, router: RouterAt, replica: int) -> None:
        """Detach a replica from a router, with several attempts, because by then the change can't be undone."""
        for _ in range(FAREWELLS - 1):
            with contextlib.suppress(LinkError, TimeoutError):
                router.detach(replica)
                return
        try:
            router.detach(replica)
        except (LinkError, TimeoutError) as error:
            raise PELostError(f"replica {replica} can't be removed: {error}") from error

    def _move(
        self, change: PlanChange, batch: Batch, done: Callable[[], None] | None, hold: Sequence[int] = ()
    ) -> None:
        """Migrate a batch and record it by `done`; None: it is recorded already, and the remaining steps are repeated.

        `hold` are the partitions to hold; none: they are held, and no tuple of them is in flight any more.
        """
        invariant(batch.source != batch.target and bool(batch.partitions), "a batch changes its replica", batch)
        plan = self._wider(change, batch.region)
        source, target = (plan.region(batch.region).pipelines[0].pes[n] for n in (batch.source, batch.target))
        operators = list(plan.region(batch.region).region.operators)
        entry = self._entry(plan, batch.region, change)
        began, keys, size = self._clock(), 0, 0
        ranges = tuple(key_ranges(batch.partitions, plan.partitions))
        if done is not None and not plan.region(batch.region).region.shares_state:
            self._passing("commit")
            done()  # tuples in flight stay where they are: the order is restored downstream
        elif done is not None:
            if hold:
                next_mark = functools.partial(self._next_mark, change)
                mark, senders = entry.hold(hold, batch.source, next_mark, functools.partial(self._passing, "hold"))
                self._passing("flush")
                self._flush(plan, batch.region, source, mark, senders)
            self._passing("copy")
            address = self._cluster.address(target)
            giver = self._cluster.element(source, COPY_TIMEOUT)
            keys, size = giver.send_state(operators, ranges, target, address, change.epoch)
            self._passing("commit")
            done()
        # Before tuples flow again, because a watermark, or the end, would make both copies emit their windows.
        self._passing("forget")
        self._drop(source, operators, ranges)
        entry.route(batch.partitions, batch.target, functools.partial(self._passing, "route"))
        if done is not None:
            self._counters[batch.region] = self._counted(batch.region).with_move(keys, size, self._clock() - began)

    def _drop(self, pe: str, operators: list[str], ranges: Ranges, timeout: float = COPY_TIMEOUT) -> None:
        """Drop the keys of a batch in an element; safe to repeat. An element that is gone has dropped everything."""
        with contextlib.suppress(PELostError):
            if self._cluster.is_running(pe):
                self._cluster.element(pe, timeout).drop_state(operators, ranges)

    def _flush(self, plan: ExecPlan, region: str, source: str, mark: int, senders: Sequence[str]) -> None:
        """Wait until no tuple of the held keys is in their old owner, nor in flight to its consumers (J11)."""
        points = [(source, region)]
        elastic = elastic_regions(plan)
        for edge in exits_of(plan, region):
            taking = plan.region_of(edge.target)
            united = (edge.stream, edge.end) in plan.united(edge.target)
            if taking.region.name in elastic and taking.region.name != region and not united:
                points += [(pe, taking.region.name) for pe in taking.pipelines[0].pes]
            elif (pe := taking.pipelines[0].pe) != source:
                points.append((pe, edge.name))
        for pe, point in points:
            routing = self._cluster.element(pe, FLUSH_TIMEOUT + COMMAND_TIMEOUT).routing
            for _ in range(round(FLUSH_TIMEOUT / FLUSH_LOOK)):
                if routing.await_mark(point, mark, len(senders), FLUSH_LOOK):
                    break
                if (gone := self._missed(plan)) is not None:
                    raise PELostError(f"{gone} is gone, and a router that still sends to it passes on no mark")
            else:
                raise TimeoutError(f"what is under way to {source} hasn't come through {pe} after {FLUSH_TIMEOUT:g} s")

    def _missed(self, plan: ExecPlan) -> str | None:
        """Return an element of a plan that is lost before the change has moved all its keys; None: there is none."""
        here = self._journal.open_change
        lost = (pe for pe in plan.pes if self._cluster.is_lost(pe))
        return next((pe for pe in lost if here is None or not has_moved_all_keys(here, pe)), None)

    # --- undoing ------------------------------------------------------------------------------------------------

    def _go_back(self, reason: Exception | None) -> ExecPlan:
        """Undo the change, with several attempts, because an element left alone holds its keys for ever."""
        here = self._journal.open_change
        assert here is not None
        for tries_left in reversed(range(UNDOINGS)):
            try:
                return self._undo(reason)
            except StreamEndedError as error:  # each key has an owner, and stays there
                raise ChangeError(
                    f"the change to epoch {here.change.epoch} can't be completed: {error}",
                    code=ErrorCode.CHANGE_HALF_DONE,
                ) from error
            except (LinkError, StateError, ValueError) as error:
                if not tries_left:
                    raise PELostError(f"the change to epoch {here.change.epoch} can't be undone: {error}") from error
        raise AssertionError("unreachable")

    def _undo(self, reason: Exception | None) -> ExecPlan:
        """Migrate every batch back to its old owner, then stop what was started."""
        here = self._journal.open_change
        assert here is not None
        change, batches = here.change, list(batches_of(here))
        undone, back = here.undoing or 0, [batch.back() for batch in reversed(batches[: here.moved])]
        if here.undoing is None:
            self._passing("undo")
            self._journal.undo(0)
        if here.moved < len(batches) and undone == 0:
            batch = batches[here.moved]  # it may be held, and its state partly copied; its old owner still has it
            wide = self._wider(change, batch.region)
            target = plan_pe(wide, batch.region, batch.target)
            is_new = target in change.started_pes
            try:
                operators = list(wide.region(batch.region).region.operators)
                ranges = tuple(key_ranges(batch.partitions, wide.partitions))
                self._drop(target, operators, ranges, GIVE_UP if is_new else COPY_TIMEOUT)
            except TimeoutError:
                if not is_new:
                    raise
                self._cluster.give_up(target)
            self._check_givers(change, back, reason)  # a router that still sends to a lost one would answer late
            entry = self._entry(wide, batch.region, change)
            held = held_along(batches, here.batch)[here.moved]
            entry.route(held, batch.source, functools.partial(self._passing, "route back"))
        for number, batch in enumerate(back):
            if number < undone:
                self._move(change, batch, None)
                continue
            self._check_givers(change, [batch], reason)
            self._move(change, batch, functools.partial(self._journal.undo, number + 1), batch.partitions)
        for part in change.regions:
            for replica in part.started:
                self._detach(change.new, part.region, replica, replace(change, stopped_pes=change.started_pes))
                self._entry(change.new, part.region, change).part(replica)
        in_force = replace(change.old, epoch=change.epoch)
        self._passing("end undo")
        self._journal.end(in_force)
        for part in change.regions:
            self._counters[part.region] = self._counted(part.region).with_change(undone=True)
        for pe in change.started_pes:
            self._cluster.retire(pe)
        return in_force

    def _check_givers(self, change: PlanChange, batches: Sequence[Batch], reason: Exception | None) -> None:
        for batch in batches:
            pe = plan_pe(self._wider(change, batch.region), batch.region, batch.source)
            if not self._cluster.is_running(pe):
                raise PELostError(f"{pe} is gone with keys of region {batch.region}: {reason}")

    # --- implementation -----------------------------------------------------------------------------------------

    def _counted(self, region: str) -> RegionCounters:
        return self._counters.get(region, RegionCounters())

    def _batch_size(self, change: PlanChange) -> int:
        """Return how many partitions have about BATCH_BYTES of state."""
        most = 0.0
        for part in change.regions:
            planned = change.old.region(part.region)
            for moves in part.moved:
                source = planned.pipelines[0].pes[moves.source]
                _, size = self._cluster.element(source, COMMAND_TIMEOUT).state_size(list(planned.region.operators))
                most = max(most, size / planned.ring.loads()[moves.source])
        return max(1, int(BATCH_BYTES / most)) if most > 0 else change.old.partitions

    def _wider(self, change: PlanChange, region: str) -> ExecPlan:
        """Return the one of the two plans with more replicas of the region: during the change all of them exist."""
        return max(change.old, change.new, key=lambda plan: plan.region(region).replicas)

    def _epoch(self, change: PlanChange) -> int:
        return change.epoch << INCARNATIONS | self._incarnation

    def _next_mark(self, change: PlanChange) -> int:
        self._marks += 1
        return self._epoch(change) << MARKS | self._marks

    def _entry(self, plan: ExecPlan, region: str, change: PlanChange) -> RegionEntry:
        return RegionEntry(self._cluster, plan, region, self._epoch(change))


def check_performable(change: PlanChange) -> None:
    """Reject a change that isn't possible on a live job.

    Raises:
        ChangeError: Replicas share an element, or change theirs.
    """
    for part in change.regions:
        pes = change.new.region(part.region).pipelines[0].pes
        if part.relocated:
            raise ChangeError(
                f"region {part.region}: replicas can't change their PEs while they run",
                code=ErrorCode.BAD_CHANGE,
            )
        if len(set(pes)) < len(pes):
            raise ChangeError(f"region {part.region}: two of its replicas share a PE", code=ErrorCode.BAD_CHANGE)
