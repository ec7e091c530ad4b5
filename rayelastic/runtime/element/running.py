"""A running PE: its native scheduler with all operators, and the loops beside it.

Made when the element starts, completely or not at all, so that its users need no checks.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.runtime.checkpoint.element import operators_with_state
from rayelastic.runtime.element.ending import end_scheduler
from rayelastic.runtime.element.sampling import ElementSampling
from rayelastic.runtime.element.state_transfer import PAUSE_TIMEOUT, StateExchange, StateStores
from rayelastic.runtime.element.wiring import (
    connect_links,
    connect_operators,
    let_sources_wait,
    shared_operators,
)
from rayelastic.runtime.loops.adaptation_loop import cpu_seconds
from rayelastic.runtime.loops.alarm import alarm_of
from rayelastic.runtime.loops.channel_loop import channel_loop
from rayelastic.runtime.loops.elasticity import adaptation_loop, pinned_models, run_work
from rayelastic.runtime.loops.periodic_loop import Still
from rayelastic.runtime.values.host_use import HostUse
from rayelastic.runtime.watch.machine_load import available_cpus, cpus_by_node, waited_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rayelastic.policy.element.cpu_budgets import CpuBudget
    from rayelastic.runtime.checkpoint.state_files import RestorePoint
    from rayelastic.runtime.element.hosted import HostedOperators
    from rayelastic.runtime.element.reach.dialling import Dialler
    from rayelastic.runtime.element.routing import Routing
    from rayelastic.runtime.loops.adaptation_loop import AdaptationLoop
    from rayelastic.runtime.loops.alarm import Alarm
    from rayelastic.runtime.loops.channel_loop import ChannelLoop
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.specs import PESpec


class Running:
    """The scheduler of an element, which runs from now on; its sources and loops do after `begin`.

    Args:
        spec: The element.
        hosted: Its operators, opened.
        restored: The snapshot to restore, already read.
        routing: Its routers, gathers and taps.
        dialler: Opens connections to other elements.
        links: Its incoming and outgoing links, by name.

    Raises:
        SinkError: A sink's output can't be rolled back; the message names the sink.
        StateError: The restored snapshot is damaged or doesn't fit.
    """

    def __init__(
        self,
        spec: PESpec,
        hosted: HostedOperators,
        restored: RestorePoint,
        routing: Routing,
        dialler: Dialler,
        links: Mapping[str, _native.Link],
    ) -> None:
        config = spec.config
        self._spec = spec
        self._hosted = hosted
        self.left_behind: tuple[str, ...] = ()  # operators that didn't return when it was stopped
        pinned = pinned_models(spec.operators, config)
        self.scheduler = _native.Scheduler(
            queue_records=config.threads.queue_records,
            queue_bytes=config.threads.queue_bytes,
            run_records=config.threads.run_records,
            run_bytes=config.threads.run_bytes,
            run_work=run_work(config, frozenset(pinned), spec.operators),
            cpus=cpus_by_node() if config.threads.pin else [],
        )
        _native.tell_crashes()
        hosted.build()
        self.skipped = restored.restore(hosted.natives)  # records that each source doesn't have to emit again
        natives, skips = hosted.natives, hosted.seek(self.skipped, restored.inputs)
        self.ids = {name: self.scheduler.add(native, skip=skips.get(name, 0)) for name, native in natives.items()}
        stores = {
            name: (native.state, self.scheduler.pause(self.ids[name], PAUSE_TIMEOUT))
            for name, native in natives.items()
            if native.state is not None
        }
        self.states = StateExchange(spec, dialler.channel, StateStores(stores))
        connect_operators(self.scheduler, spec.operators, self.ids, spec.routing.routed)
        routing.wire(self.scheduler, self.ids)
        connect_links(self.scheduler, spec, self.ids, links)
        let_sources_wait(self.scheduler, spec, self.ids)
        self.sampling = ElementSampling(spec, self.ids)
        self.scheduler.stop_at_epochs(operators_with_state(natives, hosted.sinks, self.ids))
        shared = shared_operators(spec.operators, natives, spec.routing.routed)
        self._adaptation = adaptation_loop(spec, self.scheduler, self.ids, frozenset(pinned), shared)
        self._channels = channel_loop(spec, self.scheduler.sample, self.ids, hosted.widths, self._cpus)
        hosted.wakes(self.scheduler.poke, self.ids)
        for name, source in hosted.sources.items():
            source.watch(functools.partial(self.given, name), f"{spec.job}-{name}")
        self._alarm = alarm_of(spec, self.scheduler.poke, self.ids)
        hosted.begin()
        # Last: operators run from here on, and an interrupt must not leave a scheduler that can't be ended.
        self.started_at = time.monotonic()
        self.scheduler.start(config.threads.count or 1, {self.ids[name]: model.value for name, model in pinned.items()})

    def begin(self) -> None:
        """Start its sources and loops."""
        for name, source in self._hosted.sources.items():
            source.start(name)
        for loop in self._loops():
            loop.start()

    def adaptations(self, number: int) -> tuple[Adaptation, ...]:
        """Return the kept adaptations from pass `number` on; none if elasticity is off."""
        return self._adaptation.journal.since(number) if self._adaptation is not None else ()

    def adaptation_counters(self, threads: int) -> dict[str, Any]:
        """Return the counters of its adaptation loop, beside the scheduler threads in force; none if it has no loop."""
        return self._adaptation.counters(threads) if self._adaptation is not None else {}

    def given(self, source: str) -> int:
        """Return the number of rows that a source has emitted in this run."""
        return self.scheduler.sample().operators[self.ids[source]].tuples_out

    def hold_levels(self, held: bool) -> None:
        """Hold its adaptation loop, or restart it."""
        if self._adaptation is not None:
            self._adaptation.hold(held, Still.CHANGE)

    def pause_levels(self, paused: bool) -> None:
        """Pause the decisions of its loops, or resume them."""
        for loop in (self._adaptation, self._channels):
            if loop is not None:
                loop.hold(paused)

    @property
    def budget(self) -> CpuBudget | None:
        """The CPUs of its host that it may use; None: unlimited."""
        return self._adaptation.budget if self._adaptation is not None else None

    def _cpus(self) -> int:
        return self.budget.cpus if self.budget is not None else available_cpus()

    def share_host(self, budget: CpuBudget | None, kin: tuple[int, ...]) -> HostUse:
        """Limit it to its share of the host from now on. See ElementApi."""
        if self._adaptation is not None:
            self._adaptation.budget, self._adaptation.kin = budget, kin
        return HostUse(cpu_seconds(self.scheduler.sample()), waited_seconds(), available_cpus())

    def stop(self, drain: bool) -> None:
        """Stop its sources only (drain), or all of its threads."""
        if drain:
            for name in self._hosted.sources:  # links that arrive end by themselves, when their producers have
                self.scheduler.end_source(self.ids[name])
        elif not self.left_behind:
            self.left_behind = end_scheduler(self._spec, self.scheduler, self._hosted.natives, self.ids)

    def end_loops(self) -> None:
        """End its adaptation loops; the current configuration stays."""
        for loop in self._loops():
            loop.stop()

    def _loops(self) -> Iterator[AdaptationLoop | ChannelLoop | Alarm]:
        return (loop for loop in (self._adaptation, self._channels, self._alarm) if loop is not None)
