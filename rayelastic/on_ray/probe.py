"""Asks a Ray cluster two questions in milliseconds: whether it answers, and whether it accepts our token.

`ray.init` with a wrong token tries for 20 seconds and then says "failed to connect" (measured with 2.60).
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

from rayelastic.on_ray.private import adapter

TIMEOUT = 5.0  # seconds until a named address has to accept a connection; Ray itself tries for a minute
TOKEN_ADVICE = (
    "Take the cluster's token: `ray get-auth-token` on its head node prints it; here set RAY_AUTH_MODE=token and "
    "RAY_AUTH_TOKEN=<token>, or write it to ~/.ray/auth_token"
)


@dataclass(frozen=True, slots=True)
class RayProbe:
    """A cluster's answer.

    Args:
        address: 'host:port' of its head; empty if there is none.
        problem: Why it can't be used; empty if it can.
        hint: What the user can do.
        nodes: The number of its living nodes.
        token: Whether this process uses a token.
    """

    address: str
    problem: str = ""
    hint: str = ""
    nodes: int = 0
    token: bool = False


def find_cluster() -> str:
    """Return the 'host:port' of the cluster of RAY_ADDRESS or of this machine; empty if there is none."""
    return adapter.cluster_here()


def probe(address: str) -> RayProbe:
    """Ask the cluster at an address.

    Args:
        address: 'host:port' of its head.

    >>> probe("127.0.0.1:1").problem
    'nothing answers at 127.0.0.1:1: [Errno 111] Connection refused'
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=TIMEOUT).close()
    except (OSError, ValueError) as error:
        return RayProbe(
            address,
            f"nothing answers at {address}: {error}",
            "Start one there with `ray start --head`, or leave the address out to start one here",
        )
    from ray.exceptions import AuthenticationError

    token = adapter.take_token()
    try:
        nodes = adapter.living_nodes(address, TIMEOUT)
    except AuthenticationError:
        shown = "another token than the one shown here" if token else "a token, and none is set here"
        return RayProbe(address, f"the cluster at {address} wants {shown}", TOKEN_ADVICE, token=token)
    except Exception as error:  # Ray's RPC errors have no public base
        return RayProbe(address, f"what answers at {address} is no Ray of this version: {error}", token=token)
    return RayProbe(address, nodes=nodes, token=token)
