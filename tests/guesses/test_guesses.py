"""First programs of people from other systems, as they wrote them: they run, or the error names the way.

Each file of `programs` was written before its author had read more than the README and the quickstart, and is kept
as it was. Its first line says who wrote it and what they expect. Its last lines say what it does: `#>` a line that it
prints, `#~` a text in what it prints, `#!` a text in its error.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

import rayelastic as rel

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.txt"))
FILES = {
    "orders.csv": "user,amount,at,city\nada,20.0,1,Paris\nbob,5.0,2,Rome\nada,12.5,7,Paris\nbob,40.0,12,Rome\n"
    "ada,3.0,13,Oslo\n",
    "users.csv": "user,country\nada,UK\ncyd,FR\n",
    "scores.csv": "user,score\nada,3\nbob,\n,4\n",
    "lines.txt": "to be or not to be\nto do is to be\n",
    "events.jsonl": "".join(
        json.dumps({"user": user, "payload": {"action": action}}) + "\n"
        for user, action in [("ada", "click"), ("bob", "buy"), ("ada", "click")]
    ),
    "parts/a.csv": "user,amount\nada,20.0\nbob,5.0\n",
    "parts/b.csv": "user,amount\ncyd,11.0\n",
}
AUTHORS = {"bytewax": 12, "flink": 11, "polars": 11, "pandas": 5, "spark": 5, "connector": 5, "io": 15, "daily": 22}
LEAST = 50  # that run


def marked(program: Path, mark: str) -> list[str]:
    """What the last lines with a mark say."""
    return [line[2:].strip() for line in program.read_text().splitlines() if line.startswith(mark)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that programs read, in the working directory; and no store outside."""
    (tmp_path / "parts").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    for name, value in {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    "program",
    [pytest.param(one, id=one.stem, marks=[pytest.mark.nightly] * ("s3" in one.stem)) for one in PROGRAMS],  # 6 s
)
def test_guess(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if said := marked(program, "#!"):
        with pytest.raises((AttributeError, TypeError, rel.errors.RayelasticError)) as error:
            runpy.run_path(str(program))
        assert [text for text in said if text not in str(error.value)] == []
        return
    runpy.run_path(str(program))
    printed = capsys.readouterr().out
    assert [text for text in marked(program, "#~") if text not in printed] == []
    if lines := marked(program, "#>"):
        assert [line.strip() for line in printed.strip().splitlines()] == lines


def test_the_guesses_are_the_planned_ones() -> None:
    found = [program.stem.split("_")[1] for program in PROGRAMS]
    assert {author: found.count(author) for author in AUTHORS} == AUTHORS
    assert sum(not marked(program, "#!") for program in PROGRAMS) >= LEAST
