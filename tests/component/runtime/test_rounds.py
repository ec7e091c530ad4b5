"""Rounds of calls: everybody at once, and those who are silent not again and again."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, cast

import pytest

import rayelastic as rel
from rayelastic.errors import PELostError
from rayelastic.job.preparing import prepare
from rayelastic.runtime.job import telemetry as module
from rayelastic.runtime.job.job_cluster import JobCluster
from rayelastic.runtime.job.life import JobLife
from rayelastic.runtime.job.telemetry import JobTelemetry
from rayelastic.runtime.journal import ChangeJournal, SavedAt
from rayelastic.runtime.remote import Call, Remote
from rayelastic.runtime.rounds import ask_all, outcomes, tell_all
from rayelastic.runtime.values.snapshot import Manifest, Snapshot
from rayelastic.runtime.values.specs import PESpec
from rayelastic.runtime.values.status import JobMetrics, OperatorSample, PESample, PEStatus, State

SECONDS = 60.0


class Element:
    """The handle of an element that answers, raises, or waits."""

    def __init__(self, pe: str) -> None:
        self.pe = pe
        self.problem: Exception | None = None
        self.waits: threading.Event | threading.Barrier | None = None
        self.asked: Counter[str] = Counter()

    def within(self, timeout: float) -> Any:
        assert timeout > 0
        return Remote(self._answer)

    def _answer(self, call: Call) -> Any:
        self.asked[call.method] += 1
        if self.waits is not None:
            self.waits.wait(SECONDS)
        if self.problem is not None:
            raise self.problem
        if call.method == "sample":
            return PESample(self.pe, 1.0, operators=(OperatorSample("work", "dynamic", self.asked["sample"], 0, 0),))
        return () if call.method == "adaptations" else self.pe


def elements(count: int) -> dict[str, Element]:
    return {f"pe{number}": Element(f"pe{number}") for number in range(count)}


def test_all_are_asked_at_once_and_answer_in_the_order_of_the_question() -> None:
    handles = elements(100)
    together = threading.Barrier(len(handles))  # nobody answers before all are asked
    for handle in handles.values():
        handle.waits = together
    assert list(ask_all(handles, lambda element: element.status(), SECONDS).items()) == [(pe, pe) for pe in handles]


def test_the_first_problem_is_raised_once_all_have_been_called() -> None:
    handles = elements(5)
    handles["pe3"].problem, handles["pe1"].problem = ValueError("three"), ValueError("one")
    with pytest.raises(ValueError, match="one"):
        ask_all(handles, lambda element: element.stop(True), SECONDS)
    assert all(handle.asked["stop"] == 1 for handle in handles.values())
    answers, problems = outcomes(handles, lambda handle: handle.within(SECONDS).stop(True))
    assert (set(answers), set(problems)) == ({"pe0", "pe2", "pe4"}, {"pe1", "pe3"})


def test_those_that_are_lost_or_silent_are_passed_over_and_other_errors_raised() -> None:
    handles = elements(3)
    handles["pe0"].problem, handles["pe1"].problem = PELostError("gone"), TimeoutError()
    tell_all(handles, lambda element: element.stop(True), SECONDS)
    handles["pe2"].problem = ValueError("broken")
    with pytest.raises(ValueError, match="broken"):
        tell_all(handles, lambda element: element.stop(True), SECONDS)


def test_an_exiting_interpreter_calls_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading, "Thread", NoThread)
    handles = elements(3)
    assert set(ask_all(handles, lambda element: element.stop(True), SECONDS)) == set(handles)


def telemetry_of(handles: dict[str, Element]) -> JobTelemetry:
    life = JobLife("job", tuple(handles), lambda *_: None, lambda: 0.0)
    for pe in handles:
        life.begins(PEStatus(pe, State.RUNNING))
    life.runs()
    cluster = cast("JobCluster", type("Cluster", (), {"handles": handles, "can_lose_one": True})())
    return JobTelemetry("job", cluster, life)


def asked_until(telemetry: JobTelemetry, silent: tuple[str, ...]) -> JobMetrics:
    """Ask until exactly these don't answer: on a busy machine a round may be too short for others, too."""
    seen = telemetry.metrics()
    while seen.silent != silent:
        seen = telemetry.metrics()
    return seen


def test_a_silent_element_is_named_and_not_asked_again_before_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    handles = elements(20)
    telemetry = telemetry_of(handles)
    monkeypatch.setattr(module, "PATIENCE", SECONDS)
    assert telemetry.metrics().silent == ()
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    silent, answers = handles["pe7"], threading.Event()
    silent.waits = answers
    seen = asked_until(telemetry, ("pe7",))
    assert [pe.pe for pe in seen.pes] == list(handles)  # with its last counters
    asked_until(telemetry, ("pe7",))
    assert list(telemetry.adaptations({})) == []
    assert silent.asked == Counter(sample=2)
    others = [handle.asked["sample"] for pe, handle in handles.items() if pe != "pe7"]
    assert min(others) > 2
    answers.set()
    seen = asked_until(telemetry, ())
    assert [pe.operators[0].tuples_in for pe in seen.pes if pe.pe == "pe7"] >= [2]


ROW = {"key": int, "n": int}


class Host:
    """Makes elements that keep what they are sent."""

    can_lose = True

    def __init__(self) -> None:
        self.specs: dict[str, PESpec] = {}
        self.handles: dict[str, Started] = {}

    def start_pe(self, spec: PESpec) -> Started:
        self.specs[spec.pe] = spec
        return self.handles.setdefault(spec.pe, Started(spec.pe))


class Started(Element):
    """An element that waits with each step of its start until all others have come to it."""

    together: threading.Barrier
    peers: frozenset[str] = frozenset()

    def _answer(self, call: Call) -> Any:
        self.together.wait(SECONDS)
        if call.method == "connect":
            self.peers = frozenset(call.arguments[0])
        return PEStatus(self.pe, State.RUNNING) if call.method == "status" else self.pe


def test_elements_start_in_rounds_with_their_own_part_of_plan_and_manifest() -> None:
    topology = rel.Topology("counting")
    rows = topology.source(rel.rows([], schema=ROW), name="rows").key_by("key")
    rows.aggregate(name="sums", emit="update", total=rel.sum("n")).key_by("total").aggregate(
        name="times", emit="update", times=rel.count()
    ).sink(rel.count(), name="out")
    job = prepare(topology, rel.JobConfig(regions="manual"))
    plan = job.plan
    for name in ("sums", "times"):
        plan = plan.with_replicas(plan.region_of(name).region.name, 3, plan.fresh_pes(3))
    files = {
        name: [(f"{pe}-{name}-1.state", "0" * 64) for pe in plan.pipeline_of(name).pes] for name in ("sums", "times")
    }
    manifest = Manifest("counting", {}, {"rows": 7}, files, {}, {}, False, plan.to_record())
    host, begun = Host(), list[str]()
    Started.together = threading.Barrier(len(plan.pes))
    cluster = JobCluster(job, cast("Any", host), lambda handle, status: begun.append(status.pe), takes_checkpoints=True)
    cluster.start(plan, tuple(plan.pes), Snapshot("/nowhere"), manifest)
    assert begun == list(plan.pes)
    for pe, spec in host.specs.items():
        assert spec.manifest is not None
        own = set(plan.pes[pe])
        assert spec.manifest.plan == {}
        assert {file for known in spec.manifest.files.values() for file, _ in known} == {
            f"{pe}-{name}-1.state" for name in own if name in files
        }
        assert spec.manifest.positions == ({"rows": 7} if "rows" in own else {})
        assert host.handles[pe].peers == spec.peers
    sums, times = (set(plan.pipeline_of(name).pes) for name in ("sums", "times"))
    assert all(host.handles[pe].peers == times for pe in sums)
    assert host.handles[plan.pe_of("rows")].peers == sums


def test_the_journal_has_no_links_which_grow_with_the_square_of_replicas() -> None:
    lines: list[str] = []

    class Store:
        def lines(self) -> list[str]:
            return []

        def append(self, line: str, *, alone: bool) -> None:
            lines.append(line)

        def close(self) -> None:
            pass

    topology = rel.Topology("counting")
    rows = topology.source(rel.rows([], schema=ROW), name="rows").key_by("key")
    rows.aggregate(name="sums", emit="update", total=rel.sum("n")).sink(rel.count(), name="out")
    plan = prepare(topology, rel.JobConfig(regions="manual")).plan
    region = plan.region_of("sums").region.name
    sizes = []
    for replicas in (2, 20, 200):
        wide = plan.with_replicas(region, replicas, plan.fresh_pes(replicas))
        ChangeJournal(Store()).checkpointed(SavedAt(1, "/nowhere"), wide, 1)
        sizes.append(len(lines[-1]))
    assert sizes[2] - sizes[0] < 198 * 12


def test_two_who_ask_at_once_both_wait_for_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", SECONDS)
    handles = elements(1)
    telemetry = telemetry_of(handles)
    answers = threading.Event()
    handles["pe0"].waits = answers
    seen: list[JobMetrics] = []
    threads = [threading.Thread(target=lambda: seen.append(telemetry.metrics())) for _ in range(2)]
    for thread in threads:
        thread.start()
    while handles["pe0"].asked["sample"] < 1:
        pass
    answers.set()
    for thread in threads:
        thread.join()
    assert [len(metrics.pes) for metrics in seen] == [1, 1]
