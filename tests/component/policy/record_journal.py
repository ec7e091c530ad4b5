"""Records the journal that `test_adaptation` replays: `python -m tests.component.policy.record_journal`, on two cores.

A job adapts from cold; another process takes a core for a while, and goes.
"""

from __future__ import annotations

import subprocess
import sys

from tests.component.policy.test_adaptation import RECORDED, started

COMES, GOES, ENDS = 14, 24, 36  # passes


def main() -> None:
    job = started(journal=str(RECORDED), thread_period=1.0)
    other = None
    try:
        for adaptation in job.adaptations(follow=True, every_pass=True):
            if adaptation.number == COMES:
                other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            if other is not None and adaptation.number == GOES:
                other.kill()
            if adaptation.number == ENDS:
                break
    finally:
        if other is not None:
            other.kill()
            other.wait()
        job.cancel(drain=False)
        job.close()


if __name__ == "__main__":
    main()
