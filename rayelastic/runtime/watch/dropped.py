"""Tuples that an operator dropped: the reason as text, and a warning of those that were late."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rayelastic.plan.plan_text import counted

if TYPE_CHECKING:
    from rayelastic.runtime.values.status import JobMetrics

_log = logging.getLogger(__name__)

REASONS = {
    "late": "late and dropped: they came behind the watermark, and nobody takes .late()",
    "ahead": "dropped: too far ahead of the clock, and nothing takes .side('ahead')",
    "failed": "skipped: its function failed on them",
    "bad_row": "left out: rows of a file that aren't of the schema",
}
OF_TIME = ("late", "ahead")


def warn_late(job: str, now: JobMetrics) -> None:
    """Log once for each operator how many tuples it dropped because of their times."""
    for reason in OF_TIME:
        for name, count in now.dropped(reason).items():
            _log.warning("job '%s', operator '%s': %s %s", job, name, counted(count, "tuple"), REASONS[reason])
