"""The actor shell of a job's coordinator: it only forwards calls to one plain object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ErrorCode, NotShippableError, StateError
from rayelastic.on_ray.metrics_publisher import MetricsPublisher
from rayelastic.on_ray.pe_actor import load, own_process
from rayelastic.on_ray.private import adapter
from rayelastic.on_ray.ray_host import RayHost
from rayelastic.on_ray.store.gcs_store import GcsStore
from rayelastic.runtime.job.keeper import Keeper
from rayelastic.runtime.journal import ChangeJournal
from rayelastic.runtime.remote import Call, perform

if TYPE_CHECKING:
    from ray.actor import ActorHandle

    from rayelastic.on_ray.pe_actor import PEActor

COORDINATOR_CLASS = "rayelastic.runtime.job.coordinator:Coordinator"


class CoordinatorActor:
    """The actor that hosts a job's coordinator, and makes the actors of its PEs.

    Args:
        path: The import path of its class.
        job: The job, pickled by cloudpickle; with a job id the digest of it, which is in the store.
        settings: The placement of its PEs.
        early: Processes that were started for the first of these.
    """

    def __init__(self, path: str, job: bytes, settings: Any, early: Sequence[ActorHandle[PEActor]] = ()) -> None:
        import cloudpickle

        self._refusal: Exception | None = None
        self._keeper: Keeper | None = None
        self._owner = settings.owner
        if not settings.job_id:
            self._coordinator = load(path)(cloudpickle.loads(job), RayHost(settings))
            return
        store, host = GcsStore(settings.job_id), RayHost(settings)
        try:
            made = cloudpickle.loads(store.job(job))
        except StateError as error:
            self._refusal = error
            return
        except (
            ImportError,
            AttributeError,
        ) as error:  # raised at the next call, as Ray would restart the actor again and again
            self._refusal = NotShippableError(
                f"a process of the cluster failed to load the job: {type(error).__name__}: {error}",
                hint="Install the module on every node, or send it along: "
                "ray.init(runtime_env={'working_dir': '.'}) or {'py_modules': [...]}, {'pip': [...]}",
                code=ErrorCode.MISSING_MODULE,
            )
            return
        own_process(made.config)
        journal = ChangeJournal(store)
        died = journal.incarnation > 0  # this process replaces a dead one
        if not died:
            host.adopt(early)
        try:
            self._coordinator = load(path)(made, host, journal=journal)
        except StateError as error:  # the location of its checkpoints can't be accessed
            if died:
                raise  # Ray restarts it while the elements keep running
            self._refusal = error
            host.close()
            return
        if died:
            self._coordinator.resume()
        MetricsPublisher(self._coordinator, settings.job_id)
        coordinator = self._coordinator
        self._keeper = Keeper(lambda: coordinator.status().state, driver_has_gone(), self._end)
        self._keeper.start()

    def call(self, call: Call) -> Any:
        """Call a public method of the coordinator; `owner` is answered by this process, whatever it hosts."""
        if call.method == "owner":
            return self._owner
        if self._refusal is not None:
            if call.method == "close":
                return None
            raise self._refusal
        if self._keeper is not None:
            self._keeper.asked(call.method)
        return perform(self._coordinator, call)

    def _end(self) -> None:
        import ray

        try:
            self._coordinator.close()
        finally:
            ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


def driver_has_gone() -> Callable[[], bool]:
    """Return a function that reports whether the driver of this actor has ended, as far as Ray knows."""
    import ray

    driver = ray.get_runtime_context().get_job_id()
    return lambda: adapter.driver_is_dead(driver)
