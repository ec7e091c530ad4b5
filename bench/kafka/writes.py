"""Numbers into a topic, with a checkpoint a second, in its own process: `writes.py DELIVERY BROKERS TOPIC RECORDS`.

Prints the records, and their seconds and CPU seconds of this process until the last one is shown to readers.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

import rayelastic as rel

EPOCH = 1.0  # seconds

if __name__ == "__main__":
    delivery: Any
    delivery, brokers, topic, records = sys.argv[1:]
    topology = rel.Topology("writes")
    into = rel.to_kafka(brokers, topic, delivery=delivery)
    topology.source(rel.sequence(int(records)), name="numbers").sink(into, name="out")
    with tempfile.TemporaryDirectory() as folder:
        began, began_cpu = time.perf_counter(), time.process_time()
        rel.run(topology, rel.JobConfig(checkpoint=rel.Checkpoint(folder, every=EPOCH)))
        took = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - began_cpu}
    print(json.dumps({"records": int(records)} | took))
