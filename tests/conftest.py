"""Rules of the tests, by directory.

`tests/unit`: no Ray, no sleep, no wall clock; whoever tries gets an error that says so.
`tests/component`: threads and native code, waiting on events and counters.
`tests/cluster`: real Ray and Spark; marked `cluster`, with a longer timeout, and nothing may be left behind.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import settings

TESTS = Path(__file__).resolve().parent
UNIT = TESTS / "unit"
CLUSTER = TESTS / "cluster"
SHARED_DATA = TESTS.parent.parent / "shared" / "data"
CLUSTER_TIMEOUT = 300  # seconds
SESSION_VARIABLE = "RAYELASTIC_TEST_SESSION"
LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE)
LEFT_BEHIND_WAIT = 20.0  # seconds; Ray's own processes need a moment to go after ray.shutdown()

os.environ["RAYELASTIC_ASSERTIONS"] = "1"  # before anything imports rayelastic; processes that tests start inherit it

# Property tests are seeded, and without a deadline, as the machine may be busy with other things.
settings.register_profile("seeded", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("seeded")


def pytest_configure() -> None:
    """Hears Ctrl-C again where a shell started the tests in the background, which ignores it for them and theirs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="rayelastic-state-")


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)


@pytest.fixture(autouse=True)
def no_earlier_run() -> Iterator[None]:
    """No test begins with what elasticity found in another one."""
    yield
    shutil.rmtree(Path(os.environ["XDG_STATE_HOME"]) / "rayelastic", ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if CLUSTER in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(CLUSTER_TIMEOUT))


# --- unit tests know no clock -------------------------------------------------------------------------------------


class ForbiddenInUnitTestError(AssertionError):
    """A unit test reached for the world."""


def _called_by_tested_code(frame: FrameType | None) -> bool:
    """Whether the nearest caller is this project's; Hypothesis, pytest and the standard library keep the clock."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name != __name__:
            file = frame.f_code.co_filename
            return name.split(".")[0] == "rayelastic" or file.startswith(str(TESTS))
        frame = frame.f_back
    return False


_unit_test_runs = False  # a module that is first imported in a unit test keeps the guards as its defaults


def _guarded(what: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def guard(*args: Any, **kwargs: Any) -> Any:
        if _unit_test_runs and _called_by_tested_code(sys._getframe()):
            raise ForbiddenInUnitTestError(f"{what} in a unit test: pass a clock in, or write a component test")
        return original(*args, **kwargs)

    return guard


@pytest.fixture(autouse=True)
def no_world_in_unit_tests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `import ray`, `ray.init`, `time.sleep`, the clocks and new threads raise in tests/unit."""
    if UNIT not in request.path.parents:
        return
    monkeypatch.setattr(sys.modules[__name__], "_unit_test_runs", True)
    for name in ("sleep", "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"):
        monkeypatch.setattr(time, name, _guarded(f"time.{name}()", getattr(time, name)))
    monkeypatch.setattr(threading.Thread, "start", _guarded("a new thread", threading.Thread.start))
    ray = sys.modules.get("ray")
    if ray is not None:
        monkeypatch.setattr(ray, "init", _guarded("ray.init()", ray.init))
    monkeypatch.setitem(sys.modules, "ray", None)


# --- data ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with public data sets beside the clone; it is never part of the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no shared data: {SHARED_DATA} is missing")
    return SHARED_DATA


@pytest.fixture(scope="session")
def ssh_log(shared_data: Path) -> Path:
    """2,000 lines of a real sshd log (CRLF line ends)."""
    return _present(shared_data / "OpenSSH_2k.log")


@pytest.fixture(scope="session")
def trades_and_quotes(shared_data: Path) -> Path:
    """29,999 stock events, gzipped CSV with many empty fields."""
    return _present(shared_data / "TradesAndQuotes.csv.gz")


@pytest.fixture(scope="session")
def dns_capture(shared_data: Path) -> Path:
    """438 packets of a DNS tunnel, pcap."""
    return _present(shared_data / "dns_iodine.pcap")


def _present(path: Path) -> Path:
    if not path.is_file():
        pytest.skip(f"no shared data: {path} is missing")
    return path


@pytest.fixture(autouse=True)
def limits_of_the_process() -> Iterator[None]:
    """A test may not lower the limits of the process: all tests after it would run out of threads and memory."""
    before = [resource.getrlimit(limit) for limit in LIMITS]
    yield
    after = [resource.getrlimit(limit) for limit in LIMITS]
    assert after == before, f"the test changed the limits of its process: {before} before, {after} after"


# --- nothing is left behind ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """After the last test no process that this session started and no shared-memory file of ours may be left.

    Processes are known by a variable that they inherit, so one that lost its parent is found too.
    """
    psutil = pytest.importorskip("psutil")
    mark = uuid.uuid4().hex
    os.environ[SESSION_VARIABLE] = mark
    before = _shared_memory()
    yield
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        ray.shutdown()
    _, alive = psutil.wait_procs(list(_started_here(psutil, mark)), timeout=LEFT_BEHIND_WAIT)
    left = [f"{process.pid} {' '.join(process.cmdline())[:100]}" for process in alive if _is_running(process)]
    files = {name for name in _shared_memory() - before if name.startswith("rayelastic")}
    until = time.monotonic() + LEFT_BEHIND_WAIT
    while files and time.monotonic() < until:  # tests that run beside these have files of their own, for a while
        files &= _shared_memory()
    if left or files:
        pytest.fail("left behind by the tests: " + "; ".join([*left, *sorted(files)]))


def _started_here(psutil: Any, mark: str) -> Iterator[Any]:
    for process in psutil.process_iter():
        try:
            inherited = process.environ().get(SESSION_VARIABLE) == mark
            if inherited and process.pid != os.getpid() and "multiprocessing" not in " ".join(process.cmdline()):
                yield process
        except psutil.Error:
            continue


def _is_running(process: Any) -> bool:
    return bool(process.is_running() and process.status() != "zombie")


def _shared_memory() -> set[str]:
    folder = Path("/dev/shm")
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
