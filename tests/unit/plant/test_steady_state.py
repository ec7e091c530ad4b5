"""Laws that the plant has to obey, and the knees of curves that the papers tell of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.plant.constants import ENGINE, LAPTOP, PAPER_ENGINE, POWER8, SERVER16, XEON, Machine
from bench.plant.contention import visits_per_ns
from bench.plant.graph import PlantGraph, PlantOperator, Stream, bushy, data_parallel, mixed, pipeline
from bench.plant.segments import Models, segments
from bench.plant.steady_state import Limit, SteadyState, steady_state
from rayelastic.plan.settings.threads import ThreadingModel

MANUAL, DYNAMIC, DEDICATED = ThreadingModel.MANUAL, ThreadingModel.DYNAMIC, ThreadingModel.DEDICATED
FREE = replace(
    ENGINE,
    call=0.0, hop=0.0, hop_per_byte=0.0, transfer=0.0, visit=0.0, lock=0.0, balance=0.0, dedicated_switch=0.0,
)  # fmt: skip
IDEAL = Machine("ideal", cores=16, handover=0.0, growth=0.0)


def placed(graph: PlantGraph, queued: object, model: ThreadingModel = DYNAMIC) -> Models:
    inside = set(queued)  # type: ignore[call-overload]
    return tuple(model if number in inside else MANUAL for number in range(len(graph.operators)))


def everywhere(graph: PlantGraph, model: ThreadingModel = DYNAMIC) -> Models:
    return placed(graph, [n for n, o in enumerate(graph.operators) if not o.source], model)


def solved(
    graph: PlantGraph, models: Models, threads: int, machine: Machine = IDEAL, constants: Any = FREE, **load: float
) -> SteadyState:
    return steady_state(graph, segments(graph, models), machine, constants, threads, **load)


def best_threads(graph: PlantGraph, machine: Machine, levels: range) -> int:
    cut = segments(graph, everywhere(graph))
    return max(levels, key=lambda threads: steady_state(graph, cut, machine, PAPER_ENGINE, threads).rate)


@st.composite
def graphs(draw: st.DrawFn, tails: int = 3) -> tuple[PlantGraph, Models]:
    """A random DAG with a random placement."""
    count = draw(st.integers(2, 24))
    operators = [PlantOperator("source", draw(st.floats(0, 100)), source=True)]
    streams = []
    for number in range(1, count):
        feeding = draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=tails))
        cost, selectivity = draw(st.floats(1, 5000)), draw(st.sampled_from([0.25, 1.0, 1.0, 2.0]))
        operators.append(PlantOperator(f"op{number}", cost, selectivity))
        streams += [Stream(tail, number, draw(st.sampled_from([0.5, 1.0]))) for tail in sorted(feeding)]
    graph = PlantGraph(tuple(operators), tuple(streams))
    return graph, placed(graph, draw(st.sets(st.integers(1, count - 1))))


# --- segments ---------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(graphs())
def test_every_tuple_of_work_belongs_to_segments(drawn: tuple[PlantGraph, Models]) -> None:
    graph, models = drawn
    cut = segments(graph, models)
    taken = graph.rates[[n for n, o in enumerate(graph.operators) if not o.source]].sum()
    assert cut.work.sum() == pytest.approx((graph.rates * graph.costs).sum())
    assert cut.pushes.sum() == pytest.approx(cut.pops.sum())
    assert cut.pops.sum() + cut.calls.sum() == pytest.approx(taken)


def test_a_shared_operator_is_run_by_its_callers_in_their_shares() -> None:
    graph = data_parallel([100.0, 100.0, 100.0, 100.0], sink_cost=40.0)
    cut = segments(graph, placed(graph, [1, 2]))
    assert cut.work.tolist() == pytest.approx([2 * 35.0, 35.0, 35.0])
    assert [(port.operator, port.callers, port.work) for port in cut.shared] == [(5, 3, 40.0)]


# --- laws -------------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(1, 32))
def test_no_more_work_is_done_than_there_are_cores_and_threads(drawn: tuple[PlantGraph, Models], threads: int) -> None:
    graph, models = drawn
    for machine, constants in ((IDEAL, FREE), (XEON, PAPER_ENGINE), (LAPTOP, ENGINE)):
        found = solved(graph, models, threads, machine, constants)
        cut = segments(graph, models)
        useful = found.rate * cut.work.sum() / 1e9
        assert useful <= machine.capacity(min(threads, cut.queues) + 1) * (1 + 1e-9)
        assert found.rate * cut.work.max() / 1e9 <= 1 + 1e-9
        assert found.usage.max() <= 1 + 1e-6
        assert 0 <= found.busy <= found.threads + 1e-9


@settings(max_examples=40, deadline=None)
@given(graphs(tails=1), st.integers(1, 31))
def test_more_cores_are_never_slower(drawn: tuple[PlantGraph, Models], cores: int) -> None:
    """Where no lock is shared: with one, more threads at it can be slower."""
    graph, models = drawn
    rates = [solved(graph, models, 8, replace(IDEAL, cores=n), FREE).rate for n in (cores, cores + 1)]
    assert rates[1] >= rates[0] * (1 - 1e-6)


@settings(deadline=None)
@given(st.lists(st.floats(1, 1e5), min_size=1, max_size=50), st.integers(1, 64))
def test_manual_is_one_thread_that_does_everything(costs: list[float], threads: int) -> None:
    graph = pipeline(costs)
    assert solved(graph, placed(graph, []), threads).rate == pytest.approx(1e9 / sum(costs))


@pytest.mark.parametrize("threads", [1, 3, 7, 15, 40])
def test_all_queued_scales_with_threads_up_to_the_cores(threads: int) -> None:
    graph = pipeline([1000.0] * 200)
    speedup = solved(graph, everywhere(graph), threads).rate * 200_000 / 1e9
    assert speedup == pytest.approx(min(threads + 1, IDEAL.cores), rel=0.01)


def test_the_dearest_segment_bounds_the_throughput() -> None:
    graph = pipeline([100.0] * 10 + [5000.0] + [100.0] * 10)
    found = solved(graph, everywhere(graph), 15)
    assert (found.rate, found.limit) == (pytest.approx(1e9 / 5000.0), Limit.SEGMENT)
    filled = dict(zip(segments(graph, everywhere(graph)).heads, found.fill, strict=True))
    assert filled[11] > 0.9
    assert filled[3] > 0.9
    assert filled[15] < 0.1


def test_python_operators_share_one_token() -> None:
    graph = pipeline([1000.0] * 8)
    python = PlantGraph(tuple(replace(o, needs_token=not o.source) for o in graph.operators), graph.streams)
    constants = replace(FREE, token=0.0)
    found = solved(python, everywhere(python), 7, constants=constants)
    assert (found.rate, found.limit) == (pytest.approx(1e9 / 8000.0), Limit.TOKEN)
    assert found.token_wait > 0.5


def test_an_offered_rate_is_taken_and_threads_sleep() -> None:
    graph = pipeline([1000.0] * 8)
    found = solved(graph, everywhere(graph), 8, offered=1000.0)
    assert (found.rate, found.limit) == (pytest.approx(1000.0), Limit.SOURCES)
    assert found.busy < 0.1
    assert solved(graph, everywhere(graph), 8, offered=0.0).rate < 1


def test_other_processes_take_their_share() -> None:
    graph = pipeline([1000.0] * 100)
    alone = solved(graph, everywhere(graph), 15).rate
    assert solved(graph, everywhere(graph), 15, others=16.0).rate == pytest.approx(alone / 2, rel=0.01)


def test_deep_copies_of_payloads_collapse_and_references_do_not() -> None:
    """C000-6: at 16 KiB all dynamic is below manual with copies, and above by reference."""
    graph = pipeline([77.0] * 100, payload=16384, record=24)
    copying = replace(ENGINE, deep_copy=True)
    manual = solved(graph, placed(graph, []), 2, LAPTOP, copying).rate
    assert solved(graph, everywhere(graph), 2, LAPTOP, copying).rate < manual / 2
    best = max(solved(graph, placed(graph, range(at, 101, at)), 2, LAPTOP, ENGINE).rate for at in (5, 10, 25, 50))
    assert best > 1.5 * manual


def test_a_machine_shares_time_beyond_its_processors() -> None:
    assert XEON.capacity(88) == 88
    assert 88 < XEON.capacity(176) < 100
    assert POWER8.capacity(184) == pytest.approx(23 * 2.3)
    rising = [POWER8.capacity(threads) for threads in range(1, 300)]
    assert all(low <= high * (1 + 1e-9) for low, high in zip(rising, rising[1:], strict=False))


# --- the lock ---------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.floats(10, 1e6), st.floats(1, 1e4), st.integers(1, 200))
def test_a_lock_is_bounded_by_its_threads_and_by_itself(think: float, hold: float, threads: int) -> None:
    rate = visits_per_ns(threads, think, hold, 0.0)
    assert rate <= min(threads / (think + hold), 1 / hold) * (1 + 1e-9)
    assert rate <= visits_per_ns(threads + 1, think, hold, 0.0) * (1 + 1e-9)
    assert visits_per_ns(threads, think, hold, 50.0) <= rate * (1 + 1e-9)


def test_a_lock_with_costly_handovers_collapses() -> None:
    rates = [visits_per_ns(threads, 7700.0, 50.0, 310.0) for threads in range(1, 33)]
    peak = int(np.argmax(rates)) + 1
    assert 7 <= peak <= 12
    assert rates[15] < 0.5 * max(rates)


# --- knees that the papers tell of ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "flops", "fewest", "most"),
    [(XEON, 10_000, 8, 10), (POWER8, 10_000, 16, 24), (POWER8, 100_000, 96, 184)],
)
def test_the_best_thread_count_of_a_counting_sink(machine: Machine, flops: int, fewest: int, most: int) -> None:
    """C002-4; at 100,000 FLOPs the knee is where the runs of PLDI'17 Fig. 11 oscillate."""
    graph = data_parallel([flops * machine.flop] * 1000, payload=64)
    assert fewest <= best_threads(graph, machine, range(2, machine.cpus + 1, 2)) <= most


@pytest.mark.parametrize(("machine", "fewest", "most"), [(XEON, 72, 132), (POWER8, 96, 160)])
def test_the_best_thread_count_of_a_thousand_cheap_operators(machine: Machine, fewest: int, most: int) -> None:
    """C002-6; on Power8 the curve is flat from 96 to 176."""
    graph = pipeline([machine.flop] * 1000, payload=64)
    assert fewest <= best_threads(graph, machine, range(8, machine.cpus + 1, 8)) <= most


def test_ten_pipelines_of_a_hundred_want_all_of_one_machine_and_half_of_the_other() -> None:
    """C002-5."""
    graphs = {machine: mixed([[1000 * machine.flop] * 100] * 10, payload=64) for machine in (XEON, POWER8)}
    assert 72 <= best_threads(graphs[XEON], XEON, range(8, 177, 8)) <= 96
    assert best_threads(graphs[POWER8], POWER8, range(8, 185, 8)) >= 160


@pytest.mark.parametrize(("multiplies", "fewest", "most"), [(10_000, 14, 16), (1000, 7, 9), (1, 1, 3)])
def test_channels_of_a_load_balanced_operator(multiplies: int, fewest: int, most: int) -> None:
    """C001-1."""
    graph = data_parallel([multiplies * SERVER16.flop] * 32, payload=64)
    assert fewest <= best_threads(graph, SERVER16, range(1, 17)) <= most


def test_the_four_shapes_have_the_sizes_of_the_figures() -> None:
    assert len(bushy(5, 1.0).operators) == 82
    assert len(mixed([[1.0] * 100] * 10).operators) == 1002
    assert data_parallel([1.0] * 50).widest == 50
    for graph in (bushy(5, 1.0), mixed([[1.0] * 5] * 3), data_parallel([1.0] * 7)):
        assert graph.rates[-1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("operators", "streams", "message"),
    [
        ((PlantOperator("a"),), (), "without a source"),
        ((PlantOperator("a", source=True), PlantOperator("b")), (), "'b': nothing feeds it"),
        ((PlantOperator("a", source=True), PlantOperator("b")), (Stream(1, 1),), "topological"),
        ((PlantOperator("a", source=True), PlantOperator("b", source=True)), (Stream(0, 1),), "'b': a source is fed"),
    ],
)
def test_wrong_graphs_are_refused(
    operators: tuple[PlantOperator, ...], streams: tuple[Stream, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        PlantGraph(operators, streams)


def test_dedicated_threads_need_no_scheduler_threads() -> None:
    graph = pipeline([1000.0] * 10)
    cut = segments(graph, everywhere(graph, DEDICATED))
    assert (cut.dedicated, cut.queues, cut.sources) == (11, 11, 1)
    assert solved(graph, everywhere(graph, DEDICATED), 1).rate == pytest.approx(1e9 / 1000.0, rel=1e-3)
