"""Kills at a step of a change, and judges what becomes of it (R1, R11). The job verifies itself, see oracle.py.

Who may die: the coordinator; the new element of a change from one replica to two; the giver, which a change from two
to one takes out; the source's element, which gives keys too. The node of the new element or of the giver is switched
off from outside. Nothing may be lost but what the dead one had, and that is said in the job's status.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, cast

import rayelastic as rel
from rayelastic.errors import RayelasticError
from rayelastic.job import Job, prepare
from rayelastic.on_ray.jobs import start_coordinator
from tests.cluster.mortal import COORDINATOR_PATH, ITSELF, OUTSIDE, MortalCoordinator, Shot
from tests.cluster.oracle import KEYS, Load, flows, topology

CONFIG = rel.JobConfig(regions="manual", elasticity="off", checkpoint=False)  # what becomes of the change alone
REGION = "r1"
RATE = 5000.0  # tuples/s, which is little: what is tested is the protocol
SETTLED = 10.0  # seconds until a change has been ended or undone (R11)
PATIENCE = 60.0  # seconds until a job that should end is given up
CALL = 30.0  # seconds
BATCH = 10_000  # bytes of state that move at once: three batches or so
ENOUGH = 2 * KEYS  # tuples: each key has come once more
MOVING = ["hold", "flush", "copy", "commit", "forget", "route"]
GROWING = ["begin", "start", "attach", *MOVING, "end"]
SHRINKING = ["begin", "start", *MOVING, "detach", "end"]
UNDOING = ["undo", "route back", *MOVING, "detach", "end undo"]


class Victim(Enum):
    """Who dies."""

    COORDINATOR = "coordinator"
    NEW = "new"
    GIVER = "giver"
    SOURCE = "source"
    NODE_OF_NEW = "node of new"
    NODE_OF_GIVER = "node of giver"

    @property
    def is_node(self) -> bool:
        return self in (Victim.NODE_OF_NEW, Victim.NODE_OF_GIVER)

    @property
    def pe(self) -> str:
        """Which element dies; empty: none."""
        return {"coordinator": "", "source": "pe0"}.get(self.value, "pe1")

    @property
    def steps(self) -> list[str]:
        """At which it can; those of a change that is undone have `undo` in front."""
        back = [step if "undo" in step else f"undo {step}" for step in UNDOING]
        match self:
            case Victim.COORDINATOR:
                return [*GROWING[:-1], "detach", "end", *back]
            case Victim.GIVER | Victim.NODE_OF_GIVER:
                return SHRINKING
            case Victim.SOURCE:
                return GROWING
            case _:
                return [*GROWING[2:], *back]


class What(Enum):
    """What became of a change."""

    COMPLETED = "completed"
    UNDONE = "undone"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a kill.

    Args:
        what: of the change.
        seconds: until it was settled, and a loss told.
        wrong: what isn't as it must be; empty: all is.
    """

    what: What
    seconds: float
    wrong: str = ""


@dataclass(slots=True)
class Row:
    """What became of the kills of one victim at one step.

    Args:
        victim: who died, and in which change.
        step: at which.
        outcomes: {what: how often}.
        longest: seconds until one was settled.
        wrong: what wasn't as it must be.
    """

    victim: str
    step: str
    outcomes: dict[str, int] = field(default_factory=dict)
    longest: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return sum(self.outcomes.values())

    def add(self, what: str, seconds: float, wrong: str = "") -> None:
        self.outcomes[what] = self.outcomes.get(what, 0) + 1
        self.longest = max(self.longest, seconds)
        if wrong:
            self.wrong.append(wrong)


@contextmanager
def running(folder: Path) -> Iterator[Job]:
    """A job whose coordinator can be told to kill."""
    load = Load(folder)
    load.set(RATE)
    made = topology(folder)
    control = start_coordinator(prepare(made, CONFIG), coordinator_class=COORDINATOR_PATH)
    job = Job(made.name, control, made)
    try:
        job._start()
        flows(job)
        yield job
    finally:
        load.end()
        job.close()


def before_of(victim: Victim, step: str, now: int) -> int:
    """How many replicas there have to be before a change in which somebody dies at a step; now there are some."""
    if victim is not Victim.COORDINATOR:
        return 2 if victim in (Victim.GIVER, Victim.NODE_OF_GIVER) else 1
    return {"attach": 1, "undo detach": 1, "detach": 2}.get(step, now)


def kill(job: Job, victim: Victim, step: str, folder: Path, occurrence: int = 1) -> Outcome | None:
    """Rescales a job, kills at a step, and judges; None: the change didn't come to the step for so many times."""
    undoing = "undo" in step
    spelled = step if step in ("undo", "end undo") else step.removeprefix("undo ")
    armed = ITSELF if victim is Victim.COORDINATOR else OUTSIDE if victim.is_node else victim.pe
    shot = Shot(armed, spelled, folder, occurrence, undoing, BATCH, victim.pe)
    now = job.plan().region(REGION).replicas
    before = before_of(victim, step, now)
    if now != before:
        job.rescale(REGION, before)
        flows(job, ENOUGH)
    for left in (shot.hit, shot.go):
        left.unlink(missing_ok=True)
    cast("MortalCoordinator", job._control.within(CALL)).arm(shot)
    said = ""
    try:
        job.rescale(REGION, 3 - before)
    except (RayelasticError, TimeoutError) as error:
        said = f"{type(error).__name__}: {error}"
        job.plan()  # waits for the next coordinator
    settled = time.time()
    if not shot.hit.exists():
        return None
    hit = json.loads(shot.hit.read_text())
    if victim.is_node:
        hit["time"] = shot.go.stat().st_mtime
    return _judged(job, victim, before, hit, settled, said)


def _judged(job: Job, victim: Victim, before: int, hit: dict[str, Any], settled: float, said: str) -> Outcome:
    try:
        flows(job, ENOUGH)
        in_force = job.plan()
        if victim.pe in in_force.pes:
            job.wait(timeout=PATIENCE)  # it is dead and has keys: that has to be told
    except (RayelasticError, AssertionError, TimeoutError) as error:
        status = job.status
        seconds = time.time() - hit["time"]
        reason = status.failure.reason if status.failure is not None else ""
        if not status.state.is_final:
            return Outcome(What.LOST, seconds, f"it neither flows nor fails: {error}")
        if victim.pe == "" or victim.pe not in reason or "checkpoint" not in reason:
            return Outcome(What.LOST, seconds, f"it doesn't say what was lost: {reason}")
        if not _had_keys(victim, hit):
            return Outcome(What.LOST, seconds, f"it failed, and {victim.pe} had no keys {hit}: {reason}")
        return Outcome(What.LOST, seconds, late(seconds))
    replicas = in_force.region(REGION).replicas
    what = What.UNDONE if replicas == before else What.COMPLETED
    seconds = settled - hit["time"]
    if said == "" and what is What.UNDONE:
        return Outcome(what, seconds, "it was undone without a word")
    return Outcome(what, seconds, late(seconds))


def _had_keys(victim: Victim, hit: dict[str, Any]) -> bool:
    """Tells whether who died had keys then, or got some in that very step."""
    match victim:
        case Victim.COORDINATOR:
            return False
        case Victim.SOURCE:
            return True
        case Victim.NEW | Victim.NODE_OF_NEW:
            return hit["moved"] > (hit["undoing"] or 0) or hit["step"] == "commit"
        case _:
            return hit["moved"] < hit["batches"] or hit["step"] == "begin"


def late(seconds: float) -> str:
    return f"it took {seconds:.1f} s" if seconds > SETTLED else ""
