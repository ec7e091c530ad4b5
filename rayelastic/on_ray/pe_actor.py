"""The actor shell of a PE: it only forwards calls to one plain object.

The object is made from its class's import path in the actor's own process, so that tests can use small classes instead.
Every method is called through `call`; several run at once, on threads of the actor.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import socket
import sys
from typing import Any

from rayelastic.errors import PELostError
from rayelastic.on_ray.lease import Lease
from rayelastic.runtime.element.script_classes import name_script_classes
from rayelastic.runtime.remote import Call, perform
from rayelastic.runtime.watch.event_log import RateLimited, write_events

PE_CLASS = "rayelastic.runtime.element.processing_element:ProcessingElement"


def load(path: str) -> Any:
    """Return the object at `module:name`.

    >>> load("collections:Counter").__name__
    'Counter'
    """
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


class PEActor:
    """The actor that hosts a PE.

    Args:
        path: The import path of its class.
        spec: Its specification; None: it waits for one, as a spare.
        lease: Seconds without a call after which its process ends; None: it ends with that of its maker.

    Its data port binds to the address that this node has in Ray (reliability rule D1).
    """

    def __init__(self, path: str, spec: Any | None, lease: float | None = None) -> None:
        self._path = path
        self._class = load(path)
        self._spec: Any = None
        self._element: Any = None
        self._lease = Lease(lease, self._end) if lease is not None else None
        if spec is not None:
            self.host(spec)

    def host(self, spec: Any) -> None:
        """Make the PE."""
        import ray

        if self._path == PE_CLASS:
            own_process(spec.config)
            name_script_classes(spec.operators)
        self._element = self._class(spec, host=ray.util.get_node_ip_address())
        self._spec = spec

    def clear(self) -> None:
        """End the PE, so that the process can host another one.

        Raises:
            RuntimeError: A function of it doesn't return, so the process can't be reused.
        """
        element, self._element, self._spec = self._element, None, None
        element.close()
        if element.left_behind:
            raise RuntimeError(f"{', '.join(element.left_behind)} still run here")
        del element
        gc.collect()  # its parts form cycles: its state, sockets and threads would stay until Python's next collection

    def about(self) -> tuple[str, int, str]:
        """Return the id of its element, the element's epoch, and its node; an empty id: it has none yet."""
        if self._lease is not None:
            self._lease.renew()
        pe, epoch = (self._spec.pe, self._spec.epoch) if self._spec is not None else ("", 0)
        return pe, epoch, socket.gethostname()

    def call(self, call: Call) -> Any:
        """Call a public method of the PE; PELostError: there is none, or none any more."""
        if self._lease is not None:
            self._lease.renew()
        element = self._element
        if element is None:  # the caller still means the previous one
            raise PELostError("the PE is gone: its process waits for another one")
        try:
            return perform(element, call)
        finally:
            if element is not self._element:  # it was cleared meanwhile
                del element
                gc.collect()

    def _end(self) -> None:
        try:
            if self._element is not None:
                self._element.close()
        finally:
            os._exit(1)


def own_process(config: Any) -> None:
    """Make a process of a job write its events, what operators print at a bounded rate, and its crashes."""
    write_events(config.log_level, sys.stderr)
    if isinstance(sys.stdout, RateLimited):  # another element was here before
        return
    faulthandler.enable(sys.stderr)  # native code of users' libraries: the traceback has their function
    sys.stdout, sys.stderr = RateLimited(sys.stdout), RateLimited(sys.stderr)
