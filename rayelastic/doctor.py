"""What this machine has of what rayelastic needs, and how to get the rest: `rayelastic doctor`.

Reports and starts nothing; it writes one file into the compiler's cache and removes it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rayelastic.compile.cache.code_cache import problem_of
from rayelastic.compile.config import cache_directory
from rayelastic.errors import JavaNotFoundError
from rayelastic.on_ray.connect import is_within, range_of
from rayelastic.on_ray.java import find_java, wheel_home
from rayelastic.on_ray.own_files import token_file, token_problem
from rayelastic.on_ray.probe import TOKEN_ADVICE, find_cluster, probe
from rayelastic.plan.plan_text import counted

SHARED_MEMORY = Path("/dev/shm")
SHARED_MEMORY_WANTED = 1 << 30  # bytes free; Ray's object store of a laptop, below which it falls back to slow files
RAY_PORTS = {6379: "the head (GCS)", 8265: "the dashboard and `ray job submit`"}  # Ray's defaults
QUICK_START = 2.0  # seconds; each process of a job imports Ray, and many do so at once while a job grows
RUN_TIMEOUT = 300.0  # seconds for a small topology on a machine that compiles for the first time

SMALL_TOPOLOGY = """
import time
started = time.perf_counter()
import rayelastic as rel
imported = time.perf_counter()
def run():
    topology = rel.Topology("squares")
    numbers = topology.source(rel.sequence(1000), name="numbers")
    numbers.map(lambda t: t.value * t.value, name="square", schema={"value": int}).sink(rel.list(), name="out")
    assert len(rel.run(topology)["out"]) == 1000
run()
first = time.perf_counter()
run()
print(imported - started, first - imported, time.perf_counter() - first)
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Args:
        subject: what was checked, in a word or two.
        good: whether it passed.
        found: what was found.
        hint: what to do if it isn't good; or, if it is, what would be better.
        optional: whether only some users need it; without it the machine is fine.
    """

    subject: str
    good: bool
    found: str
    hint: str = ""
    optional: bool = False

    def __str__(self) -> str:
        text = f"{'ok ' if self.good else '-- ' if self.optional else 'NO '} {self.subject:<16} {self.found}"
        return f"{text}\n{'':21}-> {self.hint}" if self.hint else text


def examine(environment: Mapping[str, str], address: str | None = None) -> Iterator[Finding]:
    """Run one check after the other.

    Args:
        environment: where PATH, JAVA_HOME and the settings of Ray are looked up.
        address: 'host:port' of a Ray cluster to ask; the one that RAY_ADDRESS names, or a running one, if not given.
    """
    checks: tuple[Callable[[], Finding], ...] = (
        _python,
        _native,
        _compiler,
        _cache,
        lambda: _java(environment),
        lambda: _package("ray", "ray", "pip install 'ray[default]==2.60.0'"),
        lambda: _process_start(environment),
        _spark,
        _token,
        lambda: _cluster(environment, address),
        lambda: _ports(environment, address),
        _shared_memory,
    )
    for check in checks:
        yield check()


@dataclass(frozen=True, slots=True)
class FirstMinute:
    """How long a newcomer waits, in seconds.

    Args:
        imported: for `import rayelastic`.
        compiled: for the first run of a small topology, with nothing compiled before.
        new_process: for its first run in another process, which finds the compiled function on disk.
        again: for its second run in the same process.
    """

    imported: float
    compiled: float
    new_process: float
    again: float

    def __str__(self) -> str:
        return (
            f"import rayelastic                        {self.imported:6.3f} s\n"
            f"first rel.run, with the compiler         {self.compiled:6.3f} s\n"
            f"first rel.run of a new process, cached   {self.new_process:6.3f} s\n"
            f"second rel.run of a process              {self.again:6.3f} s"
        )


def first_minute() -> FirstMinute:
    """Time a small topology in two new processes that share an empty compiler cache.

    Raises:
        subprocess.CalledProcessError: it doesn't run here.
    """
    with tempfile.TemporaryDirectory(prefix="rayelastic-doctor-") as folder:
        program = Path(folder) / "small.py"
        program.write_text(SMALL_TOPOLOGY)
        environment = {**os.environ, "XDG_CACHE_HOME": folder}

        def times() -> list[float]:
            done = subprocess.run(
                [sys.executable, program], env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT,
                check=True,
            )  # fmt: skip
            return [float(word) for word in done.stdout.split()]

        (_, compiled, _), (imported, new_process, again) = times(), times()
    return FirstMinute(imported, compiled, new_process, again)


def _python() -> Finding:
    good = sys.version_info >= (3, 11) and sys.platform == "linux"
    found = f"{sys.version.split()[0]} on {sys.platform}"
    return Finding("Python", good, found, "" if good else "Use Python 3.11 or newer on Linux")


def _native() -> Finding:
    try:
        importlib.import_module("rayelastic._native")
    except ImportError as error:
        return Finding("native scheduler", False, str(error), "Build it: pip install . (needs a C++20 compiler)")
    return Finding("native scheduler", True, "loads")


def _package(subject: str, name: str, hint: str) -> Finding:
    """Check that a package is installed, in a supported version."""
    if importlib.util.find_spec(name) is None:
        return Finding(subject, False, "not installed", hint)
    installed = version(name)
    wanted = range_of(name)
    good = is_within(installed, wanted)
    return Finding(subject, good, f"{installed}" + ("" if good else f", supported: {wanted}"), "" if good else hint)


def _process_start(environment: Mapping[str, str]) -> Finding:
    """Measure how long a process takes to import Ray, which each process of a job does first."""
    subject = "process start"
    if importlib.util.find_spec("ray") is None:
        return Finding(subject, False, "can't be measured without Ray", "Install Ray first", optional=True)
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import ray"], check=False, capture_output=True, timeout=RUN_TIMEOUT)
    seconds, advice = time.perf_counter() - started, ""
    if importlib.util.find_spec("rfc3987_syntax") is not None:
        advice = "pip uninstall rfc3987-syntax: jsonschema, which Ray imports, builds its grammar in each process, 1 s"
    elif seconds > QUICK_START and environment.get("PYTHONDONTWRITEBYTECODE"):
        advice = f"PYTHONDONTWRITEBYTECODE is set: {sys.executable} -m compileall -q {sys.prefix}/lib, once"
    return Finding(subject, True, f"{seconds:.1f} s to import Ray", advice)


def _compiler() -> Finding:
    hint = "pip install numba; without it every function runs as Python"
    return _package("Numba", "numba", hint)


def _cache() -> Finding:
    folder = cache_directory()
    hint = "Set XDG_CACHE_HOME to a folder of your own; without a cache each process compiles anew (0.5 s a function)"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding("compiler cache", False, f"{folder} is not writable: {error}", hint)
    if problem := problem_of(folder):
        advice = f"Remove it, make it yours alone (chmod go-w {folder}), or set XDG_CACHE_HOME"
        return Finding("compiler cache", False, f"{folder}: {problem}, so it isn't used", advice)
    return Finding("compiler cache", True, f"{folder}, {sum(1 for _ in folder.iterdir())} functions")


def _java(environment: Mapping[str, str]) -> Finding:
    try:
        java = find_java(dict(environment), wheel_home())
    except JavaNotFoundError as error:
        return Finding("Java", False, error.problem, error.hint, optional=not _has_spark())
    return Finding("Java", True, f"{java.version} from {java.origin}: {java.executable}")


def _spark() -> Finding:
    hint = "pip install 'rayelastic[spark]'"
    if not _has_spark():
        return Finding("Spark", False, "not installed; only rel.spark needs it", hint, optional=True)
    for name in ("pyspark", "raydp"):
        finding = _package("Spark", name, hint)
        if not finding.good:
            return Finding("Spark", False, f"{name} {finding.found}", hint)
    return Finding("Spark", True, f"pyspark {version('pyspark')}, raydp {version('raydp')}")


def _has_spark() -> bool:
    return importlib.util.find_spec("pyspark") is not None


def _token() -> Finding:
    """Check that other users of this host can't read the token of Ray."""
    file = token_file()
    if problem := token_problem():
        return Finding("Ray's token", False, problem, f"chmod 700 {file.parent}; chmod 600 {file}")
    return Finding("Ray's token", True, f"{file} is yours alone" if file.exists() else "no file has one yet")


def _cluster(environment: Mapping[str, str], address: str | None) -> Finding:
    if importlib.util.find_spec("ray") is None:
        return Finding("Ray cluster", False, "can't be asked without Ray", "Install Ray first")
    asked_for = address or environment.get("RAY_ADDRESS")
    named = asked_for or find_cluster()
    if not named:
        return Finding("Ray cluster", True, "none runs here; rel.submit starts one, with a token")
    if ":" not in named or "://" in named:
        return Finding("Ray cluster", False, f"{named!r} is no host:port", "Set RAY_ADDRESS to the head's host:6379")
    answered = probe(named)
    if answered.problem and not asked_for:  # one that runs here may be somebody else's
        advice = f"If it isn't yours, set RAY_ADDRESS=local: rel.submit starts a cluster then. {answered.hint}"
        return Finding("Ray cluster", False, answered.problem, advice, optional=True)
    if answered.problem:
        return Finding("Ray cluster", False, answered.problem, answered.hint)
    joined = "" if asked_for else "; rel.submit joins it unless RAY_ADDRESS=local is set"
    found = f"{named}: {counted(answered.nodes, 'node')} alive{joined}"
    if not answered.token:
        return Finding("Ray cluster", True, f"{found}; whoever reaches it can run code", TOKEN_ADVICE)
    return Finding("Ray cluster", True, f"{found}, our token is accepted")


def _ports(environment: Mapping[str, str], address: str | None) -> Finding:
    """Check that a PE can open its data port, and which ports of a new Ray head are in use."""
    try:
        with socket.socket() as tried:
            tried.bind(("127.0.0.1", 0))
    except OSError as error:
        return Finding("ports", False, f"no port opens here: {error}", "Ask who runs this machine")
    taken = [f"{port} ({what})" for port, what in RAY_PORTS.items() if _listens(port)]
    if taken and not (address or environment.get("RAY_ADDRESS")):
        advice = (
            "That is Ray's own if a cluster runs here; otherwise `ray start --head --port=... --dashboard-port=...`"
        )
        return Finding("ports", True, f"data ports can be opened; taken: {', '.join(taken)}", advice)
    return Finding("ports", True, "data ports can be opened")


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False


def _shared_memory() -> Finding:
    try:
        free = shutil.disk_usage(SHARED_MEMORY).free
    except OSError as error:
        return Finding("shared memory", False, f"{SHARED_MEMORY}: {error}", "Mount a tmpfs there")
    found = f"{SHARED_MEMORY}: {free / (1 << 30):.1f} GiB free"
    if free < SHARED_MEMORY_WANTED:
        return Finding(
            "shared memory", False, found, "In a container: docker run --shm-size=2g; Ray's objects live there"
        )
    return Finding("shared memory", True, found)
