"""`rayelastic rescale | leave | renew-secret | cancel`: what changes a job on Ray while it runs."""

from __future__ import annotations

import click

from rayelastic import job as jobs
from rayelastic.commands.options import JOB, address, as_programs, owner, show


@click.command
@JOB
@click.argument("region")
@click.argument("replicas", type=int)
@address
@owner
@as_programs
def rescale(job: str, region: str, replicas: int, address: str | None, owner: str | None, as_json_: bool) -> None:
    """Set the number of replicas of REGION, such as r1: `rayelastic inspect` shows the regions."""
    plan = jobs.attach(job, address=address, owner=owner).rescale(region, replicas)
    show(plan, plan.text().rstrip("\n"), as_json_=as_json_)


@click.command
@JOB
@click.argument("node")
@address
@owner
@as_programs
def leave(job: str, node: str, address: str | None, owner: str | None, as_json_: bool) -> None:
    """Move a job off NODE for good: `rayelastic inspect` shows the nodes."""
    plan = jobs.attach(job, address=address, owner=owner).leave(node)
    show(plan, plan.text().rstrip("\n"), as_json_=as_json_)


@click.command
@JOB
@address
@owner
@as_programs
def renew_secret(job: str, address: str | None, owner: str | None, as_json_: bool) -> None:
    """Restart a job from a checkpoint, with a new secret for its links."""
    jobs.attach(job, address=address, owner=owner).renew_secret()
    show({"job": job, "renewed": True}, f"job {job} has a new secret", as_json_=as_json_)


@click.command
@JOB
@click.option("--no-drain", is_flag=True, help="Stop at once; drop tuples on their way.")
@address
@owner
@as_programs
def cancel(job: str, no_drain: bool, address: str | None, owner: str | None, as_json_: bool) -> None:
    """Cancel a job: its sources stop, and tuples on their way arrive. `rayelastic stop` saves it first."""
    jobs.attach(job, address=address, owner=owner).cancel(drain=not no_drain)
    show({"job": job, "cancelled": True}, f"job {job} is being cancelled", as_json_=as_json_)
