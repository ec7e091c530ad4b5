"""What was best in one run is where the next one begins: written, found again, put on trial, told, and replayed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import rayelastic as rel
from rayelastic.job import start
from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.reasons import Code
from rayelastic.runtime.loops.earlier_runs import EarlierRuns
from rayelastic.runtime.loops.elasticity import replay
from rayelastic.runtime.loops.kept_values import KEPT
from rayelastic.runtime.values.adaptation import Adaptation, read_journal
from tests.component.policy.computing import computing
from tests.reasons import codes

PASSES = 3  # in which a run that knows something has begun with it


def passes(wanted: Callable[[list[Adaptation]], bool], operators: int = 2, **elasticity: Any) -> list[Adaptation]:
    """Passes of a run from its first one, until there are those that are wanted."""
    job = start(computing(operators), rel.JobConfig(elasticity=rel.Elasticity(**elasticity)))
    found: list[Adaptation] = []
    try:
        for adaptation in job.adaptations(follow=True, every_pass=True):
            found.append(cast("Adaptation", adaptation))
            if wanted(found):
                break
    finally:
        job.cancel(drain=False)
        job.close()
    return found


def some(found: list[Adaptation]) -> bool:
    return len(found) >= PASSES


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "rayelastic" / "best"


def file_of(folder: Path) -> Path:
    """The file of what ran, after a run that compared something."""
    passes(lambda found: any(folder.glob("*.json")))
    (file,) = folder.glob("*.json")
    return file


def write(file: Path, threads: int, *queued: str) -> None:
    file.write_text(json.dumps({"threads": threads, "queued": queued}), encoding="utf-8")


@pytest.mark.alone  # on a host that others keep busy nothing is compared
def test_a_run_begins_with_what_an_earlier_one_found(folder: Path, tmp_path: Path) -> None:
    file = file_of(folder)
    write(file, 1, "map1", "gone")
    seen = passes(some, journal=str(tmp_path / "{pe}.jsonl"))
    first = seen[0]
    assert Code.BEST_EARLIER(setting={"threads": 1, "queues": 1}) in first.decision.reasons
    assert {name: model.value for name, model in first.decision.models.items()} == {"map1": "dynamic"}
    setting, recorded = read_journal(tmp_path / "pe0.jsonl")
    assert setting.earlier == Configuration(1, frozenset({"map1", "gone"}))
    again = [decision.as_dict() for _, decision in replay(tmp_path / "pe0.jsonl")]
    assert again == [adaptation.decision.as_dict() for adaptation in recorded]


@pytest.mark.alone  # on a host that others keep busy nothing is compared
def test_other_operators_and_those_who_shall_not_remember_begin_anew(folder: Path) -> None:
    write(file_of(folder), 1, "map1")
    given: dict[str, Any]
    for given in ({"remember": False}, {"algorithm": "paper"}, {"operators": 3}):
        seen = passes(some, **given)
        assert not any(Code.BEST_EARLIER in codes(one.decision.reasons) for one in seen), given


@pytest.mark.alone  # on a host that others keep busy nothing is changed
def test_what_shall_not_be_remembered_is_not_written(folder: Path) -> None:
    passes(lambda found: any(one.changed for one in found[:-1]), remember=False)
    assert not folder.exists()


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"threads": 0, "queued": []}', '{"threads": 1, "queued": [2]}'])
def test_a_damaged_file_is_told_and_left_out(tmp_path: Path, damaged: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "key.json").write_text(damaged, encoding="utf-8")
    runs = EarlierRuns(tmp_path, "key")
    assert runs.best() is None
    assert "is left out" in caplog.text
    runs.keep(Configuration(3, frozenset("ab")))
    assert EarlierRuns(tmp_path, "key").best() == Configuration(3, frozenset("ab"))


def test_where_nothing_can_be_written_a_job_runs_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    EarlierRuns(tmp_path / "file", "key").keep(Configuration(2, frozenset()))
    assert "won't know what was best" in caplog.text


def test_the_oldest_files_go(tmp_path: Path) -> None:
    for number in range(KEPT + 5):
        EarlierRuns(tmp_path, f"{number:04}").keep(Configuration(1, frozenset()))
    assert len(list(tmp_path.iterdir())) == KEPT
    assert EarlierRuns(tmp_path, f"{KEPT + 4:04}").best() is not None


def test_the_first_decisions_come_sooner(folder: Path) -> None:
    """A job of a second has had several by then, whatever the period is later."""
    seen = passes(lambda found: len(found) >= 5, remember=False, thread_period=3600.0)
    assert seen[0].observation.period < 1800
    assert seen[4].observation.time > seen[0].observation.time
