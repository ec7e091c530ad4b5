"""rayelastic: elastic stream processing for Python on Ray.

Declare a topology without any degree of parallelism in it, and run it in this process (`rel.run`) or on Ray
(`rel.submit`). Everything public is here; the parts are loaded when they are first used, so the import is cheap.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rayelastic import errors as errors
    from rayelastic import spark as spark
    from rayelastic.compile.lanes.process_key import Out as Out
    from rayelastic.compile.report import compile_report as compile_report
    from rayelastic.connectors.registry import *  # noqa: F403  (what it lists)
    from rayelastic.fluent.stream import KeyedStream as KeyedStream
    from rayelastic.fluent.stream import Stream as Stream
    from rayelastic.fluent.stream import WindowedStream as WindowedStream
    from rayelastic.fluent.streams import Streams as Streams
    from rayelastic.graph.operators.aggregates import avg as avg
    from rayelastic.graph.operators.aggregates import count as count
    from rayelastic.graph.operators.aggregates import distinct as distinct
    from rayelastic.graph.operators.aggregates import first as first
    from rayelastic.graph.operators.aggregates import last as last
    from rayelastic.graph.operators.aggregates import max as max
    from rayelastic.graph.operators.aggregates import mean as mean
    from rayelastic.graph.operators.aggregates import min as min
    from rayelastic.graph.operators.aggregates import quantile as quantile
    from rayelastic.graph.operators.aggregates import stddev as stddev
    from rayelastic.graph.operators.aggregates import sum as sum
    from rayelastic.graph.operators.aggregates import top_k as top_k
    from rayelastic.graph.operators.aggregates import weighted_mean as weighted_mean
    from rayelastic.graph.operators.aligned import Aligned as Aligned
    from rayelastic.graph.operators.gathering.expressions import col as col
    from rayelastic.graph.operators.patterns import Pattern as Pattern
    from rayelastic.graph.records.forms import Json as Json
    from rayelastic.graph.records.mutable_state import state as state
    from rayelastic.graph.records.schema import Schema as Schema
    from rayelastic.graph.records.time_info import Ttl as Ttl
    from rayelastic.graph.spec.concurrency import concurrent as concurrent
    from rayelastic.graph.spec.operator_class import at_least as at_least
    from rayelastic.graph.spec.operator_class import exactly as exactly
    from rayelastic.graph.spec.operator_class import operator as operator
    from rayelastic.graph.spec.operator_spec import Lane as Lane
    from rayelastic.graph.spec.routed import to as to
    from rayelastic.job import Job as Job
    from rayelastic.job import JobResult as JobResult
    from rayelastic.job import attach as attach
    from rayelastic.job import run as run
    from rayelastic.job import start as start
    from rayelastic.job import submit as submit
    from rayelastic.on_ray.dataset import dataset as dataset
    from rayelastic.plan.config import JobConfig as JobConfig
    from rayelastic.plan.settings.checkpoint import Checkpoint as Checkpoint
    from rayelastic.plan.settings.elasticity import Elasticity as Elasticity
    from rayelastic.plan.settings.latency import Latency as Latency
    from rayelastic.plan.settings.network import Network as Network
    from rayelastic.plan.settings.paper import PaperElasticity as PaperElasticity
    from rayelastic.plan.settings.schedule import Schedule as Schedule
    from rayelastic.plan.settings.threads import Threads as Threads
    from rayelastic.plan.settings.tls import TLS as TLS
    from rayelastic.runtime.checkpoint.reader import read_snapshot as read_snapshot
    from rayelastic.runtime.values.adaptation import Adaptation as Adaptation
    from rayelastic.runtime.values.snapshot import Snapshot as Snapshot
    from rayelastic.runtime.values.status import JobStatus as JobStatus
    from rayelastic.topology import Topology as Topology

__version__ = "0.2.0"

_HOMES: dict[str, tuple[str, ...]] = {
    "rayelastic.compile.lanes.process_key": ("Out",),
    "rayelastic.compile.report": ("compile_report",),
    "rayelastic.graph.operators.aggregates": (
        "avg",
        "count",
        "distinct",
        "first",
        "last",
        "max",
        "mean",
        "min",
        "quantile",
        "stddev",
        "sum",
        "top_k",
        "weighted_mean",
    ),
    "rayelastic.graph.operators.aligned": ("Aligned",),
    "rayelastic.graph.operators.gathering.expressions": ("col",),
    "rayelastic.graph.operators.patterns": ("Pattern",),
    "rayelastic.graph.spec.concurrency": ("concurrent",),
    "rayelastic.graph.spec.operator_class": ("at_least", "exactly", "operator"),
    "rayelastic.graph.spec.operator_spec": ("Lane",),
    "rayelastic.graph.spec.routed": ("to",),
    "rayelastic.graph.records.forms": ("Json",),
    "rayelastic.graph.records.mutable_state": ("state",),
    "rayelastic.graph.records.schema": ("Schema",),
    "rayelastic.graph.records.time_info": ("Ttl",),
    "rayelastic.fluent.stream": ("KeyedStream", "Stream", "WindowedStream"),
    "rayelastic.fluent.streams": ("Streams",),
    "rayelastic.job": ("Job", "JobResult", "attach", "run", "start", "submit"),
    "rayelastic.on_ray.dataset": ("dataset",),
    "rayelastic.plan.settings.checkpoint": ("Checkpoint",),
    "rayelastic.plan.config": ("JobConfig",),
    "rayelastic.plan.settings.elasticity": ("Elasticity",),
    "rayelastic.plan.settings.network": ("Network",),
    "rayelastic.plan.settings.threads": ("Threads",),
    "rayelastic.plan.settings.tls": ("TLS",),
    "rayelastic.plan.settings.latency": ("Latency",),
    "rayelastic.plan.settings.paper": ("PaperElasticity",),
    "rayelastic.plan.settings.schedule": ("Schedule",),
    "rayelastic.runtime.values.adaptation": ("Adaptation",),
    "rayelastic.runtime.values.status": ("JobStatus",),
    "rayelastic.runtime.checkpoint.reader": ("read_snapshot",),
    "rayelastic.runtime.values.snapshot": ("Snapshot",),
    "rayelastic.topology": ("Topology",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("errors", "spark")


if not TYPE_CHECKING:  # otherwise type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name in _HOME_OF:
            value = getattr(importlib.import_module(_HOME_OF[name]), name)
        elif name in _MODULES:
            value = importlib.import_module(f"rayelastic.{name}")
        elif name == "__all__":
            value = _names()
        elif name.startswith("_"):
            raise AttributeError(f"module 'rayelastic' has no attribute {name!r}")
        elif name in _connectors().__all__:
            value = getattr(_connectors(), name)
        else:
            words = importlib.import_module("rayelastic.graph.words")
            raise AttributeError(words.missing("the module rayelastic", name, _names(), words.MODULE))
        globals()[name] = value
        return value


def _connectors() -> ModuleType:
    return importlib.import_module("rayelastic.connectors.registry")


def _names() -> Sequence[str]:
    return sorted([*_HOME_OF, *_MODULES, *_connectors().__all__])


def __dir__() -> Sequence[str]:
    return [*_names(), "__version__"]
