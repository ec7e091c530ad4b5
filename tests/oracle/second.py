"""The second start of a batch: a new process, machine code from the cache, and Numba never imported.

Reads the programs from standard input; writes for each what differs, or None, with its length before it.
"""

from __future__ import annotations

import os
import pickle
import sys

from rayelastic.compile.cache.code_cache import CodeCache
from tests.component.compile.harness import built_shim, opened_shim
from tests.oracle.alone import limited
from tests.oracle.compare import Difference, rows_of
from tests.oracle.worker import compared


def main() -> None:
    programs, options, folder = pickle.loads(sys.stdin.buffer.read())
    shim, cache = opened_shim(built_shim(options.folder)), CodeCache(folder)
    out = os.fdopen(os.dup(1), "wb")
    for number, program in programs:
        limited(options.limit)
        rows = rows_of(program, f"{options.seed}:{number}")
        lane, reason, found = compared(program, f"oracle-{options.seed}-{number}", rows, shim, cache)
        difference = found[0] if found else None
        if lane == "python":
            difference = Difference("second start", (), "", f"not compiled any more: {reason}")
        if difference is None and "numba" in sys.modules:
            difference = Difference("second start", (), "", "Numba was imported")
        answer = pickle.dumps(difference)
        out.write(len(answer).to_bytes(8, "little") + answer)
        out.flush()


if __name__ == "__main__":
    main()
