"""`rayelastic plan | run | submit | demo`: commands that take a topology, whose parameters become options."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click
from rich.console import Console

from rayelastic import job as jobs
from rayelastic.commands.options import address, as_programs, show
from rayelastic.commands.state import checkpointed, restore_options, restored
from rayelastic.demo import APPLICATIONS, listing, next_commands
from rayelastic.demo import show as show_live
from rayelastic.errors import ErrorCode, SourceError
from rayelastic.on_ray.probe import find_cluster
from rayelastic.pages import page_of
from rayelastic.plan.config import JobConfig, Regions
from rayelastic.plan.explain import describe
from rayelastic.plan.plan_text import counted
from rayelastic.plan.settings.elasticity import Algorithm, Elasticity
from rayelastic.plan.settings.threads import Threads
from rayelastic.progress import Progress, remarks, summary_line
from rayelastic.runtime.ingest.external_source import ExternalSource
from rayelastic.topology_file import TopologyFile
from rayelastic.web.events import event_of

F = TypeVar("F", bound=Callable[..., Any])
FILE = "rayelastic.topology_file"  # the key of the loaded file in a context


class TopologyCommand(click.Command):
    """A command whose first argument names a topology: it is loaded before the options are read, since it adds some."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Load the topology that the arguments name, then read them all."""
        parser = super().make_parser(ctx)
        parser.ignore_unknown_options = True
        try:
            found = parser.parse_args([one for one in args if one not in ctx.help_option_names])[0]
        except click.UsageError:  # an option lacks its value: said below, with the usage of this command
            found = {}
        where, application = found.get("topology"), found.get("application")
        if application in APPLICATIONS:
            ctx.meta[FILE] = TopologyFile(f"rayelastic.topologies.{application}"), APPLICATIONS[application].options
        elif isinstance(where, str):
            ctx.meta[FILE] = TopologyFile(where), {}
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Name the command's own options and the topology's."""
        return [*super().get_params(ctx), *self._of_file(ctx)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then the topology's in a section of their own."""
        of_file = self._of_file(ctx)
        own = [one.get_help_record(ctx) for one in super().get_params(ctx) if isinstance(one, click.Option)]
        with formatter.section("Options"):
            formatter.write_dl([record for record in own if record])
        if of_file:
            with formatter.section(f"Parameters of {ctx.meta[FILE][0].module.__name__}"):
                formatter.write_dl([record for one in of_file if (record := one.get_help_record(ctx))])

    @staticmethod
    def _of_file(ctx: click.Context) -> list[click.Option]:
        file, defaults = ctx.meta.get(FILE, (None, {}))
        return [] if file is None else list(file.options(defaults))


TOPOLOGY = click.argument("topology")


def pes(function: F) -> F:
    """Add --pes."""
    text = "PEs (processing elements) at the start (default: 1, everything fused)."
    return click.option("--pes", default=1, help=text)(function)


def job_options(function: F) -> F:
    """Add what commands that run a job have in common."""
    for option in (
        click.option(
            "--web",
            type=int,
            is_flag=False,
            flag_value=0,
            metavar="[PORT]",
            help="Serve the job's web UI, at a free port if none is named, after its end until Ctrl-C.",
        ),
        click.option("--journal", help="Append each decision, with what was measured, to this file as JSON."),
        click.option(
            "--regions",
            type=click.Choice([one.value for one in Regions]),
            help="What sets replicas: nothing, rayelastic rescale, that with advice, or the job (the default on Ray).",
        ),
        click.option(
            "--elasticity",
            type=click.Choice([one.value for one in Algorithm]),
            default=Algorithm.MULTI_LEVEL.value,
            show_default=True,
            help="What sets threads and queues while the job runs.",
        ),
        click.option(
            "--threading", type=click.Choice(["manual", "dynamic", "dedicated"]), help="One threading model for all."
        ),
        click.option("--threads", type=int, help="Scheduler threads of each PE."),
        pes,
    ):
        function = option(function)
    return function


def quiet(function: F) -> F:
    """Add --quiet."""
    return click.option("--quiet", is_flag=True, help="Show no progress.")(function)


@click.command(cls=TopologyCommand)
@TOPOLOGY
@pes
@as_programs
@click.pass_context
def plan(context: click.Context, /, pes: int, as_json_: bool, **options: Any) -> None:
    """Show regions, execution modes and placement of TOPOLOGY, a Python file or module with build(); start nothing."""
    built, config = context.meta[FILE][0].build(options), JobConfig(pes=pes)
    described = {**built.plan(config).to_dict(), "operators": describe(built.operators)} if as_json_ else {}
    show(described, "" if as_json_ else built.explain(config), as_json_=as_json_)


@click.command(cls=TopologyCommand)
@TOPOLOGY
@job_options
@restore_options
@quiet
@as_programs
@click.pass_context
def run(context: click.Context, /, **options: Any) -> None:
    """Run TOPOLOGY, a Python file or module with build(), in this process."""
    file = context.meta[FILE][0]
    saved = restored(options["restore"], options["key_file"])
    job = jobs.start(file.build(options), _config(options), restore=saved)
    _finish(job, file, options, decided=not options["quiet"])


@click.command(cls=TopologyCommand)
@TOPOLOGY
@job_options
@restore_options
@quiet
@click.option("--name", help="The name of the job (default: the topology's).")
@click.option("--no-wait", is_flag=True, help="Return as soon as the job runs.")
@address
@as_programs
@click.pass_context
def submit(context: click.Context, /, **options: Any) -> None:
    """Run TOPOLOGY, a Python file or module with build(), on Ray."""
    if not options["address"] and not os.environ.get("RAY_ADDRESS"):
        if found := find_cluster():
            said = f"joins the Ray cluster that runs here, at {found}; RAY_ADDRESS=local starts another"
        else:
            said = "starts Ray on this machine"
        print(said, file=sys.stderr)
    file = context.meta[FILE][0]
    topology = file.build(options)
    for operator in topology.operators.values():
        if options["no_wait"] and isinstance(operator.body, ExternalSource):
            raise SourceError(
                "this process feeds it, and --no-wait would end the process",
                operator=operator.name,
                hint="Leave --no-wait out",
                code=ErrorCode.CONFLICTING_ARGUMENTS,
            )
    job = jobs.submit(
        topology,
        _config(options),
        name=options["name"],
        address=options["address"],
        restore=restored(options["restore"], options["key_file"]),
    )
    if options["no_wait"]:
        text = f"job {job.name} runs; rayelastic inspect {job.name}"
        show({"job": job.name, "state": "running"}, text, as_json_=options["as_json_"])
        return
    _finish(job, file, options)


@click.command(cls=TopologyCommand)
@click.argument("application", required=False, type=click.Choice(list(APPLICATIONS)))
@job_options
@as_programs
@click.pass_context
def demo(context: click.Context, /, application: str | None, as_json_: bool, **options: Any) -> None:
    """List the applications, or run one with a live view."""
    if application is None:
        show([{"name": one.name, "text": one.text} for one in APPLICATIONS.values()], listing(), as_json_=as_json_)
        return
    file = context.meta[FILE][0]
    config = _config(options)
    config = replace(config, elasticity=replace(config.elasticity, remember=False))  # what it finds is to be seen
    job = jobs.start(file.build(options), config)
    with page_of(job, options["web"]):
        try:
            if not as_json_:
                show_live(job, Console())
            result = job.wait()
            _warn(remarks(result.metrics, ended=True))
        finally:
            job.close()
    text = file.report(result, options)
    shown = "\n".join(part for part in (text, next_commands(application)) if part)
    show(_finished(job, text, result), shown, as_json_=as_json_)


def _finished(job: jobs.Job, report: str | None, result: jobs.JobResult) -> dict[str, Any]:
    """Return what --json prints of a job that has finished."""
    return {"job": job.name, "state": "finished", "report": report, "metrics": result.metrics}


def _config(options: dict[str, Any]) -> JobConfig:
    checkpoint = checkpointed(options["checkpoint"], options["key_file"]) if "checkpoint" in options else None
    return JobConfig(
        pes=options["pes"],
        threads=Threads(count=options["threads"], model=options["threading"]),
        regions=options["regions"],
        elasticity=Elasticity(algorithm=options["elasticity"], journal=options["journal"]),
        checkpoint=checkpoint,
    )


def _finish(job: jobs.Job, file: TopologyFile, options: dict[str, Any], *, decided: bool = False) -> None:
    """Wait for a job beside its web UI, showing its progress, and print what its topology file reports.

    With `decided` it also prints what elasticity changed; on Ray the coordinator that knows it ends with the job.
    """
    with page_of(job, options["web"]):
        try:
            if options["quiet"]:
                result = job.wait()
            else:
                with Progress(job):
                    result = job.wait()
                _warn([summary_line(result.metrics)])
            if decided:
                _warn([_decided(job)])
            _warn(remarks(result.metrics, ended=True))
        finally:
            job.close()
    text = file.report(result, options)
    if options["as_json_"]:
        show(_finished(job, text, result), "", as_json_=True)
    elif text:
        print(text)


def _warn(lines: list[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)


def _decided(job: jobs.Job) -> str:
    """Return how often elasticity changed something, and the last change with its reason, in a line."""
    changes = list(job.adaptations())
    if not changes:
        return "elasticity: no change in this time; --journal FILE or --web shows it for longer jobs"
    last = event_of(changes[-1])
    return (
        f"elasticity: {counted(len(changes), 'change')}; the last, at {last.seconds:.1f} s: {last.title}: {last.reason}"
    )
