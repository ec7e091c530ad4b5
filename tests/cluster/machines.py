"""Machines that are reached by ssh, for tests: each a Debian made of its packages, on a network that reaches the world.

What `ray up` finds where it brings up a cluster: processes, files, users and addresses of their own, sshd, sudo, rsync
and nothing of this project. They are namespaces of this machine, whose files are a layer over one folder, which
debootstrap fills once; slirp4netns carries what they install. Node 0 is where the commands are typed: it has this
machine's files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.test_nodes import netns

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "build" / "machines"
PROGRAMS = {"debootstrap": "debootstrap", "slirp4netns": "slirp4netns", "rsync": "rsync", "ssh": "openssh-client"}
PACKAGES = ("ca-certificates", "openssh-client", "openssh-server", "procps", "python3", "rsync", "sudo")
USER = "ubuntu"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
INIT = "import signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); print('ready', flush=True); sys.stdin.read()"
GATEWAY, NAMES = f"{netns.NETWORK}.2", f"{netns.NETWORK}.3"  # slirp4netns has them so


def missing() -> str:
    """What this machine lacks for it, in words; empty if nothing."""
    lacking = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if lacking:
        return f"no {', '.join(sorted(lacking))} on this machine (./dev programs installs them)"
    return str(netns.missing())


def debian() -> Path:
    """The folder with the files that all machines have in common, made the first time, which takes a minute or two.

    Raises:
        subprocess.CalledProcessError: Debian's packages can't be had.
    """
    folder = BASE / "debian"
    if folder.exists():
        return folder
    BASE.mkdir(parents=True, exist_ok=True)
    made = BASE / "unfinished"
    shutil.rmtree(made, ignore_errors=True)
    included = f"--include={','.join(PACKAGES)}"
    subprocess.run(["debootstrap", "--variant=minbase", included, "bookworm", str(made)], check=True)
    subprocess.run(["chroot", str(made), "useradd", "-m", "-s", "/bin/bash", "-p", "*", USER], check=True)
    (made / "etc/sudoers.d" / USER).write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
    (made / "etc/resolv.conf").write_text(f"nameserver {NAMES}\n")
    if AUTHORITIES.exists():  # whom this machine believes, where packages come from
        shutil.copy(AUTHORITIES, made / AUTHORITIES.relative_to("/"))
        (made / "etc/pip.conf").write_text(f"[global]\ncert = {AUTHORITIES}\n")
    made.rename(folder)
    return folder


class Machines(netns.Nodes):  # type: ignore[misc]
    """Machines 1 to `count`, and node 0 beside them; a context manager.

    Args:
        count: how many.
        public_key: file with the key of who may log in as `USER`.
    """

    def __init__(self, count: int, public_key: Path) -> None:
        super().__init__(count + 1)
        self._base, self._public_key = debian(), public_key
        self._world: subprocess.Popen[bytes] | None = None

    def address(self, number: int) -> str:
        """The address of a machine."""
        return f"{netns.NETWORK}.{number + 11}"

    def close(self) -> None:
        """Ends every machine and all that runs on it; safe to repeat."""
        super().close()
        if self._world is not None:
            self._world.kill()
            self._world.wait()

    def _add_node(self, number: int) -> None:
        super()._add_node(number)
        if number == 0:
            self._reach_the_world()
        else:
            self._ip(number, f"route add default via {GATEWAY}")

    def _reach_the_world(self) -> None:
        ready, told = os.pipe()
        options = [f"--cidr={netns.NETWORK}.0/24", "--disable-host-loopback", f"--ready-fd={told}"]
        self._world = subprocess.Popen(
            ["slirp4netns", *options, str(self._pid(0)), "world"], pass_fds=[told], stdout=subprocess.DEVNULL
        )
        os.close(told)
        with os.fdopen(ready, "rb") as said:
            if said.read(1) != b"1":
                raise RuntimeError("slirp4netns didn't start")
        self._ip(0, "link set world master switch; link set world up")

    def _start_ray(self, number: int) -> None:
        """Whoever logs in does."""

    def _set_up(self, number: int) -> str:
        if number == 0:
            return str(super()._set_up(number))
        own, cache = self._folder / f"machine{number}", BASE / "pip"
        for folder in (own / "upper", own / "work", own / "root", cache):
            folder.mkdir(parents=True, exist_ok=True)
        layers = f"lowerdir={self._base},upperdir={own}/upper,workdir={own}/work"
        home = f"home/{USER}"
        return f"""
            hostname machine{number}
            mount -t overlay overlay -o {layers} {own}/root
            cd {own}/root
            mkdir -p {home}/.ssh {home}/.cache/pip
            cp {self._public_key} {home}/.ssh/authorized_keys
            echo 127.0.1.1 machine{number} >> etc/hosts
            mount --bind {cache} {home}/.cache/pip
            chown -R --reference={home} {home}
            mount --rbind /dev dev && mount -t tmpfs tmpfs dev/shm
            mount --rbind /sys sys && mount -t proc proc proc && mount -t tmpfs tmpfs run && mkdir run/sshd
            ip link set lo up
            exec chroot . sh -ec '/usr/sbin/sshd -o UsePAM=no; exec python3 -c "$0"' "{INIT}"
        """

    def _inside(self, number: int, command: Sequence[str]) -> list[str]:
        entered = [str(part) for part in super()._inside(number, command)]
        return entered if number == 0 else [part if part != "--wdns=." else "--root" for part in entered]
