"""Word count as a job of a Ray cluster; what it reads and writes comes from the environment.

    export RAY_AUTH_MODE=token RAY_AUTH_TOKEN=...        # the cluster's own: `ray get-auth-token` on its head node
    ray job submit --address http://HEAD:8265 --working-dir . \
        --runtime-env-json '{"env_vars": {"INPUT": "/data/books/*.txt", "OUTPUT": "/data/counts"}}' \
        -- python examples/word_count_job.py

Without OUTPUT, the counts return to the driver. OUTPUT and INPUT have to be on storage that all nodes can access.
`ray job stop` ends it in order: sources stop, the tuples in flight are processed, and nothing is left behind.
"""

from __future__ import annotations

import os
import sys

import rayelastic as rel
from rayelastic.errors import JobCancelledError
from rayelastic.topologies import word_count


def main() -> int:
    """Run the job; return the exit status."""
    output = os.environ.get("OUTPUT")
    topology = word_count.build(input=os.environ.get("INPUT"), output=output)
    job = rel.submit(topology, rel.JobConfig(pes=int(os.environ.get("PES", "1"))))
    job.drain_on_stop()
    try:
        result = job.wait()
    except JobCancelledError as error:
        print(error)
        return 0
    finally:
        job.close()
    print(word_count.report(result, output=output, input=os.environ.get("INPUT")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
