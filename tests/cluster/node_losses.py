"""Hosts of a default job are switched off at random moments; the rows are in Parquet files or in PostgreSQL afterwards.

    python -m tests.cluster.node_losses --moments 20 --seed 1

One line for each moment: which host, in which second after the first copied checkpoint, how long until the job ran
again, and what is wrong with the rows. Needs root (cluster/netns.py) and Debian's PostgreSQL.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.node_loss import TABLE, problem_of
from tests.cluster.test_nodes import load_netns
from tests.postgres import postgres_server

netns = load_netns()
MODULE = [sys.executable, "-m", "tests.cluster.node_loss"]
PAD, LARGE = 20_000, 1_000_000  # bytes of state for each key: 2 and 100 MB in all
ROWS, PER_SECOND, LONGEST = 60_000, 1000, 8.0  # a minute of rows; seconds until a host goes


class Watched:
    """A job that another host submits, and its states; further arguments as for the module."""

    def __init__(
        self, nodes: Any, submitter: int, folder: Path, rows: int, *more: str, pad: int = PAD, pace: int = 3000
    ) -> None:
        submit = [*MODULE, "submit", str(folder), str(rows), str(pad), str(pace), *more]
        done = nodes.run(submitter, submit, timeout=120)
        assert done.returncode == 0, done.stderr
        self._process = nodes.start(0, [*MODULE, "watch"])

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return its first state from now on that is wanted."""
        for line in self._process.stdout:
            state: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if state.get("state") in ("finished", "failed", "running") and wanted(state):
                return state
            assert state.get("state") not in ("finished", "failed"), state
        raise AssertionError("it ended")


def has_copy(state: dict[str, Any]) -> bool:
    return bool(state["state"] == "running" and state["taken"] and state["copied"] and not state["one_copy"])


@dataclass(frozen=True, slots=True)
class Loss:
    """A host that was switched off.

    Args:
        host: Its name.
        roles: What was there.
        moment: Seconds after the first copied checkpoint.
        seconds: Until the job ran again, with other elements.
        restarts: How often it restarted.
        to: Where the rows went.
        megabytes: Of state.
        problem: What is wrong with the rows; empty: nothing.
    """

    host: str
    roles: str
    moment: float
    seconds: float
    restarts: int
    to: str
    megabytes: int
    problem: str


class Losses:
    """Losses at random moments.

    Args:
        seed: Of the moments, hosts, outputs and sizes.
        quick: Whether Ray's health checks are those of cluster/launcher.yaml.
    """

    def __init__(self, seed: int, *, quick: bool = True) -> None:
        self._dice = random.Random(seed)
        self._quick = quick
        self.seen: list[Loss] = []

    def run(self, moments: int, shown: Callable[[Loss], None] = lambda _: None) -> None:
        """Switch a host off so many times, each under another job."""
        with postgres_server() as server, netns.Nodes(3, cpus=2, quick=self._quick) as nodes:
            for number in range(moments):
                with tempfile.TemporaryDirectory() as folder:
                    loss = self._lose(
                        nodes, Path(folder), server if number % 2 else "", LARGE if number % 5 == 3 else PAD
                    )
                self.seen.append(loss)
                shown(loss)

    def _lose(self, nodes: Any, folder: Path, server: str, pad: int) -> Loss:
        dice = self._dice
        of_coordinator = dice.random() < 0.5
        more = [*([server] if server else []), *([] if of_coordinator else ["apart"])]
        job = Watched(nodes, 1 if of_coordinator else 0, folder, ROWS, *more, pad=pad, pace=PER_SECOND)
        state = job.until(has_copy)
        host = 1 if of_coordinator else dice.choice([1, 2])
        moment = dice.random() * LONGEST
        threading.Event().wait(moment)
        began = time.time()
        nodes.cut(host)  # so that nobody hears it end: a power cut says no goodbye
        nodes.kill(host)
        state = job.until(lambda state: state["state"] == "running" and state["restarts"] > 0)
        seconds = state["at"] - began
        nodes.revive(host)  # with an empty disk
        state = job.until(lambda state: state["state"] == "finished")
        problem = problem_of(folder, ROWS, server)
        if server:
            drop(server)
        roles = "coordinator and process" if of_coordinator else "process"
        to = "PostgreSQL" if server else "Parquet"
        return Loss(
            f"rel-node{host}",
            roles,
            round(moment, 1),
            round(seconds, 1),
            state["restarts"],
            to,
            pad * 101 // 10**6,
            problem,
        )


def drop(server: str) -> None:
    """Remove the rows of a job."""
    import psycopg

    with psycopg.connect(server) as connection:
        connection.execute(f"DROP TABLE {TABLE}")


def main() -> int:
    """Switch hosts off, and print what became of the job."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patient", action="store_true", help="with Ray's own health checks")
    given = parser.parse_args()
    losses = Losses(given.seed, quick=not given.patient)
    losses.run(given.moments, lambda loss: print(loss, flush=True))  # noqa: T201
    return 0 if not any(loss.problem for loss in losses.seen) else 1


if __name__ == "__main__":
    sys.exit(main())
