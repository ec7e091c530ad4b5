"""What tests ask of reasons: their codes, and the values of one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rayelastic.reasons import Code, Reason


def codes(reasons: Iterable[Reason]) -> list[Code]:
    """The codes, in their order."""
    return [reason.code for reason in reasons]


def values(reasons: Iterable[Reason], code: Code) -> Mapping[str, Any]:
    """The values of the first reason with a code."""
    return next(reason.values for reason in reasons if reason.code is code)
