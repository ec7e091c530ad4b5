"""`rayelastic completion bash | zsh | fish`: the script that asks the program for words when Tab is pressed."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_RAYELASTIC_COMPLETE"  # click's name for it


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script for SHELL. bash and zsh: `source <(rayelastic completion bash)`; fish: `... | source`."""
    made = get_completion_class(shell)
    assert made is not None
    print(made(context.find_root().command, {}, "rayelastic", VARIABLE).source())
