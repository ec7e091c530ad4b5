"""Converts the output of commands with --json: statuses, counters, plans and findings as JSON values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.reasons import Reason
from rayelastic.runtime.values.operator_table import OperatorTable


def plain(value: Any) -> Any:
    """Return a value as dicts, lists, strings and numbers; plans by their `to_dict`, numbers that JSON lacks as None.

    >>> from rayelastic.runtime.values.status import PEStatus, State
    >>> plain(PEStatus("pe0", State.RUNNING))["state"]
    'running'
    """
    if isinstance(value, ExecPlan):
        return value.to_dict()
    if isinstance(value, Reason):
        return value.as_dict()
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        shown = [field.name for field in fields(value) if field.repr and field.name[0] != "_"]
        return {name: plain(getattr(value, name)) for name in shown}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | OperatorTable):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def as_json(value: Any) -> str:
    """Return the same as text."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False)
