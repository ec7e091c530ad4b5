"""The command line: `rayelastic demo | plan | run | submit | jobs | inspect | rescale | ...`.

A command's module is imported when the command is used, so help and completion come at once. `plan`, `run` and
`submit` take a topology file and turn the parameters of its `build` into options:
`rayelastic run topologies/word_count.py --help` lists them.
"""

from __future__ import annotations

import difflib
import importlib
import os
import select
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import TextIO

import click
from click.shell_completion import shell_complete

from rayelastic.errors import JobCancelledError, JobFailedError, RayelasticError

STOPPED = 130  # the exit status after Ctrl-C, for shells
NO_READER = 141  # and of a program whose reader has gone
COMPLETING = "_RAYELASTIC_COMPLETE"  # the variable by which a shell asks for words

COMMANDS = {  # {name: (module, what it does)}
    "demo": ("starting", "List the applications, or run one with a live view."),
    "plan": ("starting", "Show regions, execution modes and placement of a topology; start nothing."),
    "run": ("starting", "Run a topology in this process."),
    "submit": ("starting", "Run a topology on Ray."),
    "jobs": ("watching", "List the jobs on a Ray cluster."),
    "inspect": ("watching", "Show plan, state and counters of a job on Ray."),
    "rescale": ("changing", "Set the number of replicas of a region of a job on Ray."),
    "leave": ("changing", "Move a job on Ray off a node for good."),
    "renew-secret": ("changing", "Restart a job on Ray from a checkpoint, with a new secret."),
    "state": ("state", "Show what an operator of a running job keeps by key."),
    "snapshot": ("state", "Save a savepoint of a job on Ray, which continues."),
    "stop": ("state", "Stop a job on Ray with a savepoint."),
    "cancel": ("changing", "Cancel a job on Ray, without a savepoint."),
    "top": ("watching", "Show what a job on Ray does, live."),
    "web": ("watching", "Serve the web UI of the jobs on Ray, or of a job that has ended."),
    "plot": ("watching", "Draw throughput, threads, queues and replicas over time from journals."),
    "doctor": ("watching", "Check this machine, and name what is missing."),
    "completion": ("completion", "Print the script for a shell's completion."),
}
PYTHON_NAMES = {"jobs": "jobs_", "renew-secret": "renew_secret"}


class Commands(click.Group):
    """The commands of COMMANDS, each imported when it is used."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Name the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module, short_help = COMMANDS[cmd_name]
        imported = importlib.import_module(f"rayelastic.commands.{module}")
        command: click.Command = getattr(imported, PYTHON_NAMES.get(cmd_name, cmd_name))
        command.name, command.short_help = cmd_name, short_help
        command.help = command.help or short_help
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; of an unknown one say which names are near."""
        near = difflib.get_close_matches(args[0], COMMANDS)
        if near and args[0] not in COMMANDS:
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {' or '.join(map(repr, near))}?", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(version("rayelastic"), prog_name="rayelastic", message="%(prog)s %(version)s")
def rayelastic() -> None:
    """Elastic stream processing for Python on Ray."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: without the program's name; None: the process's own.

    Returns:
        The exit status: 0, 1 for a job that failed, 2 for a mistake in what was asked, 130 after Ctrl-C, 141 if the
        reader of the output has gone.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if COMPLETING in os.environ:
        return shell_complete(rayelastic, {}, "rayelastic", COMPLETING, os.environ[COMPLETING])
    try:
        with rayelastic.make_context("rayelastic", arguments) as context:  # its main() has words of its own for Ctrl-C
            rayelastic.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        if not _is_closed(sys.stdout):
            raise
        return NO_READER
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return STOPPED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (JobFailedError, JobCancelledError) as error:
        print(error, file=sys.stderr)
        return 1
    except RayelasticError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _is_closed(stream: TextIO) -> bool:
    """Return whether the reader of a stream has gone; then discard the rest, or Python would complain at the end."""
    poll = select.poll()
    poll.register(stream, select.POLLOUT)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    return True


if __name__ == "__main__":
    sys.exit(main())
