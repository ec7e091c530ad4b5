"""The two actor shells: each is a door to one plain object, and nothing else.

The object is made from its class's import path in the actor's own process, so that tests put small classes behind the
same doors. Every method of it is reached through `call`; several run at once, on threads of the actor.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

PE_CLASS = "rayelastic.runtime.processing_element:ProcessingElement"
COORDINATOR_CLASS = "rayelastic.runtime.coordinator:Coordinator"


def load(path: str) -> Any:
    """Gives the object at `module:name`.

    >>> load("collections:Counter").__name__
    'Counter'
    """
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


class PEActor:
    """The actor that hosts a processing element.

    Args:
        path: the import path of its class.
        spec: what it is made from.

    Its data port binds to the address that this node has in Ray (reliability rule D1).
    """

    def __init__(self, path: str, spec: Any) -> None:
        import ray

        if path == PE_CLASS:
            _own_process(spec.config)
        self._element = load(path)(spec, host=ray.util.get_node_ip_address())

    def call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Calls a public method of the processing element."""
        return getattr(self._element, _public(method))(*arguments)


class CoordinatorActor:
    """The actor that hosts a job's coordinator, and makes the actors of its processing elements.

    Args:
        path: the import path of its class.
        job: what it coordinates, pickled by cloudpickle.
        settings: how its processing elements are placed.
    """

    def __init__(self, path: str, job: bytes, settings: Any) -> None:
        import cloudpickle

        from rayelastic.on_ray.metrics_publisher import MetricsPublisher
        from rayelastic.on_ray.ray_host import RayHost

        made = cloudpickle.loads(job)
        if path == COORDINATOR_CLASS:
            _own_process(made.config)
        self._coordinator = load(path)(made, RayHost(settings))
        if path == COORDINATOR_CLASS:
            MetricsPublisher(self._coordinator)

    def call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Calls a public method of the coordinator."""
        return getattr(self._coordinator, _public(method))(*arguments)


def _own_process(config: Any) -> None:
    """Has a process that belongs to a job write the job's events, and what operators print at a bounded rate."""
    from rayelastic.runtime.event_log import RateLimited, write_events

    write_events(config.log_level, sys.stderr)
    sys.stdout = RateLimited(sys.stdout)


def _public(method: str) -> str:
    if method.startswith("_"):
        raise AttributeError(f"{method} is not a public method")
    return method
