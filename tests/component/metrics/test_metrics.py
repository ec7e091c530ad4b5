"""A running job's metrics as Prometheus sees them, and what `job.bottleneck()` makes of them."""

from __future__ import annotations

import itertools
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import ConfigError
from rayelastic.job import Job, start
from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.reasons import Code
from rayelastic.runtime.values.hot_key import HotKey
from rayelastic.runtime.values.status import JobMetrics, OperatorSample, PESample
from rayelastic.runtime.watch.bottleneck import Bottleneck, Cause, find_bottleneck
from rayelastic.runtime.watch.metric_table import METRICS, Kind
from tests.raising import raises
from tests.reasons import codes, values
from tests.waiting import wait_until

PERIOD = 0.2  # seconds of an adaptation
LOOK = 0.5  # seconds of a look for the bottleneck
SETTLED, TURNS = 0.5, 1.5  # seconds of turns that are not looked at, and that are
LOOKS = 20  # until the threads of a busy machine have come to their work


def endless() -> Iterator[tuple[int]]:
    number = 0
    while True:
        yield (number,)
        number += 1


def scraped(job: Job) -> dict[str, float]:
    """What a scrape gives: {name and labels: value}."""
    with urllib.request.urlopen(f"http://127.0.0.1:{job.metrics_port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def named(job: Job, expected: Callable[[Bottleneck], bool]) -> Bottleneck:
    for _ in range(LOOKS):
        found = job.bottleneck(LOOK)
        if expected(found):
            return found
    pytest.fail(f"the last bottleneck was {found}")


@pytest.fixture
def busy() -> Iterator[tuple[Job, threading.Event]]:
    """A job of two PEs whose sink stands still until the event is set."""
    go_on = threading.Event()
    topology = rel.Topology("stalls")
    numbers = topology.source(rel.sequence(10_000_000), name="numbers")
    doubled = numbers.map(lambda t: t.value * 2, name="double", schema={"value": int})
    doubled.sink(rel.call(lambda t: go_on.wait()), name="out")
    job = start(
        topology, rel.JobConfig(pes={"out": 1}, elasticity=rel.Elasticity(thread_period=PERIOD)), metrics_port=0
    )
    yield job, go_on
    go_on.set()
    job.close()


def test_every_metric_is_served_with_sane_values(busy: tuple[Job, threading.Event]) -> None:
    job, _ = busy
    named(job, lambda found: found.cause is Cause.WAITING)
    first, second = scraped(job), scraped(job)
    of_others = {name for name in METRICS if name.startswith("rayelastic_job_checkpoint_")}  # it takes none
    of_others.add("rayelastic_operator_watermark_seconds")  # nor has it an event time
    for name, metric in METRICS.items():
        if name in of_others:
            continue
        values = {labels: value for labels, value in second.items() if labels.partition("{")[0] == name}
        assert values, name
        for labels, value in values.items():
            assert value >= 0, labels
            assert all(f'{label}="' in labels for label in metric.labels), labels
            assert metric.kind is Kind.GAUGE or value >= first[labels], labels
    assert second['rayelastic_operator_tuples_out_total{operator="numbers",pe="pe0",rel_job="stalls"}'] > 0
    assert second['rayelastic_link_credit_used_bytes{link="double->out",pe="pe0",rel_job="stalls"}'] > 0
    assert second['rayelastic_pe_rss_bytes{pe="pe0",rel_job="stalls"}'] > 10e6
    assert second['rayelastic_link_sent_bytes_total{link="double->out",pe="pe0",rel_job="stalls"}'] > 0
    everything = second['rayelastic_operator_latency_marks_total{le="+Inf",operator="out",pe="pe1",rel_job="stalls"}']
    within = second['rayelastic_operator_latency_marks_total{le="1.04858",operator="out",pe="pe1",rel_job="stalls"}']
    assert everything >= within > 0
    shares = [value for labels, value in second.items() if "cost_share" in labels]
    assert all(0 <= share <= 1 for share in shares)


def test_checkpoints_are_served_once_there_are_some() -> None:
    topology = rel.Topology("safe")
    keyed = topology.source(rel.sequence(10_000_000_000), name="numbers").key_by("value")
    keyed.window(count=1000).aggregate(name="sums", total=rel.sum("value")).sink(rel.count(), name="out")
    job = start(topology, rel.JobConfig(checkpoint=rel.Checkpoint(every=0.5)), metrics_port=0)
    try:
        for _ in range(LOOKS):
            if job.status.checkpoints.taken:
                break
            job.pause(LOOK)
        served = {labels.partition("{")[0]: value for labels, value in scraped(job).items()}
        assert served["rayelastic_job_checkpoints_total"] >= 1
        of_hosts = "rayelastic_job_checkpoint_second_copy_age_seconds"  # where a job can lose a host
        assert {name for name in METRICS if name.startswith("rayelastic_job_checkpoint_")} - {of_hosts} <= served.keys()
        assert served["rayelastic_job_checkpoint_age_seconds"] >= 0
        assert served["rayelastic_job_checkpoint_bytes"] > 0
    finally:
        job.close()


def test_a_stalled_sink_is_named(busy: tuple[Job, threading.Event]) -> None:
    job, _ = busy
    found = named(job, lambda found: found.cause is Cause.WAITING)
    assert found.operator == "out"
    assert found.pe == "pe1"
    assert codes(found.reasons) == [Code.WAITS_OUTSIDE, Code.UPSTREAM_BLOCKED]
    assert Code.ONE_SINK(operator="out") in found.held


def test_a_dear_operator_is_named_with_its_rule() -> None:
    topology = rel.Topology("dear")

    def dear(t: Any) -> float:
        total = float(t.value)
        for _ in range(20_000):
            total = total * 1.000001 + 1.0
        return total

    numbers = topology.source(rel.sequence(100_000_000), name="numbers")
    numbers.map(dear, name="dear", schema={"value": float}, lane="compiled").sink(rel.count(), name="out")
    job = start(topology, rel.JobConfig(elasticity=rel.Elasticity(thread_period=PERIOD)))
    try:
        decided = Code.LAST_THREAD_DECISION(pe="pe0")
        found = named(job, lambda found: found.cause is Cause.EXPENSIVE and decided in found.held)
        assert found.operator == "dear"
        assert found.limits_sources
        assert found.busiest == "dear"
        assert values(found.held, Code.RUNS_AS)["replicas"] == 1
        assert Code.NOT_ELASTIC in codes(found.held)
    finally:
        job.close()


def test_an_operator_that_holds_the_token_is_named() -> None:
    topology = rel.Topology("token")
    numbers = topology.source(rel.callable(endless, schema={"value": int}), name="numbers")
    first = numbers.map(lambda t: sum(range(200)) + t.value, name="first", schema={"value": int}, lane="python")
    first.map(lambda t: sum(range(20_000)) + t.value, name="second", schema={"value": int}, lane="python").sink(
        rel.count(), name="out"
    )
    job = start(topology, rel.JobConfig(threads=rel.Threads(count=2, model="dynamic"), elasticity="off"))
    try:
        found = named(job, lambda found: found.operator == "second")
        assert found.cause in (Cause.GIL, Cause.EXPENSIVE)
    finally:
        job.close()


def test_who_has_the_token_while_threads_wait_for_it_is_named() -> None:
    topology = rel.Topology("token")
    numbers = topology.source(rel.sequence(10), name="numbers")
    numbers.map(lambda t: t.value, name="named", schema={"value": int}, lane="python").sink(rel.count(), name="out")

    def reading(seconds: float, waited: float) -> JobMetrics:
        counts = OperatorSample(
            "named", "dynamic", 1, 1, 0, lane="python", inside_seconds=0.95 * seconds, cpu_seconds=0.95 * seconds
        )
        return JobMetrics("token", seconds, (PESample("pe0", seconds, 2, waited, (counts,)),))

    found = find_bottleneck(reading(1.0, 5.0), reading(3.0, 6.5), topology.plan())
    assert (found.operator, found.pe, found.cause) == ("named", "pe0", Cause.GIL)
    assert found.reasons == (Code.HOLDS_GIL(wait=0.75, busy=pytest.approx(0.95)),)
    found = find_bottleneck(reading(1.0, 5.0), reading(3.0, 5.0), topology.plan())
    assert (found.operator, found.cause) == ("named", Cause.EXPENSIVE)


@pytest.mark.parametrize(
    ("asleep", "busy", "limits", "keeps_up"),
    [(0.9, 0.65, False, True), (0.0, 0.65, False, False), (0.9, 0.95, True, False)],
)
def test_only_a_job_whose_source_sleeps_keeps_up_with_it(
    asleep: float, busy: float, limits: bool, keeps_up: bool
) -> None:
    topology = rel.Topology("paced")
    numbers = topology.source(rel.sequence(10), name="numbers")
    numbers.map(lambda t: t.value, name="step", schema={"value": int}).sink(rel.count(), name="out")

    def reading(seconds: float) -> JobMetrics:
        source = OperatorSample(
            "numbers", "dedicated", 0, 1, 0, inside_seconds=seconds, waited_seconds=asleep * seconds
        )
        step = OperatorSample("step", "manual", 1, 1, 0, inside_seconds=busy * seconds, cpu_seconds=busy * seconds)
        return JobMetrics("paced", seconds, (PESample("pe0", seconds, 1, 0.0, (source, step)),))

    found = find_bottleneck(reading(1.0), reading(2.0), topology.plan())
    assert (found.busiest, found.limits_sources, found.keeps_up) == ("step", limits, keeps_up)


def test_a_skewed_key_is_named() -> None:
    topology = rel.Topology("skew")
    words = topology.source(rel.rows([("a",)], schema={"word": str}), name="words")
    words.key_by("word").aggregate(name="counts", n=rel.count()).sink(rel.count(), name="out")
    plan = topology.plan()
    hot = {"r1": HotKey("'a'", 0.7, 1000)}

    def reading(seconds: float, taken: tuple[int, int, int], keys: Mapping[str, HotKey] = hot) -> JobMetrics:
        def pe(number: int, tuples: int) -> PESample:
            busy = seconds if number == 1 else 0.1 * seconds
            counts = OperatorSample("counts", "dynamic", tuples, 0, 0, inside_seconds=busy, cpu_seconds=busy)
            return PESample(f"pe{number}", seconds, 1, 0.0, (counts,), hot_keys={} if number else keys)

        return JobMetrics("skew", seconds, tuple(pe(number, tuples) for number, tuples in enumerate(taken)))

    found = find_bottleneck(reading(1.0, (10, 10, 10)), reading(2.0, (20, 90, 20)), plan)
    assert (found.operator, found.pe, found.cause) == ("counts", "pe1", Cause.SKEWED_KEY)
    assert found.reasons == (
        Code.SKEWED(share=0.8, pe="pe1", replicas=3),
        Code.HOTTEST_KEY(key="'a'", share=0.7, region="r1"),
    )
    assert found.held[0] == Code.KEY_HAS_ONE_REPLICA()
    burst: dict[str, HotKey] = {}  # no key has a tenth of the tuples
    found = find_bottleneck(reading(1.0, (10, 10, 10), burst), reading(2.0, (10, 90, 10), burst), plan)
    assert (found.operator, found.cause) == ("counts", Cause.EXPENSIVE)


def test_among_thousands_the_one_that_waits_is_named() -> None:
    names = tuple(f"step{number}" for number in range(2000))
    edges = tuple(itertools.pairwise(("numbers", *names)))
    region = Region("r0", RegionKind.PIPELINE, ("numbers", *names))
    plan = ExecPlan("large", (RegionPlan(region, (Pipeline(region.operators, ("pe0",)),)),), edges)

    def reading(seconds: float, waits: str, share: float = 0.9, asleep: float = 0.9) -> JobMetrics:
        def sample(name: str) -> OperatorSample:
            inside = seconds * (share if name == waits else 0.001)
            return OperatorSample(name, "manual", 1, 1, 0, inside_seconds=inside, waited_seconds=asleep * inside)

        return JobMetrics("large", seconds, (PESample("pe0", seconds, 1, 0.0, tuple(map(sample, region.operators))),))

    for waits in ("step0", "step1234", "step1999"):
        found = find_bottleneck(reading(1.0, waits), reading(2.0, waits), plan)
        assert (found.operator, found.cause, found.limits_sources) == (waits, Cause.WAITING, True)
        starved = find_bottleneck(reading(1.0, waits, asleep=0.0), reading(2.0, waits, asleep=0.0), plan)
        assert (starved.operator, starved.cause) == (waits, Cause.EXPENSIVE)  # ready, but without a CPU
    found = find_bottleneck(reading(1.0, "step7", 0.3), reading(2.0, "step7", 0.3), plan)
    assert (found.operator, found.cause) == ("numbers", Cause.INPUT)
    assert (found.busiest, round(found.share, 2), found.limits_sources) == ("step7", 0.3, False)


class Event(NamedTuple):
    key: int
    n: int


class Total(NamedTuple):
    value: float = 0.0


def add(t: Event, s: Total) -> float:
    """Dear, so that one replica is full."""
    for _ in range(5000):
        s.value = s.value * 0.999 + t.n  # type: ignore[misc]
    return s.value


def test_a_hot_key_of_a_running_job_is_named() -> None:
    """19 of 20 tuples have one key: of two replicas, one gets nearly all."""
    enough = threading.Event()

    def events() -> Iterator[Event]:
        for n in itertools.count():
            if enough.is_set():
                return
            yield Event(n // 20 if n % 20 == 0 else 7, n)

    topology = rel.Topology("hot")
    keyed = topology.source(rel.callable(events, Event), name="events").key_by("key")
    keyed.map(add, name="add", state=Total, schema={"value": float}, lane="compiled").sink(rel.count(), name="out")
    job = start(topology, rel.JobConfig(regions="elastic", elasticity="off"), metrics_port=0)
    try:
        region = job.plan().region_of("add").region.name
        wait_until(job, lambda: job.metrics().operator("add").state_keys >= 20)
        job.rescale(region, 2)
        found = named(job, lambda found: found.cause is Cause.SKEWED_KEY)
        assert found.operator == "add"
        key = values(found.reasons, Code.HOTTEST_KEY)
        assert (key["key"], key["region"]) == ("7", region)
        assert key["share"] >= 0.9
        scrape = scraped(job)

        def of_region(name: str) -> float:
            return scrape[f'rayelastic_region_{name}{{region="{region}",rel_job="hot"}}']

        assert of_region("hottest_key_share") > 0.85
        assert of_region("changes_total") >= 1
        assert of_region("moved_bytes_total") > 8 * of_region("moved_keys_total") > 0
        assert of_region("held_seconds_total") >= of_region("longest_hold_seconds") > 0
        kept = [value for labels, value in scrape.items() if "operator_state_bytes" in labels and '"add"' in labels]
        assert len(kept) == 2
        assert all(value > 0 for value in kept)
    finally:
        enough.set()
        job.close()


def test_a_slow_source_is_named() -> None:
    go_on = threading.Event()

    def slow() -> Iterator[tuple[int]]:
        yield (1,)
        go_on.wait()

    topology = rel.Topology("slow")
    topology.source(rel.callable(slow, schema={"value": int}), name="numbers").sink(rel.count(), name="out")
    job = start(topology)
    try:
        found = job.bottleneck(LOOK)
        assert (found.operator, found.cause) == ("numbers", Cause.INPUT)
    finally:
        go_on.set()
        job.close()


@pytest.mark.parametrize("port", [-1, 70_000, "8080", True])
def test_a_bad_metrics_port_starts_nothing(port: object) -> None:
    topology = rel.Topology("bad")
    topology.source(rel.sequence(1), name="numbers").sink(rel.count(), name="out")
    with raises(ConfigError, "invalid-setting", "metrics_port"):
        rel.run(topology, metrics_port=port)  # type: ignore[arg-type]


def test_operators_that_take_turns_under_the_token_have_the_cpu_time_of_their_threads() -> None:
    """A thread that was just woken has its turn when its CPU has begun: what it used before was its operator's work."""

    def burn(t: Any) -> int:
        for _ in itertools.repeat(None, 20_000):  # that isn't compiled
            pass
        return int(t.value)

    topology = rel.Topology("turns")
    even = topology.source(rel.sequence(10_000_000), name="even")
    odd = topology.source(rel.sequence(10_000_000), name="odd")
    first = even.union(odd).map(burn, name="first", schema={"value": int}, lane="python")
    first.map(burn, name="second", schema={"value": int}, lane="python").sink(rel.call(lambda t: None), name="out")
    models: Any = {"first": "manual", "second": "dynamic", "out": "manual"}
    with closing(start(topology, rel.JobConfig(elasticity="off", threads=rel.Threads(count=1, model=models)))) as job:
        job.pause(SETTLED)
        before = job.metrics().pes[0]
        job.pause(TURNS)
        after = job.metrics().pes[0]
    inside = sum(o.cpu_seconds for o in after.operators) - sum(o.cpu_seconds for o in before.operators)
    assert inside >= 0.75 * (after.cpu_seconds - before.cpu_seconds) > 0
