"""Whether the built site's own search finds ordinary tasks: `python -m tools.site_search SITE`, a part of `./dev docs`.

Each task has the page that answers it and what people type, several wordings. The page has to come first. Where it
doesn't, its title, its headings or its `{index}` entries (keywords) are to blame; the scores are Sphinx's.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SCRIPT = Path(__file__).with_suffix(".js")

# {page: what people type who look for it}
TASKS: dict[str, tuple[str, ...]] = {
    "how_to/upgrade_a_job": ("upgrade without losing state", "upgrade a job", "deploy a new version", "migrate state"),
    "how_to/debug_a_slow_job": ("why is my job slow", "slow", "bottleneck", "performance problem"),
    "how_to/late_data": ("late data", "late events", "out of order", "allowed lateness"),
    "how_to/test_a_topology": ("unit test", "test a topology", "pytest", "test my pipeline"),
    "how_to/limit_resources": ("limit threads", "limit cpus", "limit processes", "limit memory", "use fewer cores"),
    "how_to/join_streams": ("join", "join two streams", "left join", "joining"),
    "how_to/deploy_on_kubernetes": ("kubernetes", "KubeRay", "RayJob", "docker image"),
    "how_to/read_from_kafka": ("kafka", "read from kafka", "kafka source"),
    "how_to/history_then_live": ("backfill", "history then live", "files then kafka", "hybrid source"),
    "how_to/write_to_kafka": ("write to kafka", "kafka sink", "kafka producer"),
    "connectors": ("iceberg",),
    "how_to/delta_lake": ("delta lake", "write to delta", "delta"),
    "how_to/write_files": ("write to S3", "write parquet", "write files", "write parquet to s3"),
    "how_to/monitor_and_alert": ("alert", "alert when job falls behind", "falls behind", "lag", "prometheus"),
    "how_to/call_an_api": ("rate limit", "call an api", "http request", "llm", "429", "call an api with a rate limit"),
    "how_to/run_a_model": ("gpu", "model inference", "pytorch", "num_gpus", "run model on gpu"),
    "how_to/stop_at_night": ("stop at night", "stop nightly", "cron", "stop at 2 am"),
    "how_to/dependencies_on_workers": ("runtime_env", "pip packages", "py_modules", "working_dir", "no module named"),
    "how_to/pass_secrets": ("credentials", "secrets", "password", "api key"),
    "how_to/see_logs_and_prints": ("logs", "print", "where are my prints", "logging"),
    "reference/supported_versions": ("supported versions", "python version", "which version of ray", "python 3.13"),
}


def search(site: Path, queries: list[str]) -> dict[str, list[tuple[str, str, int]]]:
    """Pages that the search of a built site finds, best first, as (page, title, score), for each query.

    Raises:
        RuntimeError: if this machine has no Node.js, which runs the search's script.
    """
    if not (node := shutil.which("node")):
        raise RuntimeError("no node on PATH: the site's search is a script in JavaScript")
    run = [node, str(SCRIPT), str(site)]
    printed = subprocess.run(run, input=json.dumps(queries), capture_output=True, text=True, check=True).stdout
    return {query: [tuple(one) for one in found] for query, found in json.loads(printed).items()}


def astray(site: Path) -> Iterator[str]:
    """What people type whose page isn't the first that the search of a built site finds."""
    found = search(site, [query for queries in TASKS.values() for query in queries])
    for page, queries in TASKS.items():
        for query in queries:
            pages = [one for one, _, _ in found[query]]
            if pages[:1] != [page]:
                place = f"number {pages.index(page) + 1}" if page in pages else "not found"
                yield f"search {query!r}: {page} is {place}; first is {', '.join(pages[:1]) or 'nothing'}"


if __name__ == "__main__":
    print("\n".join(astray(Path(sys.argv[1]))))
