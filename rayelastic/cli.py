"""The command line: `rayelastic demo | plan | run | submit | jobs | inspect | rescale | leave | state | ...`.

`plan`, `run` and `submit` take a topology file and turn the parameters of its `build` into options, so
`rayelastic run topologies/word_count.py --help` lists them.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TextIO
from urllib.parse import quote

from rayelastic import job as jobs
from rayelastic.commands.changing import add_changing_commands
from rayelastic.commands.completion import add_completion
from rayelastic.commands.state import add_restore, add_state_commands, checkpointed, restored
from rayelastic.demo import APPLICATIONS, listing, show
from rayelastic.doctor import examine, first_minute
from rayelastic.errors import ConfigError, JobCancelledError, JobFailedError, RayelasticError, SourceError
from rayelastic.on_ray.jobs import list_jobs
from rayelastic.on_ray.probe import find_cluster
from rayelastic.pages import cluster_page, journal_page, page_of
from rayelastic.plain_values import as_json
from rayelastic.plan.config import Elasticity, JobConfig, Regions
from rayelastic.plot import plot_journals
from rayelastic.progress import Progress, summary_line, told
from rayelastic.runtime.ingest.external_source import ExternalSource
from rayelastic.top import PERIOD, picture, top, view
from rayelastic.topology_file import TopologyFile
from rayelastic.web.events import event_of
from rayelastic.web.page import HOST

if TYPE_CHECKING:
    from rich.console import Console


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: without the program's name; the process's own if not given.

    Returns:
        The exit status: 0, 1 for a job that failed, 2 for a mistake in what was asked, 130 after Ctrl-C, 141 if whoever
        read what it printed has gone.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _parse(arguments)
        command: Callable[[argparse.Namespace], int] = options.command
        status = command(options)
        sys.stdout.flush()
    except BrokenPipeError:
        if not _is_closed(sys.stdout):
            raise
        return 141
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except (JobFailedError, JobCancelledError) as error:
        print(error, file=sys.stderr)
        return 1
    except RayelasticError as error:
        print(error, file=sys.stderr)
        return 2
    return status


def _is_closed(stream: TextIO) -> bool:
    """Whether whoever read a stream has gone; if so what is left goes nowhere, or Python would say so at its end."""
    poll = select.poll()
    poll.register(stream, select.POLLOUT)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    return True


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rayelastic", description="Elastic stream processing on Ray.")
    commands = parser.add_subparsers(
        required=True,
        metavar="demo | plan | run | submit | jobs | inspect | rescale | leave | renew-secret | state | snapshot | "
        "stop | cancel | top | web | plot | doctor | completion",
    )
    parser.add_argument("--version", action="version", version=f"rayelastic {version('rayelastic')}")
    plan = commands.add_parser("plan", help="show regions, lanes and placement of a topology; starts nothing")
    run = commands.add_parser("run", help="run a topology in this process")
    submit = commands.add_parser("submit", help="run a topology on Ray")
    demo = commands.add_parser("demo", help="list the applications, or run one with a live view")
    for command, action in ((plan, _plan), (run, _run), (submit, _submit), (demo, _demo)):
        if command is demo:
            command.add_argument(
                "application", nargs="?", choices=list(APPLICATIONS), help="which; lists them if not given"
            )
        else:
            command.add_argument("topology", help="a Python file or module with build()")
        command.add_argument("--pes", type=int, default=1, help="processing elements (default: 1, everything fused)")
        command.set_defaults(command=action)
    for command in (run, submit, demo):
        command.add_argument("--threads", type=int, help="scheduler threads of each processing element")
        command.add_argument(
            "--threading", choices=("manual", "dynamic", "dedicated"), help="one threading model for all"
        )
        command.add_argument(
            "--elasticity",
            choices=[*(one.value for one in Elasticity), "guided"],
            metavar="{" + ",".join(one.value for one in Elasticity) + "}",
            default=Elasticity.MULTI_LEVEL.value,
            help="who finds threads and queues while the job runs (default: multi-level, once called guided)",
        )
        command.add_argument(
            "--regions",
            choices=[one.value for one in Regions],
            help="who finds replicas: nobody, rayelastic rescale, that with advice, or the job (the default on Ray)",
        )
        command.add_argument("--journal", help="append each decision, with what was seen, to this file as JSON")
    for command in (run, submit, demo):
        command.add_argument(
            "--web",
            nargs="?",
            type=int,
            const=0,
            metavar="PORT",
            help="serve the page of the job (a free port if none is given), after its end until Ctrl-C",
        )
    for command in (run, submit):
        command.add_argument("--quiet", action="store_true", help="no progress line")
        add_restore(command)
    submit.add_argument("--name", help="the name of the job (default: the topology's)")
    submit.add_argument("--no-wait", action="store_true", help="return as soon as the job runs")
    listing = commands.add_parser("jobs", help="list the jobs on a Ray cluster")
    listing.set_defaults(command=_jobs)
    inspect = commands.add_parser("inspect", help="show plan, state and counters of a job on Ray")
    inspect.add_argument("job")
    inspect.add_argument("--follow", action="store_true", help="print each adaptation with its reason, as it happens")
    inspect.add_argument("--every-pass", action="store_true", help="also the passes that changed nothing")
    inspect.set_defaults(command=_inspect)
    changing = add_changing_commands(commands.add_parser)
    saving = add_state_commands(commands.add_parser)
    top = commands.add_parser("top", help="show what a job on Ray does, live")
    top.add_argument("job")
    top.add_argument("--once", action="store_true", help="one picture, of a second, and no more")
    top.set_defaults(command=_top)
    web = commands.add_parser("web", help="serve a page of the jobs on Ray, or of one that is over")
    web.add_argument("job", nargs="?", help="the job that is shown first")
    web.add_argument(
        "--journal", nargs="+", type=Path, metavar="FILE", help="files that --journal wrote: no cluster is needed"
    )
    web.add_argument("--port", type=int, default=8080, help="where to serve it (default: 8080); 0: a free port")
    web.add_argument("--host", default=HOST, help=f"the address to listen at (default: {HOST}, this machine alone)")
    web.set_defaults(command=_web)
    cancel = commands.add_parser("cancel", help="stop a job on Ray")
    cancel.add_argument("job")
    cancel.add_argument("--no-drain", action="store_true", help="stop at once, don't let tuples on their way arrive")
    cancel.set_defaults(command=_cancel)
    picture = commands.add_parser("plot", help="draw throughput, threads, queues and replicas over time from journals")
    picture.add_argument("journal", nargs="+", type=Path, help="a file that --journal wrote")
    picture.add_argument("-o", "--output", type=Path, default=Path("run.png"), help="the picture (default: run.png)")
    picture.set_defaults(command=_plot)
    doctor = commands.add_parser("doctor", help="tell what this machine lacks, and how to get it")
    doctor.add_argument("--times", action="store_true", help="also how long the import and the first runs take")
    doctor.set_defaults(command=_doctor)
    add_completion(commands)
    for command in (plan, listing, inspect, top, doctor, *saving):
        command.add_argument(
            "--json", action="store_true", help="JSON for programs" + " (with --once)" * (command is top)
        )
    for command in (submit, listing, inspect, *changing, cancel, top, web, doctor, *saving):
        command.add_argument("--address", help="the Ray cluster (default: the one that is found, or a new local one)")

    words = [argument for argument in arguments if not argument.startswith("-")]
    takers = {"plan": plan, "run": run, "submit": submit, "demo": demo}
    if len(words) >= 2 and words[0] in takers:  # the file's parameters become options, so it is loaded before --help
        known, _ = parser.parse_known_args([argument for argument in arguments if argument not in ("-h", "--help")])
        taker, application = takers[words[0]], getattr(known, "application", None)
        if taker is not demo or application is not None:
            file = TopologyFile(known.topology if application is None else f"rayelastic.topologies.{application}")
            file.add_options(taker)
            taker.set_defaults(file=file, **(APPLICATIONS[application].options if application is not None else {}))
    return parser.parse_args(arguments)


def _config(options: argparse.Namespace) -> JobConfig:
    return JobConfig(
        pes=options.pes,
        threads=getattr(options, "threads", None),
        threading=getattr(options, "threading", None),
        elasticity=getattr(options, "elasticity", Elasticity.MULTI_LEVEL),
        journal=getattr(options, "journal", None),
        regions=getattr(options, "regions", None),
        checkpoint=checkpointed(options),
    )


def _plan(options: argparse.Namespace) -> int:
    topology = options.file.build(options)
    print(as_json(topology.plan(_config(options))) if options.json else topology.explain(_config(options)))
    return 0


def _run(options: argparse.Namespace) -> int:
    job = jobs.start(options.file.build(options), _config(options), restore=restored(options))
    return _finish(job, options, decided=not options.quiet)


def _demo(options: argparse.Namespace) -> int:
    if options.application is None:
        print(listing())
        return 0
    from rich.console import Console

    job = jobs.start(options.file.build(options), _config(options))
    with page_of(job, options.web):
        return _shown(job, options, Console())


def _shown(job: jobs.Job, options: argparse.Namespace, console: Console) -> int:
    try:
        show(job, console)
        result = job.wait()
        text = options.file.report(result, options)
        for line in told(result.metrics, ended=True):
            print(line, file=sys.stderr)
    finally:
        job.close()
    if text:
        print(text)
    return 0


def _submit(options: argparse.Namespace) -> int:
    if not options.address and not os.environ.get("RAY_ADDRESS") and (found := find_cluster()):
        print(f"joins the Ray cluster that runs here, at {found}; RAY_ADDRESS=local starts another", file=sys.stderr)
    topology = options.file.build(options)
    for operator in topology.operators.values():
        if options.no_wait and isinstance(operator.body, ExternalSource):
            raise SourceError(
                "it is fed by this process, which --no-wait would end",
                operator=operator.name,
                way_out="Leave --no-wait out",
            )
    job = jobs.submit(topology, _config(options), name=options.name, address=options.address, restore=restored(options))
    if options.no_wait:
        print(f"job {job.name} runs; rayelastic inspect {job.name}")
        return 0
    return _finish(job, options)


def _finish(job: jobs.Job, options: argparse.Namespace, *, decided: bool = False) -> int:
    """Does the rest of a command that runs a job, beside its page; with `decided` it says what elasticity changed."""
    with page_of(job, options.web):
        return _finished(job, options, decided)


def _finished(job: jobs.Job, options: argparse.Namespace, decided: bool) -> int:
    """Waits for a job, showing its progress, and prints what its topology file reports.

    On Ray the coordinator that knows what elasticity changed ends with the job.
    """
    try:
        if options.quiet:
            result = job.wait()
        else:
            with Progress(job):
                result = job.wait()
            print(summary_line(result.metrics), file=sys.stderr)
        if decided:
            print(_decided(job), file=sys.stderr)
        for line in told(result.metrics, ended=True):
            print(line, file=sys.stderr)
    finally:
        job.close()
    text = options.file.report(result, options)
    if text:
        print(text)
    return 0


def _decided(job: jobs.Job) -> str:
    """What elasticity did, in a line: how often it changed something, and the last time, with the reason."""
    changes = list(job.adaptations())
    if not changes:
        return "elasticity: changed nothing in this time; `rayelastic inspect JOB --follow` shows it for longer jobs"
    return f"elasticity: {len(changes)} changes, the last of them: {changes[-1]}"


def _jobs(options: argparse.Namespace) -> int:
    found = list_jobs(address=options.address)
    if options.json:
        print(as_json(found))
        return 0
    for status in found:
        print(f"{status.name:<30} {status.state.value:<10} {len(status.pes)} PEs")
    return 0


def _inspect(options: argparse.Namespace) -> int:
    job = jobs.attach(options.job, address=options.address)
    status, metrics = job.status, job.metrics()
    if options.json:
        if options.follow:
            raise ConfigError("--json with --follow", way_out="Leave one of them out")
        adaptations = [event_of(one).as_dict() for one in job.adaptations(every_pass=options.every_pass)]
        told_of = {"status": status, "metrics": metrics, "plan": job.plan(), "adaptations": adaptations}
        print(as_json(told_of))
        return 0
    print(f"job {status.name}: {status.state.value}")
    for said in (status.failure and status.failure.reason, status.outage):
        if said:
            print(f"  {said}")
    for pe in status.pes:
        print(f"  {pe.pe}: {pe.state.value} on {pe.node or '?'}, process {pe.pid}")
    print(job.plan().text())
    print(f"{'operator':<24} {'model':<10} {'in':>14} {'out':>14} {'queued':>10}")
    for sample in metrics.pes:
        for operator in sample.operators:
            counts = f"{operator.tuples_in:>14,} {operator.tuples_out:>14,} {operator.queued:>10,}"
            print(f"{operator.name:<24} {operator.model:<10} {counts}")
    for line in told(metrics):
        print(line)
    print("adaptations:")
    for adaptation in job.adaptations(options.follow, options.every_pass):
        print(f"  {adaptation}", flush=True)
    return 0


def _cancel(options: argparse.Namespace) -> int:
    jobs.attach(options.job, address=options.address).cancel(drain=not options.no_drain)
    print(f"job {options.job} is being cancelled")
    return 0


def _plot(options: argparse.Namespace) -> int:
    plot_journals(options.journal, options.output)
    print(options.output)
    return 0


def _top(options: argparse.Namespace) -> int:
    from rich.console import Console

    job = jobs.attach(options.job, address=options.address)
    if options.json and not options.once:
        raise ConfigError("--json without --once", way_out="Add --once")
    if not options.once:
        top(job, Console())
        return 0
    before = job.metrics()
    job.pause(PERIOD)
    seen, console = view(job, before), Console()
    console.print(picture(seen, console.width, 1000)) if not options.json else print(as_json(seen))
    return 0


def _web(options: argparse.Namespace) -> int:
    if options.journal:
        page = journal_page(options.journal, options.port, options.host)
    else:
        page = cluster_page(options.job, options.address, options.port, options.host)
    with closing(page):
        start = f"#{quote(options.job)}" if options.job and not options.journal else ""
        print(f"the page: {page.url}{start}\nCtrl-C ends it", flush=True)
        page.wait()
    return 0


def _doctor(options: argparse.Namespace) -> int:
    good = True
    if options.json:
        findings = list(examine(os.environ, options.address))
        print(as_json(findings))
        return 0 if all(finding.good for finding in findings) else 1
    for finding in examine(os.environ, options.address):
        print(finding, flush=True)
        good = good and (finding.good or finding.optional)
    if options.times:
        print(first_minute())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
