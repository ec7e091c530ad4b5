"""`rayelastic demo`: the applications of `rayelastic.topologies`, and a look at one of them while it runs.

In a terminal the picture of `rayelastic top`; elsewhere plain lines, one a period, with each adaptation and its reason.
Knows the applications by name alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.plan.plan_text import counted, short
from rayelastic.top import PERIOD, View, picture, top, view
from rayelastic.web.events import event_of

if TYPE_CHECKING:
    from rich.console import Console

    from rayelastic.job import Job
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_adaptation import RegionAdaptation
    from rayelastic.runtime.values.status import JobMetrics

MOST_EXPENSIVE = 3  # operators that a line names
LONGEST_GRAPH = 60  # operators of a graph that is shown whole


@dataclass(frozen=True, slots=True)
class Application:
    """One of the applications.

    Args:
        name: of its module in `rayelastic.topologies`.
        text: what it does, in a line.
        options: parameters of its `build` in a demo: enough input for some seconds.
    """

    name: str
    text: str
    options: Mapping[str, object] = field(default_factory=dict)


APPLICATIONS = {
    one.name: one
    for one in (
        Application("load_step", "200 requests a second, then 800: the runtime adapts"),
        Application("word_count", "words of the sources of Python's library, counted"),
        Application("vwap", "bargains among quotes, against the average of trades", {"days": 200}),
        Application("login_failures", "attempts to break in, from a log of failed logins", {"repeat": 40}),
        Application(
            "packet_analysis", "generated domains, tunnels, bursts in traffic", {"operators": 387, "repeat": 40}
        ),
        Application("radio_imaging", "a picture of the sky from an interferometer's samples", {"samples": 200_000}),
        Application("wiki_word_count", "words of the latest changes to a wiki, to a WebSocket", {"count": 20_000}),
    )
}


def listing() -> str:
    """Return the applications, and how to start one."""
    lines = [f"  {one.name:<16} {one.text}" for one in APPLICATIONS.values()]
    return "\n".join(["Applications; `rayelastic demo NAME` runs one:", *lines])


def show(job: Job, console: Console) -> None:
    """Show a job until it ends: live in a terminal, else in plain lines.

    Args:
        job: that runs.
        console: where to.
    """
    if console.is_terminal:
        top(job, console)
        return
    plan = job.plan()
    operators = sum(len(planned.region.operators) for planned in plan.regions)
    graph = plan.text().rstrip() if operators <= LONGEST_GRAPH else f"{plan.topology}: {counted(operators, 'operator')}"
    console.print(graph, highlight=False, markup=False, soft_wrap=True)
    for line in lines(job):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(picture(view(job, None), console.width, console.height))


def lines(job: Job) -> Iterator[str]:
    """Yield lines about a job until it ends: its load, and each change with its reason."""
    before: JobMetrics | None = None
    shown: set[tuple[str, int]] = set()
    while True:
        seen = view(job, before)
        yield line_of(seen, before)
        for one in fresh(job, shown):
            done = event_of(one)
            yield f"{done.seconds:6.1f} s  changed: {done.title}"
            yield f"          why: {done.reason}"
        before = seen.metrics
        if seen.status.state.is_final:
            return
        job.pause(PERIOD)


def fresh(job: Job, shown: set[tuple[str, int]]) -> Iterator[Adaptation | RegionAdaptation]:
    """Yield the adaptations that weren't shown before."""
    for one in job.adaptations():
        if (one.pe, one.number) not in shown:
            shown.add((one.pe, one.number))
            yield one


def line_of(seen: View, before: JobMetrics | None) -> str:
    """Return a line: time, threads, queues, tuples a second from the sources, the most expensive operators."""
    threads = sum(pe.threads for pe in seen.metrics.pes)
    queues = sum(one.model == "dynamic" for pe in seen.metrics.pes for one in pe.operators)
    head = f"{seen.metrics.seconds:6.1f} s  {counted(threads, 'thread')}, {counted(queues, 'queue')}"
    if before is None:
        return head
    rate = sum(row.rate_out for row in seen.rows if row.operator.tuples_in == 0)
    costs = ", ".join(f"{row.operator.name} {row.cost:.0%}" for row in seen.rows[:MOST_EXPENSIVE])
    return f"{head}  {short(rate)} tuples/s in; CPU: {costs}"


def command() -> str:
    """Return how the user's shell finds `rayelastic`: by name, or by path if the environment isn't activated.

    PATH doesn't decide: a task runner may put the environment there for its commands alone.
    """
    beside = Path(sys.executable).parent / "rayelastic"
    activated = sys.prefix == sys.base_prefix or os.environ.get("VIRTUAL_ENV") == sys.prefix
    if activated or not beside.exists():
        return "rayelastic"
    near = os.path.relpath(beside)
    return str(beside) if near.startswith("..") else near


def next_commands(application: str) -> str:
    """Return what to try after an application, as commands that work as printed."""
    rayelastic, other = command(), "vwap" if application != "vwap" else "login_failures"
    return "\n".join(
        (
            "next:",
            f"  {rayelastic} demo {application} --web    # the same in the web UI; Ctrl-C ends it",
            f"  {rayelastic} demo {other}",
            f"  {rayelastic} demo    # all applications",
        )
    )
