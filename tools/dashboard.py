"""The Grafana dashboard and the alert rules in `cluster`, made from the table of metrics by `tools.reference`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from rayelastic.runtime.values.metrics import Kind, Metric, Panel, Scope, Unit
from rayelastic.runtime.watch.metric_table import METRICS

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
CHOSEN = '{rel_job=~"$job"}'  # the jobs that the dashboard's variable selects
LEGENDS = {
    Scope.OPERATOR: "{{operator}} on {{pe}}",
    Scope.PE: "{{pe}}",
    Scope.LINK: "{{link}} at {{pe}}",
    Scope.REGION: "{{region}}",
    Scope.JOB: "",
}
UNITS = {Unit.COUNT: "short", Unit.SECONDS: "s", Unit.BYTES: "bytes", Unit.SHARE: "percentunit"}
RATES = {Unit.COUNT: "cps", Unit.SECONDS: "percentunit", Unit.BYTES: "Bps"}  # of a counter's rate
WIDTH, HEIGHT = 12, 8  # of a panel; two in a row
NOTES = (  # events that mark all panels: title, colour, metric, labels besides the job, what the text names
    ("Threads changed", "blue", "rayelastic_pe_threads", "", ": {{pe}}"),
    ("Queues changed", "green", "rayelastic_pe_operators", ', model="dynamic"', ": {{pe}}"),
    ("Replicas changed", "purple", "rayelastic_region_replicas", "", ": {{region}}"),
    ("Channels changed", "semi-dark-green", "rayelastic_operator_channels", "", ": {{operator}}"),
    ("Routing changed", "orange", "rayelastic_job_epoch", "", ""),
    ("Checkpoint aborted", "yellow", "rayelastic_job_checkpoints_abandoned_total", "", ""),
    ("Recovered", "red", "rayelastic_job_restarts_total", "", ""),
)


def dashboard() -> str:
    """Return the dashboard's JSON, a line a panel."""
    panels: dict[str, list[tuple[Metric, Panel]]] = defaultdict(list)
    for metric in METRICS.values():
        for panel in metric.panels:
            panels[panel.title].append((metric, panel))
    head: dict[str, Any] = {
        "title": "rayelastic",
        "uid": "rayelastic",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "tags": ["rayelastic"],
        "templating": {"list": list(_variables())},
        "annotations": {"list": [_note(*note) for note in NOTES]},
    }
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    drawn = [json.dumps(_panel(number, title, parts)) for number, (title, parts) in enumerate(panels.items())]
    lines.append('"panels": [\n' + ",\n".join(drawn) + "\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "type": "datasource", "query": "prometheus"}
    yield {"name": "prefix", "type": "textbox", "query": "ray_", "current": {"text": "ray_", "value": "ray_"}}
    jobs = "label_values(${prefix}rayelastic_job_seconds, rel_job)"
    more = {"refresh": 2, "includeAll": True, "multi": True}
    yield {"name": "job", "type": "query", "datasource": SOURCE, "query": jobs, **more}


def _note(title: str, colour: str, metric: str, labels: str, text: str) -> dict[str, Any]:
    return {
        "name": title,
        "enable": True,
        "iconColor": colour,
        "datasource": SOURCE,
        "expr": f"changes(${{prefix}}{METRICS[metric].name}{CHOSEN[:-1]}{labels}}}[15s]) > 0",
        "step": "5s",
        "titleFormat": title,
        "textFormat": "{{rel_job}}" + text,
    }


def _panel(number: int, title: str, parts: list[tuple[Metric, Panel]]) -> dict[str, Any]:
    metric, first = parts[0]
    is_rate = metric.kind is Kind.COUNTER and not first.expr
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "gridPos": {"h": HEIGHT, "w": WIDTH, "x": number % 2 * WIDTH, "y": number // 2 * HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": (RATES if is_rate else UNITS)[first.unit or metric.unit]},
            "overrides": [],
        },
        "targets": [_target(chr(ord("A") + at), *part) for at, part in enumerate(parts)],
    }


def _target(letter: str, metric: Metric, panel: Panel) -> dict[str, str]:
    expr = panel.expr or ("rate({}[1m])" if metric.kind is Kind.COUNTER else "{}")
    legend = panel.legend or LEGENDS[metric.scope]
    return {
        "refId": letter,
        "expr": expr.replace("{}", f"${{prefix}}{metric.name}{CHOSEN}"),
        "legendFormat": "{{rel_job}}" + (f": {legend}" if legend else ""),
    }


def alert_rules() -> str:
    """Return the alert rules in YAML."""
    text = "# Example alert rules for jobs on Ray; take ray_ out of the names for jobs with metrics_port=.\n"
    text += "groups:\n  - name: rayelastic\n    rules:\n"
    for metric in METRICS.values():
        if (alert := metric.alert) is not None:
            text += f"      - alert: {alert.name}\n"
            text += f"        expr: {alert.expr.replace('{}', f'ray_{metric.name}')}\n"
            text += f"        for: {alert.duration}\n" if alert.duration else ""
            text += f"        annotations:\n          summary: {json.dumps(alert.summary)}\n"
    return text


def alerts() -> Iterator[tuple[str, str]]:
    """Return the rows of the guide's table of alert rules."""
    return ((f"`{alert.name}`", alert.when) for metric in METRICS.values() if (alert := metric.alert))
