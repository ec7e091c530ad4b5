#!/usr/bin/env python3
"""Several Ray nodes on one machine, each with an address, a /dev/shm and a folder for temporary files of its own.

What one process with several raylets can't show: links over real addresses, Unix sockets that must not be taken, nodes
that die as hosts do. Each node is a set of Linux namespaces (network, mount, process, host name) held by one process
whose end takes everything in it along, so nothing is left behind even if the starter is killed. Node 0 is the head and
carries the switch, an Ethernet bridge; the world outside isn't reachable. Needs root, iproute2 and util-linux.

    cluster/netns.py --nodes 2 -- python my_driver.py        # RAY_ADDRESS is set; the driver runs on node 0

Tests cut and mend the cable of a node, and switch nodes off (Nodes.cut, heal, kill).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

NETWORK = "10.83.0"  # within the namespaces only
PORT = 6379  # of Ray's head
DASHBOARD_PORT = 8265  # likewise
PREFIX = "/tmp/rn-"  # short: Ray puts Unix sockets below it, whose paths have at most 107 bytes
START_TIMEOUT = 120.0  # seconds for a raylet; 6 on an idle machine
QUICK = {"initial_delay_ms": 1000, "period_ms": 500, "timeout_ms": 500, "failure_threshold": 3}  # launcher.yaml's
TOO_SLOW = "timed out during startup"  # what Ray says after the 30 seconds that it gives itself


def missing() -> str:
    """Return what this machine lacks for it, in words; empty if nothing."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    lacking = [program for program in ("ip", "unshare", "nsenter") if shutil.which(program) is None]
    if lacking:
        return f"no {', '.join(lacking)} on this machine (Debian: iproute2, util-linux)"
    tried = subprocess.run(
        ["unshare", "--net", "ip", "link", "add", "sw", "type", "bridge"], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else f"this kernel gives no network namespaces: {tried.stderr.decode().strip()}"


class Nodes:
    """A Ray cluster whose nodes have different addresses; a context manager.

    Args:
        count: number of nodes, 1 to 200.
        cpus: CPUs that each offers.
        dashboard: whether the head has one, at `dashboard`: `ray job submit` needs it.
        head_cpus: CPUs that node 0 offers, if others: 0 keeps PEs away from it.
        pinned: whether node i runs on the CPU i of this machine alone, as a host of its own would: its processes
            can't use what others leave. Where there are fewer CPUs than nodes, some share one.
        quick: whether Ray's health checks find a lost node in 1.5 s, as in launcher.yaml, instead of 15 s and more.

    Raises:
        RuntimeError: a node didn't start; the text is what it wrote.
    """

    def __init__(
        self,
        count: int = 2,
        *,
        cpus: int = 2,
        head_cpus: int | None = None,
        dashboard: bool = False,
        pinned: bool = False,
        quick: bool = False,
    ) -> None:
        self._checks = {f"RAY_health_check_{name}": str(value) for name, value in QUICK.items()} if quick else {}
        self._count = count
        usable = sorted(os.sched_getaffinity(0))
        self._pins = [str(usable[number % len(usable)]) for number in range(count)] if pinned else []
        self._cpus = [cpus if head_cpus is None else head_cpus, *[cpus] * (count - 1)]
        self._with_dashboard = dashboard
        self._holders: list[subprocess.Popen[bytes]] = []
        self._folder = Path()
        self._token = secrets.token_hex(16)

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix=Path(PREFIX).name, dir=Path(PREFIX).parent))
        try:
            for number in range(self._count):
                self._add_node(number)
            for number in range(self._count):
                self._start_ray(number)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def address(self, number: int) -> str:
        """Return the address of a node."""
        return f"{NETWORK}.{number + 1}"

    def run(
        self, number: int, command: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a node, with RAY_ADDRESS set, and return what it wrote."""
        return subprocess.run(
            self._inside(number, command), env=self._environment(env), capture_output=True, text=True,
            timeout=timeout, check=False,
        )  # fmt: skip

    def start(self, number: int, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a command on a node, with RAY_ADDRESS set, and return it while it runs."""
        return subprocess.Popen(
            self._inside(number, command), env=self._environment(None), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    @property
    def dashboard(self) -> str:
        """Where the head's dashboard listens, seen from the nodes."""
        return f"http://{self.address(0)}:{DASHBOARD_PORT}"

    def cut(self, number: int) -> None:
        """Take a node off the network: what is sent to and from it is lost without a word, as behind a dead switch.

        Raises:
            ValueError: node 0, which carries the switch.
        """
        self._ip(0, f"link set {self._port(number)} nomaster")

    def heal(self, number: int) -> None:
        """Undoes `cut`; safe to repeat."""
        self._ip(0, f"link set {self._port(number)} master switch")

    def kill(self, number: int) -> None:
        """End a node and everything on it at once, as a power cut would."""
        self._holders[number].kill()
        self._holders[number].wait()

    def revive(self, number: int) -> None:
        """Switches a node on again that was killed: it has its address, and nothing of what it held.

        Raises:
            ValueError: node 0, which carries the switch.
        """
        with contextlib.suppress(subprocess.CalledProcessError):  # the kernel has taken the cable away by now
            self._ip(0, f"link del {self._port(number)}")
        self._add_node(number)
        self._start_ray(number)

    def close(self) -> None:
        """End every node; safe to repeat."""
        for number in reversed(range(len(self._holders))):
            self.kill(number)
        self._holders.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _set_up(self, number: int) -> str:
        """Return what the shell that becomes a node does first, and `ready` once it has: the node lives as long as
        it.
        """
        own = self._folder / "t"
        own.mkdir(exist_ok=True)
        checkpoints = Path.home() / ".cache" / "rayelastic" / "checkpoints"
        checkpoints.mkdir(parents=True, exist_ok=True)
        return f"""
            hostname rel-node{number}
            for disk in /dev/shm {own} {checkpoints}; do mount -t tmpfs tmpfs $disk; done
            ip link set lo up && echo ready && exec cat
        """

    def _add_node(self, number: int) -> None:
        namespaces = ["--net", "--mount", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child"]
        holder = subprocess.Popen(
            ["unshare", *namespaces, "--propagation", "private", "sh", "-ec", self._set_up(number)],
            stdin=subprocess.PIPE,  # the node ends with it, and so with this process
            stdout=subprocess.PIPE,
        )
        self._holders[number : number + 1] = [holder]
        assert holder.stdout is not None
        if holder.stdout.readline() != b"ready\n":
            raise RuntimeError(f"node {number} could not be made")
        address = f"{self.address(number)}/24"
        if number == 0:
            self._ip(0, f"link add switch type bridge; addr add {address} dev switch; link set switch up")
            return
        port = self._port(number)
        card = f"02:00:0a:53:00:{number + 1:02x}"  # the same when it is switched on again: its neighbours remember it
        self._ip(0, f"link add {port} type veth peer name eth0 address {card} netns {self._pid(number)}")
        self._ip(0, f"link set {port} master switch; link set {port} up")
        self._ip(number, f"addr add {address} dev eth0; link set eth0 up")

    def _port(self, number: int) -> str:
        """Return the switch's end of a node's cable."""
        if number == 0:
            raise ValueError("node 0 carries the switch: it has no cable")
        return f"port{number}"

    def _ip(self, number: int, commands: str) -> None:
        for command in commands.split(";"):
            entered = ["nsenter", "-t", str(self._pid(number)), "--net", "ip", *command.split()]
            subprocess.run(entered, check=True, capture_output=True)

    def _start_ray(self, number: int) -> None:
        shown = (
            [f"--dashboard-host={self.address(0)}", f"--dashboard-port={DASHBOARD_PORT}"]
            if self._with_dashboard
            else ["--include-dashboard=false"]
        )
        role = ["--head", f"--port={PORT}", *shown] if number == 0 else [f"--address={self._head}"]
        own = [f"--temp-dir={self._folder}/t"] if number == 0 else []
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", *role, *own, "--disable-usage-stats",
            f"--node-ip-address={self.address(number)}", f"--num-cpus={self._cpus[number]}",
            "--object-store-memory=200000000",
        ]  # fmt: skip
        until = time.monotonic() + START_TIMEOUT
        while True:
            done = self.run(number, command, env={"RAY_ADDRESS": ""}, timeout=START_TIMEOUT)
            if done.returncode == 0:
                return
            if TOO_SLOW not in done.stderr or time.monotonic() > until:
                raise RuntimeError(f"Ray didn't start on node {number}:\n{done.stdout}{done.stderr}")
            self.run(number, [*command[:3], "stop", "--force"])

    @property
    def _head(self) -> str:
        return f"{self.address(0)}:{PORT}"

    def _pid(self, number: int) -> int:
        """Return the process that holds the namespaces, as the world outside numbers it: the only child of
        `unshare`.
        """
        holder = self._holders[number].pid
        return int(Path(f"/proc/{holder}/task/{holder}/children").read_text().split()[0])

    def _inside(self, number: int, command: Sequence[str]) -> list[str]:
        pin = ["taskset", "--cpu-list", self._pins[number]] if self._pins else []
        entered = ["nsenter", "-t", str(self._pid(number)), "--net", "--mount", "--pid", "--uts", "--wdns=."]
        return [*pin, *entered, *command]

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        given = {
            "RAY_ADDRESS": self._head,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self._token,
            "TMPDIR": str(self._folder / "t"),
        }
        return {**os.environ, **given, **self._checks, **(more or {})}


def main() -> int:
    """Start the nodes, run a command on the first one, end them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--cpus", type=int, default=2, help="that each node offers")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    if reason := missing():
        parser.exit(2, f"{reason}\n")
    with Nodes(given.nodes, cpus=given.cpus, quick=True) as nodes, contextlib.suppress(KeyboardInterrupt):
        return subprocess.run(nodes._inside(0, given.command), env=nodes._environment(None), check=False).returncode
    return 130


if __name__ == "__main__":
    sys.exit(main())
