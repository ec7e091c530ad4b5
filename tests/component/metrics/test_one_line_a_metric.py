"""A metric is one declaration: CONTRIBUTING's example, planted into a copy of the package, is shown everywhere.

The native counter behind it is one that the extension counts already. So the whole cost of a metric is this line, the
counter's line in scheduler.hpp, and the code that counts.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rayelastic
from rayelastic import _native

ROOT = Path(rayelastic.__file__).parents[1]
BEFORE = "    lane: str ="
PROGRAM = """
import io, json, urllib.request
import rayelastic as rel
from rich.console import Console
from rayelastic.top import picture, view
from rayelastic.web.frames import COLUMNS, Rows, frame_between
from rayelastic.web.story import Story
from tools.dashboard import alert_rules, dashboard
from tools.reference import filled

def odd(t):
    if t.value % 2:
        raise ValueError(t.value)
    return t.value

topology = rel.Topology("planted")
numbers = topology.source(rel.sequence(10**12), name="numbers")
kept = numbers.map(odd, name="odd", schema={"value": int}, on_error="skip", lane="python")
kept.sink(rel.count(), name="out")
job = rel.start(topology, metrics_port=0)
while not job.metrics().operator("odd").skipped:
    assert not job.status.state.is_final, job.status
text = urllib.request.urlopen(f"http://127.0.0.1:{job.metrics_port}/metrics").read().decode()
console = Console(width=200, height=50, file=io.StringIO(), record=True)
console.print(picture(view(job, None), 200, 50))
metrics, plan = job.metrics(), job.plan()
frame = frame_between(None, metrics, plan, Rows(plan))
told = Story("planted", job=job).opening()
job.close()
print(json.dumps({
    "prometheus": [line for line in text.splitlines() if "skipped" in line],
    "status": metrics.operator("odd").skipped,
    "top": console.export_text(),
    "frame": float(frame.operators[Rows(plan).places["odd"], COLUMNS.index("skipped")]),
    "panel of an operator": [one for one in told["counted"] if one["name"] == "skipped"],
    "dashboard": [one for one in json.loads(dashboard())["panels"] if one["title"] == "Skipped"],
    "alerts": alert_rules(),
    "docs": filled("<!-- made: metrics -->\\n<!-- end -->"),
}))
"""


def test_a_planted_metric_is_shown_everywhere(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "rayelastic", tmp_path / "rayelastic", ignore=shutil.ignore_patterns("__pycache__"))
    extension = Path(_native.__file__)
    (tmp_path / "rayelastic" / extension.name).symlink_to(extension)
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    table = tmp_path / "rayelastic" / "runtime" / "values" / "status.py"
    text = table.read_text()
    assert text.count(BEFORE) == 1
    (declaration,) = re.findall(r"^   (skipped: int = .*?)^   ```", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S)
    table.write_text(text.replace(BEFORE, f"    {declaration}{BEFORE}"))
    # -S: the editable package isn't to be found, only what it depends on
    paths = [str(tmp_path), *(path for path in sys.path if "packages" in path)]
    ran = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(paths), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    shown = json.loads(ran.stdout)
    labels = '{operator="odd",pe="pe0",rel_job="planted"}'
    (series,) = (line for line in shown["prometheus"] if line.startswith(f"rayelastic_operator_skipped_total{labels}"))
    assert float(series.rpartition(" ")[2]) > 0
    assert shown["frame"] == pytest.approx(shown["status"]) != 0
    assert "skipped" in shown["top"]
    assert shown["panel of an operator"] == [{"name": "skipped", "title": "tuples skipped", "unit": "count"}]
    (panel,) = shown["dashboard"]
    assert panel["targets"][0]["expr"] == 'rate(${prefix}rayelastic_operator_skipped_total{rel_job=~"$job"}[1m])'
    assert "expr: ray_rayelastic_operator_skipped_total > 0" in shown["alerts"]
    assert "| `rayelastic_operator_skipped_total` | counter | rel_job, pe, operator |" in shown["docs"]
