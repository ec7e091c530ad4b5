"""What each metric is called and says: a name as Prometheus has them, a sentence, labels that tell whose it is."""

from __future__ import annotations

import re

from rayelastic.runtime.watch.metric_table import METRICS, Kind


def test_every_metric_has_a_name_and_a_sentence() -> None:
    for name, metric in METRICS.items():
        assert metric.name == name
        assert re.fullmatch("rayelastic(_[a-z0-9]+)+", name)
        assert name.endswith("_total") is (metric.kind is Kind.COUNTER)
        assert re.fullmatch(r"[A-Z0-9`].* .*\.", metric.text, re.DOTALL)
        assert all(re.fullmatch("[a-z_]+", label) for label in metric.labels)
        assert len(set(metric.labels)) == len(metric.labels)
