"""Kills every party of a change at each of its steps, many times, and judges what becomes of it: `./dev kills`.

    python -m tests.cluster.kills [--times 20] [--victims coordinator new giver source ...] [--steps copy ...]
    python -m tests.cluster.kills --changes shares split leave [--times 20] [--steps copy ...]
    python -m tests.cluster.kills --sinks [csv ledger postgres ...] [--steps prepare commit ...]

Prints a row for each victim and step; exits with 1 if a change took over 10 s to be ended or undone, keyed state of an
element that lived was wrong, a job was lost without need, or its status didn't say what was lost. A job that lives on
is killed at again. Nodes are hosts of their own, made of network namespaces; that needs root. `--changes` are those in
which partitions move, operators part, or a node is left, in jobs that take checkpoints (change_kills.py). `--sinks`
kills elements, the coordinator and PostgreSQL once at each step of each sink's protocol (sink_kills.py).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from rayelastic.errors import RayelasticError
from rayelastic.job import Job
from rayelastic.on_ray.cluster import node_count
from rayelastic.on_ray.connect import ensure_ray
from tests.cluster import change_kills, sink_kills
from tests.cluster.change_kills import Change
from tests.cluster.killing import MOVING, PATIENCE, Row, Victim, What, kill, running
from tests.cluster.mortal import LOOK
from tests.cluster.oracle import Load, finish
from tests.cluster.test_nodes import load_netns

CPUS = 4  # that the Ray of this machine offers; elements count shares of them
HOSTS = 4  # with one CPU each, beside the head: two elements, a spare, and one that starts anew
TRIES = 3  # changes in a row that don't come to a step
OCCURRENCES = 3  # of a step that is taken for each batch
DETECTION = {  # of a host that died, as in cluster/launcher.yaml: in 1.5 seconds; by default Ray takes 15 and more
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "500",
    "RAY_health_check_failure_threshold": "3",
}
MODULE = "tests.cluster.kills"
ROOT = Path(__file__).parents[2]


def tell(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def campaign(victims: list[Victim], steps: list[str], times: int, folder: Path) -> Iterator[Row]:
    """Kills on the cluster that this process is connected to."""
    for victim in victims:
        for step in victim.steps:
            if not steps or step in steps:
                yield series(victim, step, times, folder)


def series(victim: Victim, step: str, times: int, folder: Path) -> Row:
    row, tries = Row(victim.value, step), 0
    while row.kills < times and tries < TRIES:
        with running(folder) as job:
            while row.kills < times and tries < TRIES:
                wait_for_hosts(victim)
                in_turn = row.kills % OCCURRENCES if step.removeprefix("undo ") in MOVING and not tries else 0
                outcome = kill(job, victim, step, folder, 1 + in_turn)
                (folder / "settled").touch()
                if outcome is None:
                    tries += 1
                    continue
                tries = 0
                row.add(outcome.what.value, outcome.seconds, outcome.wrong)
                said = f": {outcome.wrong}" if outcome.wrong else ""
                tell(
                    f"{victim.value}, {step}, {row.kills} of {times}: "
                    f"{outcome.what.value} in {outcome.seconds:.2f} s{said}"
                )
                if outcome.what is What.LOST:
                    break
            else:
                row.wrong += not_finished(job, folder)
    if tries:
        row.wrong.append(f"only {row.kills} of {times} changes came to this step")
    return row


def not_finished(job: Job, folder: Path) -> list[str]:
    """Ends the stream of a job that lived through it all, and tells what was wrong with it."""
    try:
        finish(job, Load(folder))
    except (RayelasticError, AssertionError, TimeoutError) as error:
        return [f"at the end: {error}"]
    return []


def wait_for_hosts(victim: Victim) -> None:
    if victim.is_node:
        while node_count() < HOSTS:  # the head, and all but one
            threading.Event().wait(LOOK)


# --- hosts ----------------------------------------------------------------------------------------------------------


def on_hosts(
    victims: list[Victim], steps: list[str], times: int, folder: Path, *, plain: bool = False
) -> Iterator[Row]:
    """Runs the part of the campaign in which hosts are switched off, and does that."""
    netns = load_netns()
    if netns.missing():
        raise RuntimeError(netns.missing())
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"PYTHONPATH": str(ROOT), **({} if plain else DETECTION)}.items():
            patch.setenv(name, value)  # for the raylets, and so for all workers
        with netns.Nodes(1 + HOSTS, cpus=1, head_cpus=0) as nodes:
            wanted = [f"--victims={victim.value}" for victim in victims] + [f"--steps={step}" for step in steps]
            command = [sys.executable, "-m", MODULE, "--inside", str(folder), f"--times={times}", *wanted]
            process = nodes.start(0, command)
            over = threading.Event()
            executioner = threading.Thread(target=switch_off, args=(nodes, folder, over), daemon=True)
            executioner.start()
            for line in process.stdout:
                if line.startswith("{"):
                    yield Row(**json.loads(line))
            status = process.wait(PATIENCE)
            over.set()
            executioner.join()
            if status:
                raise RuntimeError(f"the driver on the hosts ended with {status}")


def switch_off(nodes: Any, folder: Path, over: threading.Event) -> None:
    """Switches a host off when a coordinator waits for that, and on again when what it led to is known."""
    hit, go, settled = (folder / name for name in ("hit", "go", "settled"))
    done = 0.0
    while not over.wait(LOOK):
        with contextlib.suppress(FileNotFoundError):
            written = hit.stat().st_mtime
            if written == done:
                continue
            number = int(json.loads(hit.read_text())["node"].removeprefix("rel-node"))
            settled.unlink(missing_ok=True)
            nodes.cut(number)  # so that nobody hears it end: a power cut says no goodbye
            nodes.kill(number)
            go.touch()
            done = written
            while not settled.exists() and not over.is_set():
                over.wait(LOOK)
            nodes.revive(number)


# --- other changes ---------------------------------------------------------------------------------------------------


def of_changes(changes: Sequence[Change], steps: list[str], times: int, folder: Path) -> Iterator[Row]:
    """Kills on the cluster that this process is connected to."""
    for change in changes:
        for victim in change.victims:
            for step in change.steps:
                if not steps or step in steps:
                    row = change_kills.series(change, victim, step, times, folder)
                    tell(f"{row.victim}, {step}: {row.outcomes} at most {row.longest:.2f} s {row.wrong or 'right'}")
                    yield row


def leaving(steps: list[str], times: int, folder: Path) -> Iterator[Row]:
    """The same of jobs that leave hosts of their own."""
    netns = load_netns()
    if netns.missing():
        raise RuntimeError(netns.missing())
    command = [sys.executable, "-m", MODULE, "--inside", str(folder), f"--times={times}", "--changes=leave"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with netns.Nodes(3, cpus=2) as nodes:
            process = nodes.start(0, command + [f"--steps={step}" for step in steps])
            for line in process.stdout:
                if line.startswith("{"):
                    yield Row(**json.loads(line))
            if status := process.wait(PATIENCE):
                raise RuntimeError(f"the driver on the hosts ended with {status}")


def inside(rows: Iterator[Any]) -> int:
    """Prints rows for who has started this process on another host."""
    for row in rows:
        sys.stdout.write(json.dumps(asdict(row)) + "\n")
        sys.stdout.flush()
    return 0


def sinks_of_jobs(given: argparse.Namespace) -> int:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        ensure_ray("local", num_cpus=CPUS)
        for row in sink_kills.of_sinks(given.sinks, given.steps, Path(folder)):
            tell(f"{row.victim}, {row.step}: {row.longest:.2f} s {row.wrong or ''}")
            rows.append(row)
    return told(rows)


def changes_of_jobs(given: argparse.Namespace) -> int:
    changes = [Change(name) for name in given.changes]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        if here := [change for change in changes if change is not Change.LEAVE]:
            import ray

            ensure_ray("local", num_cpus=CPUS)
            rows += of_changes(here, given.steps, given.times, Path(folder))
            ray.shutdown()
        if Change.LEAVE in changes:
            rows += leaving(given.steps, given.times, Path(folder))
    return told(rows)


def told(rows: Sequence[Row]) -> int:
    for row in rows:
        done = ", ".join(f"{count} {what}" for what, count in row.outcomes.items())
        sys.stdout.write(f"{row.victim:<22} {row.step:<14} {done}, {row.longest:.2f} s, {row.wrong or 'right'}\n")
    sys.stdout.write(f"{sum(row.kills for row in rows)} kills, {sum(len(row.wrong) for row in rows)} wrong\n")
    return 1 if any(row.wrong for row in rows) else 0


# --- the command ----------------------------------------------------------------------------------------------------


def table(rows: list[Row]) -> str:
    titles = ("victim", "step", "kills", *(what.value for what in What), "longest", "keyed state and status")
    lines = ["{:<14} {:<13} {:>5} {:>9} {:>6} {:>5} {:>8}  {}".format(*titles)]
    for row in rows:
        counts = [row.outcomes.get(what.value, 0) for what in What]
        right = "right" if not row.wrong else f"{len(row.wrong)} WRONG: {row.wrong[0]}"
        line = "{:<14} {:<13} {:>5} {:>9} {:>6} {:>5} {:>6.2f} s  {}"
        lines.append(line.format(row.victim, row.step, row.kills, *counts, row.longest, right))
    kills = sum(row.kills for row in rows)
    wrong = sum(len(row.wrong) for row in rows)
    lines.append(f"{kills} kills, the longest settled in {max(row.longest for row in rows):.2f} s, {wrong} wrong")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.kills",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [victim.value for victim in Victim]
    parser.add_argument("--times", type=int, default=20, help="kills at each step (default: 20)")
    parser.add_argument("--victims", nargs="+", action="extend", choices=names, help=f"of {names} (default: all)")
    parser.add_argument("--steps", nargs="+", action="extend", default=[], help="default: all that a victim has")
    parser.add_argument("--ray-defaults", action="store_true", help="Ray finds dead hosts as late as it does")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)  # on the hosts; rows go to the output
    parser.add_argument("--changes", nargs="+", default=[], choices=[c.value for c in Change], help="other changes")
    parser.add_argument("--sinks", nargs="*", metavar="SINK", help="at the steps of these sinks; without names: of all")
    given = parser.parse_args()
    if given.sinks is not None:
        return sinks_of_jobs(given)
    if given.changes and given.inside is None:
        return changes_of_jobs(given)
    victims = [Victim(name) for name in given.victims or names]
    if given.inside is not None:
        ensure_ray()
        if given.changes:
            return inside(of_changes([Change(name) for name in given.changes], given.steps, given.times, given.inside))
        return inside(campaign(victims, given.steps, given.times, given.inside))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        if here := [victim for victim in victims if not victim.is_node]:
            import ray

            ensure_ray("local", num_cpus=CPUS)
            rows += campaign(here, given.steps, given.times, Path(folder))
            ray.shutdown()
        if there := [victim for victim in victims if victim.is_node]:
            hosts = Path(folder) / "hosts"  # what was noted of others who died isn't meant there
            hosts.mkdir()
            rows += on_hosts(there, given.steps, given.times, hosts, plain=given.ray_defaults)
    sys.stdout.write(table(rows) + "\n")
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
