"""How the coordinator's work grows with processing elements: its own code, over stub elements that only answer.

    python -m bench.scale [--sizes 10 100 1000] [--answer 0.001] [--silent 0.05]

`chain`: operators in a row, an element each. `mesh`: two keyed regions of R replicas behind each other, on 2R + 1
elements. Each call of a stub takes `--answer` seconds. `in a row`: the most calls of which each waits for the one
before. Bytes are those of pickled arguments. The exponents of growth are those between two sizes. A table, and JSON in
bench/results.
"""

from __future__ import annotations

import json
import math
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import rayelastic as rel
from bench.harness import arguments_of
from bench.provenance import machine_of
from rayelastic.job.preparing import prepare
from rayelastic.plan.hash_ring import PARTITIONS
from rayelastic.runtime.job.job_cluster import JobCluster
from rayelastic.runtime.job.life import JobLife
from rayelastic.runtime.job.telemetry import JobTelemetry
from rayelastic.runtime.journal import ChangeJournal, SavedAt
from rayelastic.runtime.remote import Call, Remote
from rayelastic.runtime.values.snapshot import Manifest, Snapshot
from rayelastic.runtime.values.specs import JobSpec, PESpec
from rayelastic.runtime.values.status import PESample, PEStatus, State

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
DIGEST = "0" * 64
ROW = {"key": int, "n": int}


@dataclass
class Stubs:
    """A host of elements that answer after a while, and what they were asked.

    Args:
        answer: Seconds that a call takes.
        silent: How many elements don't answer once the job runs.
    """

    answer: float
    silent: int = 0
    calls: list[tuple[float, float]] = field(default_factory=list)  # from, to
    sent: dict[str, int] = field(default_factory=dict)  # bytes by element
    over: threading.Event = field(default_factory=threading.Event)

    can_lose = True

    def start_pe(self, spec: PESpec) -> Any:
        self.sent[spec.pe] = self.sent.get(spec.pe, 0) + len(pickle.dumps(without_job(spec)))
        return Stub(self, spec.pe)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *_, **__: ()


@dataclass(eq=False)
class Stub:
    """The handle of an element."""

    host: Stubs
    pe: str
    is_silent: bool = False

    def within(self, timeout: float) -> Any:
        return Remote(lambda call: self.perform(call, timeout))

    def perform(self, call: Call, timeout: float) -> Any:
        began = time.monotonic()
        self.host.sent[self.pe] = self.host.sent.get(self.pe, 0) + len(pickle.dumps(call))
        if self.is_silent:
            self.host.over.wait(timeout)
            raise TimeoutError
        time.sleep(self.host.answer)
        self.host.calls.append((began, time.monotonic()))
        return {"status": PEStatus(self.pe, State.RUNNING), "sample": PESample(self.pe, 1.0)}.get(call.method)

    def kill(self, *, at_once: bool = False) -> None:
        pass


def without_job(spec: PESpec) -> tuple[Any, ...]:
    """What an element is sent beside its operators' code and the configuration."""
    parts = (spec.links_in, spec.links_out, spec.routing, spec.manifest, spec.predecessors, spec.time_units)
    return (spec.pe, spec.job, spec.secret, *parts)


@dataclass
class Cost:
    """What one action of the coordinator took."""

    calls: int
    in_a_row: int
    seconds: float
    cpu: float
    most_sent: int  # to one element, bytes


@contextmanager
def measured(stubs: Stubs, into: dict[str, Cost], name: str) -> Iterator[None]:
    stubs.calls.clear()
    stubs.sent.clear()
    began, cpu = time.monotonic(), time.process_time()
    yield
    seconds, used = time.monotonic() - began, time.process_time() - cpu
    into[name] = Cost(len(stubs.calls), in_a_row(stubs.calls), seconds, used, max(stubs.sent.values(), default=0))


def in_a_row(calls: Sequence[tuple[float, float]]) -> int:
    """The most calls of which each began after the end of the one before.

    >>> in_a_row([(0.0, 1.0), (0.1, 1.1), (1.2, 2.0)])
    2
    """
    count, end = 0, -math.inf
    for began, ended in sorted(calls, key=lambda call: call[1]):
        if began >= end:
            count, end = count + 1, ended
    return count


def chain(elements: int) -> JobSpec:
    topology = rel.Topology("chain")
    stream: Any = topology.source(rel.rows([], schema=ROW), name="rows")
    for number in range(elements - 2):
        stream = stream.throttle(1e6, name=f"step{number}")
    stream.sink(rel.count(), name="out")
    return prepare(topology, rel.JobConfig(pes={name: pe for pe, name in enumerate(topology.operators)}))


def mesh(elements: int) -> JobSpec:
    topology = rel.Topology("mesh")
    stream: Any = topology.source(rel.rows([], schema=ROW), name="rows")
    stream = stream.key_by("key").aggregate(name="first", emit="update", total=rel.sum("n"))
    stream = stream.key_by("total").aggregate(name="second", emit="update", times=rel.count())
    stream.sink(rel.count(), name="out")
    job = prepare(topology, rel.JobConfig(regions="manual"))
    replicas = min((elements - 1) // 2, PARTITIONS)
    plan = job.plan
    for name in ("first", "second"):
        pes = plan.fresh_pes(replicas)
        plan = plan.with_replicas(plan.region_of(name).region.name, replicas, pes)
    return replace(job, plan=plan)


def manifest_of(job: JobSpec) -> Manifest:
    """What a checkpoint of the job says, with a file for each keyed operator of each element."""
    files: dict[str, list[tuple[str, str]]] = {}
    for pe, operators in job.plan.pes.items():
        for name in operators:
            if job.operators[name].state_form is not None:
                files.setdefault(name, []).append((f"{pe}-{name}-000001.state", DIGEST))
    forms = {name: spec.state_form or "" for name, spec in job.operators.items()}
    record = getattr(job.plan, "to_record", job.plan.to_dict)
    return Manifest(job.name, forms, {"rows": 0}, files, {}, {}, False, record())


def costs(job: JobSpec, answer: float, silent: float) -> dict[str, Cost]:
    """Start, ask, recover: each as the coordinator of a running job does it."""
    found: dict[str, Cost] = {}
    stubs = Stubs(answer)
    cluster = JobCluster(job, cast("Any", stubs), lambda *_: None, takes_checkpoints=True)
    with measured(stubs, found, "start"):
        cluster.start(job.plan, tuple(job.plan.pes))
    life = JobLife(job.name, job.plan.pes, lambda *_: None, time.monotonic)
    for pe in job.plan.pes:
        life.begins(PEStatus(pe, State.RUNNING))
    life.runs()
    telemetry = JobTelemetry(job.name, cluster, life)
    with measured(stubs, found, "metrics"):
        telemetry.metrics()
    quiet = list(cast("dict[str, Any]", cluster.handles).values())[: math.ceil(silent * len(job.plan.pes))]
    for stub in quiet:
        stub.is_silent = True
    with measured(stubs, found, "metrics, some silent"):
        telemetry.metrics()
    with measured(stubs, found, "metrics, still silent"):
        telemetry.metrics()
    stubs.over.set()
    cluster.give_up_all()
    saved = manifest_of(job)
    with measured(stubs, found, "recovery"):
        cluster.start(job.plan, tuple(job.plan.pes), Snapshot("/nowhere"), saved)
    journal = ChangeJournal(lines := Lines())
    journal.checkpointed(SavedAt(1, "/nowhere"), job.plan, 1)
    found["journal line"] = Cost(0, 0, 0.0, 0.0, lines.last)
    return found


class Lines:
    """A store of the journal that keeps the length of the last line."""

    last = 0

    def lines(self) -> list[str]:
        return []

    def append(self, line: str, *, alone: bool) -> None:  # noqa: ARG002  (as a journal writes)
        self.last = len(line)

    def close(self) -> None:
        pass


def main() -> int:
    parser = arguments_of("scale", __doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1000], help="elements")
    parser.add_argument("--answer", type=float, default=0.001, help="seconds that a call takes (default: 0.001)")
    parser.add_argument("--silent", type=float, default=0.05, help="share of silent elements (default: 0.05)")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": machine_of(), "rows": []}
    for shape in (chain, mesh):
        before: tuple[int, dict[str, Cost]] | None = None
        for size in options.sizes:
            job = shape(size)
            now = len(job.plan.pes), costs(job, options.answer, options.silent)
            for action, cost in now[1].items():
                grew = growth(before, now, action) if before is not None else {}
                tell(shape.__name__, now[0], action, cost, grew)
                results["rows"].append({"shape": shape.__name__, "elements": now[0], "action": action, **vars(cost)})
            before = now
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "scale.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


def growth(before: tuple[int, dict[str, Cost]], now: tuple[int, dict[str, Cost]], action: str) -> dict[str, float]:
    """The exponents of growth of CPU time and of the bytes to one element."""
    ratio = math.log(now[0] / before[0])
    old, new = before[1][action], now[1][action]
    pairs = {"CPU": (old.cpu, new.cpu), "bytes": (old.most_sent, new.most_sent)}
    return {name: math.log(b / a) / ratio for name, (a, b) in pairs.items() if a > 0 and b > 0 and ratio > 0}


def tell(shape: str, elements: int, action: str, cost: Cost, grew: dict[str, float]) -> None:
    exponents = ", ".join(f"{name} ^{value:.1f}" for name, value in grew.items())
    print(
        f"{shape:6} {elements:5} {action:22} {cost.calls:6} calls, {cost.in_a_row:5} in a row, {cost.seconds:7.2f} s, "
        f"{cost.cpu:7.3f} s CPU, {cost.most_sent:8,} bytes to one  {exponents}",
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
