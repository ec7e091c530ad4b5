"""Runs a topology: `run` in this process, `submit` on Ray, `attach` to a running job."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rayelastic.errors import StateError
from rayelastic.job.control import LocalControl
from rayelastic.job.job import Job
from rayelastic.job.preparing import prepare
from rayelastic.job.uninterrupted import uninterrupted
from rayelastic.on_ray.jobs import find_coordinator, start_coordinator
from rayelastic.plan.config import Regions
from rayelastic.runtime.checkpoint.restore import check_initial_values
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.web.page import Page

if TYPE_CHECKING:
    from pathlib import Path

    from rayelastic.job.result import JobResult
    from rayelastic.plan.config import JobConfig
    from rayelastic.plan.settings.checkpoint import Checkpoint
    from rayelastic.runtime.values.snapshot import Snapshot
    from rayelastic.topology import Topology

_log = logging.getLogger(__name__)


def start(
    topology: Topology,
    config: JobConfig | None = None,
    *,
    metrics_port: int | None = None,
    restore: Snapshot | Checkpoint | str | Path | None = None,
) -> Job:
    """Start a topology in this process and return the running job; `run` is this and `wait`.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("numbers")
    >>> topology.source(rel.sequence(1000)).sink(rel.count(), name="n")
    <sink n>
    >>> job = rel.start(topology)
    >>> job.wait(timeout=60)["n"]
    1000
    """
    spec = prepare(topology, config, restore=restore)
    _check_page(spec.config)
    job = Job(spec.name, LocalControl(Coordinator(spec, InProcessHost())), topology)
    try:
        if metrics_port is not None:
            job._show_metrics(metrics_port, spec.config.network.tls)
        uninterrupted(job._start, f"start of {job.name}")
        job._show_page(spec.config)
    except BaseException:
        job.close()
        raise
    return job


def run(
    topology: Topology,
    config: JobConfig | None = None,
    *,
    metrics_port: int | None = None,
    restore: Snapshot | Checkpoint | str | Path | None = None,
) -> JobResult:
    """Run a topology in this process, without Ray, until its sources end.

    Ctrl-C stops the job and frees everything. It interrupts Python code of a function that doesn't return. A blocking
    call outside of Python keeps its thread until the process ends; a warning names it.

    Args:
        topology: what to run.
        config: Settings; `JobConfig()` by default.
        metrics_port: a port of this machine at which Prometheus finds the job's metrics while it runs; 0: a free one.
        restore: The snapshot to restore (see Job.snapshot and Job.stop). Or the location of a job's checkpoints, a
            folder or `rel.Checkpoint(location)`, of which the newest complete one is restored; "latest" is the location
            of `JobConfig(checkpoint=)`. If no checkpoint was ever complete there, the job starts afresh.

    Returns:
        The results of the sinks, by their names.

    Raises:
        DeclarationError: The topology is wrong; nothing was started. With "latest", all checkpoints are damaged.
        JobFailedError: An operator raised; the error names it, its tuple and the traceback.

    Example:
        >>> import rayelastic as rel
        >>> topology = rel.Topology("squares")
        >>> numbers = topology.source(rel.rows([(1,), (2,), (3,)], schema={"n": int}), name="numbers")
        >>> numbers.map(lambda t: t.n * t.n, lane="python", schema={"value": int}).sink(rel.list(), name="out")
        <sink out>
        >>> [t.value for t in rel.run(topology)["out"]]
        [1, 4, 9]
    """
    job = start(topology, config, metrics_port=metrics_port, restore=restore)
    try:
        return job.wait()
    finally:
        job.close()


def submit(
    topology: Topology,
    config: JobConfig | None = None,
    *,
    name: str | None = None,
    address: str | None = None,
    restore: Snapshot | Checkpoint | str | Path | None = None,
) -> Job:
    """Start a topology on Ray and return at once.

    One actor hosts each PE; a detached coordinator actor watches them. When one process can't keep up,
    more are started, on any node, and ended again when the load drops (`regions` and `elasticity` of `JobConfig`).

    Args:
        topology: The topology to run.
        config: As for `run`.
        name: The name of the job, unique on the cluster; the topology's by default.
        address: The Ray cluster; an initialised Ray is used as it is, otherwise one is found or started.
        restore: As for `run`, at a location that every node can read.

    Raises:
        DeclarationError: the topology is wrong, or an operator begins with what can't be pickled and `checkpoint=` is
            a rel.Checkpoint; nothing was started. Without a word on checkpoints there are none then, with a warning.
        RayUnreachableError: there is no Ray at the address.

    >>> job = rel.submit(topology, rel.JobConfig(checkpoint=rel.Checkpoint("s3://bucket/prices")))  # doctest: +SKIP
    >>> job.wait()["out"]  # doctest: +SKIP
    """
    spec = prepare(topology, config, name=name, restore=restore, regions=Regions.ELASTIC)
    if spec.config.checkpoint is None:
        try:
            check_initial_values(spec.operators.values())
        except StateError as error:
            _log.warning("job '%s' goes on without checkpoints: %s", spec.name, error)
    _check_page(spec.config)
    job = Job(spec.name, start_coordinator(spec, address=address), topology)
    try:
        job._start()
        job._show_page(spec.config)
    except BaseException:
        job.close()
        raise
    return job


def attach(name: str, *, address: str | None = None, owner: str | None = None) -> Job:
    """Find a job that runs on Ray by its name.

    A job of another user is yours to change if you name that user: several people may share a cluster, and a name.

    Args:
        name: of the job, as `submit` had it.
        address: the Ray cluster; an initialised Ray is used as it is, otherwise one is found.
        owner: the user who started it, as `job.status.owner` has it; by default the user of this process.

    Raises:
        RayUnreachableError: there is no Ray at the address.
        JobNotFoundError: no such job.
        JobOwnerError: another user started it.

    >>> rel.attach("prices").status.state  # doctest: +SKIP
    <State.RUNNING: 'running'>
    """
    control = find_coordinator(name, address=address, owner=owner)
    control.check_owner()
    return Job(name, control)


def view(name: str, *, address: str | None = None) -> Job:
    """Find a job that runs on Ray, to look at it; it can be changed if this user started it.

    >>> view("prices").status.owner  # doctest: +SKIP
    'alice'
    """
    return Job(name, find_coordinator(name, address=address))


def _check_page(config: JobConfig) -> None:
    """Serve the web UI for a moment, so that a port in use is an error before anything starts."""
    if config.web_port is not None:
        Page(port=config.web_port, tls=config.network.tls).close()
