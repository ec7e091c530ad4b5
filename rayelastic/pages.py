"""The web UI of the jobs on a Ray cluster, of one that this process runs, or of an ended one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic import job as jobs
from rayelastic.on_ray.cluster import dashboard
from rayelastic.on_ray.jobs import list_jobs
from rayelastic.web.journal_story import story
from rayelastic.web.page import HOST, Page
from rayelastic.web.ray_tab import Dashboard

if TYPE_CHECKING:
    from rayelastic.job import Job
    from rayelastic.runtime.values.status import JobStatus


class ClusterJobs:
    """The jobs of a Ray cluster.

    Args:
        address: The cluster's address; None: the one that is found.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address

    def listed(self) -> list[JobStatus]:
        """Return the jobs whose coordinator answers."""
        return list_jobs(address=self._address)

    def dashboard(self) -> Dashboard | None:
        """Return Ray's dashboard; None: it doesn't run."""
        address = dashboard()
        return None if address is None else Dashboard(*address)

    def opened(self, name: str) -> Job:
        """Return one of them; raise JobNotFoundError if it doesn't exist."""
        return jobs.view(name, address=self._address)


def cluster_page(name: str | None, address: str | None, port: int, host: str = HOST) -> Page:
    """Serve the web UI of a cluster's jobs.

    Args:
        name: The job to open first; None: any.
        address: The cluster's address; None: the one that is found.
        port: The port to listen on; 0: a free one.
        host: The address to listen on.

    Raises:
        RayUnreachableError: There is no Ray.
        JobNotFoundError: An unknown job.
        ConfigError: The port can't be opened.
    """
    known = ClusterJobs(address)
    known.listed()  # whether there is a cluster at all
    first = {name: known.opened(name)} if name is not None else {}
    for job in first.values():
        job.plan()  # whether it answers
    return Page(first, catalogue=known, port=port, host=host)


def journal_page(paths: Sequence[Path], port: int, host: str = HOST) -> Page:
    """Serve the web UI of an ended job, from its journals; needs no cluster.

    Args:
        paths: as `rel.Elasticity(journal=...)` said.
        port: to listen at; 0: a free one.
        host: the address to listen at.

    Raises:
        ConfigError: a file is no journal, or the port can't be opened.
    """
    journal_story = story(paths)
    return Page(histories={journal_story.plan.topology: journal_story}, port=port, host=host)


@contextmanager
def page_of(job: Job, port: int | None) -> Iterator[None]:
    """Serve the web UI of a job that this process runs, after its end until Ctrl-C.

    Args:
        job: The job.
        port: The port to listen on; None: no web UI.
    """
    if port is None:
        yield
        return
    page = Page({job.name: job}, port=port)
    try:
        print(f"web UI of job {job.name}: {page.url}", file=sys.stderr, flush=True)
        yield
        print("the job has ended; Ctrl-C ends its web UI", file=sys.stderr, flush=True)
        page.wait()
    finally:
        page.close()
