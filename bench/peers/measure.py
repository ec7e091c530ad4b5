"""Runs one program once, in the interpreter of its system, and prints what it took as one line of JSON.

    python measure.py PROGRAM INPUT [WARM_UP_INPUT]

Processor time and memory are those of the process and of all that it has started. Standard library only: it runs in
the environments of other systems.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main(program: str, path: str, warm_up: str | None = None) -> None:
    sys.path.pop(0)  # this folder: nothing in it is the program's business
    # As the main module, whose functions are pickled with their code for workers elsewhere.
    spec = importlib.util.spec_from_file_location("__main__", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["__main__"] = module
    spec.loader.exec_module(module)
    if warm_up is not None:
        prepared(module, warm_up)()
    run = prepared(module, path)
    cpu, wall = cpu_seconds(), time.perf_counter()
    raw = run()
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    peak = sum(map(peak_bytes, tree()))
    rows = sorted(module.result(raw).items())
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()
    print(json.dumps({"seconds": wall, "cpu_seconds": cpu, "peak_bytes": peak, "rows": len(rows), "digest": digest}))


def prepared(module: Any, path: str) -> Callable[[], Any]:
    """Return what runs a program on an input; one that declares a flow of Bytewax is run by it."""
    if not hasattr(module, "declare"):
        return module.prepare(path)  # type: ignore[no-any-return]
    from bytewax.testing import run_main

    out: list[Any] = []
    flow = module.declare(path, out)

    def run() -> list[Any]:
        run_main(flow)
        return out

    return run


def tree() -> list[int]:
    """This process and all below it."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if fields := stat(int(folder.name)):
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [os.getpid()]
    for process in found:
        found.extend(children.get(process, ()))
    return found


def stat(process: int) -> list[str]:
    """What the kernel tells of a process, from its state on (proc(5), field 3); nothing if it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def cpu_seconds() -> float:
    """Processor time of the tree so far, ended children that were waited for included."""
    ticks = sum(sum(map(int, stat(process)[11:15])) for process in tree())
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_bytes(process: int) -> int:
    """Return the most memory that a process ever had resident."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
