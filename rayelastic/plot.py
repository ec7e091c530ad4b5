"""A picture of a run: throughput, threads and queues over time, as in Middleware'19 Fig. 6, from its adaptations.

Must not know where the adaptations come from. matplotlib is loaded when the first picture is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.errors import ConfigError
from rayelastic.runtime.adaptation import Adaptation, read_journal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot", "plot_journals"]

MILLION = 1e6


def plot(adaptations: Iterable[Adaptation], *, title: str = "") -> Figure:
    """Draw what was seen in each pass, and mark each change.

    Args:
        adaptations: every pass, of one or more processing elements: `job.adaptations(every_pass=True)`.
        title: above the picture.

    Returns:
        A matplotlib figure; a notebook shows it, `savefig` writes it.

    Raises:
        ConfigError: there is nothing to draw, or matplotlib isn't there.
    """
    passes = list(adaptations)
    if not passes:
        raise ConfigError(
            "there are no adaptations to draw", way_out="Give every pass: job.adaptations(every_pass=True)"
        )
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        from rayelastic.picture import Picture
    except ImportError as error:
        raise ConfigError(f"pictures need matplotlib: {error}", way_out="pip install 'rayelastic[plot]'") from error
    figure = Picture(figsize=(9, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    rates, threads, queues = figure.subplots(3, 1, sharex=True, height_ratios=(2, 1, 1))
    for pe in dict.fromkeys(adaptation.pe for adaptation in passes):
        _draw(pe, [adaptation for adaptation in passes if adaptation.pe == pe], (rates, threads, queues))
    rates.set_ylabel("M tuples/s,\nall operators")
    threads.set_ylabel("threads")
    queues.set_ylabel("queues")
    queues.set_xlabel("seconds")
    for axes in (rates, threads, queues):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    if len({adaptation.pe for adaptation in passes}) > 1:
        rates.legend(frameon=False)
    if title:
        rates.set_title(title, loc="left")
    return figure


def _draw(pe: str, passes: Sequence[Adaptation], axes: tuple[Axes, Axes, Axes]) -> None:
    times = [adaptation.observation.time for adaptation in passes]
    rates, threads, queues = axes
    (line,) = rates.plot(
        times, [adaptation.observation.throughput / MILLION for adaptation in passes], marker=".", label=pe
    )
    colour = line.get_color()
    threads.step(times, [adaptation.observation.thread_count for adaptation in passes], where="post", color=colour)
    queues.step(times, [len(adaptation.observation.queued) for adaptation in passes], where="post", color=colour)
    for adaptation in passes:
        if adaptation.changed:
            for one in axes:
                one.axvline(adaptation.observation.time, color=colour, alpha=0.25, linewidth=0.8)


def plot_journals(paths: Sequence[Path], output: Path) -> None:
    """Draw journals into one picture.

    Args:
        paths: of journals, one for each processing element.
        output: the picture; its ending says the format, such as .png or .svg.

    Raises:
        ConfigError: one is no journal, there is nothing to draw, or the format isn't known.
    """
    passes = [adaptation for path in paths for adaptation in read_journal(path)[1]]
    figure = plot(passes, title=", ".join(path.stem for path in paths))
    try:
        figure.savefig(output, dpi=120)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{output} can't be written: {error}", way_out="Name a .png, .svg or .pdf file") from error
