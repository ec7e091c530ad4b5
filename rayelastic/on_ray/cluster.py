"""Facts about the cluster of this process, for modules that must not import Ray."""

from __future__ import annotations

import contextlib
from pathlib import Path

from rayelastic.on_ray.private import adapter

ACTOR_END_TIMEOUT = 10.0  # seconds for a stopped actor to end


def node_count() -> int:
    """Return the number of living nodes; 1 without Ray."""
    import ray

    return sum(1 for node in ray.nodes() if node["Alive"]) if ray.is_initialized() else 1


def cpu_count() -> float:
    """Return the CPUs of all nodes together."""
    import ray

    return float(ray.cluster_resources().get("CPU", 0))


def free_cpus() -> str:
    """Describe how many CPUs of the cluster Ray counts as free."""
    import ray

    return f"{ray.available_resources().get('CPU', 0.0):g} of its {cpu_count():g} CPUs are free"


def has_java() -> bool:
    """Return whether Ray's worker processes find `java` on PATH, as the raylet did that started them."""
    import ray

    def find() -> bool:
        import shutil

        return shutil.which("java") is not None

    return bool(ray.get(ray.remote(find).options(num_cpus=0).remote()))


def logs_folder() -> Path:
    """Return the folder of Ray's logs of its session on this node."""
    return Path(adapter.logs_path())


def dashboard() -> tuple[str, dict[str, str]] | None:
    """Return the address of Ray's dashboard, and the headers that it requires; None: it doesn't run."""
    if not (address := adapter.dashboard_address()):
        return None
    return address if "://" in address else f"http://{address}", adapter.token_headers()


def wait_until_ended(actor: str) -> None:
    """Wait until a stopped named actor has ended, and its name is free; kill it if it doesn't."""
    import ray

    with contextlib.suppress(ValueError, ray.exceptions.RayError):  # it has ended
        handle = ray.get_actor(actor)
        ray.wait([handle.__ray_ready__.remote()], timeout=ACTOR_END_TIMEOUT)
        ray.kill(handle, no_restart=True)
