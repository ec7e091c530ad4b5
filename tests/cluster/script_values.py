"""A script as users write it: what keys have are objects of its own classes. Its process with the state is killed once.

    python script_values.py ADDRESS FOLDER

Used by test_own_aggregates_on_ray.py; what came out is in out.json then.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import rayelastic as rel
from rayelastic.runtime.values.status import State

ROWS, KEYS = 12_000, 97
PATIENCE = 60.0


class Row(NamedTuple):
    key: int
    n: int


class Sum:
    def __init__(self) -> None:
        self.value = 0


class Account:
    def __init__(self) -> None:
        self.last: Row | None = None
        self.sum = Sum()


class Balance(NamedTuple):
    key: int
    before: int
    sum: int


def add(t: Row, account: Account) -> Balance:
    before = -1 if account.last is None else account.last.n
    account.last = t
    account.sum.value += t.n
    return Balance(t.key, before, account.sum.value)


def main(address: str, folder: Path) -> None:
    def rows() -> Iterator[Row]:
        nobody = threading.Event()
        for n in range(ROWS):
            while n == ROWS - 1000 and not (folder / "go").exists():
                nobody.wait(0.02)
            yield Row(n % KEYS, n)

    topology = rel.Topology("accounts")
    keyed = topology.source(rel.callable(rows, Row), name="rows").key_by("key")
    keyed.map(add, name="add", state=Account, schema=Balance, lane="python").sink(rel.list(), name="out")
    config = rel.JobConfig(pes={"rows": 0, "add": 1, "out": 1}, checkpoint=rel.Checkpoint(every=0.3))
    job = rel.submit(topology, config, address=address)

    def until(condition: object) -> None:
        assert not job.status.state.is_final, job.status
        assert job.metrics().seconds < PATIENCE, (condition, job.status)
        job.pause(0.02)

    try:
        while job.metrics().operator("add").tuples_in < KEYS:
            until("some rows")
        taken = job.status.checkpoints.taken
        while job.status.checkpoints.taken < taken + 2:
            assert job.status.checkpoints.abandoned == 0, job.status.checkpoints.problem
            until("a checkpoint")
        os.kill(next(one.pid for one in job.status.pes if one.pe == "pe1"), signal.SIGKILL)
        while not job.status.checkpoints.restarts or job.status.state is not State.RUNNING:
            until("a restart")
        (folder / "go").touch()
        result = job.wait(PATIENCE)
    finally:
        (folder / "go").touch()
        job.close()
    (folder / "out.json").write_text(json.dumps([tuple(row) for row in result["out"]]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
