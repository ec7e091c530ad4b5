"""What tests ask of adaptations: those of regions, the codes of their reasons, and the values of one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rayelastic.job import Job
from rayelastic.reasons import Code, Reason
from rayelastic.runtime.values.region_adaptation import RegionAdaptation


def region_passes(job: Job) -> list[RegionAdaptation]:
    """The passes of the regional level, with those that changed nothing."""
    return [one for one in job.adaptations(every_pass=True) if isinstance(one, RegionAdaptation)]


def codes(reasons: Iterable[Reason]) -> list[Code]:
    """The codes, in their order."""
    return [reason.code for reason in reasons]


def values(reasons: Iterable[Reason], code: Code) -> Mapping[str, Any]:
    """The values of the first reason with a code."""
    return next(reason.values for reason in reasons if reason.code is code)
