"""Metrics, and their declaration: a field of a class of samples that `metric` makes.

One line declares a metric: its name, unit, description and where it is shown. Prometheus and Ray, `rayelastic top`, the
web UI, the Grafana dashboard, the alert rules and the guide's table are made from these lines. Must not know the
transport.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

LABEL = "rel_job"  # not "job": Prometheus reserves that name for its target, and would rename ours to "exported_job"
_METRIC, _TEXT, _COMBINE, _KIND = "metric", "text", "combine", "kind"  # keys of a field's metadata

Sample = TypeVar("Sample")


class Kind(enum.Enum):
    """The behaviour of a metric."""

    COUNTER = "counter"  # only grows while its job runs
    GAUGE = "gauge"  # a current value, or one over the time between two readings


class Unit(enum.Enum):
    """The unit of a metric; the end of its name says which."""

    COUNT = "count"
    SECONDS = "seconds"
    BYTES = "bytes"
    SHARE = "share"  # 0 to 1


_UNITS = {"_seconds": Unit.SECONDS, "_bytes": Unit.BYTES, "_share": Unit.SHARE, "_fill": Unit.SHARE}  # others: a count


class Scope(enum.Enum):
    """What a metric describes; the value has its labels."""

    OPERATOR = (LABEL, "pe", "operator")
    PE = (LABEL, "pe")
    LINK = (LABEL, "pe", "link")
    REGION = (LABEL, "region")
    JOB = (LABEL,)


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of the Grafana dashboard; metrics with the same title share one.

    Args:
        title: Its title.
        legend: What the legend names; empty: the labels of the scope.
        expr: A PromQL expression, in which `{}` stands for the metric of the chosen jobs. Empty: a counter's rate, or a
            gauge's value.
        unit: The unit of the expression; None: that of the metric, or of its rate.
    """

    title: str
    legend: str = ""
    expr: str = ""
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert rule.

    Args:
        name: Its name.
        when: When it fires, for the guide.
        expr: A PromQL expression; `{}` stands for the metric.
        duration: How long the expression holds before it fires; empty: at once.
        summary: The annotation; labels as in Prometheus' templates.
    """

    name: str
    when: str
    expr: str
    duration: str
    summary: str


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Args:
        scope: What it describes.
        source: The attribute, or native counter, with its value.
        text: Its description, with its unit.
        kind: Counter or gauge.
        short: Its name behind the scope; empty: `source`.
        more: Labels besides those of its scope.
        top: The heading of its column in `rayelastic top`; empty: none.
        page: Its name in the web UI's panel of an operator; empty: it isn't there.
        panels: Panels of the dashboard.
        alert: An alert rule.

    >>> declaration = Metric(Scope.PE, "cpu_seconds", "CPU time, seconds.")
    >>> declaration.name, declaration.labels, declaration.unit
    ('rayelastic_pe_cpu_seconds_total', ('rel_job', 'pe'), <Unit.SECONDS: 'seconds'>)
    """

    scope: Scope
    source: str
    text: str
    kind: Kind = Kind.COUNTER
    short: str = ""
    more: tuple[str, ...] = ()
    top: str = ""
    page: str = ""
    panels: tuple[Panel, ...] = ()
    alert: Alert | None = None

    name: str = field(init=False)  # in Prometheus; Ray adds `ray_` in front

    def __post_init__(self) -> None:
        total = "_total" if self.kind is Kind.COUNTER else ""
        name = f"rayelastic_{self.scope.name.lower()}_{self.short or self.source}{total}"
        object.__setattr__(self, "name", name)

    @property
    def unit(self) -> Unit:
        """Its unit."""
        return next(
            (unit for end, unit in _UNITS.items() if self.name.removesuffix("_total").endswith(end)), Unit.COUNT
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its values."""
        return (*self.scope.value, *self.more)

    def of(self, sample: object) -> Any:
        """Return its value in a sample; of several by reason, their sum."""
        value = getattr(sample, self.source)
        return sum(value.values()) if isinstance(value, Mapping) else value


def metric(
    text: str,
    *,
    default: Any = 0,
    combine: Callable[[Sequence[Any]], Any] = sum,
    exported: bool = True,
    panel: Panel | str | None = None,
    **settings: Any,
) -> Any:
    """Declare a field of a sample as a metric.

    Args:
        text: Its description, with its unit.
        default: The field's default; a class such as `dict`: a new one.
        combine: Combines the values of several PEs.
        exported: Whether it is a metric; otherwise the field has only a description.
        panel: A panel of the dashboard, or its title.
        settings: As for `Metric`.
    """
    panels = () if panel is None else (Panel(panel) if isinstance(panel, str) else panel,)
    declaration = {_METRIC: {"text": text, "panels": panels, **settings}} if exported else {}
    metadata = {_TEXT: text, _COMBINE: combine, _KIND: settings.get("kind", Kind.COUNTER), **declaration}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def gauge(text: str, **settings: Any) -> Any:
    """Declare a field of a sample as a gauge; as `metric`."""
    return metric(text, kind=Kind.GAUGE, **settings)


def declared(sample: type[Any], scope: Scope) -> tuple[Metric, ...]:
    """Return the metrics that a class of samples declares."""
    return tuple(Metric(scope, one.name, **one.metadata[_METRIC]) for one in fields(sample) if _METRIC in one.metadata)


def described(sample: type[Sample]) -> type[Sample]:
    """Complete a class's docstring by the descriptions of the fields that `metric` declared."""
    lines = "".join(
        f"        {one.name}: {one.metadata[_TEXT]}\n"
        for one in fields(sample)  # type: ignore[arg-type]
        if _TEXT in one.metadata
    )
    sample.__doc__ = f"{(sample.__doc__ or '').rstrip()}\n{lines}    "
    return sample


def combined(samples: Sequence[Sample]) -> Sample:
    """Return the sample of several PEs together; a field without a rule has the first one's value."""
    first = samples[0]
    return type(first)(
        **{
            one.name: one.metadata.get(_COMBINE, _first)([getattr(sample, one.name) for sample in samples])
            for one in fields(first)  # type: ignore[arg-type]
        }
    )


def counters_of(sample: Sample) -> Sample:
    """Return a sample without its gauges, as that of a PE that has ended."""
    gauges = [one for one in fields(sample) if one.metadata.get(_KIND) is Kind.GAUGE]  # type: ignore[arg-type]
    return replace(sample, **{one.name: one.default for one in gauges})  # type: ignore[type-var]


def _first(values: Iterable[Any]) -> Any:
    return next(iter(values))
