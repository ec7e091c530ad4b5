"""Connects this process to Ray: to the user's cluster, or to one of its own.

Java is searched first: a raylet offers Java workers, which RayDP needs, only if `java` was on PATH when it started.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from importlib.metadata import PackageNotFoundError, requires, version

from rayelastic.errors import JavaNotFoundError, RayUnreachableError
from rayelastic.on_ray.driver_log import lines_shown
from rayelastic.on_ray.java import ensure_java
from rayelastic.on_ray.own_files import guard_token, private_folder
from rayelastic.on_ray.private import adapter
from rayelastic.on_ray.probe import probe

_log = logging.getLogger(__name__)

NAMESPACE = "rayelastic"  # of the named actors of all jobs


def ensure_ray(address: str | None = None, *, start: bool = True, num_cpus: int | None = None) -> str:
    """Make sure that this process is connected to Ray.

    Args:
        address: 'host:port' of a cluster, 'auto' for the one on this machine, 'local' for a new one. `None`: what
            RAY_ADDRESS names, else the one that runs on this machine, which a warning names, else a new one.
        start: whether a new local cluster may be started.
        num_cpus: CPUs that a new local cluster offers; by default as many as the machine has; not of a running one.

    Returns:
        The address that this node has in Ray, which other nodes reach it under.

    Raises:
        RayUnreachableError: no Ray at the address, or none that may be started.
    """
    import ray

    warn_of_release("ray")
    if not ray.is_initialized():
        guard_token(starts=start)
        _connect(address, start, num_cpus)
    guard_token()
    host: str = ray.util.get_node_ip_address()
    return host


def is_connected() -> bool:
    """Return whether this process is connected to Ray."""
    import ray

    return bool(ray.is_initialized())


def warn_of_open_cluster() -> str:
    """Warn if a cluster of several nodes accepts every client that reaches it; return the warning, if any."""
    import ray

    nodes = sum(bool(node["Alive"]) for node in ray.nodes())
    if nodes <= 1 or adapter.asks_for_token():
        return ""
    said = (
        f"this Ray cluster of {nodes} nodes asks for no token: whoever reaches it can run code on all of them. "
        "Start it with RAY_AUTH_MODE=token (docs/how_to/security.md)"
    )
    _log.warning(said)
    return said


def range_of(package: str) -> str:
    """Return the supported releases of a package, such as '>=2.58,<2.61'; empty if all are."""
    with contextlib.suppress(PackageNotFoundError):
        for requirement in requires("rayelastic") or ():
            head = requirement.partition(";")[0].strip()
            if head.partition("[")[0].rstrip("<>=!~.,0123456789 ") == package:
                return head[len(package) :].partition("]")[2] or head[len(package) :]
    return ""


def is_within(installed: str, wanted: str) -> bool:
    """Return whether a release is of a range; each is of the empty one.

    >>> is_within("2.60.0", ">=2.58,<2.61"), is_within("2.57.1", ">=2.58,<2.61"), is_within("1.0", "")
    (True, False, True)
    """
    from packaging.specifiers import SpecifierSet

    return installed in SpecifierSet(wanted)


@functools.cache
def warn_of_release(package: str) -> str:
    """Warn, once, of a release that the tests haven't run with; return the warning, if any."""
    installed, wanted = version(package), range_of(package)
    if is_within(installed, wanted):
        return ""
    said = f"{package} {installed} is installed, which no test has run with: pip install '{package}{wanted}'"
    _log.warning(said)
    return said


def _connect(address: str | None, start: bool, num_cpus: int | None) -> None:
    import ray

    with contextlib.suppress(JavaNotFoundError):  # only Spark needs it, and searches it itself
        ensure_java()
    address = address or os.environ.get("RAY_ADDRESS") or (None if start else "auto")
    if address and ":" in address and "://" not in address:
        _check_reachable(address)
    # RAY_AUTH_MODE isn't set: Ray reads it when it is imported, and switches token authentication on for new local
    # clusters, and for others if there is a token, by itself.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray's next default; silences its notice
    adapter.filter_worker_lines(lines_shown)
    try:
        if adapter.is_running(address):  # its CPUs can't be set
            ray.init(address=address, logging_level="error")
        else:
            adapter.start_cluster(num_cpus, private_folder())
    except Exception as error:  # Ray raises ConnectionError, RuntimeError, ValueError, AuthenticationError and more
        raise RayUnreachableError(
            f"no Ray cluster at {address or 'this machine'}: {_first_line(error)}",
            hint="Check that `ray status` works with the same RAY_ADDRESS, or leave the address out to start one here",
        ) from error
    if address is None and not adapter.started_here():
        joined = ray.get_runtime_context().gcs_address
        _log.warning("joined the Ray at %s, which runs on this machine; address='local' starts a new one", joined)


def _check_reachable(address: str) -> None:
    if (answered := probe(address)).problem:
        raise RayUnreachableError(f"no Ray cluster at {address}: {answered.problem}", hint=answered.hint)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
