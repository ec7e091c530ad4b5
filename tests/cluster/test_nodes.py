"""A job over two Ray nodes with different addresses (network namespaces); skipped where that can't be had."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NETNS = Path(__file__).parents[2] / "cluster" / "netns.py"
JOB_TIMEOUT = 150.0


def load_netns() -> Any:
    spec = importlib.util.spec_from_file_location("netns", NETNS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


netns = load_netns()
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.netns,
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "everything is there"),
]

COUNT = """
import json, sys
import rayelastic as rel
from topologies import word_count
text, output = sys.argv[1:]
job = rel.submit(word_count.build(input=text, output=output), rel.JobConfig(pes=2))
result = job.wait(timeout=120)
print(json.dumps({
    "nodes": sorted({pe.node for pe in job.status.pes}),
    "records": sum(link["records_sent"] for pe in result.metrics.pes for link in pe.links.values()),
}))
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    with netns.Nodes(2) as made:
        yield made


def test_word_count_over_two_nodes(nodes: Any, tmp_path: Path) -> None:
    from pyarrow import parquet

    text, output = tmp_path / "text.txt", tmp_path / "counts"
    text.write_text("".join(f"word{n % 97} and a-longer-word-{n % 13}\n" for n in range(20_000)))
    done = nodes.run(0, [sys.executable, "-c", COUNT, str(text), str(output)], timeout=JOB_TIMEOUT)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["nodes"] == ["rel-node0", "rel-node1"]
    assert report["records"] > 0
    table = parquet.read_table(output)
    counted = dict(zip(table["word"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert counted == Counter(text.read_text().split())
