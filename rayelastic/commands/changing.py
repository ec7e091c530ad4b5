"""`rayelastic rescale | leave | renew-secret`: what changes about a job on Ray while it runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rayelastic import job as jobs

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["add_changing_commands"]


def add_changing_commands(add: Callable[..., argparse.ArgumentParser]) -> list[argparse.ArgumentParser]:
    """Adds the commands; all of them take --address."""
    rescale = add("rescale", help="give a region of a job on Ray another number of replicas")
    rescale.add_argument("job")
    rescale.add_argument("region", help="its name in the plan, such as r1; rayelastic inspect shows it")
    rescale.add_argument("replicas", type=int)
    rescale.set_defaults(command=_rescale)
    leave = add("leave", help="have a job on Ray leave a machine for good; it goes on elsewhere")
    leave.add_argument("job")
    leave.add_argument("node", help="its name; rayelastic inspect shows it")
    leave.set_defaults(command=_leave)
    renew = add("renew-secret", help="have a job on Ray go on with another secret, from a checkpoint of now")
    renew.add_argument("job")
    renew.set_defaults(command=_renew_secret)
    return [rescale, leave, renew]


def _rescale(options: argparse.Namespace) -> int:
    job = jobs.attach(options.job, address=options.address)
    print(job.plan().text(), end="")
    print(job.rescale(options.region, options.replicas).text(), end="")
    return 0


def _leave(options: argparse.Namespace) -> int:
    print(jobs.attach(options.job, address=options.address).leave(options.node).text(), end="")
    return 0


def _renew_secret(options: argparse.Namespace) -> int:
    jobs.attach(options.job, address=options.address).renew_secret()
    print(f"job '{options.job}' goes on with another secret")
    return 0
