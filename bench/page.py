"""Writes docs/benchmarks from what the benchmarks left in bench/results: `./dev bench page`.

The papers' claims by id, each with ours, its commit, and measured, simulated or fitted, or a reason; elasticity on
random graphs; peers by workload; the machine's limits. Claims of figures that weren't run again keep their rows, with
the commit that made them; pages of other benchmarks that weren't run again stay as they are. Measures nothing.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.nexmark.page import nexmark_page

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGES = ROOT / "docs" / "benchmarks"
CLAIMS = "claims.csv"  # beside the pages: the claims of each figure, as it was last run
OLD = 200  # commits between a row and the page
PAPERS = {
    "C000": ("multi_level_elasticity", "Multi-level elasticity (Middleware'19)"),
    "C002": ("elastic_scheduler", "Elastic scheduler (PLDI'17)"),
    "C003": ("organic_adaptation", "Organic adaptation (Joker)"),
    "C004": ("elastic_operators", "Elastic operators (IPDPS'09)"),
    "C001": ("elastic_load_balance", "ElasticLoadBalance"),
}
COUNTS = {"C000": 17, "C001": 2, "C002": 7, "C003": 11, "C004": 5}  # claims of each, numbered from 1
# What no figure here can show, and why.
REASONS = {
    "C000-2": "more than 100 threads need more than 100 cores; each figure simulated for them is a line of its own",
    "C000-15": "neither the application nor the capture is public; a graph of 2,305 operators of our own runs in the "
    "tests, under all threading models and elasticity (tests/component/applications/test_packet_analysis.py)",
    "C000-16": "the period of our loop is 1 s; a sweep over periods wasn't done",
    "C000-17": "run-to-run spread is in the figure `noise`: 1,000 simulated runs, R14",
    "C002-3": "measured at 2 threads: context switches beside a thread an operator, in the engine's table below",
    "C002-7": "a method, not a figure: here `./dev test`, `./dev prove` and `./dev soak`",
    "C004-4": "the observatory's data isn't public; gridding of made-up samples runs in the tests "
    "(tests/component/applications/test_radio_imaging.py), 5x needs more cores",
    "C004-5": "a negative result about a shared matrix; here no operator shares state with another",
}


def main() -> int:
    claims = kept_claims()
    peers = {path.stem.removeprefix("peers-"): table(path) for path in sorted(RESULTS.glob("peers-*.csv"))}
    elastic = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("elastic-*.json"))]
    micro = sorted(RESULTS.glob("micro-*.json"), key=lambda path: path.stat().st_mtime)
    pages = {"index": [line for part in (head(), claims_part(claims), contents()) for line in part]}
    for paper, (page, title) in PAPERS.items():
        pages[page] = [*paper_page(paper, title, claims)]
    if elastic or not (PAGES / "random_graphs.md").exists():
        pages["random_graphs"] = [*elastic_page(elastic)]
    if peers or not (PAGES / "peers.md").exists():
        pages["peers"] = [*peers_page(peers)]
    nexmark = table(RESULTS / "nexmark.csv") if (RESULTS / "nexmark.csv").exists() else []
    if nexmark or not (PAGES / "nexmark.md").exists():
        pages["nexmark"] = [*head("Nexmark beside Flink, DuckDB and Polars"), *nexmark_page(nexmark)]
    if micro or not (PAGES / "engine.md").exists():
        pages["engine"] = [*engine_page(micro[-1] if micro else None)]
    for page, lines in pages.items():
        (PAGES / f"{page}.md").write_text("\n".join(lines).rstrip() + "\n")
    print(
        f"{PAGES}: {len(claims)} claims, {len(elastic)} seeds of elasticity, {len(peers)} works of peers, "
        f"{len(micro)} micro tables"
    )
    return 0


def kept_claims() -> list[dict[str, str]]:
    """Return the claims of all figures, and keep them beside the pages: those of figures run again are replaced."""
    PAGES.mkdir(exist_ok=True)
    path = PAGES / CLAIMS
    again = {one.name.removesuffix(".claims.csv"): table(one) for one in sorted(RESULTS.glob("figures/*.claims.csv"))}
    rows = [row for row in (table(path) if path.exists() else []) if row["figure"] not in again]
    rows += [{"figure": figure, **row} for figure, claims in again.items() for row in claims]
    if rows:
        rows.sort(key=lambda row: row["figure"])
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return rows


def commits_since(commit: str) -> int | None:
    """Return how many commits this tree has that a commit hasn't; None if the repository doesn't know the commit."""
    command = ["git", "rev-list", "--count", f"{commit.removesuffix('-changed')}..HEAD"]
    counted = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return int(counted.stdout) if counted.returncode == 0 else None


def made_at(commit: str, since: Mapping[str, int | None]) -> str:
    """Return a row's commit, and that it is old if many commits followed.

    >>> made_at("abc1234", {"abc1234": 12}), made_at("abc1234", {"abc1234": 201}), made_at("abc1234", {"abc1234": None})
    ('abc1234', 'abc1234, old: 201 commits ago', 'abc1234, old: of another history')
    """
    commits = since[commit]
    if commits is None:
        return f"{commit}, old: of another history"
    return commit if commits <= OLD else f"{commit}, old: {commits:,} commits ago"


def table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def head(title: str = "Benchmarks") -> Iterator[str]:
    yield from ("---", "nosearch: true", "---", "", f"# {title}", "")  # searches are for tasks, not for measurements
    yield from ("<!-- test: tests/unit/test_benchmark_page.py::test_it_shows_what_there_is -->", "")
    if title != "Benchmarks":
        return
    yield "`./dev bench page` writes these pages from what other commands leave in `bench/results`:"
    yield "`./dev bench figures --all`, `./dev bench figures measured settled_job`, `./dev bench peers --work NAME`,"
    yield "`./dev bench nexmark`, `./dev bench elastic --seed S`, `./dev bench micro`, `./dev bench rescale`."
    yield "Run them first for your machine."
    yield ""
    yield "A figure is *measured* on the machine named, or *simulated* on a model of the papers' machines. It is"
    yield "*fitted* where a constant of the model was chosen to reproduce this claim, so it proves little."
    yield f"Each row has the commit that made it; one of more than {OLD} commits before this page is *old*."
    yield ""


def contents() -> Iterator[str]:
    yield "## Other measurements"
    yield ""
    yield "- [Nexmark](nexmark.md): the field's queries, beside Flink, DuckDB and Polars."
    yield "- [Peers](peers.md): the same work in other systems."
    yield "- [Elasticity on random graphs](random_graphs.md): default settings beside the best of a static search."
    yield "- [Parts of the engine, beside physical limits](engine.md): costs of single steps."
    yield ""
    others = ("nexmark", "peers", "random_graphs", "engine")
    yield from ("```{toctree}", ":hidden:", "", *(page for page, _ in PAPERS.values()), *others, "```")


# --- claims -----------------------------------------------------------------------------------------------------------


def grouped(claims: Sequence[Mapping[str, str]]) -> dict[str, list[Mapping[str, str]]]:
    by_id = defaultdict(list)
    for claim in claims:
        by_id[claim["id"]].append(claim)
    return by_id


def claims_part(claims: Sequence[Mapping[str, str]]) -> Iterator[str]:
    by_id, since = grouped(claims), ages(claims)
    yield "## The papers' claims"
    yield ""
    yield "| paper | reproduced |"
    yield "|---|---|"
    for paper, (page, title) in PAPERS.items():
        rows = [one for one in claims if one["id"].startswith(f"{paper}-")]
        yield f"| [{title}]({page}.md) | {sum(one['holds'] == 'yes' for one in rows)} of {len(rows)} |"
    yield ""
    shown = Counter(one["kind"] for one in claims if one["holds"] == "yes")
    every = Counter(one["kind"] for one in claims)
    parts = ", ".join(f"{shown[kind]} of {every[kind]} {kind}" for kind in sorted(every))
    silent = sorted({one["id"] for one in claims if one["holds"] != "yes" and not one["remark"]})
    yield f"Reproduced or exceeded as the paper words them: {parts}."
    yield f"Without a reason: {', '.join(silent)}." if silent else "The others have a reason."
    further = sorted(set(by_id) - {f"{paper}-{n}" for paper, count in COUNTS.items() for n in range(1, count + 1)})
    if further:
        yield ""
        yield "### Our own goals"
        yield ""
        yield "| id | goal | here | | | commit |"
        yield "|---|---|---|---|---|---|"
        for name in further:
            yield from claim_rows(name, by_id, since)
    yield ""


def paper_page(paper: str, title: str, claims: Sequence[Mapping[str, str]]) -> Iterator[str]:
    since = ages(claims)
    yield from head(title)
    yield "| id | the paper | here | | | commit |"
    yield "|---|---|---|---|---|---|"
    for number in range(1, COUNTS[paper] + 1):
        yield from claim_rows(f"{paper}-{number}", grouped(claims), since)


def ages(claims: Sequence[Mapping[str, str]]) -> dict[str, int | None]:
    """Return how many commits followed that of each claim."""
    return {commit: commits_since(commit) for commit in {claim["commit"] for claim in claims}}


def claim_rows(
    name: str, by_id: Mapping[str, Sequence[Mapping[str, str]]], since: Mapping[str, int | None]
) -> Iterator[str]:
    if name not in by_id:
        yield f"| {name} | | {REASONS.get(name, 'not run')} | no figure | | |"
    for claim in by_id.get(name, ()):
        verdict = "reproduced" if claim["holds"] == "yes" else "differs"
        commit = made_at(claim["commit"], since)
        cells = (name, claim["claim"], claim["ours"], f"{verdict}, {claim['kind']}", claim["remark"], commit)
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def made_of(rows: Sequence[Mapping[str, str]]) -> str:
    """When, at which commits."""
    dates = sorted({row["date"] for row in rows if row.get("date")})
    commits = sorted({row["commit"] for row in rows if row.get("commit")})
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "at an unknown date"
    return f"{when}, commit {', '.join(commits) or 'unknown'}"


# --- elasticity -------------------------------------------------------------------------------------------------------


def turns_of(options: Mapping[str, Any]) -> str:
    """How many turns a graph got.

    >>> turns_of({"turns": 7, "most": 40}), turns_of({"turns": 7})
    ('7 to 40', '7')
    """
    return f"{options['turns']} to {options['most']}" if "most" in options else str(options["turns"])


def elastic_page(seeds: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from head("Elasticity on random graphs")
    if not seeds:
        yield "Not run: `./dev bench elastic --graphs 20 --seed 1`, and other seeds."
        yield ""
        return
    yield "Measured: what default settings found from cold, by the best of a static search in the same job. Both take"
    yield "turns until the median of their ratios is known to 1 %, or there were as many as the table says."
    yield "`./dev bench elastic --graphs 20 --seed S`; `--steady` sets the periods afterwards."
    yield ""
    yield "| seed | graphs | within 5 % | median | worst | last change, median | none afterwards | turns | made |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for seed in seeds:
        options, machine, graphs = seed["options"], seed["machine"], seed["graphs"]
        shares = [one["share"] for one in graphs]
        cells = (
            str(options["seed"]),
            str(len(graphs)),
            f"{sum(share >= 0.95 for share in shares) / len(shares):.0%}",
            f"{statistics.median(shares):.3f}",
            f"{min(shares):.3f}",
            f"{statistics.median(one['settled'] for one in graphs):.1f} s",
            f"{sum(one['changes'] == 0 for one in graphs) / len(graphs):.0%} in {options['steady']} periods",
            turns_of(options),
            f"{machine['date']}, {machine['commit']}, {machine['CPU']}, {machine['cores']} cores",
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


# --- peers ------------------------------------------------------------------------------------------------------------


def peers_page(peers: Mapping[str, Sequence[Mapping[str, str]]]) -> Iterator[str]:
    yield from head("Peers")
    if not peers:
        yield "Not run: `./dev bench peers --work word_count`, and the other works."
        yield ""
    for work, every in peers.items():
        absent = {row["system"]: row["absent"] for row in every if row.get("absent")}
        rows = [row for row in every if row["system"] not in absent]
        if not rows:
            continue
        medians = {name: median_of(rows, name, "seconds") for name in dict.fromkeys(row["system"] for row in rows)}
        ours = medians.get("rayelastic")
        yield f"## {work}"
        yield ""
        machine = next((row["machine"] for row in rows if row.get("machine")), "an unknown machine")
        yield f"{int(rows[0]['items']):,} items; {machine}; made {made_of(rows)}. Medians, alternated, equal results."
        yield ""
        yield "| system | M items/s | rayelastic is faster by | cores | start-up | peak MiB |"
        yield "|---|---|---|---|---|---|"
        for name, seconds in sorted(medians.items(), key=lambda one: one[1]):
            cells = (
                name,
                f"{int(rows[0]['items']) / seconds / 1e6:.3g}",
                "" if ours is None or name == "rayelastic" else faster(seconds / ours),
                f"{median_of(rows, name, 'cpu_seconds') / seconds:.1f}",
                f"{median_of(rows, name, 'start_up'):.2f} s",
                f"{median_of(rows, name, 'peak_bytes') / 2**20:.0f}",
            )
            yield f"| {' | '.join(cells)} |"
        yield ""
        for name, reason in absent.items():
            yield f"- {name} {reason}"
        if absent:
            yield ""


def faster(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio >= 1 else f"{ratio:.2f}x: it is slower"


def median_of(rows: Sequence[Mapping[str, str]], system: str, what: str) -> float:
    return statistics.median(float(row[what]) for row in rows if row["system"] == system)


# --- micro ------------------------------------------------------------------------------------------------------------


def engine_page(path: Path | None) -> Iterator[str]:
    """The page of the engine, and beside it the table as a CSV, which the page shows."""
    yield from head("Parts of the engine, beside physical limits")
    if path is None:
        yield "Not run: `./dev bench micro`."
        return
    kept: dict[str, Any] = json.loads(path.read_text())
    machine = ", ".join(f"{name} {value}" for name, value in kept["machine"].items())
    yield f"{machine}. {'`./dev bench micro --quick`: coarse.' if kept.get('quick') else '`./dev bench micro`.'}"
    yield ""
    yield from ("```{csv-table}", ":file: engine.csv", ":header-rows: 1", "```")
    with (PAGES / "engine.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("what", "ours", "limit", "unit", "ratio", "limit is"))
        for row in kept["rows"]:
            limit = statistics.median(row["limit"]) if row["limit"] else None
            cells = (number(row["value"]), number(limit), row["unit"], number(row["ratio"]), row["limit_what"])
            writer.writerow((row["what"].strip(), *cells))


def number(value: float | None) -> str:
    return "" if value is None else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
