"""`rayelastic jobs | inspect | top | web | plot | doctor`: commands that look, and change nothing."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click
from rich.console import Console

from rayelastic import job as jobs
from rayelastic.commands.options import JOB, address, as_programs, show
from rayelastic.doctor import examine, first_minute
from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.on_ray.jobs import list_jobs
from rayelastic.pages import cluster_page, journal_page
from rayelastic.plan.plan_text import counted
from rayelastic.plot import plot_journals
from rayelastic.progress import remarks
from rayelastic.top import PERIOD, picture, view
from rayelastic.top import top as show_live
from rayelastic.web.events import event_of
from rayelastic.web.page import HOST

if TYPE_CHECKING:
    from rayelastic.runtime.values.status import JobStatus

PATHS = click.Path(path_type=Path)


@click.command
@address
@as_programs
def jobs_(address: str | None, as_json_: bool) -> None:
    """List the jobs on a Ray cluster."""
    found = list_jobs(address=address)
    lines = (
        f"{one.name:<30} {one.state.value:<10} {counted(len(one.pes), 'PE'):<8} {one.owner}{_past(one)}"
        for one in found
    )
    show(found, "\n".join(lines) or "no jobs", as_json_=as_json_)


def _past(status: JobStatus) -> str:
    """Return what happened to a job, in parentheses."""
    return f"  ({status.history})" if status.history else ""


@click.command
@JOB
@click.option("--follow", is_flag=True, help="Print each adaptation with its reason, as it happens.")
@click.option("--every-pass", is_flag=True, help="Also passes that changed nothing.")
@address
@as_programs
def inspect(job: str, follow: bool, every_pass: bool, address: str | None, as_json_: bool) -> None:
    """Show plan, state and counters of a job on Ray."""
    found = jobs.view(job, address=address)
    status, metrics = found.status, found.metrics()
    if as_json_:
        if follow:
            raise ConfigError(
                "--json with --follow", hint="Leave one of them out", code=ErrorCode.CONFLICTING_ARGUMENTS
            )
        adaptations = [event_of(one).as_dict() for one in found.adaptations(every_pass=every_pass)]
        value = {"status": status, "metrics": metrics, "plan": found.plan(), "adaptations": adaptations}
        show(value, "", as_json_=True)
        return
    print(f"job {status.name}: {status.state.value}, started by {status.owner}{_past(status)}")
    for said in (status.failure and f"{status.failure.reason} [{status.failure.code}]", status.outage):
        if said:
            print(f"  {said}")
    for pe in status.pes:
        print(f"  {pe.pe}: {pe.state.value} on {pe.node or '?'}, process {pe.pid}")
    print(found.plan().text())
    print(f"{'operator':<24} {'model':<10} {'in':>14} {'out':>14} {'queued':>10}")
    for sample in metrics.pes:
        for one in sample.operators:
            counts = f"{one.tuples_in:>14,} {one.tuples_out:>14,} {one.queued:>10,}"
            print(f"{one.name:<24} {one.model:<10} {counts}")
    for line in remarks(metrics):
        print(line)
    print("adaptations:")
    for adaptation in found.adaptations(follow, every_pass):
        print(f"  {adaptation}", flush=True)


@click.command
@JOB
@click.option("--once", is_flag=True, help="One picture, of a second, and no more.")
@address
@as_programs
def top(job: str, once: bool, address: str | None, as_json_: bool) -> None:
    """Show what a job on Ray does, live; --json needs --once."""
    found = jobs.view(job, address=address)
    if as_json_ and not once:
        raise ConfigError("--json without --once", hint="Add --once", code=ErrorCode.MISSING_ARGUMENT)
    console = Console()
    if not once:
        show_live(found, console)
        return
    before = found.metrics()
    found.pause(PERIOD)
    seen = view(found, before)
    if as_json_:
        show(seen, "", as_json_=True)
    else:
        console.print(picture(seen, console.width, 1000))


@click.command
@click.argument("job", required=False)
@click.option("--journal", multiple=True, type=PATHS, metavar="FILE", help="A file of --journal: needs no cluster.")
@click.option("--port", default=8080, show_default=True, help="Where to serve it; 0: a free port.")
@click.option("--host", default=HOST, show_default=True, help="The address to listen at.")
@address
@as_programs
def web(job: str | None, journal: tuple[Path, ...], port: int, host: str, address: str | None, as_json_: bool) -> None:
    """Serve the web UI of the jobs on Ray, JOB first, or of a job that has ended."""
    page = journal_page(journal, port, host) if journal else cluster_page(job, address, port, host)
    with closing(page):
        start = f"#{quote(job)}" if job and not journal else ""
        show({"url": f"{page.url}{start}"}, f"the web UI: {page.url}{start}\nCtrl-C ends it", as_json_=as_json_)
        page.wait()


@click.command
@click.argument("journal", nargs=-1, required=True, type=PATHS)
@click.option("-o", "--output", default=Path("run.png"), show_default=True, type=PATHS, help="The picture.")
@as_programs
def plot(journal: tuple[Path, ...], output: Path, as_json_: bool) -> None:
    """Draw throughput, threads, queues and replicas over time from files of --journal."""
    plot_journals(list(journal), output)
    show({"picture": str(output)}, str(output), as_json_=as_json_)


@click.command
@click.option("--times", is_flag=True, help="Also how long the import and the first runs take.")
@address
@as_programs
@click.pass_context
def doctor(context: click.Context, times: bool, address: str | None, as_json_: bool) -> None:
    """Check this machine, and name what is missing and how to get it."""
    findings = []
    for finding in examine(os.environ, address):
        findings.append(finding)
        if not as_json_:
            print(finding, flush=True)
    seconds = first_minute() if times else None
    if as_json_:
        show({"findings": findings, "times": seconds}, "", as_json_=True)
    elif seconds is not None:
        print(seconds)
    context.exit(0 if all(one.good or one.optional for one in findings) else 1)
