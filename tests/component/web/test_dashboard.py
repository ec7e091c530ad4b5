"""The dashboard and the alert rules against a real Prometheus that scrapes two jobs: queries find the chosen one."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.job import Job, start
from rayelastic.runtime.watch.metric_table import METRICS

CLUSTER = Path(__file__).parents[3] / "cluster"
PROMETHEUS = shutil.which("prometheus")
JOBS = ("first", "second")
PATIENCE = 40.0  # seconds until every query has found something

pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason="no Prometheus here: ./dev programs installs it")


def running(name: str, go_on: threading.Event) -> Job:
    made = rel.Topology(name)
    numbers = made.source(rel.sequence(10_000_000_000), name="numbers")
    keyed = numbers.map(lambda t: (t.value % 7, t.value), name="key", schema={"key": int, "value": int}).key_by("key")
    keyed.window(count=1000).aggregate(name="sums", total=rel.sum("value")).sink(rel.count(), name="out")
    return start(made, rel.JobConfig(pes=2, checkpoint=rel.Checkpoint(every=1.0)), metrics_port=0)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a Prometheus answers that scrapes two jobs as Ray's own configuration does: without honor_labels."""
    go_on, folder, port = threading.Event(), tmp_path_factory.mktemp("prometheus"), free_port()
    jobs = [running(name, go_on) for name in JOBS]
    targets = [f"127.0.0.1:{job.metrics_port}" for job in jobs]
    (folder / "prometheus.yml").write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "rule_files": [str(CLUSTER / "alert_rules.yaml")],
                "scrape_configs": [{"job_name": "ray", "static_configs": [{"targets": targets}]}],
            }
        )
    )
    command = [str(PROMETHEUS), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)
            for job in jobs:
                job.close()


def found(address: str, query: str) -> list[dict[str, str]]:
    try:
        with urllib.request.urlopen(f"{address}/api/v1/query?query={urllib.parse.quote(query)}", timeout=10) as answer:
            said: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
            return []  # it reads its disk yet
        pytest.fail(f"{query}: {error.read().decode()}")
    except OSError:
        return []  # it isn't up yet
    return [one["metric"] for one in said["data"]["result"]]


def test_every_query_finds_the_chosen_job_and_no_other(prometheus: str) -> None:
    dashboard = json.loads((CLUSTER / "grafana_dashboard.json").read_text())
    queries = {target["expr"] for panel in dashboard["panels"] for target in panel["targets"]}
    queries = {query.replace("${prefix}", "").replace("$job", JOBS[0]) for query in queries}
    assert len(queries) > 20
    until, missing, turn = time.monotonic() + PATIENCE, set(queries), threading.Event()
    while missing and time.monotonic() < until:
        for query in sorted(missing):
            series = found(prometheus, query)
            assert {one["rel_job"] for one in series} <= {JOBS[0]}, query
            if series:
                missing.remove(query)
        turn.wait(0.5)  # the next scrape is another process's
    assert not missing
    names = next(one for one in dashboard["templating"]["list"] if one["name"] == "job")["query"]
    metric, label = names.replace("${prefix}", "").removeprefix("label_values(").removesuffix(")").split(", ")
    assert {one[label] for one in found(prometheus, metric)} == set(JOBS)


def test_annotations_are_queries_that_it_takes(prometheus: str) -> None:
    dashboard = json.loads((CLUSTER / "grafana_dashboard.json").read_text())
    for note in dashboard["annotations"]["list"]:
        found(prometheus, note["expr"].replace("${prefix}", "").replace("$job", JOBS[0]))


def test_a_checkpoint_that_does_not_complete_alerts(prometheus: str) -> None:
    """The rule's own query, with a bound that the age of every checkpoint is beyond, finds both jobs."""
    rules = (CLUSTER / "alert_rules.yaml").read_text()
    query = next(line for line in rules.splitlines() if "checkpoint_age_seconds" in line).partition("expr: ")[2]
    query = query.replace("ray_", "", 1).replace("> 300", "> 0")
    until, turn = time.monotonic() + PATIENCE, threading.Event()
    while len(series := found(prometheus, query)) < len(JOBS) and time.monotonic() < until:
        turn.wait(0.5)  # the next scrape is another process's
    assert {one["rel_job"] for one in series} == set(JOBS)


def test_alert_rules_are_valid_and_name_metrics_that_there_are() -> None:
    rules = CLUSTER / "alert_rules.yaml"
    checked = subprocess.run(["promtool", "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{sum(one.alert is not None for one in METRICS.values())} rules found" in checked.stdout
