"""Scheduler threads with a CPU each (PLDI'17 section 5 pins nothing; a large machine may want it)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic.runtime.watch.machine_load import cpus_by_node


def test_each_scheduler_thread_has_one_cpu() -> None:
    def cpus(pin_threads: bool) -> set[int]:
        source: set[int] = set()

        def numbered() -> Iterator[tuple[int]]:
            source.add(threading.get_native_id())  # which has no CPU of its own, and helps where a queue is full
            yield from ((n,) for n in range(500))

        topology = rel.Topology("pinned")
        numbers = topology.source(rel.callable(numbered, schema={"n": int}), name="numbers")
        where = {"thread": int, "cpus": int}
        seen = numbers.map(
            lambda t: (threading.get_native_id(), len(os.sched_getaffinity(0))),
            name="cpus",
            schema=where,
            lane="python",
        )
        seen.sink(rel.list(), name="out")
        config = rel.JobConfig(
            threads=rel.Threads(count=2, model={"cpus": "dynamic", "out": "manual"}, pin=pin_threads)
        )
        return {t.cpus for t in rel.run(topology, config)["out"] if t.thread not in source}

    assert cpus(True) == {1}
    assert cpus(False) == {len(os.sched_getaffinity(0))}


def test_cpus_come_node_by_node_and_core_by_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)) - {6})
    for cpu in range(8):  # two nodes of two cores; the second hyper-threads are 4 to 7, as Linux numbers them
        folder = tmp_path / "cpu" / f"cpu{cpu}"
        (folder / f"node{cpu % 2}").mkdir(parents=True)
        (folder / "topology").mkdir()
        (folder / "topology" / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    assert cpus_by_node(tmp_path) == [0, 2, 4, 1, 3, 5, 7]
    assert cpus_by_node(tmp_path / "no such") == [0, 1, 2, 3, 4, 5, 7]
