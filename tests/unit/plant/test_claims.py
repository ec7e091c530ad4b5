"""The figures' table of claims: what is listed, what is explained, and the figures that take no time."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from bench.figures.__main__ import ASKED_FOR, NAMES, ON_THIS_MACHINE
from bench.figures.figure import Claim, unexplained, write_table

FIGURES = Path(importlib.import_module("bench.figures").__path__[0])
QUICK = ("ipdps09_fig04", "ipdps09_fig05", "elastic_load_balance")  # about a second together


def test_every_figure_is_listed() -> None:
    modules = {path.stem for path in FIGURES.glob("*.py") if "\ndef figure(" in path.read_text()}
    assert modules == {*NAMES, *ON_THIS_MACHINE}


def test_what_is_asked_for_is_claimed_somewhere() -> None:
    text = "".join((FIGURES / f"{name}.py").read_text() for name in NAMES)
    assert [claim for claim in ASKED_FOR if f'"{claim}"' not in text] == []


def test_a_claim_that_differs_needs_a_remark(tmp_path: Path) -> None:
    claims = [
        Claim("C1", "22x", "20x", holds=True),
        Claim("C2", "22x", "2x", holds=False),
        Claim("C3", "22x", "2x", holds=False, remark="of fewer operators"),
    ]
    assert unexplained(claims) == ["C2"]
    write_table(claims, tmp_path)
    assert (tmp_path / "claims.md").read_text().count("| NO |") == 2
    assert len((tmp_path / "claims.csv").read_text().splitlines()) == 4


# A figure of each paper in small: what decides on many cores, and when the load changes.
SMALL = ("middleware19_fig01", "middleware19_fig13", "pldi17_fig11", "joker")  # 20 s together


@pytest.mark.parametrize("name", [*QUICK, *SMALL])
def test_figures_hold_or_say_why(name: str) -> None:
    made = importlib.import_module(f"bench.figures.{name}").figure(True)
    assert made.rows
    assert unexplained(made.claims) == []
