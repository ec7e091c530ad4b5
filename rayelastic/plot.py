"""A picture of a run: throughput, threads, queues and replicas over time, from its adaptations.

As in Middleware'19 Fig. 6 for PEs, and as in Joker's Figs 16 and 18 to 20 for regions (J36). Must not
know where the adaptations come from. matplotlib is loaded when the first picture is drawn.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.plan.plan_text import short
from rayelastic.runtime.values.adaptation import Adaptation, read_journal
from rayelastic.runtime.values.region_adaptation import RegionAdaptation, is_region_journal, read_region_journal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_INCHES = 2.2
WHOLE = ("replicas", "threads", "queues")
CHANGE = {"alpha": 0.5, "linewidth": 0.8}  # the line at which something was changed


def plot(adaptations: Iterable[Adaptation | RegionAdaptation], *, title: str = "") -> Figure:
    """Draw what was seen in each pass, and mark each change.

    Args:
        adaptations: every pass, of PEs and of regions: `job.adaptations(every_pass=True)`.
        title: above the picture.

    Returns:
        A matplotlib figure; a notebook shows it, `savefig` writes it.

    Raises:
        ConfigError: there is nothing to draw, or matplotlib isn't there.
    """
    given = list(adaptations)
    passes = [adaptation for adaptation in given if isinstance(adaptation, Adaptation)]
    regions = [adaptation for adaptation in given if isinstance(adaptation, RegionAdaptation)]
    if not given:
        raise ConfigError(
            "there are no adaptations to draw",
            hint="Use job.adaptations(every_pass=True)",
            code=ErrorCode.MISSING_ARGUMENT,
        )
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise ConfigError(
            f"pictures need matplotlib: {error}", hint="pip install 'rayelastic[plot]'", code=ErrorCode.MISSING_PACKAGE
        ) from error
    heights = ((2, 1) if regions else ()) + ((2, 1, 1) if passes else ())
    figure = Figure(figsize=(9, 1 + ROW_INCHES * len(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    figure._repr_svg_ = lambda: _svg(figure)  # type: ignore[attr-defined]  # notebooks show it, also without pyplot
    rows: list[Axes] = list(figure.subplots(len(heights), 1, sharex=True, height_ratios=heights))
    if regions:
        _draw_regions(regions, rows[0], rows[1])
    if passes:
        _draw_elements(passes, (rows[-3], rows[-2], rows[-1]))
    for axes in rows:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(nbins="auto", integer=axes.get_ylabel() in WHOLE))
        axes.yaxis.set_major_formatter(lambda value, _: short(value))
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    rows[-1].set_xlabel("seconds")
    if title:
        rows[0].set_title(title, loc="left")
    return figure


def _svg(figure: Figure) -> str:
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg")
    return drawn.getvalue()


def _draw_regions(passes: Sequence[RegionAdaptation], rates: Axes, replicas: Axes) -> None:
    times = [adaptation.observation.time for adaptation in passes]
    rates.plot(times, [adaptation.throughput for adaptation in passes], marker=".", color="black")
    rates.set_ylabel("tuples/s,\nof all sources")
    replicas.set_ylabel("replicas")
    for planned in passes[0].in_force.regions:
        name = planned.region.name
        if not planned.region.kind.is_fixed:
            counts = [adaptation.in_force.region(name).replicas for adaptation in passes]
            replicas.step(times, counts, where="post", marker=".", label=name)
    replicas.legend(frameon=False)
    for adaptation in passes:
        if adaptation.changed:
            style = ":" if adaptation.problem else "-"
            for axes in (rates, replicas):
                axes.axvline(adaptation.observation.time, linestyle=style, **CHANGE)


def _draw_elements(passes: Sequence[Adaptation], axes: tuple[Axes, Axes, Axes]) -> None:
    rates, threads, queues = axes
    for pe in dict.fromkeys(adaptation.pe for adaptation in passes):
        _draw(pe, [adaptation for adaptation in passes if adaptation.pe == pe], axes)
    rates.set_ylabel("tuples/s,\nall operators")
    threads.set_ylabel("threads")
    queues.set_ylabel("queues")
    if len({adaptation.pe for adaptation in passes}) > 1:
        rates.legend(frameon=False)


def _draw(pe: str, passes: Sequence[Adaptation], axes: tuple[Axes, Axes, Axes]) -> None:
    times = [adaptation.observation.time for adaptation in passes]
    rates, threads, queues = axes
    (line,) = rates.plot(times, [adaptation.observation.throughput for adaptation in passes], marker=".", label=pe)
    colour = line.get_color()
    threads.step(times, [adaptation.observation.thread_count for adaptation in passes], where="post", color=colour)
    queues.step(times, [len(adaptation.observation.queued) for adaptation in passes], where="post", color=colour)
    for adaptation in passes:
        if adaptation.changed:
            for one in axes:
                one.axvline(adaptation.observation.time, color=colour, **CHANGE)


def plot_journals(paths: Sequence[Path], output: Path) -> None:
    """Draw journals into one picture.

    Args:
        paths: of journals, one for each PE, and that of the regions.
        output: the picture; its ending says the format, such as .png or .svg.

    Raises:
        ConfigError: one is no journal, there is nothing to draw, or the format isn't known.
    """
    passes: list[Adaptation | RegionAdaptation] = []
    for path in paths:
        passes += read_region_journal(path) if is_region_journal(path) else read_journal(path)[1]
    figure = plot(passes, title=", ".join(path.stem for path in paths))
    try:
        figure.savefig(output, dpi=120)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{output} can't be written: {error}", hint="Name a .png, .svg or .pdf file", code=ErrorCode.NOT_WRITABLE
        ) from error
