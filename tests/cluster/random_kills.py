"""Kills elements, coordinators and hosts of a job at random, and in changes that meet a checkpoint; counts exactly.

    python -m tests.cluster.random_kills FOLDER [--kills 100] [--aimed 40] [--seed 0] [--server CONNINFO]

runs words and prices (words_and_prices.py) over files on the Ray cluster that RAY_ADDRESS names, whose hosts somebody
else kills and revives (`Outsider`); what happened goes to the output as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

import rayelastic as rel
from rayelastic.errors import RayelasticError
from rayelastic.job import Job, prepare
from rayelastic.on_ray.connect import ensure_ray
from rayelastic.on_ray.jobs import start_coordinator
from rayelastic.runtime.values.status import JobStatus, State
from tests.cluster import words_and_prices
from tests.cluster.shooting import DOWN, WATCHED, Moment, Shot, Victim, WatchedCoordinator

PATIENCE = 180.0  # seconds
CALL = 30.0  # seconds
LOOK = 0.02  # seconds
PAUSE = 1.2  # seconds at most before a kill that isn't aimed
DELAYS = (0.0, 0.05, 0.3)  # seconds at most from the moment that a kill waits for
COORDINATORS, HOSTS = 0.2, 0.1  # of the kills
ROWS = 15_000  # of a file for each kill: a thousand a second at most come through each replica, until the last kill
MEETING = tuple(moment.value for moment in Moment if moment.is_both)
PINS = {"counts": 1, "words": 1, "vwap": 2, "prices": 2}  # where there are hosts


@dataclass(slots=True)
class Kills:
    """What was killed, and at what the coordinator was then.

    Args:
        victims: {who: how often}.
        moments: {what: how often}.
        wasted: changes that were over before the kill that was meant for them.
        seconds: that it all took, without start and end of the jobs.
    """

    victims: Counter[str] = field(default_factory=Counter)
    moments: Counter[str] = field(default_factory=Counter)
    wasted: int = 0
    seconds: float = 0.0

    @property
    def all(self) -> int:
        return self.victims.total()

    @property
    def both(self) -> int:
        """Of these: in a change that met a checkpoint."""
        return sum(count for name, count in self.moments.items() if Moment(name).is_both)

    @property
    def changing(self) -> int:
        return sum(count for name, count in self.moments.items() if Moment(name).is_change)

    def add(self, told: dict[str, Any]) -> None:
        self.victims[told["victim"]] += 1
        self.moments[told["moment"]] += 1

    def include(self, others: Kills) -> None:
        self.victims += others.victims
        self.moments += others.moments
        self.wasted += others.wasted
        self.seconds += others.seconds

    def __str__(self) -> str:
        def listed(counts: Counter[str]) -> str:
            return ", ".join(f"{name} {count}" for name, count in counts.most_common())

        rate = 60 * self.all / self.seconds if self.seconds else 0.0
        return (
            f"{self.all} kills ({listed(self.victims)}) in {self.seconds:.0f} s, {rate:.1f} a minute; {self.changing} "
            f"in changes, {self.both} of them where a checkpoint met one ({listed(self.moments)}; {self.wasted} wasted)"
        )


class Campaign:
    """Kills of one job, whose coordinator is a WatchedCoordinator.

    Args:
        job: that runs.
        folder: for what shots tell.
        seed: chooses all.
        operators: that get other numbers of replicas.
        hosts: those to which elements move, and all but the coordinator's may be killed; without, the job's secret
            is renewed in place of moves.
    """

    def __init__(self, job: Job, folder: Path, seed: int, operators: list[str], hosts: tuple[str, ...] = ()) -> None:
        self.kills = Kills()
        self.job, self._folder, self._operators, self._hosts = job, folder / "shots", operators, hosts
        self._folder.mkdir(exist_ok=True)
        self._dice = random.Random(seed)
        self._number = 0
        self._rescaled = 0

    def run(self, kills: int, aimed: int) -> Kills:
        """Kills so often, and so many of these times in a change that meets a checkpoint."""
        began, plain = time.monotonic(), kills - aimed
        while plain or aimed:
            if self._dice.randrange(plain + aimed) < aimed:
                aimed -= self._in_a_change()
            else:
                plain -= self._at_any_time()
            self.kills.seconds = time.monotonic() - began
            assert not status_of(self.job).state.is_final, status_of(self.job)
        return self.kills

    def _at_any_time(self) -> bool:
        self.job.pause(self._dice.uniform(0.0, PAUSE))
        shot = self._shot()
        self._arm(shot)
        return self._counted(shot)

    def _in_a_change(self) -> bool:
        until = time.monotonic() + PATIENCE
        while (status := status_of(self.job)).state is not State.RUNNING:
            assert not status.state.is_final, status
            assert time.monotonic() < until, status
            self.job.pause(LOOK)
        shot = self._shot(MEETING)
        with contextlib.suppress(RayelasticError, TimeoutError):  # somebody dies meanwhile
            self._arm(shot)
            self._changed()
        done = self._counted(shot)
        self.kills.wasted += not done
        return done

    def _shot(self, moments: tuple[str, ...] = ()) -> Shot:
        dice = self._dice
        self._number += 1
        chance, victim = dice.random(), Victim.ELEMENT
        if chance < COORDINATORS:
            victim = Victim.COORDINATOR
        elif self._hosts and chance < COORDINATORS + HOSTS:
            victim = Victim.HOST
        delay = dice.uniform(0.0, dice.choice(DELAYS)) if moments else 0.0
        return Shot(self._number, self._folder, victim, dice.getrandbits(32), moments, delay, dice.random() < 0.5)

    def _arm(self, shot: Shot) -> None:
        """Returns as soon as its coordinator knows of it, or somebody is dead."""
        control = cast("WatchedCoordinator", cast("Any", self.job._control).within(CALL))
        try:
            control.shoot(shot)
        except (RayelasticError, TimeoutError):  # its process is being replaced, or has shot itself already
            if shot.moments:
                raise
        else:
            until = time.monotonic() + CALL
            while not shot.moments and not shot.file.exists() and time.monotonic() < until:
                self.job.pause(LOOK)

    def _counted(self, shot: Shot) -> bool:
        """Whether somebody was killed."""
        if shot.claim({}):
            return False
        told = json.loads(shot.file.read_text())
        until = time.monotonic() + PATIENCE
        while told["victim"] != Victim.COORDINATOR.value and not shot.done.exists():
            assert time.monotonic() < until, told
            self.job.pause(LOOK)
        if shot.missed.exists():
            return False
        self.kills.add(told)
        return True

    def _changed(self) -> None:
        self._rescaled += 1
        plan = self.job.plan()
        if self._rescaled % 2:
            planned = plan.region_of(self._dice.choice(self._operators))
            replicas = self._dice.choice([n for n in (1, 2, 3) if n != planned.replicas])
            self.job.rescale(planned.region.name, replicas)
        elif self._hosts:
            at = {one.pe: one.node for one in self.job.status.pes if one.pe in plan.pes}
            if not at:  # it goes back
                return
            pe = self._dice.choice(sorted(at))
            others = [host for host in self._hosts if host != at[pe]]
            self.job.change(plan.with_nodes({**at, pe: self._dice.choice(others)}))
        else:
            self.job.renew_secret()


def status_of(job: Job) -> JobStatus:
    """As soon as there is a coordinator that tells it."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return job.status
        except (TimeoutError, RayelasticError):
            assert time.monotonic() < until, "nobody answers for the job"
            job.pause(LOOK)


def submitted(made: rel.Topology, config: rel.JobConfig) -> Job:
    """Starts a job whose coordinator can be told to kill."""
    job = Job(made.name, start_coordinator(prepare(made, config), coordinator_class=WATCHED), made)
    try:
        job._start()
    except BaseException:
        job.close()
        raise
    return job


def config(**given: Any) -> rel.JobConfig:
    saved = rel.Checkpoint(given.pop("location", None), every=0.5, restarts=10_000)
    return rel.JobConfig(regions="manual", checkpoint=saved, **given)


# --- hosts ----------------------------------------------------------------------------------------------------------


class Outsider:
    """Kills what isn't on the coordinator's host, and revives hosts; a context manager.

    Args:
        nodes: a cluster of cluster/netns.py.
        folder: of the campaign, which all of them see.
    """

    def __init__(self, nodes: Any, folder: Path) -> None:
        self._nodes, self._folder = nodes, folder / "shots"
        self._over = threading.Event()
        self._problems: list[Exception] = []
        self._threads = [threading.Thread(target=self._run, daemon=True)]

    def __enter__(self) -> Self:
        self._folder.mkdir(exist_ok=True)
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        assert not self._problems

    def _run(self) -> None:
        number = 1
        while not self._over.wait(LOOK / 10):
            while (file := self._folder / str(number)).exists():
                told = json.loads(file.read_text())
                if told.get("outside"):
                    self._kill(int(told["node"].removeprefix("rel-node")), told["pid"], file)
                number += 1

    def _kill(self, node: int, pid: int, file: Path) -> None:
        if pid:
            try:
                is_there = self._nodes.run(node, ["kill", "-9", str(pid)]).returncode == 0
            except (OSError, IndexError):  # the host was killed before, and isn't there again
                is_there = False
            if not is_there:
                file.with_name(f"{file.name}-missed").touch()
        else:
            (self._folder / DOWN).touch()
            self._nodes.cut(node)  # so that nobody hears it end: a power cut says no goodbye
            self._nodes.kill(node)
            self._threads.append(threading.Thread(target=self._revive, args=(node,), daemon=True))
            self._threads[-1].start()
        file.with_name(f"{file.name}-done").touch()

    def _revive(self, node: int) -> None:
        try:
            self._nodes.revive(node)
        except RuntimeError as error:
            self._problems.append(error)
        else:
            (self._folder / DOWN).unlink()


def heard(process: Any) -> Kills:
    """What a driver on another host says at its end."""
    last = ""
    for line in process.stdout:
        last = line if line.startswith("{") else last
    assert process.wait(PATIENCE) == 0, "the driver failed"
    told = json.loads(last)
    return Kills(Counter(told["victims"]), Counter(told["moments"]), told["wasted"], told["seconds"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--aimed", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hosts", nargs="*", default=[])
    parser.add_argument("--server", default="")
    given = parser.parse_args()
    ensure_ray()
    rows, folder = given.kills * ROWS, given.folder
    made = words_and_prices.of_files(f"random{given.seed}", folder, rows, given.server)
    more = {"location": folder / "saved", "pes": PINS} if given.hosts else {}
    job = submitted(made, config(**more))
    kills = Campaign(job, folder, given.seed, ["counts", "vwap"], tuple(given.hosts)).run(given.kills, given.aimed)
    sys.stderr.write(f"KILLS {kills}\n")
    words_and_prices.finish(job, folder, rows, given.server)
    told = {"victims": kills.victims, "moments": kills.moments, "wasted": kills.wasted, "seconds": kills.seconds}
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
