"""A host is switched off under a job with all defaults, each host with a disk of its own; each row counts once."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.test_nodes import Driver, load_netns

netns = load_netns()
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.netns,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "everything is there"),
]

JOB = """
import json, pathlib, sys, threading, time
import ray
import rayelastic as rel
from pyarrow import parquet
ROWS, KEYS, PAD, PER_SECOND, CSV = (int(number) for number in sys.argv[2:7])
folder = pathlib.Path(sys.argv[1])
class Row(rel.Record if hasattr(rel, "Record") else object):
    pass
def numbers():
    nobody = threading.Event()
    for n in range(ROWS):
        if n % 100 == 0:
            nobody.wait(100 / PER_SECOND)
        while n == ROWS - 1000 and not (folder / "go").exists():
            nobody.wait(0.02)
        yield n % KEYS, n
topology = rel.Topology("loss")
keyed = topology.source(rel.callable(numbers, schema={"key": int, "n": int}), name="numbers").key_by("key")
def count(state, row):
    state = (state[0] + 1, state[1] or bytes([row.n % 251]) * PAD)
    return state, [(row.n, state[0])]
"""
