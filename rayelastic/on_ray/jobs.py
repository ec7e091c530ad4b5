"""The jobs of a Ray cluster: each has a detached coordinator actor, which any driver finds by the job's name."""

from __future__ import annotations

import contextlib
import functools
import time
from typing import TYPE_CHECKING, Any, cast

from rayelastic.errors import (
    JobExistsError,
    JobNotFoundError,
    JobOwnerError,
    NotShippableError,
    PELostError,
    StateError,
    UnavailableError,
)
from rayelastic.graph.spec.order import check_shippable
from rayelastic.on_ray.calls import answer
from rayelastic.on_ray.connect import NAMESPACE, ensure_ray, warn_of_open_cluster
from rayelastic.on_ray.coordinator_actor import COORDINATOR_CLASS, CoordinatorActor
from rayelastic.on_ray.pe_actor import PE_CLASS
from rayelastic.on_ray.ray_host import CONTROL_THREADS, PlacementSettings, RayHost
from rayelastic.on_ray.store.gcs_store import GcsStore
from rayelastic.runtime.remote import Call, Remote
from rayelastic.runtime.values.specs import user_name

if TYPE_CHECKING:
    from ray.actor import ActorHandle
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from rayelastic.on_ray.pe_actor import PEActor
    from rayelastic.runtime.job.api import CoordinatorApi
    from rayelastic.runtime.values.specs import JobSpec
    from rayelastic.runtime.values.status import JobStatus

PREFIX = "job:"  # of the name of a coordinator's actor
QUESTIONS = (  # calls that are safe to repeat
    *("status", "plan", "describe", "metrics", "adaptations", "wait", "results", "read_state"),
    *("ingest_address", "secure_source", "fail_source", "finish_source"),
    "owner",
)
RETRY = 0.2  # seconds until a call to a coordinator that is being replaced is repeated
STATUS_TIMEOUT = 10.0  # seconds for a coordinator to return its job's status
SOME_MEMORY = 1 << 20  # bytes; without any requirement, Ray ignores the requested node of an actor
CLOSE_TIMEOUT = 30.0  # seconds for a coordinator to end its PEs


class RayControl:
    """A coordinator in its actor.

    Args:
        job: the name of the job.
        actor: the coordinator's actor.
        owner: whose job it has to be before anything but a question is asked; None: anybody's.
    """

    def __init__(self, job: str, actor: ActorHandle[CoordinatorActor], owner: str | None = None) -> None:
        self._job = job
        self._actor = actor
        self._owner = owner

    def within(self, timeout: float) -> CoordinatorApi:
        """Return the coordinator, whose methods wait for its answer; repeatable calls wait for a dead one's successor.

        They raise the method's exception, PELostError if its process is gone, or TimeoutError if there is no answer in
        time. In the last case the call may have run or not.
        """
        return cast("CoordinatorApi", Remote(functools.partial(self._ask, timeout)))

    def check_owner(self) -> None:
        """Find out whose job it is.

        Raises:
            JobOwnerError: It is somebody else's.
        """
        if self._owner is None:
            return
        theirs = self._ask(STATUS_TIMEOUT, Call("owner"))
        if theirs and theirs != self._owner:
            raise _foreign(self._job, theirs)
        self._owner = None

    def _ask(self, timeout: float, call: Call) -> Any:
        if call.method not in QUESTIONS:
            self.check_owner()
        until = time.monotonic() + timeout
        while True:
            reference = self._actor.call.remote(call)
            try:
                return answer(reference, f"the coordinator of job {self._job!r}", call.method, timeout)
            except UnavailableError:
                if call.method not in QUESTIONS or time.monotonic() + RETRY > until:
                    raise
            time.sleep(RETRY)

    def close(self) -> None:
        """End the coordinator and everything that it started; safe to repeat, and after Ray was shut down."""
        import ray

        if not ray.is_initialized():
            return
        with contextlib.suppress(PELostError, TimeoutError):
            self.within(CLOSE_TIMEOUT).close()
        ray.kill(self._actor, no_restart=True)


def start_coordinator(
    spec: JobSpec,
    *,
    address: str | None = None,
    pe_class: str = PE_CLASS,
    coordinator_class: str = COORDINATOR_CLASS,
) -> RayControl:
    """Make the coordinator of a job in a detached actor of its own; it starts nothing yet.

    The name of a job that has ended is free again.

    Args:
        spec: The job.
        address: The Ray cluster, as for `ensure_ray`.
        pe_class: The import path of the class in the actors of its PEs.
        coordinator_class: The import path of the class in the coordinator's actor.

    Raises:
        RayUnreachableError: There is no Ray.
        JobExistsError: A job of this name runs.
        JobOwnerError: A job of this name has ended, which another user started.
    """
    pickled = shipped(spec)
    ensure_ray(address)
    warn_of_open_cluster()
    import ray

    _free_name(spec.name)
    spreads = len(spec.plan.pes) > 1
    settings = PlacementSettings(spec.config.threads.ray_cpus, spreads, pe_class, spec.job_id, spec.owner)
    early: list[ActorHandle[PEActor]] = []
    if spec.job_id:
        pickled = GcsStore(spec.job_id).keep_job(pickled)
        early = RayHost(settings).start_early(len(spec.plan.pes))
    try:
        actor = (
            ray.remote(CoordinatorActor)
            .options(
                name=PREFIX + spec.name,
                namespace=NAMESPACE,
                lifetime="detached",
                num_cpus=0,
                memory=SOME_MEMORY,
                max_restarts=-1 if spec.job_id else 0,  # the next one continues from the journal
                max_concurrency=2 * CONTROL_THREADS,
                scheduling_strategy=_near_driver(),
            )
            .remote(coordinator_class, pickled, settings, early)
        )
    except ValueError as error:  # another driver took the name meanwhile
        for actor in early:
            ray.kill(actor, no_restart=True)
        if spec.job_id:
            GcsStore(spec.job_id).close()
        raise _exists(spec.name) from error
    return RayControl(spec.name, actor)


def _near_driver() -> NodeAffinitySchedulingStrategy:
    """Place it on the node of this driver, so that no network failure separates them, if it exists."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)


def shipped(spec: JobSpec) -> bytes:
    """Return the job as bytes, including modules that are registered to be pickled by value, which Ray would only name.

    Raises:
        NotShippableError: Something in it can't be sent to another process; the message names the operator.
    """
    import cloudpickle

    try:
        pickled: bytes = cloudpickle.dumps(spec)
    except Exception as error:  # whatever a user's __reduce__ raises
        check_shippable(spec.operators.values())
        raise NotShippableError(f"job {spec.name!r} can't be sent to another process: {error}") from error
    return pickled


def find_coordinator(name: str, *, address: str | None = None, owner: str | None = None) -> RayControl:
    """Find the coordinator of a job by the job's name, from any driver of the cluster.

    Args:
        name: The job's.
        address: As for `ensure_ray`.
        owner: Whose job it has to be before it is changed; None: this user's.

    Raises:
        RayUnreachableError: there is no Ray.
        JobNotFoundError: no job of this name.
    """
    ensure_ray(address, start=False)
    import ray

    try:
        return RayControl(name, ray.get_actor(PREFIX + name, namespace=NAMESPACE), owner or user_name())
    except ValueError as error:
        running = ", ".join(repr(job) for job in _names()) or "none"
        raise JobNotFoundError(f"no job {name!r} on this cluster; there are: {running}") from error


def list_jobs(*, address: str | None = None) -> list[JobStatus]:
    """Return the status of every job on the cluster whose coordinator answers.

    Raises:
        RayUnreachableError: there is no Ray.
    """
    ensure_ray(address, start=False)
    statuses = []
    for name in _names():
        with contextlib.suppress(JobNotFoundError, PELostError, TimeoutError):  # gone meanwhile
            statuses.append(find_coordinator(name).within(STATUS_TIMEOUT).status())
    return statuses


def _names() -> list[str]:
    import ray

    actors = ray.util.list_named_actors(all_namespaces=True)
    names = (actor["name"] for actor in actors if actor["namespace"] == NAMESPACE)
    return sorted(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))


def _free_name(name: str) -> None:
    """Remove the coordinator of a job of this name that has ended; reject if it hasn't."""
    if name not in _names():
        return
    with contextlib.suppress(JobNotFoundError, PELostError):
        control = find_coordinator(name)
        with contextlib.suppress(NotShippableError, StateError):  # it has nothing but a coordinator
            if not control.within(STATUS_TIMEOUT).status().state.is_final:
                raise _exists(name)
        control.check_owner()
        control.close()


def _foreign(name: str, owner: str) -> JobOwnerError:
    return JobOwnerError(
        f"the job {name!r} was started by {owner!r}, and this process runs as {user_name()!r}",
        hint=f"Use another name. If you may change it: rel.attach({name!r}, owner={owner!r}), or --owner {owner}; "
        "close() of that removes it",
    )


def _exists(name: str) -> JobExistsError:
    return JobExistsError(
        f"a job {name!r} runs on this cluster already",
        hint=f"Use another name, attach to it (rel.attach({name!r})), or end it (rayelastic cancel {name})",
    )
