"""Kills at each step of changes that are no growth: partitions that move, operators that part, a node that is left.

The job takes checkpoints, so it lives on whoever dies; whoever reads its files afterwards finds each row once, with the
value that it had to have. `python -m tests.cluster.kills --changes shares split leave` runs all of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from pyarrow import parquet

import rayelastic as rel
from rayelastic.errors import RayelasticError
from rayelastic.job import Job, prepare
from rayelastic.on_ray.jobs import start_coordinator
from rayelastic.on_ray.ray_host import RayHandle
from rayelastic.runtime.element.api import ElementApi
from rayelastic.runtime.remote import Call, Remote, perform
from rayelastic.runtime.values.status import State
from tests.cluster.killing import BATCH, MOVING, Row
from tests.cluster.mortal import ITSELF, MortalCoordinator, Shot

ROWS, KEYS = 100_000, 97
PACE, BURST = 0.05, 20  # seconds between so many rows, until there is a file `go`
SEEN = 100  # rows that have to come through for a job to count as one that flows
SETTLED = 60.0  # seconds until a job flows again: processes start anew
PATIENCE = 120.0  # seconds
CALL = 30.0  # seconds
LOOK = 0.05  # seconds
CALLS = ["checkpoint.save_at_barriers", "checkpoint.commit", "open", "connect", "start"]  # of a change by a restart
CALLED = "called"  # the element that the step is about
OPERATORS = ["pace", "next", "counts"]
UNEVEN = ((3000, 1096), (1096, 3000))
PATH = f"{__name__}:MortalAtCalls"
WITHIN = RayHandle.within  # as it is where nobody is to die


class Change(Enum):
    """What changes."""

    SHARES = "shares"  # partitions move between two replicas that stay
    SPLIT = "split"  # an operator gets a process of its own, or comes back
    LEAVE = "leave"  # all elements go to other nodes

    @property
    def steps(self) -> list[str]:
        return MOVING if self is Change.SHARES else CALLS

    @property
    def victims(self) -> list[str]:
        return [ITSELF, "pe0", "pe1"] if self is Change.SHARES else [ITSELF, CALLED]


@dataclass(frozen=True, slots=True)
class CallShot:
    """When who dies: before the coordinator calls a method of an element for the first time in a change.

    Args:
        victim: ITSELF, or CALLED.
        method: of the element.
        folder: the file `hit` there tells that it has happened.
    """

    victim: str
    method: str
    folder: Path

    @property
    def hit(self) -> Path:
        return self.folder / "hit"


class MortalAtCalls(MortalCoordinator):
    """Dies, or has an element die, at a call."""

    def arm_call(self, shot: CallShot) -> None:
        """Has a victim die in the next change."""
        hitting = threading.Lock()

        def watched(handle: RayHandle, timeout: float) -> ElementApi:
            element = WITHIN(handle, timeout)

            def send(call: Call) -> Any:
                if call.method == shot.method:
                    with hitting:
                        if not shot.hit.exists():
                            self._dies(shot, handle)
                return perform(element, call)

            return cast("ElementApi", Remote(send))

        pytest.MonkeyPatch().setattr(RayHandle, "within", watched)

    def _dies(self, shot: CallShot, handle: RayHandle) -> None:
        import ray

        shot.hit.write_text(json.dumps({"pe": handle.pe, "time": time.time()}))
        if shot.victim == ITSELF:
            os.kill(os.getpid(), signal.SIGKILL)
        ray.kill(handle.actor, no_restart=True)


class Number(NamedTuple):
    key: int
    n: int


def topology(folder: Path) -> rel.Topology:
    """Counts by key, a row for each; slowly until there is a file `go`."""
    go = folder / "go"

    def pace(t: Number) -> Number:
        if t.n % BURST == 0 and not go.exists():
            threading.Event().wait(PACE)
        return t

    made = rel.Topology("changes")
    numbers = made.source(rel.generate(lambda n: (n % KEYS, n), ROWS, schema=Number), name="numbers")
    paced = numbers.map(pace, name="pace", schema=Number, lane="python")
    following = paced.map(lambda t: Number(t.key, t.n), name="next", schema=Number, lane="python")
    counts = following.key_by("key").aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count())
    counts.sink(rel.parquet(str(folder / "out")), name="out")
    return made


@contextlib.contextmanager
def running(folder: Path, change: Change) -> Iterator[Job]:
    """A job whose coordinator can be told to kill; afterwards its rows are looked at."""
    config = rel.JobConfig(regions="manual", elasticity="off", checkpoint=rel.Checkpoint(every=600.0, restarts=10_000))
    made = topology(folder)
    control = start_coordinator(prepare(made, config), coordinator_class=PATH)
    job = Job(made.name, control, made)
    try:
        job._start()
        if change is Change.SHARES:
            job.rescale(job.plan().region_of("counts").region.name, 2)
        flows(job)
        yield job
        (folder / "go").touch()
        job.wait(PATIENCE)
        table = parquet.read_table(folder / "out").to_pydict()
        left = sorted(zip(table["n"], table["all"], strict=True))
        assert left == [(n, n // KEYS + 1) for n in range(ROWS)], "rows are missing, doubled or wrong"
    finally:
        job.close()


def flows(job: Job) -> None:
    """Waits until rows come to the sink; a job that is over, or silent for too long, raises AssertionError."""
    until, before = time.monotonic() + SETTLED, None
    while time.monotonic() < until:
        with contextlib.suppress(TimeoutError, RayelasticError):  # the next coordinator isn't there yet
            status = job.status
            assert not status.state.is_final, status
            if status.state is State.RUNNING:
                taken = job.metrics().operator("out").tuples_in
                before = taken if before is None or taken < before else before
                if taken >= before + SEEN:
                    return
        job.pause(LOOK)
    raise AssertionError(f"nothing comes through for {SETTLED:.0f} s")


def changed(job: Job, change: Change) -> None:
    """Makes the change, or takes it back."""
    plan = job.plan()
    region = plan.region_of("counts").region.name
    if change is Change.LEAVE:
        job.leave(next(one.node for one in job.status.pes if not one.state.is_final))
    elif change is Change.SHARES:
        shares = plan.region(region).shares
        job.change(plan.with_shares(region, UNEVEN[1] if shares == UNEVEN[0] else UNEVEN[0]))
    else:
        of_next = plan.region_of("next")
        cuts = of_next.cuts
        if "next" in cuts:
            job.change(plan.with_merge(of_next.region.name, "next"))
        else:
            job.change(plan.with_split(of_next.region.name, "next", plan.fresh_pes(1)))


def kill(job: Job, change: Change, victim: str, step: str, folder: Path) -> tuple[str, float] | None:
    """Kills in a change; whether it was completed, and seconds until rows came again. None: it never came to the step.

    Raises:
        AssertionError: the job is over, or nothing comes through.
    """
    (folder / "hit").unlink(missing_ok=True)
    element = cast("MortalAtCalls", cast("Any", job._control).within(CALL))
    if change is Change.SHARES:
        element.arm(Shot(victim, step, folder, batch_bytes=BATCH))
    else:
        element.arm_call(CallShot(victim, step, folder))
    before = placed(job)
    with contextlib.suppress(RayelasticError, TimeoutError):
        changed(job, change)
    if not (folder / "hit").exists():
        return None
    began = (folder / "hit").stat().st_mtime
    flows(job)
    seconds = time.time() - began
    return ("undone" if placed(job) == before else "completed"), seconds


def placed(job: Job) -> object:
    """What a change is to change."""
    return job.plan().regions, {one.node for one in job.status.pes if not one.state.is_final}


def series(change: Change, victim: str, step: str, times: int, folder: Path) -> Row:
    """Kills as often as is wanted; a job that leaves its node does so once."""
    row = Row(f"{change.value}: {victim}", step)
    while row.kills < times and not row.wrong:
        here = folder / f"{change.value}-{victim}-{step}-{row.kills}"
        here.mkdir(parents=True)
        try:
            with running(here, change) as job:
                for _ in range(1 if change is Change.LEAVE else times - row.kills):
                    done = kill(job, change, victim, step, here)
                    if done is None:
                        row.wrong.append("a change didn't come to this step")
                        break
                    row.add(*done)
        except (AssertionError, RayelasticError, TimeoutError) as error:
            row.wrong.append(f"{type(error).__name__}: {error}"[:500])
    return row
