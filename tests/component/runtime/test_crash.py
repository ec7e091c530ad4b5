"""A crash in native code that a function calls: the last words of the process are the name of the operator."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, faulthandler, os, signal
import rayelastic as rel

{before}

def crash(t):
    if t.value == 5:
        {crash}
    return t.value

topology = rel.Topology("crash")
numbers = topology.source(rel.sequence(10), name="numbers")
numbers.map(crash, name="boom", schema={{"n": int}}, lane="python").sink(rel.list(), name="out")
rel.run(topology)
"""


@pytest.mark.parametrize(
    ("before", "crash", "number"),
    [
        ("", "ctypes.string_at(0)", signal.SIGSEGV),
        ("faulthandler.enable()", "ctypes.string_at(0)", signal.SIGSEGV),
        ("faulthandler.enable()", "os.abort()", signal.SIGABRT),
    ],
)
def test_a_crash_names_the_operator_and_does_what_it_did_before(
    before: str, crash: str, number: signal.Signals
) -> None:
    program = [sys.executable, "-c", PROGRAM.format(before=before, crash=crash)]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == -number
    assert "rayelastic: crashed in the function of operator 'boom'" in ended.stderr
    assert ("in crash" in ended.stderr) == bool(before)
