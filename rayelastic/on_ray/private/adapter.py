"""Each call of Ray's private interface that we need, with its result for every supported Ray.

`tests/cluster/test_ray_private.py` is the contract, which `./dev matrix` runs with each Ray; `tests/unit/runtime/
test_ray_private_calls.py` checks that no other module uses Ray's private interface. Must not know jobs.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def actor_is_dead(handle: Any) -> bool:
    """Return whether Ray considers an actor's process dead, for good; False while Ray itself doesn't answer."""
    return _actor_state(handle) == "DEAD"


def machine_of(handle: Any) -> tuple[str, tuple[str, int]]:
    """Return the host name of an actor's machine, and the address of its raylet.

    The name is empty while Ray doesn't know the machine, or doesn't answer.
    """
    from ray._private import state

    try:
        node = state.actors(handle._actor_id.hex())["Address"]["NodeID"]
        found = next(one for one in state.nodes() if one["NodeID"] == node)
        return found["NodeManagerHostname"], (found["NodeManagerAddress"], found["NodeManagerPort"])
    except Exception:  # as in `_actor_state`
        return "", ("", 0)


def actor_has_no_place(handle: Any) -> bool:
    """Return whether an actor waits for a node with its resources; False while Ray itself doesn't answer."""
    return _actor_state(handle) in ("DEPENDENCIES_UNREADY", "PENDING_CREATION")


def _actor_state(handle: Any) -> str:
    from ray._private import state

    try:
        return str(state.actors(handle._actor_id.hex())["State"])
    except Exception:  # Ray's RPC errors have no public base; it may know nothing of the actor yet
        return ""


def driver_is_dead(job_id: str) -> bool:
    """Return whether the driver of a Ray job, by `get_job_id`, has ended."""
    from ray._private import state

    return any(job["JobID"] == job_id and job["IsDead"] for job in state.jobs())


def logs_path() -> str:
    """Return the folder of this node's logs, of the session that this process is connected to."""
    import ray

    return str(ray._private.worker._global_node.get_logs_dir_path())


def filter_worker_lines(shown: Callable[[Iterable[str], object], Iterable[str]]) -> None:
    """Make Ray's driver show on standard error what `shown` returns of a process's lines; call it before `ray.init`.

    Args:
        shown: Receives lines, and the id of their process or the name of one of Ray's own.
    """
    from ray._private import worker

    show = getattr(worker.print_to_stdstream, "__wrapped__", worker.print_to_stdstream)

    @functools.wraps(show)
    def filtered(data: dict[str, Any], ignore_prefix: bool) -> None:
        if lines := list(shown(data["lines"], data.get("pid"))):
            show({**data, "lines": lines, "is_err": True}, ignore_prefix)

    worker.print_to_stdstream = filtered


def is_running(address: str | None) -> bool:
    """Return whether `ray.init` would join a cluster at an address; False: it would start one.

    Args:
        address: As for `ray.init`. None: that of RAY_ADDRESS, or of the last `ray start` on this machine.

    Raises:
        ConnectionError: 'auto', and no cluster runs here.
    """
    from ray._private import services

    if address and "://" in address:
        return True
    services.find_gcs_addresses.cache_clear()
    return services.canonicalize_bootstrap_address(address) is not None


def start_cluster(num_cpus: int | None, folder: str) -> None:
    """Start a cluster of this machine, and connect to it.

    Args:
        num_cpus: CPUs that it offers; None: those of the machine.
        folder: Where it keeps sockets and logs; empty: Ray's default.
    """
    import ray

    ray.init("local", num_cpus=num_cpus, logging_level="error", include_dashboard=False, _temp_dir=folder or None)


def started_here() -> bool:
    """Return whether the Ray that this process is connected to is one that this process started."""
    import ray

    return bool(ray._private.worker._global_node.head)


def dashboard_address() -> str:
    """Return the address of Ray's dashboard, as host:port; empty: it doesn't run."""
    import ray

    return str(ray._private.worker.get_dashboard_url() or "")


def token_headers() -> dict[str, str]:
    """Return the headers that a request to Ray's dashboard needs: this process's token, if it has one."""
    from ray._private.authentication.http_token_authentication import get_auth_headers_if_auth_enabled

    return dict(get_auth_headers_if_auth_enabled({}))


def asks_for_token() -> bool:
    """Return whether this process uses a token, and its cluster requires one."""
    from ray._private.authentication.authentication_utils import is_token_auth_enabled

    return bool(is_token_auth_enabled())


def take_token() -> bool:
    """Make this process use its token from now on, if it has one; return whether it has."""
    from ray._private.authentication import authentication_token_setup as setup

    logging.getLogger(setup.__name__).setLevel(logging.ERROR)  # it logs at each start that the token is used
    try:
        take = setup.maybe_enable_token_auth_if_token_available
    except AttributeError:  # up to 2.58, where RAY_AUTH_MODE alone decides
        return asks_for_token()
    return bool(take(warn_if_disabled=False))


def cluster_here() -> str:
    """Return the 'host:port' of the cluster of RAY_ADDRESS or of this machine; empty if there is none."""
    from ray._private import services

    with contextlib.suppress(ConnectionError):
        return str(services.canonicalize_bootstrap_address("auto") or "")
    return ""


def living_nodes(address: str, timeout: float) -> int:
    """Return the number of living nodes of a cluster, without connecting to it.

    Args:
        address: 'host:port' of its head.
        timeout: seconds.

    Raises:
        ray.exceptions.AuthenticationError: It requires another token.
        Exception: The server isn't a Ray of this version; Ray's RPC errors have no public base.
    """
    from ray._raylet import GcsClient  # type: ignore[attr-defined]  # a Cython module without stubs

    nodes = GcsClient(address=address).get_all_node_info(timeout=timeout)
    return sum(node.state == 0 for node in nodes.values())


# --- the cluster's own store of keys and values -----------------------------------------------------------------------


def kv_put(key: str, value: bytes, namespace: str, *, overwrite: bool = True) -> bool:
    """Put a value; return whether the key existed. Without `overwrite` an existing value stays."""
    from ray.experimental import internal_kv

    return bool(internal_kv._internal_kv_put(key, value, overwrite=overwrite, namespace=namespace))


def kv_get(key: str, namespace: str) -> bytes | None:
    """Return the value of a key; None: it doesn't exist."""
    from ray.experimental import internal_kv

    found: bytes | None = internal_kv._internal_kv_get(key, namespace=namespace)
    return found


def kv_keys(prefix: str, namespace: str) -> Sequence[str]:
    """Return the keys with a prefix, in order."""
    from ray.experimental import internal_kv

    return sorted(key.decode() for key in internal_kv._internal_kv_list(prefix, namespace=namespace))


def kv_delete(key: str, namespace: str, *, prefix: bool = False) -> None:
    """Remove a key, or all with that prefix; no error if there is none."""
    from ray.experimental import internal_kv

    internal_kv._internal_kv_del(key, del_by_prefix=prefix, namespace=namespace)
