"""How soon rows come out again after a PE was killed, on Ray with a spare standing."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import rayelastic as rel
from bench.survival.load import keys_of, topology, wait_for
from rayelastic.runtime.values.status import State

TURN = 1_000_000  # rows for which one tenth of the keys is touched
SAMPLE = 1000  # one row in so many goes to the sink
REST = 5.0  # seconds before each loss, in which a spare process starts
TICK = 0.002  # seconds between two times that the sink notes
PES = {"numbers": 0, "key": 0, "touch": 1, "some": 1, "out": 2}


def first_output(megabytes: int, losses: int) -> list[float]:
    """Kill the element with the state so many times; seconds from each kill until rows came out again.

    Args:
        megabytes: of state.
        losses: how many times.
    """
    keys, found = keys_of(megabytes), []
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "times"
        last = [0.0]

        def note(_: object) -> None:
            if (now := time.time()) - last[0] >= TICK:
                last[0] = now
                with noted.open("a") as file:
                    file.write(f"{now}\n")

        made = topology(f"recovery{megabytes}", keys, TURN, rel.call(note), SAMPLE)
        job = rel.submit(made, rel.JobConfig(pes=PES, checkpoint=rel.Checkpoint(every=2.0, restarts=1000)))
        try:
            wait_for(job, lambda: job.metrics().operator("touch").tuples_in > keys, "the state isn't filled")
            for _ in range(losses):
                job.pause(REST)
                taken, restarts = job.status.checkpoints.taken, job.status.checkpoints.restarts
                wait_for(job, lambda taken=taken: job.status.checkpoints.taken > taken, "no checkpoint is complete")
                victim = next(one.pid for one in job.status.pes if one.pe == "pe1")
                killed = time.time()
                os.kill(victim, signal.SIGKILL)
                wait_for(job, lambda restarts=restarts: _is_back(job, restarts), "it doesn't go back")
                known = time.time()
                wait_for(job, lambda known=known: _times(noted)[-1] > known, "nothing comes out")
                found.append(_again(_times(noted), killed))
        finally:
            job.close()
    return found


def _is_back(job: rel.Job, restarts: int) -> bool:
    status = job.status
    return status.checkpoints.restarts > restarts and status.state is State.RUNNING


def _times(noted: Path) -> list[float]:
    return [float(line) for line in noted.read_text().split("\n")[:-1]]


def _again(times: list[float], killed: float) -> float:
    """Return the end of the longest silence since: what was on its way comes out before it."""
    since = [killed, *(one for one in times if one > killed)]
    silence = max(range(1, len(since)), key=lambda n: since[n] - since[n - 1])
    return since[silence] - killed
