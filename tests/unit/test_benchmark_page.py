"""The pages of results: every claim of the papers has a row, and what wasn't run is said."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench import page

CLAIM = {
    "id": "C000-3",
    "claim": "up to 22x | at 16 KiB",
    "ours": "30x",
    "holds": "yes",
    "kind": "measured",
    "remark": "",
    "date": "2025-01-02 03:04",
    "commit": "abc1234",
    "machine": "a CPU, 2 cores",
}
OURS = CLAIM | {"id": "R14", "ours": "96 %", "holds": "NO", "remark": "because"}


def peer(system: str, seconds: float, absent: str = "") -> dict[str, Any]:
    return {
        "date": "2025-01-02 03:04",
        "commit": "abc1234",
        "machine": "a CPU, 2 cores",
        "work": "word_count",
        "items": 1_000_000,
        "system": system,
        "round": 0,
        "start_up": 0.5,
        "seconds": seconds,
        "cpu_seconds": 1.0,
        "peak_bytes": 1 << 30,
        "absent": absent,
    }


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    monkeypatch.setattr(page, "PAGES", tmp_path / "pages")
    (tmp_path / "figures").mkdir()
    return tmp_path


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def shown(results: Path) -> str:
    """All pages, and the table of the engine."""
    return "\n".join(path.read_text() for path in sorted((results / "pages").iterdir()))


def test_it_shows_what_there_is(results: Path) -> None:
    write(results / "figures" / "some.claims.csv", [CLAIM, OURS])
    write(
        results / "peers-word_count.csv",
        [peer("rayelastic", 0.5), peer("cpython", 2.0), peer("polars", 0.25), peer("ray", 0, "failed: E")],
    )
    row = {"what": "a hop", "value": 2.0, "limit": [1.0, 3.0], "unit": "ns", "ratio": 1.0, "limit_what": "SPSC"}
    micro = {"machine": {"CPU": "a CPU", "commit": "abc1234"}, "quick": True, "rows": [row]}
    (results / "micro-abc1234.json").write_text(json.dumps(micro))
    graphs = [{"share": 0.9, "settled": 10.0, "changes": 0}, {"share": 1.0, "settled": 20.0, "changes": 3}]
    machine = {"CPU": "a CPU", "cores": 2, "commit": "abc1234", "date": "2025-01-02 03:04"}
    elastic = {"machine": machine, "options": {"seed": 7, "steady": 20, "turns": 7, "most": 40}, "graphs": graphs}
    (results / "elastic-7.json").write_text(json.dumps(elastic))
    assert page.main() == 0
    text = shown(results)
    old = "abc1234, old: of another history"
    assert f"| C000-3 | up to 22x / at 16 KiB | 30x | reproduced, measured |  | {old} |" in text
    assert f"| R14 | up to 22x / at 16 KiB | 96 % | differs, measured | because | {old} |" in text
    assert "| cpython | 0.5 | 4.00x |" in text
    assert "| polars | 4 | 0.50x: it is slower |" in text
    assert "| ray |" not in text
    assert "- ray failed: E" in text
    made = "2025-01-02 03:04, abc1234, a CPU, 2 cores"
    assert f"| 7 | 2 | 50% | 0.950 | 0.900 | 15.0 s | 50% in 20 periods | 7 to 40 | {made} |" in text
    assert "a hop,2,2,ns,1,SPSC" in text
    assert "2025-01-02 03:04, commit abc1234" in text
    assert "CPU a CPU, commit abc1234. `./dev bench micro --quick`: coarse." in text


def test_no_claim_is_left_out(results: Path) -> None:
    page.main()
    text = shown(results)
    for paper, count in page.COUNTS.items():
        for number in range(1, count + 1):
            assert f"| {paper}-{number} | | " in text
    assert text.count("not run") == sum(page.COUNTS.values()) - len(page.REASONS)
    assert "Not run: `./dev bench micro`" in text
    assert "Not run: `./dev bench elastic --graphs 20 --seed 1`" in text


def test_figures_that_were_not_run_again_keep_their_rows(results: Path) -> None:
    write(results / "figures" / "some.claims.csv", [CLAIM, OURS])
    write(results / "figures" / "other.claims.csv", [CLAIM | {"id": "C000-4", "commit": "def5678"}])
    page.main()
    (results / "figures" / "other.claims.csv").unlink()
    write(results / "figures" / "some.claims.csv", [CLAIM | {"ours": "31x"}])
    page.main()
    rows = page.table(results / "pages" / page.CLAIMS)
    assert [(row["figure"], row["id"], row["ours"], row["commit"]) for row in rows] == [
        ("other", "C000-4", "30x", "def5678"),
        ("some", "C000-3", "31x", "abc1234"),
    ]


def test_pages_of_benchmarks_that_were_not_run_again_stay(results: Path) -> None:
    write(results / "peers-word_count.csv", [peer("rayelastic", 0.5)])
    page.main()
    (results / "peers-word_count.csv").unlink()
    page.main()
    assert "## word_count" in shown(results)


def test_a_row_is_old_after_many_commits() -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert page.commits_since(f"{head}-changed") == 0
    assert page.made_at("a", {"a": page.OLD}) == "a"
    assert page.made_at("a", {"a": page.OLD + 1}) == "a, old: 201 commits ago"
