"""`rayelastic completion bash | zsh | fish`: what shells ask when Tab is pressed, made of the commands' own parsers.

Parameters of topology files aren't in it: they are known once the file is loaded, by `--help`.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SHELLS", "add_completion"]

FILES = ("topology", "journal", "output", "snapshot", "restore", "key_file", "path")  # what is a file, by its name
PROGRAM = "rayelastic"


@dataclass(frozen=True, slots=True)
class Word:
    """An option or an argument of a command.

    Args:
        names: of an option, such as '--pes'; empty: an argument.
        text: what it is, in a line.
        choices: that there are; empty: anything.
        files: whether it is a file.
        takes: whether something follows the option.
    """

    names: tuple[str, ...]
    text: str
    choices: tuple[str, ...]
    files: bool
    takes: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command with what may follow it."""

    name: str
    text: str
    words: tuple[Word, ...]


def add_completion(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command; it knows those that were added before it, and itself."""
    parser = commands.add_parser("completion", help="print what has a shell complete commands and options")
    parser.add_argument(
        "shell", choices=list(SHELLS), help="for bash and zsh: source <(rayelastic completion bash); fish: ... | source"
    )

    def show(options: argparse.Namespace) -> int:
        print(SHELLS[options.shell](list(_commands(commands))), end="")
        return 0

    parser.set_defaults(command=show)


def _commands(made: argparse._SubParsersAction[argparse.ArgumentParser]) -> Iterator[Command]:
    texts = {one.dest: one.help or "" for one in made._get_subactions()}
    for name, parser in made.choices.items():
        words = tuple(_word(action) for action in parser._actions)
        yield Command(name, texts.get(name, ""), words)


def _word(action: argparse.Action) -> Word:
    choices = tuple(str(one) for one in action.choices or ())
    files = action.type is Path or (action.dest in FILES and not choices)
    text = " ".join((action.help or "").replace("%%", "%").split())
    return Word(tuple(action.option_strings), text, choices, files, action.nargs != 0)


def _bash(commands: list[Command]) -> str:
    """A function that knows the command and the word before the one that is being written."""
    cases = []
    for command in commands:
        options = [name for word in command.words for name in word.names]
        values = "".join(
            f"        {'|'.join(word.names)}) {_bash_values(word)}; return ;;\n"
            for word in command.words
            if word.names and word.takes
        )
        arguments = [one for word in command.words if not word.names for one in word.choices]
        files = any(word.files for word in command.words if not word.names)
        rest = 'COMPREPLY=($(compgen -f -- "$word"))' if files else f"{_reply(arguments)}"
        cases.append(
            f"    {command.name})\n"
            f'      case "$before" in\n{values}      esac\n'
            f'      if [[ "$word" == -* ]]; then {_reply(options)}; else {rest}; fi ;;\n'
        )
    names = [command.name for command in commands]
    return (
        f"_{PROGRAM}() {{\n"
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"\n'
        "  COMPREPLY=()\n"
        f"  if [[ $COMP_CWORD -eq 1 ]]; then {_reply([*names, '--help', '--version'])}; return; fi\n"
        '  case "${COMP_WORDS[1]}" in\n' + "".join(cases) + "  esac\n"
        "}\n"
        f"complete -o filenames -F _{PROGRAM} {PROGRAM}\n"
    )


def _reply(words: list[str]) -> str:
    return f'COMPREPLY=($(compgen -W {shlex.quote(" ".join(words))} -- "$word"))'


def _bash_values(word: Word) -> str:
    return 'COMPREPLY=($(compgen -f -- "$word"))' if word.files else _reply(list(word.choices))


def _zsh(commands: list[Command]) -> str:
    """Zsh's own `_arguments`, with what each option is."""
    listed = " ".join(_quoted(f"{one.name}:{_plain(one.text)}") for one in commands)
    cases = ""
    for command in commands:
        words = [_quoted(spec) for word in command.words for spec in _zsh_specs(word)]
        cases += f"    {command.name}) _arguments -s {' '.join(words)} ;;\n"
    return (
        f"#compdef {PROGRAM}\n"
        f"_{PROGRAM}() {{\n"
        f"  local -a commands=({listed})\n"
        f"  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
        "  shift words; (( CURRENT-- ))\n"
        '  case "$words[1]" in\n' + cases + "  esac\n"
        "}\n"
        f"compdef _{PROGRAM} {PROGRAM}\n"
    )


def _zsh_specs(word: Word) -> Iterator[str]:
    what = "_files" if word.files else f"({' '.join(word.choices)})" if word.choices else " "
    if not word.names:
        yield f"*:{_plain(word.text) or 'argument'}:{what}"
    for name in word.names:
        yield f"{name}[{_plain(word.text)}]" + (f":{name.strip('-')}:{what}" if word.takes else "")


def _fish(commands: list[Command]) -> str:
    """A line for each command and each option."""
    lines = [f"complete -c {PROGRAM} -f"]
    first = "__fish_use_subcommand"
    lines += [f"complete -c {PROGRAM} -n {first} -a {one.name} -d {_quoted(one.text)}" for one in commands]
    for command in commands:
        behind = f"complete -c {PROGRAM} -n {_quoted(f'__fish_seen_subcommand_from {command.name}')}"
        for word in command.words:
            names = [f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in word.names]
            files = " -F" if word.files else ""
            choices = f" -a {_quoted(' '.join(word.choices))}" if word.choices else ""
            takes = " -r" if word.names and word.takes else ""
            if names or files or choices:
                lines.append(f"{behind} {' '.join(names)}{takes}{files}{choices} -d {_quoted(word.text)}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Without what zsh reads in it."""
    return text.translate(str.maketrans("[]:\\", "()  "))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS: Mapping[str, Callable[[list[Command]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
