"""Draws the pictures of docs/applications.md, of input that is made up: `./dev bench pictures`."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import rayelastic as rel
from rayelastic.topologies import dns_traffic, packet_analysis, pcap, radio_imaging

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SIZE, DPI = (6.0, 2.6), 80
PACKETS = 20_000


def main() -> int:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    FOLDER.mkdir(exist_ok=True)
    for draw in (sky, traffic):
        figure = Figure(figsize=SIZE, layout="constrained")
        FigureCanvasAgg(figure)
        with tempfile.TemporaryDirectory() as folder:
            name = draw(figure, folder)
        figure.savefig(FOLDER / f"{name}.png", dpi=DPI)
        print(FOLDER / f"{name}.png")
    return 0


def sky(figure: Any, folder: str) -> str:
    """Return the picture, and its brightness along the row of the brightest point."""
    rel.run(radio_imaging.build(folder))
    picture = radio_imaging.picture_of(folder)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    left.imshow(picture, cmap="inferno", origin="lower", vmin=0)
    left.set_axis_off()
    row = picture.max(axis=1).argmax()
    right.plot(picture[row], color="tab:red")
    right.set_title(f"brightness in row {row}", fontsize=8)
    right.spines[["top", "right"]].set_visible(False)
    return "radio_imaging"


def traffic(figure: Any, folder: str) -> str:
    """Bytes a second of the network, and what was found."""
    packets, _ = dns_traffic.network(PACKETS)
    capture = Path(folder) / "traffic.pcap"
    pcap.write(capture, packets)
    rel.run(packet_analysis.build(str(capture), folder))
    seconds: Counter[int] = Counter()
    for packet in packets:
        seconds[(packet.time - dns_traffic.START) // pcap.MICROSECONDS] += packet.size
    axes = figure.subplots()
    axes.plot(*zip(*sorted(seconds.items()), strict=True), color="tab:gray", label="bytes a second")
    for number, (what, colour) in enumerate(
        (("generated", "tab:blue"), ("tunnels", "tab:green"), ("bursts", "tab:red"))
    ):
        table = found(folder, what)
        times = [(first - dns_traffic.START) / pcap.MICROSECONDS for first in table["first"].to_pylist()]
        height = max(seconds.values()) * (0.95 - 0.08 * number)
        axes.scatter(times, [height] * len(times), marker="|", color=colour, label=f"{what}, first seen: {len(times)}")
    axes.set_xlabel("seconds")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7, loc="upper center")
    return "packet_analysis"


def found(folder: str, what: str) -> Any:
    import pyarrow.dataset as dataset

    return dataset.dataset(Path(folder) / what, format="parquet").to_table()


if __name__ == "__main__":
    sys.exit(main())
