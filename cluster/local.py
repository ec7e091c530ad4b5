#!/usr/bin/env python3
"""A Ray cluster of several raylets on this machine, with token authentication; it ends with the command, or by Ctrl-C.

For what needs several nodes and no real network: all raylets share one address, and the machine's CPUs. For links over
real addresses, cut cables and hosts that die there is netns.py, which needs root.

    cluster/local.py 3 -- python my_driver.py        # RAY_ADDRESS and the token are set for it
    cluster/local.py 3                               # says what to set in another shell
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

OBJECT_STORE_BYTES = 100_000_000  # of each raylet; tuples don't go through it
MOST = 32  # raylets: each takes some 300 MB


@contextlib.contextmanager
def raylets(count: int, cpus: int) -> Iterator[dict[str, str]]:
    """Start a cluster and return the variables by which a driver finds it; the head is one of the raylets.

    To be called before this process imports Ray, which reads the token once.
    """
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as folder:  # short: sockets lie below it
        known = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
        os.environ |= {**known, "RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0"}
        _find_java()
        from ray.cluster_utils import Cluster

        own = {"num_cpus": cpus, "object_store_memory": OBJECT_STORE_BYTES}
        cluster = Cluster(initialize_head=True, head_node_args={**own, "include_dashboard": False})
        try:
            for _ in range(count - 1):
                cluster.add_node(**own)
            cluster.wait_for_nodes()
            yield {**known, "RAY_ADDRESS": cluster.address}
        finally:
            cluster.shutdown()


def _find_java() -> None:
    """Put Java on PATH if there is one: raylets that start without it never run Spark."""
    from rayelastic.errors import JavaNotFoundError
    from rayelastic.on_ray.java import ensure_java

    with contextlib.suppress(JavaNotFoundError):
        ensure_java()


def main(arguments: Sequence[str]) -> int:
    """Start the raylets, run the command or wait, and end them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", type=int, help=f"raylets, 1 to {MOST}")
    parser.add_argument("--cpus", type=int, default=2, help="that each offers")
    parser.add_argument("command", nargs="*", help="behind --")
    ours = arguments.index("--") if "--" in arguments else len(arguments)  # argparse takes no options behind the count
    given = parser.parse_args(arguments[:ours])
    command = [*given.command, *arguments[ours + 1 :]]
    if not 1 <= given.count <= MOST or given.cpus < 1:
        parser.error(f"give 1 to {MOST} raylets, of 1 CPU or more")
    with contextlib.suppress(KeyboardInterrupt), raylets(given.count, given.cpus) as found:
        if command:
            return subprocess.run(command, env={**os.environ, **found}, check=False).returncode
        sys.stdout.write("export " + " ".join(f"{name}={value}" for name, value in found.items()) + "\n")
        sys.stdout.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
        return 0
    return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
