"""What jobs with all defaults make of three nodes, against the best plan by hand: a table, and JSON in bench/results.

    python -m bench.spread [a b c d e f g] [--nodes 3] [--cpus 2] [--seconds 60] [--hand 8] [--most 6] [--here]
    python -m bench.spread steady [--seconds 600] [--here]
    python -m bench.spread graphs [--count 500]
    python -m bench.spread decisions [--count 20]
    python -m bench.spread flapping

`a` to `g`: works on a Ray whose nodes have addresses of their own (Linux namespaces, needs root); `--here` on a Ray of
this machine alone. Each goes by itself under load, then in a lull, until it is one process again; then the same with
plans by hand. `steady`: the changes of `b` under a load that stays as it is. `graphs`: random graphs on the live
actuation, simulated with 5 % noise. `decisions`: how long one takes on 1,000 nodes. `flapping`: alternating loads,
simulated.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.harness import arguments_of
from bench.provenance import machine_of
from bench.spread import simulated
from bench.spread.works import WORKS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
GRAPHS, DECISIONS = 500, 20  # random ones
LOADED = 60.0  # seconds
STEADY, UNCHANGED, SETTLED = "b", 600.0, 60.0  # a work, seconds of its load, and those after which nothing may change
LEAST_SHARE, MOST_GROWTH = 0.85, 10.0  # of the best by hand; s until the first growth


def netns() -> Any:
    spec = importlib.util.spec_from_file_location("netns", ROOT / "cluster" / "netns.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(names: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run each work in a process of its own, on the first node."""
    (ROOT / "build").mkdir(exist_ok=True)
    found = []
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="spread-") as folder:
        if options.here:
            found = [told(subprocess.run(command(name, folder, options), **HOW)) for name in names]
        else:
            with netns().Nodes(options.nodes, cpus=options.cpus) as nodes:
                found = [told(nodes.run(0, command(name, folder, options), timeout=TIMEOUT)) for name in names]
    return found


TIMEOUT = 900.0  # seconds for one work
HOW: dict[str, Any] = {"capture_output": True, "text": True, "timeout": TIMEOUT, "check": False, "cwd": ROOT}


def command(name: str, folder: str, options: argparse.Namespace) -> list[str]:
    times = ["--seconds", str(options.seconds or LOADED), "--hand", str(options.hand), "--most", str(options.most)]
    if name == "steady":
        name, times = STEADY, ["--steady", str(options.seconds or UNCHANGED)]
    return [sys.executable, "-m", "bench.spread.driver", name, folder, *times]


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"work"')]
    if not lines:
        raise SystemExit(f"{' '.join(done.args)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    if "steady" in found:
        tell_steady(found["steady"])
    else:
        tell(found)
    return found


def tell_steady(found: dict[str, Any]) -> None:
    late = [text for text, at in zip(found["changes"], found["times"], strict=True) if at > SETTLED]
    print(
        f"steady: {WORKS[STEADY].title}: {len(found['changes'])} changes, {len(late)} of them after {SETTLED:.0f} s; "
        f"{found['processes']} processes, {found['rate']:,.0f} tuples/s, rows {'exact' if found['exact'] else 'WRONG'}",
        *late, sep="\n   ", flush=True,
    )  # fmt: skip


def tell(found: dict[str, Any]) -> None:
    itself, hand = found["itself"], found["hand"]
    best = max(hand, key=lambda plan: hand[plan])
    share = itself["rate"] / hand[best]
    grown, back = itself["first_growth"], itself["back_to_one"]
    print(f"{found['work']}  {WORKS[found['work']].title}")
    print(
        f"   {itself['processes']} processes on {itself['hosts']} hosts {itself['plan']}; first growth "
        f"{f'after {grown:.1f} s' if grown is not None else 'never'}; back to one "
        f"{f'after {back:.1f} s' if back is not None else 'NOT'}; rows {'exact' if itself['exact'] else 'WRONG'}"
    )
    met = share >= LEAST_SHARE and (grown is None or grown <= MOST_GROWTH)
    if itself["hot"]:
        print(f"   said: {itself['hot']}")
    print(
        f"   {itself['rate']:,.0f} tuples/s, {share:.0%} of the best by hand, {hand[best]:,.0f} with {best}: "
        f"{'met' if met and back is not None and itself['exact'] else 'NOT MET'}",
        flush=True,
    )


def main() -> int:
    parser = arguments_of("spread", __doc__)
    parser.add_argument(
        "parts", nargs="*", choices=(*WORKS, "steady", "graphs", "decisions", "flapping", []), metavar="PART"
    )
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--cpus", type=int, default=2, help="that each node offers (default: 2)")
    parser.add_argument("--seconds", type=float, help="under load, by itself (default: 60, steady 600)")
    parser.add_argument("--hand", type=float, default=8.0, help="seconds for each plan by hand (default: 8)")
    parser.add_argument("--most", type=int, default=6, help="replicas that are tried by hand (default: 6)")
    parser.add_argument("--here", action="store_true", help="on a Ray of this machine alone")
    parser.add_argument("--count", type=int, help="of random graphs (default: 500, of decisions 20)")
    options = parser.parse_args()
    parts = options.parts or [*WORKS, "steady", "graphs", "decisions", "flapping"]
    results: dict[str, Any] = {"machine": machine_of(), "cpus": os.cpu_count()}
    if "graphs" in parts:
        results["graphs"] = simulated.graphs(options.count or GRAPHS)
    if "decisions" in parts:
        results["decisions"] = simulated.decisions(options.count or DECISIONS)
    if "flapping" in parts:
        results["flapping"] = simulated.flapping()
    if names := [part for part in parts if part in (*WORKS, "steady")]:
        results["works"] = measured(names, options)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "spread.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
