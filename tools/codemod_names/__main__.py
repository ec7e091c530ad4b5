"""Moves names of operators from the first place to `name=`: `python -m tools.codemod_names FILES`.

A file is Python (with the examples in its docstrings and the programs in its strings), Markdown (blocks of `python`,
and calls between backticks) or a notebook. Only the calls change; a second run changes nothing. A call declares an
operator if its first argument is a text and the others are those of the method, or if it is called on what the file
shows to be a stream. The codemod reports what looks like one and can't be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.codemod_names.texts import Codemod

SUFFIXES = {".py", ".md", ".ipynb"}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="codemod_names", description="Moves names of operators to name=.")
    parser.add_argument("files", nargs="+", type=Path, help=".py, .md or .ipynb; others are left alone but for `dev`")
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if something would change")
    chosen = parser.parse_args(arguments)
    changed = doubtful = 0
    for path in found(chosen.files):
        text = path.read_text(encoding="utf-8")
        codemod = Codemod()
        made = codemod.file(path, text)
        if made != text:
            changed += 1
            print(path)
            if not chosen.check:
                path.write_text(made, encoding="utf-8")
        for line in codemod.doubtful:
            print(f"{path}: can't be read: {line}", file=sys.stderr)
        doubtful += len(codemod.doubtful)
    return int(bool(doubtful or (chosen.check and changed)))


def found(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (one for one in sorted(path.rglob("*")) if one.suffix in SUFFIXES and one.is_file())
        elif path.suffix in SUFFIXES or path.suffix == "":
            yield path


if __name__ == "__main__":
    sys.exit(main())
