"""What the engine costs, part by part, each beside its physical limit measured in the same run: one table.

    ./dev bench micro [PROGRAM ...] [--quick] [--json FILE] [NAME=NUMBER ...]

A program is one file here. NAME=NUMBER goes to it, and needs exactly one. Every row is a median of some rounds, in
which ours and the limit take turns. The whole table is kept in bench/results/micro-COMMIT.json unless --json says
another file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.harness import Row, arguments_of
from bench.micro.targets import TARGETS
from bench.provenance import load_average, machine_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = ROOT / "bench" / "results"
EXECUTABLES = ROOT / "build" / "bench"
MOST_LOAD = 0.5  # of others, before the first measurement

# Every program of the table, with what makes it quick.
PROGRAMS: dict[str, list[str]] = {
    "hops": ["seconds=0.02", "rounds=3", "ports=1000"],
    "latency": ["samples=100", "rounds=3"],
    "native_pipeline": ["seconds=0.05", "rounds=3"],
    "control": ["rounds=1", "idle_seconds=1", "switches=2"],
    "native_data": ["rounds=3"],
    "link": ["seconds=0.05", "rounds=3"],
    "map_chain": ["records=500000", "sentences=20000", "rounds=3"],
    "one_replica": ["tuples=20000000", "rounds=3"],
    "log_filter": ["lines=200000", "rounds=3"],
    "timers": ["keys=20000", "rounds=3"],
    "waiting": ["rounds=2"],
    "two_waits": ["cold=20", "look=2"],
    "objects": ["objects=50", "small=10000", "rounds=3"],
    "stages": ["tuples=100000", "rounds=1"],
    "short_jobs": ["tuples=50000", "rounds=1"],
    "keyed_cores": ["megabytes=20", "rounds=1", "seconds=1", "tuples=2000000"],
    "token_lanes": ["tuples=100000", "rounds=3"],
    "instructions": ["tuples=2000"],
}


def main() -> int:
    parser = arguments_of("micro", __doc__)
    parser.add_argument("words", nargs="*", metavar="PROGRAM | NAME=NUMBER")
    parser.add_argument("--quick", action="store_true", help="a look in a minute or two; its figures are coarse")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the table goes")
    parser.add_argument("--executables", type=Path, default=EXECUTABLES, help="folder of the native programs")
    options = parser.parse_args()
    named = [word for word in options.words if "=" not in word]
    arguments = [word for word in options.words if "=" in word]
    if unknown := [name for name in named if name not in PROGRAMS]:
        parser.error(f"no such program: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    if arguments and len(named) != 1:
        parser.error("NAME=NUMBER needs exactly one program")

    machine = machine_of()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    if machine["load average"] > MOST_LOAD:
        print("The machine is busy: what needs two cores at once says nothing, and a limit may look worse than it is.")
    print(heading())
    rows: list[Row] = []
    failed: list[str] = []
    for name in named or PROGRAMS:
        given = [*(PROGRAMS[name] if options.quick else []), *arguments]
        command = command_of(name, options.executables)
        with subprocess.Popen([*command, *given], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if row := Row.read(line):
                    rows.append(row)
                    print("\n".join(lines_of(row)), flush=True)
                elif line.startswith('{"compiler"'):
                    machine |= json.loads(line)
        if process.returncode:
            failed.append(name)
    machine["load average afterwards"] = load_average()
    return finish(rows, failed, machine, complete=not named, options=options)


def finish(
    rows: list[Row], failed: list[str], machine: dict[str, Any], complete: bool, options: argparse.Namespace
) -> int:
    """Store the table, print a summary, and return the exit status: a missed target isn't a failure, a gap is."""
    print(", ".join(f"{name} {machine[name]}" for name in ("compiler", "load average afterwards") if name in machine))
    found = {row.key: TARGETS[row.key].met_by(row) for row in rows if row.key in TARGETS}
    missed = [key for key, met in found.items() if met is False]
    unsure = [key for key, met in found.items() if met is None]
    print(f"{len(rows)} rows; {list(found.values()).count(True)} of {len(found)} targets met")
    if missed:
        print(f"missed: {', '.join(missed)}")
    if unsure:
        print(f"not to be said on so busy a machine: {', '.join(unsure)}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    absent = sorted(TARGETS.keys() - found.keys()) if complete else []
    if absent:
        print(f"not measured: {', '.join(absent)}", file=sys.stderr)
    kept = options.json or (RESULTS / f"micro-{machine['commit']}.json" if complete else None)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        values = [asdict(row) | {"value": row.value, "ratio": row.ratio, "met": found.get(row.key)} for row in rows]
        kept.write_text(json.dumps({"machine": machine, "quick": options.quick, "rows": values}, indent=1) + "\n")
        print(f"kept in {kept}")
    return 1 if failed or absent else 0


def command_of(name: str, executables: Path) -> list[str]:
    if (HERE / f"{name}.py").exists():
        return [sys.executable, "-m", f"bench.micro.{name}"]
    program = executables / f"bench_{name}"
    if not program.exists():
        sys.exit(f"{program} isn't built; ./dev bench micro builds it")
    return [str(program)]


def heading() -> str:
    return f"{'':64}{'ours':>12}{'limit':>12} {'unit':12}{'ratio':>7}  {'target':16}{'met':5}limit is"


def lines_of(row: Row) -> Iterator[str]:
    """Yield the row in the table, and its note below."""
    target = TARGETS.get(row.key)
    bound = str(target) if target else ""
    met = {True: "yes", False: "NO", None: "?"}[target.met_by(row)] if target else ""
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    limit_what = row.limit_what if row.ours else ""
    yield (
        f"{row.what:64}{number(row.value):>12}{number(row.limit_value):>12} {row.unit:12}{ratio:>7}"
        f"  {bound:16}{met:5}{limit_what}"
    )
    if row.note:
        yield f"    {row.note}"


def number(value: float | None) -> str:
    if value is None:
        return ""
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0
    return f"{value:,.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
