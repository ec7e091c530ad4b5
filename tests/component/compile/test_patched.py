"""What stands in the place of a member of Python or NumPy, which tests patch, is what is compiled and cached."""

# ruff: noqa: DTZ005 -- functions as users write them

from __future__ import annotations

import datetime as dt
import json
import math
import operator
import os
import random
import re
import string
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import freezegun
import numpy as np
import pytest
from harness import MAP, Runner, python_result, request

from rayelastic.compile import Compiler
from rayelastic.compile.cache.code_cache import CodeCache
from rayelastic.compile.originals import is_installed, replaced_member
from rayelastic.errors import LaneError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.requests import FunctionRequest
from tests.raising import check_reason, raises

pytestmark = pytest.mark.edges
ROOT = Path(__file__).parents[3]


class Row(NamedTuple):
    i: int
    x: float
    s: str


ROW = Row(3, 4.0, "Abc")
FLOAT, INT, TEXT, BOOL = (Schema.of({"value": kind}) for kind in (float, int, str, bool))


def clock(t):
    return time.time()


def monotonic(t):
    return time.monotonic()


def drawn(t):
    return random.random()


def thrown(t):
    return random.randint(1, 6)


def root(t):
    return math.sqrt(t.x)


def floor(t):
    return math.floor(t.x)


def numpys_root(t):
    return np.sqrt(t.x)


def length(t):
    return len(t.s)


def summed(t):
    return operator.add(t.i, 1)


def found(t):
    return re.search("b", t.s) is not None


def letters(t):
    return string.ascii_letters[:3]


def shown(t):
    return json.dumps(t.i)


def base(t):
    return os.path.basename(t.s)  # noqa: PTH119


def fake(value: Any) -> Callable[..., Any]:
    return lambda *given: value


CASES = [
    ("time.time", clock, FLOAT, 1000.0),
    ("time.monotonic", monotonic, FLOAT, 1000.0),
    ("random.random", drawn, FLOAT, 42.0),
    ("random.randint", thrown, INT, 42),
    ("math.sqrt", root, FLOAT, 42.0),
    ("math.floor", floor, INT, 42),
    ("numpy.sqrt", numpys_root, FLOAT, 42.0),
    ("builtins.len", length, INT, 42),
    ("operator.add", summed, INT, 42),
    ("re.search", found, BOOL, None),
    ("json.dumps", shown, TEXT, "fake"),
    ("os.path.basename", base, TEXT, "fake"),
]


def given(shim: Any, folder: Path, function: Any, output: Schema) -> Any:
    """What a function gives in its default lane, as a new process would find it that shares the cache's folder."""
    code = Compiler(CodeCache(folder)).compile(request(function, Row, MAP, output=output))
    if code.lane is Lane.COMPILED:
        return Runner(shim, code)([ROW]).items[0][0]
    return python_result(code, [ROW]).items[0][0]


@pytest.mark.parametrize(("member", "function", "output", "value"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("first", ["patched", "real"])
def test_a_patched_member_is_another_function(
    shim: Any, tmp_path: Path, member: str, function: Any, output: Schema, value: Any, first: str
) -> None:
    """B1."""
    wanted = value if value is not None else False
    if first == "real":
        assert given(shim, tmp_path, function, output) != wanted
    with mock.patch(member, fake(value)):
        assert function(ROW) == wanted
        if member != "builtins.len":  # nothing at all can be declared without it
            assert given(shim, tmp_path, function, output) == wanted
    assert given(shim, tmp_path, function, output) != wanted
    with mock.patch(member, fake(value)):
        assert member == "builtins.len" or given(shim, tmp_path, function, output) == wanted


def test_a_constant_of_a_module_is_what_is_there(shim: Any, tmp_path: Path) -> None:
    """B1."""
    assert given(shim, tmp_path, letters, TEXT) == "abc"
    with mock.patch("string.ascii_letters", "xyz"):
        assert given(shim, tmp_path, letters, TEXT) == "xyz"
    with mock.patch("math.pi", 3.0):
        assert given(shim, tmp_path, lambda t: math.pi, FLOAT) == 3.0
    assert given(shim, tmp_path, lambda t: math.pi, FLOAT) == math.pi


class Order:
    rate = 2.0

    def priced(self, t: Any) -> float:
        return t.x * self.rate


ORDER = Order()


def priced(t):
    return ORDER.priced(t)


def test_members_of_the_users_own_are_what_is_there(shim: Any, tmp_path: Path) -> None:
    """B1."""
    assert given(shim, tmp_path, priced, FLOAT) == 8.0
    with mock.patch.object(Order, "priced", fake(1.0)):
        assert given(shim, tmp_path, priced, FLOAT) == 1.0
    with mock.patch.object(Order, "rate", 5.0):
        assert given(shim, tmp_path, priced, FLOAT) == 20.0
    assert given(shim, tmp_path, priced, FLOAT) == 8.0


def test_a_fork_by_the_name_of_a_module_of_python_is_the_users(
    shim: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B1: a vendored `statistics` is no part of the standard library."""
    for number in (1, 2):
        path = tmp_path / f"{number}" / "statistics.py"
        path.parent.mkdir()
        path.write_text(f"def mean(x):\n    return x * {number}.0\n")
        fork = types.ModuleType("statistics")
        fork.__file__ = str(path)
        monkeypatch.setitem(sys.modules, "statistics", fork)
        exec(compile(path.read_text(), str(path), "exec"), vars(fork))
        assert not is_installed("statistics")
        function = lambda t: fork.mean(t.x)  # noqa: B023, E731
        assert given(shim, tmp_path / "cache", function, FLOAT) == 4.0 * number


def test_nothing_is_compiled_while_what_the_compiler_counts_on_is_replaced(tmp_path: Path) -> None:
    """B1, B5."""
    plain = request(lambda t: t.i + 1, Row, MAP, output=INT)
    for member in ("math.sqrt", "numpy.sqrt", "operator.add", "re.search"):
        with mock.patch(member, fake(1)):
            compiler = Compiler(CodeCache(tmp_path))
            code = compiler.compile(plain)
        assert code.lane is Lane.PYTHON, member
        check_reason(code.refusal, "patched", member)
    with raises(LaneError, "patched-function", "op"), mock.patch("builtins.len", fake(1)):
        Compiler(CodeCache(tmp_path)).compile(plain)
    assert list(tmp_path.iterdir()) == []
    assert Compiler(CodeCache(tmp_path)).compile(plain).lane is Lane.COMPILED
    assert replaced_member() == ""


def test_freezeguns_clock_is_never_kept(shim: Any, tmp_path: Path) -> None:
    """B1, B5."""
    today, instant = lambda t: dt.datetime.now().year, lambda t: time.time()
    for year in (2020, 2021):
        with freezegun.freeze_time(f"{year}-05-17"):
            assert given(shim, tmp_path, today, INT) == year
            assert given(shim, tmp_path, instant, FLOAT) == dt.datetime(year, 5, 17, tzinfo=dt.UTC).timestamp()
    assert given(shim, tmp_path, today, INT) > 2021


PROGRAM = """
import sys, time, math
from unittest import mock
import rayelastic as rel
from rayelastic import testing

def now(t) -> float:
    return time.time() if t.value else math.sqrt(4.0)

def run():
    return testing.collect(lambda s: s.map(now, name="age"), [(1,), (0,)], {"value": int})

if sys.argv[1] == "patched":
    with mock.patch("time.time", lambda: 1000.0), mock.patch("math.sqrt", lambda x: 42.0):
        print([row[0] for row in run()])
else:
    print([row[0] for row in run()])
"""


def test_processes_that_share_a_folder_know_which_of_them_is_patched(tmp_path: Path) -> None:
    """B1."""
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    told = []
    for how in ("patched", "real", "patched"):
        command = [sys.executable, "-c", PROGRAM, how]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        told.append(json.loads(done.stdout))
    assert told[0] == told[2] == [1000.0, 42.0]
    assert told[1][0] > 1_700_000_000
    assert told[1][1] == 2.0


def test_every_entry_can_be_checked(tmp_path: Path) -> None:
    """B1: what an entry was made of is in it, its name is the hash of that, and damage or another name is seen."""
    requests: list[FunctionRequest] = [request(one, Row, MAP, output=INT) for one in (floor, length)]
    codes = [Compiler(CodeCache(tmp_path)).compile(one) for one in requests]
    keys = [code.machine.key for code in codes if code.machine is not None]
    entries = [CodeCache(tmp_path).get(key) for key in keys]
    assert [b"sqrt" in one.inputs or b"floor" in one.inputs for one in entries if one] == [True, False]
    one, other = (tmp_path / f"{key}.rel" for key in keys)
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())  # a whole entry under another name
    assert CodeCache(tmp_path).get(keys[0]) is None
    for at in range(0, len(kept), max(1, len(kept) // 50)):
        one.write_bytes(kept[:at] + bytes([kept[at] ^ 1]) + kept[at + 1 :])
        assert CodeCache(tmp_path).get(keys[0]) is None
    one.write_bytes(kept)
    assert CodeCache(tmp_path).get(keys[0]) == entries[0]


def test_a_function_that_leads_to_a_library_is_not_read_for_minutes(tmp_path: Path) -> None:
    """pytest rewrites `assert`, so that a function of a test leads to all of pytest and its plug-ins."""

    def checked(t: Any) -> int:
        assert t.n < 100
        return int(t.n)

    found = Compiler(CodeCache(tmp_path)).compile(request(checked, Row, MAP, output=INT))
    assert found.lane is Lane.PYTHON
    check_reason(found.refusal, "too_large")
