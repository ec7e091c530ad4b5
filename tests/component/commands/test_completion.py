"""Shell completion, asked of the shells themselves: each knows the commands, their options, and what these take."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rayelastic.cli import main

PATIENCE = 30.0  # seconds for a shell to answer
ASKED = [  # what is written so far, and words that come and that don't
    ("rayelastic comp", {"completion"}, {"run"}),
    ("rayelastic run topologies/word_count.py --thr", {"--threads", "--threading"}, {"--pes"}),
    ("rayelastic run topologies/word_count.py --threading d", {"dynamic", "dedicated"}, {"manual"}),
    ("rayelastic demo vw", {"vwap"}, {"word_count"}),
    ("rayelastic top --js", {"--json"}, {"--once"}),
    ("rayelastic completion ", {"bash", "zsh", "fish"}, {"run"}),
]


@pytest.fixture(params=["bash", "zsh", "fish"])
def script(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, Path]:
    shell: str = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here: ./dev programs installs it")
    assert main(["completion", shell]) == 0
    path = tmp_path / "completion"
    path.write_text(capsys.readouterr().out)
    return shell, path


@pytest.mark.parametrize(("line", "come", "stay_away"), ASKED, ids=[line for line, _, _ in ASKED])
def test_a_shell_completes(script: tuple[str, Path], line: str, come: set[str], stay_away: set[str]) -> None:
    shell, path = script
    answer = {"bash": bash, "zsh": zsh, "fish": fish}[shell](path, line)
    words = set(re.findall(r"[\w-]+", answer))
    assert come <= words
    assert not stay_away & words


def environment() -> dict[str, str]:
    """Where the shells find the program."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def ask(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment(), check=True)
    return done.stdout


def bash(path: Path, line: str) -> str:
    words = " ".join(f"'{word}'" for word in line.split(" "))
    asked = f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _rayelastic_completion rayelastic"
    return ask(["bash", "--norc", "-c", f'source {path}; {asked}; echo "${{COMPREPLY[@]}}"'])


def fish(path: Path, line: str) -> str:
    shown = ask(["fish", "--no-config", "-c", f"source {path}; complete -C '{line}'"])
    return "\n".join(one.partition("\t")[0] for one in shown.splitlines())


def zsh(path: Path, line: str) -> str:
    """What the script passes to zsh's own `_describe` and `compadd`, of which only a terminal's zsh makes a list."""
    words = " ".join(repr(word) for word in line.split(" "))
    stubs = 'compdef() { :; }; _describe() { print -rl -- "${(@P)3%%:*}"; }; compadd() { print -rl -- "${(@P)@[-1]}"; }'
    asked = f"words=({words}); CURRENT={len(line.split(' '))}; _rayelastic_completion"
    return ask(["zsh", "-f", "-c", f"{stubs}; source {path}; {asked}"])
