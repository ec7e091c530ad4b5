"""What counts as slower: beyond the noise of the rounds, beyond what the machine itself lost."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from bench.compare import Change, compared, main
from bench.harness import Row
from bench.micro.targets import TARGETS, Of, Target


def row(ours: list[float], limit: list[float] | None = None, unit: str = "ns", key: str = "hop") -> Row:
    return Row(key, "a hop", unit, ours, limit or [])


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (row([10, 11, 12]), row([13, 14, 15]), Change.SLOWER),
        (row([10, 11, 12]), row([8, 8, 9]), Change.FASTER),
        (row([10, 11, 12]), row([11.5, 13, 14]), Change.SAME),  # one round is as good as one of before
        (row([10, 10, 10]), row([10.3, 10.3, 10.3]), Change.SAME),  # too little to count
        (row([10, 11], unit="M tuples/s"), row([8, 9], unit="M tuples/s"), Change.SLOWER),
        (row([10, 11], unit="GB/s"), row([13, 14], unit="GB/s"), Change.FASTER),
        (row([10, 11], [5, 5]), row([20, 22], [10, 10]), Change.SAME),  # the machine was half as fast
        (row([10, 11], [5, 5]), row([20, 22], [5, 5]), Change.SLOWER),
        (row([10, 11], [5, 5]), row([20, 22], [5, 20]), Change.SLOWER),  # a limit that says nothing takes nothing off
    ],
)
def test_what_became_of_a_row(old: Row, new: Row, change: Change) -> None:
    assert [one.change for one in compared([old], [new])] == [change]


def test_what_has_to_be_at_least_something_is_better_when_higher() -> None:
    key = next(key for key, target in TARGETS.items() if target.least is not None)
    assert [one.change for one in compared([row([2, 2], unit="x", key=key)], [row([1, 1], unit="x", key=key)])] == [
        Change.SLOWER
    ]


def test_rows_that_come_and_go() -> None:
    found = compared([row([1], key="a"), row([], [1], key="limit")], [row([1], key="b")])
    assert [(one.key, one.change) for one in found] == [("b", Change.NEW), ("a", Change.GONE)]


def test_the_command_says_what_got_slower(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def kept(name: str, ours: list[float]) -> str:
        machine = {"commit": name, "date": "2026-01-01", "CPU": "any"}
        rows = [asdict(row(ours)) | {"value": ours[0], "ratio": None, "met": None}]
        (tmp_path / name).write_text(json.dumps({"machine": machine, "quick": True, "rows": rows}))
        return str(tmp_path / name)

    old, new = kept("old", [10.0, 10.0]), kept("new", [20.0, 20.0])
    assert main([old, new]) == 1
    assert "hop" + " " * 46 + "SLOWER    0.50 times as fast" in capsys.readouterr().out
    assert main([new, old]) == 0
    assert "1 rows: 0 slower, 1 faster" in capsys.readouterr().out


@pytest.mark.parametrize(("limit", "met"), [(1.0, True), (4.0, False), (0.0, None)], ids=["met", "missed", "no limit"])
def test_a_limit_at_which_nothing_came_through_says_nothing(limit: float, met: bool | None) -> None:
    assert Target(Of.RATIO, least=1.8).met_by(row([2.0], [limit], unit="tuples/s")) is met
