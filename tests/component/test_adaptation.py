"""The adaptation loop on a real scheduler: it adapts, says why, can be replayed, and leaves what the user has set."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

import rayelastic as rel
from rayelastic.cli import main
from rayelastic.errors import ConfigError
from rayelastic.job import Job, start
from rayelastic.plan.config import JobConfig
from rayelastic.runtime.elasticity import replay

ENOUGH = 12  # passes of a loop


class Number(NamedTuple):
    value: int


def dear(t: Number) -> int:
    x = t.value * 1.0
    for _ in range(2000):
        x = x * 1.0000001
    return int(x) % 1000003


def started(**settings: object) -> Job:
    topology = rel.Topology("numbers")
    stream = topology.source("numbers", rel.sequence(10**12))
    for index in range(4):
        stream = stream.map(f"map{index}", dear, schema=Number)
    stream.sink("count", rel.count())
    return start(topology, JobConfig(adaptation_period=0.1, **settings))  # type: ignore[arg-type]


def passes(job: Job, wanted: int = ENOUGH) -> list[rel.Adaptation]:
    found = []
    for adaptation in job.adaptations(follow=True, every_pass=True):
        found.append(adaptation)
        if len(found) == wanted:
            break
    return found


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
    busy = {operator.name: operator.samples for operator in seen[-1].observation.operators}
    assert set(busy) == {"numbers", "map0", "map1", "map2", "map3", "count"}
    assert sum(busy[f"map{index}"] for index in range(4)) > busy["numbers"] + busy["count"]


@pytest.mark.parametrize("elasticity", ["guided", "paper"])
def test_a_recorded_journal_gives_the_same_decisions_byte_for_byte(tmp_path: Path, elasticity: str) -> None:
    job = started(journal=str(tmp_path / "{pe}.jsonl"), elasticity=elasticity, max_threads=4)
    try:
        passes(job)
    finally:
        job.cancel(drain=False)
        job.close()
    replayed = list(replay(tmp_path / "pe0.jsonl"))
    assert len(replayed) >= ENOUGH
    for adaptation, decision in replayed:
        assert json.dumps(decision.as_dict()) == json.dumps(adaptation.decision.as_dict())


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
    job = started(threads=2, threading={"map1": "dynamic", "map2": "manual"})
    try:
        seen = passes(job)
        models = {operator.name: operator.model for operator in job.metrics().pes[0].operators}
    finally:
        job.cancel(drain=False)
        job.close()
    assert (models["map1"], models["map2"]) == ("dynamic", "manual")
    assert {adaptation.decision.thread_count for adaptation in seen} == {2}


def test_off_and_all_set_adapt_nothing() -> None:
    for settings in ({"elasticity": "off"}, {"threads": 1, "threading": "manual"}):
        job = started(**settings)
        try:
            assert list(job.adaptations()) == []
        finally:
            job.cancel(drain=False)
            job.close()


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text("{}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is no journal"):
        list(replay(wrong))


@pytest.mark.parametrize("settings", [{"elasticity": "fast"}, {"adaptation_period": 0.0}, {"adaptation_period": "1"}])
def test_wrong_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        JobConfig(**settings)  # type: ignore[arg-type]
