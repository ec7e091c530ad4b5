"""Runs one program once, in the interpreter of its system, and prints what it took as one line of JSON.

    python measure.py PROGRAM INPUT [WARM_UP_INPUT]

Standard library only: it runs in the environments of other systems.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import time
from pathlib import Path


def main(program: str, path: str, warm_up: str | None = None) -> None:
    sys.path.pop(0)  # this folder: nothing in it is the program's business
    spec = importlib.util.spec_from_file_location("program", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["program"] = module
    spec.loader.exec_module(module)
    if warm_up is not None:
        module.prepare(warm_up)()
    run = module.prepare(path)
    cpu, wall = time.process_time(), time.perf_counter()
    raw = run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_bytes()
    rows = sorted(module.result(raw).items())
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()
    print(json.dumps({"seconds": wall, "cpu_seconds": cpu, "peak_bytes": peak, "rows": len(rows), "digest": digest}))


def peak_bytes() -> int:
    """The most memory that the process ever had resident."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
