"""Small classes that the actor shells host in tests, in the place of PEs and coordinators."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from rayelastic.errors import LinkError, PELostError
from rayelastic.on_ray.ray_host import RayHandle, RayHost
from rayelastic.runtime.values.status import JobStatus, State

if TYPE_CHECKING:
    from rayelastic.on_ray.jobs import RayControl

PE_PATH = f"{__name__}:PlainPE"
COORDINATOR_PATH = f"{__name__}:PlainCoordinator"
START_TIMEOUT = 60.0
WAIT = 2.0


@dataclass(frozen=True)
class PlainSpec:
    pe: str
    node: str = ""


@dataclass(frozen=True)
class PlainJob:
    name: str
    pe_names: tuple[str, ...] = ("pe0", "pe1")
    secret: bytes = field(default=b"", repr=False)
    job_id: str = ""  # nobody goes on after it
    owner: str = ""

    @property
    def config(self) -> Any:
        return SimpleNamespace(threads=SimpleNamespace(ray_cpus=0.25))

    @property
    def plan(self) -> Any:
        return SimpleNamespace(pes=self.pe_names)


class PlainPE:
    def __init__(self, spec: PlainSpec, *, host: str) -> None:
        if spec.pe == "broken":
            raise LinkError("it can't be made", link="a->b")
        self.spec, self.host = spec, host
        self.event = threading.Event()

    def about(self) -> tuple[str, str, int]:
        return self.spec.pe, self.host, os.getpid()

    def wait(self, seconds: float) -> bool:
        return self.event.wait(seconds)

    def set(self) -> None:
        self.event.set()

    def fail(self) -> None:
        raise LinkError("a link broke", link="a->b", hint="Mend it")

    def close(self) -> None:
        self.event.set()


def element_at(handle: RayHandle, timeout: float) -> PlainPE:
    return cast("PlainPE", handle.within(timeout))


def coordinator_at(control: RayControl, timeout: float) -> PlainCoordinator:
    return cast("PlainCoordinator", control.within(timeout))


class PlainCoordinator:
    """Watches its PEs as the real one does: a waiting call to each, again and again."""

    def __init__(self, job: PlainJob, host: RayHost) -> None:
        self.job, self.host = job, host
        self.handles: dict[str, RayHandle] = {}
        self.lost = threading.Event()
        self.reason = ""
        self.state = State.CREATED

    def start(self) -> dict[str, int]:
        self.handles = {pe: self.host.start_pe(PlainSpec(pe)) for pe in self.job.pe_names}  # type: ignore[arg-type]
        about = {pe: element_at(handle, START_TIMEOUT).about() for pe, handle in self.handles.items()}
        for handle in self.handles.values():
            threading.Thread(target=self._watch, args=(handle,), daemon=True).start()
        self.state = State.RUNNING
        return {pe: pid for pe, (_, _, pid) in about.items()}

    def _watch(self, handle: RayHandle) -> None:
        while not self.lost.is_set():
            try:
                element_at(handle, WAIT + START_TIMEOUT).wait(WAIT)
            except PELostError as error:
                self.reason, self.state = str(error), State.FAILED
                self.lost.set()

    def wait_for_loss(self, seconds: float) -> str:
        return self.reason if self.lost.wait(seconds) else ""

    def status(self) -> JobStatus:
        return JobStatus(self.job.name, self.state)

    def close(self) -> None:
        self.lost.set()
        for handle in self.handles.values():
            handle.kill()
