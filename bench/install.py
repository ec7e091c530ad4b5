"""From an empty environment to the first result, beside Bytewax: one `pip install`, one program that counts words.

    python -m bench.install [WHEEL=the newest for this Python in dist] [rounds=1]

Both by this machine's pip as it is configured, without its cache, so that everything is fetched, and with no compiler
on PATH. Goal (issue "install it, run it on a cluster, read about it"): at most one command and 60 s more than Bytewax.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.peers.systems import ROOT, SYSTEMS

# The README's own words, counted by the first programs that either project shows.
PEER = """
from pathlib import Path
import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main
out = []
flow = Dataflow("word_count")
lines = op.input("lines", flow, TestingSource(Path("README.md").read_text().splitlines()))
words = op.flat_map("words", lines, str.split)
op.output("out", op.count_final("counts", words, lambda word: word), TestingSink(out))
run_main(flow)
print(max(out, key=lambda pair: pair[1]))
"""


def first_example() -> str:
    """The README's first program."""
    return (ROOT / "README.md").read_text().partition("```python\n")[2].partition("```")[0]


def measure(name: str, required: Sequence[str], program: str) -> float:
    """Install into an empty environment, run the program, print and return the seconds of both."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        file, bare = Path(folder) / "first.py", {"PATH": f"{folder}/bin", "XDG_CACHE_HOME": f"{folder}/cache"}
        file.write_text(program)
        install = ["pip", "install", "--quiet", "--no-cache-dir", "--only-binary=:all:", *required]
        took = []
        for command in ([f"{folder}/bin/{install[0]}", *install[1:]], [f"{folder}/bin/python", str(file)]):
            started = time.monotonic()
            subprocess.run(command, cwd=ROOT, env=os.environ | bare, check=True, stdout=subprocess.DEVNULL)
            took.append(time.monotonic() - started)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink())
    print(f"{name:11} install {took[0]:6.1f} s, first result {took[1]:5.1f} s, {size / 1e6:6.0f} MB installed")
    return sum(took)


def main(arguments: list[str]) -> int:
    """Measure both in turn."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    kept = sorted((ROOT / "dist").glob(f"rayelastic-*-{tag}-*x86_64.whl"), key=lambda path: path.stat().st_mtime)
    wheels = arguments[:1] or [str(path) for path in kept[-1:]]
    if not wheels:
        print(f"no wheel for {tag} in dist: ./dev wheels builds it", file=sys.stderr)
        return 1
    for _ in range(int(arguments[1]) if len(arguments) > 1 else 1):
        ours = measure("rayelastic", wheels[:1], first_example())
        theirs = measure("bytewax", SYSTEMS["bytewax"].requirements[:1], PEER)  # not what its benchmarks need
        print(f"{ours - theirs:+.1f} s beside Bytewax, one command each")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
