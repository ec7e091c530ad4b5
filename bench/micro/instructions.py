"""Instructions that a run of records takes at every hop, and locked ones: counted, for two cores can't show a hundred.

    python -m bench.micro.instructions [operators=100] [tuples=20000]

A locked instruction takes its cache line from all other cores: a line that each of a hundred threads takes once a run
is what stops them from getting faster. callgrind counts every instruction of `steps.cpp` one by one; those of the
operators' own function are left out. Without valgrind or binutils the row says so.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench.harness import Row, settings

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "bench" / "bench_steps"
NEEDED = ("valgrind", "objdump", "addr2line")
FUNCTION = "multiply<"  # of the operators
LOCKED = re.compile(r"^\s*([0-9a-f]+):\s+(?:lock |xchg +[^#]*\()")

CASES = {
    "manual.1": ("manual, runs of 1", "run=1 dynamic=0 threads=1"),
    "manual.64": ("manual, runs of 64", "run=64 dynamic=0 threads=1"),
    "dynamic.1": ("all dynamic, runs of 1", "run=1 dynamic=1 threads=1"),
    "dynamic.64": ("all dynamic, runs of 64", "run=64 dynamic=1 threads=1"),
    "dynamic.64.8": ("all dynamic, runs of 64, 8 threads", "run=64 dynamic=1 threads=8"),
}


@dataclass(slots=True)
class Counts:
    """What was executed, outside of the operators' function."""

    runs: int = 0
    instructions: int = 0
    locked: Counter[str] = field(default_factory=Counter)  # by class and function


def main() -> None:
    given = settings(operators=100, tuples=20_000)
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        what = f"instructions of a run: {' and '.join(missing)} not installed"
        Row("instructions", what, "", [], []).print()
        return
    locked = locked_addresses()
    for name, (shown, case) in CASES.items():
        counts = counted([f"{word}={given[word]}" for word in ("operators", "tuples")] + case.split(), locked)
        total = counts.locked.total()
        shared = sum(count for function, count in counts.locked.items() if function.startswith("FreePorts"))
        where = f"free list, shared by all, {shared / counts.runs:.3f}; " + ", ".join(
            f"{function} {count / counts.runs:.2f}" for function, count in counts.locked.most_common(4)
        )
        per_run = [counts.instructions / counts.runs]
        Row(f"instructions.{name}", f"instructions a run and operator, {shown}", "", per_run, []).print()
        Row(
            f"locked.{name}",
            f"locked instructions a run and operator, {shown}",
            "",
            [total / counts.runs],
            [],
            note=where,
        ).print()


def locked_addresses() -> dict[int, str]:
    """Return the address of each locked instruction, with the function that it is of, inlined or not."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", PROGRAM], capture_output=True, text=True, check=True)
    found = [match[1] for line in text.stdout.splitlines() if (match := LOCKED.match(line))]
    asked = ["addr2line", "-C", "-f", "-i", "-a", "-e", str(PROGRAM)]
    told = subprocess.run(asked, input="\n".join(found), capture_output=True, text=True, check=True).stdout
    names: dict[int, str] = {}
    for block in re.split(r"^0x", told, flags=re.MULTILINE)[1:]:
        address, *frames = block.splitlines()
        functions = [short(line) for line in frames[::2]]
        names[int(address, 16)] = next((name for name in functions if not name.startswith("std::")), functions[-1])
    return names


def counted(arguments: list[str], locked: dict[int, str]) -> Counts:
    """Run the program under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "counts"
        tool = ["valgrind", "-q", "--tool=callgrind", "--dump-instr=yes", "--fair-sched=yes"]
        plain = ["--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={written}"]
        subprocess.run([*tool, *plain, str(PROGRAM), *arguments], check=True, capture_output=True)
        return read(written, locked)


def read(written: Path, locked: dict[int, str]) -> Counts:
    """Add up a callgrind profile: `0xADDRESS LINE COUNT`, below `fn=`; a line after `calls=` is the callee's."""
    counts = Counts()
    function, called, callee = "", 0, ""
    with written.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("fn="):
                function = line[3:].strip()
            elif line.startswith("cfn="):
                callee = line[4:].strip()
            elif line.startswith("calls="):
                called = int(line[6:].split()[0])
            elif line.startswith("0x"):
                address, _, count = line.split()
                if called:
                    counts.runs += called if FUNCTION in callee else 0
                    called = 0
                elif FUNCTION not in function:
                    counts.instructions += int(count)
                    if name := locked.get(int(address, 16)):
                        counts.locked[name] += int(count)
    return counts


def short(function: str) -> str:
    """`Class::function` of a C++ function's name in full."""
    plain = re.sub(r"<[^<>]*>", "", function)
    while plain != (plain := re.sub(r"<[^<>]*>", "", plain)):
        pass
    return re.sub(r"\(.*", "", plain).split(" ")[-1].removeprefix("rayelastic::")


if __name__ == "__main__":
    main()
