"""Panels that several figures share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.plant.play import Journal


def timeline(axes: Any, journal: Journal, title: str, unit: str = "s") -> None:
    """Throughput over time, and threads and queues on a second axis (Middleware'19 Fig. 6, PLDI'17 Fig. 11)."""
    times = [one.time for one in journal]
    axes.plot(times, [one.rate for one in journal], color="black", linewidth=0.8)
    axes.set_title(title, fontsize=8)
    axes.set_xlabel(unit, fontsize=7)
    axes.set_ylabel("tuples/s", fontsize=7)
    axes.set_ylim(bottom=0)
    other = axes.twinx()
    other.step(times, [one.threads for one in journal], where="post", color="tab:red", linewidth=0.8)
    if any(one.queues for one in journal):
        other.step(times, [one.queues for one in journal], where="post", color="tab:blue", linewidth=0.8)
    other.set_ylabel("threads (red), queues (blue)", fontsize=7)
    other.set_ylim(bottom=0)
    for each in (axes, other):
        each.tick_params(labelsize=6)


def bars(axes: Any, groups: Sequence[str], series: Mapping[str, Sequence[float]], title: str, label: str) -> None:
    """Grouped bars."""
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        axes.bar([at + number * width for at in range(len(groups))], values, width, label=name)
    axes.set_xticks([at + 0.4 - width / 2 for at in range(len(groups))], groups, fontsize=6)
    axes.set_title(title, fontsize=8)
    axes.set_ylabel(label, fontsize=7)
    axes.tick_params(axis="y", labelsize=6)
    axes.legend(fontsize=6)


def curve(
    axes: Any, xs: Sequence[float], ys: Sequence[float], title: str, label: str, level: float | None = None
) -> None:
    """A line, and the elastic result as a horizontal one."""
    axes.plot(xs, ys, marker=".", label="static")
    if level is not None:
        axes.axhline(level, color="tab:red", linestyle="--", label="elastic")
        axes.legend(fontsize=6)
    axes.set_title(title, fontsize=8)
    axes.set_xlabel(label, fontsize=7)
    axes.tick_params(labelsize=6)
    axes.set_ylim(bottom=0)
