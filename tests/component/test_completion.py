"""Shell completion, asked of the shells themselves: each knows the commands, their options, and what these take."""

from __future__ import annotations

import re
import shutil
import subprocess
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


def bash(path: Path, line: str) -> str:
    words = " ".join(f"'{word}'" for word in line.split(" "))
    ask = f'COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _rayelastic; echo "${{COMPREPLY[@]}}"'
    command = ["bash", "--norc", "-c", f"source {path}; {ask}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


def fish(path: Path, line: str) -> str:
    command = ["fish", "--no-config", "-c", f"source {path}; complete -C '{line}'"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    return "\n".join(one.partition("\t")[0] for one in shown.splitlines())


def zsh(path: Path, line: str) -> str:
    """What the script hands to zsh's own `_describe` and `_arguments`, of which only a terminal's zsh makes a list."""
    *words, last = line.split(" ")
    told = 'compdef() { :; }; _describe() { print -rl -- ${(P)2%%:*}; }; _arguments() { print -rl -- "${@[2,-1]}"; }'
    placed = f"words=({' '.join([*words, repr(last)])}); CURRENT={len(words) + 1}; _rayelastic"
    command = ["zsh", "-f", "-c", f"{told}; source {path}; {placed}"]
    told_of = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout.splitlines()
    before = words[-1] if words[-1].startswith("--") else ""
    if before or not last:  # what an option, or the argument, takes: between the brackets at the end
        found = next(one for one in told_of if one.startswith(before + "[" if before else "*:"))
        return " ".join(one for one in found.rpartition(":")[2].strip("()").split() if one.startswith(last))
    if len(words) > 1 and not last.startswith("-"):
        return " ".join(w for one in told_of if one[0] == "*" for w in re.findall(r"\w+", one) if w.startswith(last))
    return "\n".join(one.partition("[")[0] for one in told_of if one.startswith(last))
