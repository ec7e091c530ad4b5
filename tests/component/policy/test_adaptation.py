"""The adaptation loop on a real scheduler: it adapts, says why, can be replayed, and leaves what the user has set."""

import json
import os
import statistics
import subprocess
import sys
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest

import rayelastic as rel
from rayelastic.cli import main
from rayelastic.errors import ConfigError
from rayelastic.job import Job, start
from rayelastic.plan.config import JobConfig
from rayelastic.plan.settings.elasticity import Elasticity
from rayelastic.plan.settings.threads import Threads
from rayelastic.reasons import Code
from rayelastic.runtime.loops.elasticity import replay
from rayelastic.runtime.values.adaptation import read_journal
from rayelastic.runtime.watch.machine_load import available_cpus
from tests.component.policy.computing import Number, computing
from tests.raising import raises

ENOUGH = 12  # passes of a loop
WAIT = 0.01  # s
FREE = Threads()
RECORDED = Path(__file__).parent / "journals" / "two_cores.jsonl"


def waits(t: Number) -> int:
    threading.Event().wait(WAIT)
    return t.value


def started(threads: Threads = FREE, **elasticity: Any) -> Job:
    adapting = Elasticity(**{"thread_period": 0.1, **elasticity})
    return start(computing(4), JobConfig(threads=threads, elasticity=adapting))


def passes(job: Job, wanted: int = ENOUGH) -> list[rel.Adaptation]:
    found = []
    for adaptation in job.adaptations(follow=True, every_pass=True):
        found.append(adaptation)
        if len(found) == wanted:
            break
    return found  # type: ignore[return-value]


def test_it_observes_decides_and_says_why(tmp_path: Path) -> None:
    job = started(journal=str(tmp_path / "{pe}.jsonl"))
    try:
        seen = passes(job)
    finally:
        job.cancel(drain=False)
        job.close()
    assert [adaptation.number for adaptation in seen] == list(range(ENOUGH))
    for adaptation in seen:
        assert adaptation.decision.reason
        assert adaptation.decision.rule
        assert adaptation.observation.throughput > 0
    busy = Counter[str]()  # over all periods: on a busy machine one of them may have no sample
    for adaptation in seen:
        busy.update({operator.name: operator.samples for operator in adaptation.observation.operators})
    assert set(busy) == {"numbers", "map0", "map1", "map2", "map3", "count"}
    assert sum(busy[f"map{index}"] for index in range(4)) > busy["numbers"] + busy["count"]


def decided_again(journal: Path, hash_seed: str) -> list[str]:
    """What a fresh controller decides, in a process of its own in which strings hash otherwise."""
    program = (
        "import json, pathlib, sys; from rayelastic.runtime.loops.elasticity import replay\n"
        "for _, decision in replay(pathlib.Path(sys.argv[1])): print(json.dumps(decision.as_dict()))"
    )
    command = [sys.executable, "-c", program, str(journal)]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()


def decided(journal: Path) -> list[str]:
    return [json.dumps(adaptation.decision.as_dict()) for adaptation in read_journal(journal)[1]]


@pytest.mark.parametrize("algorithm", ["multi-level", "paper"])
def test_a_recorded_journal_gives_the_same_decisions_byte_for_byte(tmp_path: Path, algorithm: str) -> None:
    job = started(journal=str(tmp_path / "{pe}.jsonl"), algorithm=algorithm, threads=Threads(max=4))
    try:
        passes(job)
    finally:
        job.cancel(drain=False)
        job.close()
    lines = decided(tmp_path / "pe0.jsonl")
    assert len(lines) >= ENOUGH
    assert decided_again(tmp_path / "pe0.jsonl", "1") == lines


def test_a_journal_of_another_day_gives_the_same_decisions_and_a_picture(tmp_path: Path) -> None:
    """Recorded on two cores that other processes kept busy, now more and now less.

    When decisions change on purpose it is made anew: `python -m tests.component.policy.record_journal`.
    """
    lines = decided(RECORDED)
    recorded = read_journal(RECORDED)[1]
    assert any(adaptation.changed for adaptation in recorded)
    assert len({adaptation.decision.rule for adaptation in recorded}) >= 4
    for hash_seed in ("1", "2"):
        assert decided_again(RECORDED, hash_seed) == lines
    assert main(["plot", str(RECORDED), "-o", str(tmp_path / "run.png")]) == 0
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_can_be_drawn(tmp_path: Path) -> None:
    job = started(journal=str(tmp_path / "{pe}.jsonl"))
    try:
        passes(job)
    finally:
        job.cancel(drain=False)
        job.close()
    assert main(["plot", str(tmp_path / "pe0.jsonl"), "-o", str(tmp_path / "run.png")]) == 0
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert main(["plot", str(tmp_path / "none.jsonl")]) == 2
    assert main(["plot", str(tmp_path / "pe0.jsonl"), "-o", str(tmp_path / "run.what")]) == 2


def test_what_is_set_is_left() -> None:
    job = started(Threads(count=2, model={"map1": "dynamic", "map2": "manual"}))
    try:
        seen = passes(job)
        models = {operator.name: operator.model for operator in job.metrics().pes[0].operators}
    finally:
        job.cancel(drain=False)
        job.close()
    assert (models["map1"], models["map2"]) == ("dynamic", "manual")
    assert {adaptation.decision.thread_count for adaptation in seen} == {2}


@pytest.mark.parametrize(
    ("threads", "fewest", "most"),
    [(Threads(), 1, available_cpus()), (Threads(max=7), 1, 7), (Threads(count=3, max=7), 3, 3)],
)
def test_threads_are_sought_up_to_what_was_allowed_else_up_to_the_cpus(
    threads: Threads, fewest: int, most: int
) -> None:
    job = started(threads)
    try:
        seen = passes(job, 1)[0].observation
    finally:
        job.cancel(drain=False)
        job.close()
    assert (seen.minimum_threads, seen.maximum_threads) == (fewest, most)


@pytest.mark.parametrize(("regions", "shared"), [("fixed", {"twice", "sums"}), ("manual", {"sums"})])
def test_a_function_is_run_by_whoever_fills_its_queue_if_what_it_gives_is_counted_in_parts_here(
    regions: Literal["fixed", "manual"], shared: set[str]
) -> None:
    """What may go to replicas elsewhere may not."""
    topology = rel.Topology("parts")
    twice = topology.source(rel.sequence(10**12), name="numbers").map(
        lambda t: t.value * 2, name="twice", schema=Number
    )
    twice.key_by("value").aggregate(name="sums", n=rel.count()).sink(rel.count(), name="out")
    job = start(topology, JobConfig(elasticity=Elasticity(thread_period=0.1), regions=regions))
    try:
        seen = passes(job, 1)[0].observation
    finally:
        job.cancel(drain=False)
        job.close()
    assert {operator.name for operator in seen.operators if operator.shared} == shared


def rests_between(passes: list[rel.Adaptation]) -> dict[bool, list[float]]:
    """{whether what was decided before it is a step of a search: seconds of such periods}, but for the first ones."""
    found: dict[bool, list[float]] = {True: [], False: []}
    for before, after in pairwise(passes):
        found[before.decision.soon].append(after.observation.period)
    return found


def test_a_step_of_a_search_takes_less_than_a_period_and_what_has_settled_is_looked_at_once_a_period() -> None:
    period, settled = 0.5, 8
    job = started(thread_period=period)
    seen: list[rel.Adaptation] = []
    try:
        for adaptation in job.adaptations(follow=True, every_pass=True):
            assert isinstance(adaptation, rel.Adaptation)
            seen.append(adaptation)
            if len(seen) > settled and not any(one.decision.soon for one in seen[-settled:]):
                break
    finally:
        job.cancel(drain=False)
        job.close()
    rests = rests_between(seen)
    assert statistics.median(rests[True]) < 0.5 * period
    assert rests[False][-1] >= period


def test_two_functions_that_wait_for_long_soon_do_so_beside_each_other() -> None:
    """A run of 256 took five seconds: in most periods no tuple was counted, and nothing was sought."""
    topology = rel.Topology("waiting")
    stream = topology.source(rel.sequence(10**12), name="numbers")
    stream.map(waits, name="one", schema=Number).map(waits, name="two", schema=Number).sink(rel.count(), name="out")
    job, found = start(topology, JobConfig(elasticity=Elasticity(remember=False))), 0.0
    try:
        for adaptation in job.adaptations(follow=True, every_pass=True):
            assert isinstance(adaptation, rel.Adaptation)
            seen = adaptation.observation
            found = next(operator.rate for operator in seen.operators if operator.name == "two")
            if (found > 0.8 / WAIT and seen.queued) or seen.time > 15:  # a run alone shows all of it in one period
                break
    finally:
        job.cancel(drain=False)
        job.close()
    assert seen.queued
    assert found > 0.8 / WAIT, f"{found:.0f} tuples/s; one after the other {0.5 / WAIT:.0f} are possible"


def test_nothing_is_tried_on_a_job_that_a_throttle_limits() -> None:
    """Its rate is what was asked for: a search could only disturb it, and would take the time asleep for load."""
    topology = rel.Topology("throttled")
    stream = topology.source(rel.sequence(10**12), name="numbers").throttle(1000, name="slow")
    for index in range(4):
        stream = stream.map(lambda t: t.value + 1, name=f"map{index}", schema=Number)
    stream.sink(rel.count(), name="count")
    job = start(topology, JobConfig(elasticity=Elasticity(thread_period=0.1, remember=False)))
    try:
        seen = passes(job, 30)
    finally:
        job.cancel(drain=False)
        job.close()
    assert [one.decision.rule for one in seen if one.changed] == []
    assert any(reason.code is Code.DEMAND_MET for reason in seen[-1].decision.reasons)


def test_off_and_all_set_adapt_nothing() -> None:
    for threads, algorithm in ((FREE, "off"), (Threads(count=1, model="manual"), "multi-level")):
        job = started(threads, algorithm=algorithm)
        try:
            assert list(job.adaptations()) == []
        finally:
            job.cancel(drain=False)
            job.close()


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text("{}\n", encoding="utf-8")
    with raises(ConfigError, "not-a-journal"):
        list(replay(wrong))


@pytest.mark.parametrize("settings", [{"algorithm": "fast"}, {"thread_period": 0.0}, {"thread_period": "1"}])
def test_wrong_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Elasticity(**settings)  # type: ignore[arg-type]


def test_parameters_of_the_paper_are_in_force_and_in_the_journal(tmp_path: Path) -> None:
    """With sf = 1 and a trend only from nine tenths on another decision follows from the same observations."""
    paper = rel.PaperElasticity(satisfaction_factor=1.0, history=False, sensitivity=0.9)
    job = started(journal=str(tmp_path / "{pe}.jsonl"), algorithm="paper", paper=paper, threads=Threads(max=4))
    try:
        passes(job)
    finally:
        job.cancel(drain=False)
        job.close()
    assert read_journal(tmp_path / "pe0.jsonl")[0].paper == paper
    assert decided_again(tmp_path / "pe0.jsonl", "1") == decided(tmp_path / "pe0.jsonl")


@pytest.mark.parametrize(
    "values",
    [
        {"satisfaction_factor": 1.1},
        {"satisfaction_factor": True},
        {"history": 1},
        {"sensitivity": 1.0},
        {"host_cpu": 0},
    ],
)
def test_wrong_parameters_of_the_paper_are_refused(values: dict[str, object]) -> None:
    with raises(ConfigError, "invalid-setting", next(iter(values))):
        rel.PaperElasticity(**values)  # type: ignore[arg-type]


def test_parameters_of_the_paper_need_its_elasticity() -> None:
    with raises(ConfigError, "invalid-setting", "paper", "algorithm="):
        Elasticity(paper=rel.PaperElasticity())
