"""Real PEs in this process: a plant's graph built of native operators, run statically or elastically.

Costs are dependent multiplications of compiled operators, as in the papers. Streams are copied to all consumers, since
an engine deals tuples out by key only; so graphs are chains and trees whose streams have share 1.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from bench.plant.graph import PlantGraph
from bench.plant.segments import Models
from rayelastic import _native
from rayelastic.compile import Compiler, OperatorCode, load
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import FunctionRequest, Lane, OperatorKind
from rayelastic.plan.settings.elasticity import Algorithm
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Controller
from rayelastic.runtime.loops.adaptation_loop import AdaptationLoop, LoopSettings
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.values.adaptation import Journal, Setting
from rayelastic.runtime.watch.machine_load import available_cpus

ENDLESS = 1 << 60  # tuples
QUEUE_RECORDS = 1024
LONGEST_FILL = 10.0  # s that a pipeline may take to fill
CHANGED = 0.3  # s after a change of configuration that aren't measured
TURN = 0.5  # s that a configuration is measured
LOOK = 0.02  # s between two looks at a counter
FACTOR = 1.0000001  # of each multiplication: a thousand of them leave a number about as large as it was


class Value(NamedTuple):
    value: int


class Loaded(NamedTuple):
    value: int
    payload: bytes


def _multiplying(count: int, payload: int) -> OperatorCode:
    """Return an operator of so many dependent multiplications."""

    def plain(t: Any) -> Any:
        value = float(t.value)
        for _ in range(count):
            value = value * FACTOR
        return Value(int(value))

    def loaded(t: Any) -> Any:
        value = float(t.value)
        for _ in range(count):
            value = value * FACTOR
        return Loaded(int(value), t.payload)

    function, schema = (loaded, Schema.of(Loaded)) if payload else (plain, Schema.of(Value))
    request = FunctionRequest(f"multiply{count}", OperatorKind.MAP, function, schema, schema, lane=Lane.COMPILED)
    return Compiler().compile(request)


@dataclass(frozen=True, slots=True)
class RealGraph:
    """A graph for the real engine.

    Args:
        graph: its shape; the costs in it are not used.
        flops: multiplications per tuple of each operator but sources and sinks, by number.
        payload: bytes of each tuple besides its number.
        deep_copy: whether hops copy payloads.
    """

    graph: PlantGraph
    flops: Mapping[int, int]
    payload: int = 0
    deep_copy: bool = False

    def __post_init__(self) -> None:
        if any(stream.share != 1.0 for stream in self.graph.streams):
            raise ValueError("a real graph copies every tuple to all consumers: give streams of share 1")


class RealRun:
    """One scheduler with a graph; a context manager that stops it."""

    def __init__(self, real: RealGraph, threads: int, models: Models | None = None) -> None:
        self._scheduler = _native.Scheduler(queue_records=QUEUE_RECORDS, deep_copy=real.deep_copy)
        schema = native_schema(Schema.of(Loaded if real.payload else Value))
        codes = {flops: _multiplying(flops, real.payload) for flops in set(real.flops.values())}
        self._sinks: list[_native.Operator] = []
        self._queues = 0
        for number, operator in enumerate(real.graph.operators):
            model = models[number] if models is not None and not operator.source else ThreadingModel.MANUAL
            self._queues += model is not ThreadingModel.MANUAL
            made = self._operator(real, number, schema, codes)
            self._scheduler.add(made, None if operator.source else model.value)
        for stream in real.graph.streams:
            self._scheduler.connect(stream.tail, stream.head)
        self._scheduler.start(threads)

    def _operator(
        self, real: RealGraph, number: int, schema: _native.Schema, codes: Mapping[int, OperatorCode]
    ) -> _native.Operator:
        operator = real.graph.operators[number]
        if operator.source:
            return _native.Operator.sequence_source(operator.name, schema, ENDLESS, real.payload)
        if number in real.graph.sinks:
            self._sinks.append(_native.Operator.count_sink(operator.name, schema))
            return self._sinks[-1]
        loaded = load(codes[real.flops[number]])
        return _native.Operator.compiled(
            operator.name, loaded.address, loaded.flags, [schema], [schema], owner=loaded.owner
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.stop()

    @property
    def scheduler(self) -> _native.Scheduler:
        return self._scheduler

    def counted(self) -> int:
        """Tuples at the sinks so far."""
        return sum(sink.count or 0 for sink in self._sinks)

    def rate(self, seconds: float, fill: float = LONGEST_FILL) -> float:
        """Tuples/s at the sinks, once as many have come as all queues hold (findings 4)."""
        end = time.perf_counter() + fill
        while self.counted() < self._queues * QUEUE_RECORDS and time.perf_counter() < end:
            time.sleep(LOOK)
        before, started = self.counted(), time.perf_counter()
        time.sleep(seconds)
        rate = (self.counted() - before) / (time.perf_counter() - started)
        if failure := self._scheduler.failure():
            raise RuntimeError(f"the graph failed while it was measured: {failure}")
        return rate


def static_rate(real: RealGraph, threads: int, models: Models, seconds: float) -> float:
    """Tuples/s of a configuration."""
    with RealRun(real, threads, models) as run:
        return run.rate(seconds)


def alternated(
    real: RealGraph, configurations: Sequence[tuple[int, Models]], seconds: float, rounds: int = 3
) -> list[float]:
    """Median tuples/s of each configuration, over rounds in which they take turns."""
    found = [[static_rate(real, *each, seconds) for each in configurations] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*found, strict=True)]


def elastic_loop(real: RealGraph, run: RealRun, controller: Controller, period: float) -> AdaptationLoop:
    """Return the loop as a job has it, on a run; not started."""
    operators = real.graph.operators
    upstream = {
        operators[at].name: tuple(operators[s.tail].name for s in by) for at, by in enumerate(real.graph.incoming)
    }
    cpus = available_cpus()
    settings = LoopSettings(
        pe="pe0",
        order={operator.name: number for number, operator in enumerate(operators)},
        sources=frozenset(operators[number].name for number in real.graph.sources),
        pinned=frozenset(),
        period=period,
        minimum_threads=1,
        maximum_threads=cpus,
        cpus=cpus,
    )
    return AdaptationLoop(
        run.scheduler, controller, settings, Journal(Setting(Algorithm.MULTI_LEVEL, upstream, period))
    )


def found_beside(
    real: RealGraph,
    controller: Controller,
    seconds: float,
    others: Sequence[tuple[int, Models]],
    period: float = 0.5,
    turns: int = 2,
) -> tuple[list[float], Journal]:
    """Let the adaptation loop find a configuration from cold, then let it take turns with others in the same run.

    So what is compared has the same memory, the same clock and the same neighbours.

    Returns:
        Median tuples/s of what was found and of each of the others; the journal of the search.
    """
    inner = [number for number, operator in enumerate(real.graph.operators) if not operator.source]
    with RealRun(real, threads=1) as run:
        loop = elastic_loop(real, run, controller, period)
        loop.start()
        try:
            time.sleep(seconds)
        finally:
            loop.stop()
        kept = run.scheduler.in_force()
        configurations = [(kept.thread_count, {number: kept.models[number] for number in inner})]
        configurations += [(threads, {number: models[number].value for number in inner}) for threads, models in others]
        rates: list[list[float]] = [[] for _ in configurations]
        for _ in range(turns):
            for (threads, chosen), found in zip(configurations, rates, strict=True):
                run.scheduler.apply(threads, chosen)
                time.sleep(CHANGED)
                found.append(run.rate(TURN, fill=0.0))
        return [statistics.median(found) for found in rates], loop.journal
