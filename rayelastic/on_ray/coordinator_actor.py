"""The actor shell of a job's coordinator: a door to one plain object, as that of a processing element is."""

from __future__ import annotations

from typing import Any

from rayelastic.on_ray.gcs_store import GcsStore
from rayelastic.on_ray.metrics_publisher import MetricsPublisher
from rayelastic.on_ray.pe_actor import load, own_process
from rayelastic.on_ray.ray_host import RayHost
from rayelastic.runtime.remote import Call, perform
from rayelastic.runtime.rescale.change_journal import ChangeJournal

COORDINATOR_CLASS = "rayelastic.runtime.job.coordinator:Coordinator"


class CoordinatorActor:
    """The actor that hosts a job's coordinator, and makes the actors of its processing elements.

    Args:
        path: the import path of its class.
        job: what it coordinates, pickled by cloudpickle; empty: it is in the store.
        settings: how its processing elements are placed.
    """

    def __init__(self, path: str, job: bytes, settings: Any) -> None:
        import cloudpickle

        if not settings.job_id:
            self._coordinator = load(path)(cloudpickle.loads(job), RayHost(settings))
            return
        store = GcsStore(settings.job_id)
        made = cloudpickle.loads(store.job())
        own_process(made.config)
        journal = ChangeJournal(store)
        died = journal.incarnation > 0  # this is the process after one that did
        self._coordinator = load(path)(made, RayHost(settings), journal=journal)
        if died:
            self._coordinator.resume()
        MetricsPublisher(self._coordinator)

    def call(self, call: Call) -> Any:
        """Calls a public method of the coordinator."""
        return perform(self._coordinator, call)
