"""Radio imaging: samples of an interferometer become a picture of the sky (IPDPS'09 section 4, Fig. 3; S10, C004-4).

Samples are scaled to wavelengths for each frequency, and indexed to a sector and a cell of the grid. They are convolved
with a function that depends on w (w projection, the paper's [23]). Four operators convolve, each into a grid of its
own, as gridding commutes. The grids are added up, and a Fourier transform makes the picture. Like the paper's, the
data is synthetic.

    rayelastic run rayelastic.topologies.radio_imaging --samples 100000
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rayelastic as rel

OUTPUT = "results/radio_imaging"
WORKERS = 4  # Fig. 3(b)
SUPPORT = 3  # cells to each side that a sample is convolved into
MARGIN = SUPPORT + 1
TAPER = 4.0  # 1 / width^2 of the Gaussian that the picture is tapered with, fields of view^-2
W_MOST, W_PLANES = 2.0, 16  # cells; planes that w is rounded to
U_STEP, V_STEP, W_STEP = 0.8191725133961645, 0.6710436067037893, 0.5497004779019703  # R3 sequence: spreads evenly
# Point sources: place as a share of the field of view, from its middle, and flux.
SKY_L, SKY_M, SKY_FLUX = (
    (12 / 128, -24 / 128, 30 / 128, -8 / 128),
    (-20 / 128, 8 / 128, 26 / 128, -34 / 128),
    (1.0, 0.6, 0.8, 0.4),
)


class Sample(NamedTuple):
    """A pair of antennas: their distance in each direction, 0 to 1."""

    number: int
    u: float
    v: float
    w: float


class Scaled(NamedTuple):
    """The same in cells of the grid, at one frequency."""

    u: float
    v: float
    w: float


class Visible(NamedTuple):
    """What the pair sees."""

    u: float
    v: float
    w: float
    real: float
    imag: float


class Indexed(NamedTuple):
    """And where it goes: sector, and the nearest cell."""

    u: float
    v: float
    w: float
    real: float
    imag: float
    sector: int
    row: int
    column: int


class Cell(NamedTuple):
    """What is added to a cell of the grid."""

    cell: int
    real: float
    imag: float


class Pixel(NamedTuple):
    """A point of the picture."""

    row: int
    column: int
    brightness: float


def sample(t: Any) -> Sample:
    """Return the paper draws at random; this spreads as evenly, the same in every run."""
    n = t.value + 1
    return Sample(t.value, n * U_STEP % 1.0, n * V_STEP % 1.0, n * W_STEP % 1.0)


def scaled(cells: int, frequencies: int) -> Callable[[Any], Iterator[Scaled]]:
    """Yield the function from a sample to its coordinates at each frequency, in cells; w rounded to a plane."""
    reach = cells - 2.0 * MARGIN

    def scale(t: Any) -> Iterator[Scaled]:
        for number in range(frequencies):
            f = 1.0 - 0.3 * number / frequencies
            plane = math.floor(f * t.w * W_PLANES)
            yield Scaled((t.u - 0.5) * reach * f, (t.v - 0.5) * reach * f, plane * W_MOST / W_PLANES)

    return scale


def visibility(t: Scaled) -> Visible:
    """Return what the interferometer sees of the sky (the equation of section 4, for small angles)."""
    real, imag = 0.0, 0.0
    for one in range(len(SKY_L)):
        l, m = SKY_L[one], SKY_M[one]  # noqa: E741  (the paper's names)
        phase = -2.0 * math.pi * (t.u * l + t.v * m - t.w * (l * l + m * m) / 2.0)
        real += SKY_FLUX[one] * math.cos(phase)
        imag += SKY_FLUX[one] * math.sin(phase)
    return Visible(t.u, t.v, t.w, real, imag)


def index(cells: int) -> Callable[[Any], Indexed]:
    """Return the function that finds the cell of a sample, and its sector: a quarter of the grid."""
    half = cells // 2

    def indexed(t: Any) -> Indexed:
        row, column = half + math.floor(t.v + 0.5), half + math.floor(t.u + 0.5)
        sector = (2 if row >= half else 0) + (1 if column >= half else 0)
        return Indexed(t.u, t.v, t.w, t.real, t.imag, sector, row, column)

    return indexed


def convolve(cells: int) -> Callable[[Any], Iterator[Cell]]:
    """Yield the function that convolves a sample into the cells around it.

    The kernel is the Fourier transform of a Gaussian taper times the phase that w adds. It is a Gaussian again, of
    complex width `a = TAPER + i w`.
    """
    half = cells // 2

    def convolved(t: Any) -> Iterator[Cell]:
        norm = TAPER * TAPER + t.w * t.w
        width, turn = TAPER / norm, -t.w / norm  # 1 / a
        real, imag = t.real * width - t.imag * turn, t.real * turn + t.imag * width
        for row in range(t.row - SUPPORT, t.row + SUPPORT + 1):
            for column in range(t.column - SUPPORT, t.column + SUPPORT + 1):
                down, across = row - half - t.v, column - half - t.u
                square = math.pi * (down * down + across * across)
                size, phase = math.exp(-square * width), -square * turn
                cosine, sine = size * math.cos(phase), size * math.sin(phase)
                yield Cell(row * cells + column, real * cosine - imag * sine, real * sine + imag * cosine)

    return convolved


@rel.operator(inputs=Cell, outputs=Pixel)
class Image:
    """Takes the cells of the grid; when all are there, transforms it to the picture.

    Args:
        cells: of the grid, and pixels of the picture, in each direction.
        samples: that were gridded, by which brightness is divided.
    """

    def __init__(self, cells: int, samples: int) -> None:
        self.cells = cells
        self.samples = samples

    def initialize(self) -> None:
        """Make an empty grid."""
        self.grid = np.zeros(self.cells * self.cells, dtype=complex)

    def invoke(self, run: np.ndarray[Any, Any]) -> None:
        """Take a run of cells, each of which comes once."""
        self.grid[run["cell"]] = run["real"] + 1j * run["imag"]

    def shutdown(self) -> dict[str, Any]:
        """Transform."""
        picture = transformed(self.grid.reshape(self.cells, self.cells), self.samples)
        rows, columns = np.indices(picture.shape)
        return {"row": rows.ravel(), "column": columns.ravel(), "brightness": picture.ravel()}


def transformed(grid: Any, samples: int) -> Any:
    """Return the picture of a grid: inverse Fourier transform, and the taper taken out."""
    cells = len(grid)
    picture = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(grid))).real * cells * cells / samples
    places = (np.arange(cells) - cells // 2) / cells
    return picture * np.exp(np.pi * TAPER * (places[:, None] ** 2 + places[None, :] ** 2))


def build(
    output: str = OUTPUT, samples: int = 20_000, frequencies: int = 4, cells: int = 128, workers: int = WORKERS
) -> rel.Topology:
    """Declare the topology.

    Args:
        output: the folder that the picture is written to, as Parquet.
        samples: of pairs of antennas.
        frequencies: number of frequencies of each sample; 16,384 in the paper.
        cells: of the grid in each direction, and pixels of the picture.
        workers: operators that convolve, 4 at most: one for each quarter of the grid.
    """
    if cells < 4 * MARGIN or not 1 <= workers <= WORKERS:
        raise rel.errors.ConfigError(
            f"cells={cells}, workers={workers}", hint=f"Give {4 * MARGIN} cells or more, and 1 to {WORKERS} workers"
        )
    topology = rel.Topology("radio_imaging")
    numbers = topology.source(rel.sequence(samples), name="samples")
    coordinates = numbers.map(sample, name="coordinates").flat_map(scaled(cells, frequencies), name="scale")
    indexed = coordinates.map(visibility, name="visibility").map(index(cells), name="index")
    sectors = indexed.split(workers, name="sectors", by=lambda t: t.sector % workers)
    grids = [
        part.flat_map(convolve(cells), name=f"convolution{number}")
        .key_by("cell")
        .aggregate(name=f"grid{number}", **_SUMS)
        for number, part in enumerate(sectors)
    ]
    grid = (grids[0].union(*grids[1:]) if len(grids) > 1 else grids[0]).key_by("cell").aggregate(name="grid", **_SUMS)
    grid.apply(Image(cells, samples * frequencies), name="image").sink(rel.parquet(output), name="out")
    return topology


_SUMS: dict[str, Any] = {"real": rel.sum("real"), "imag": rel.sum("imag")}


def picture_of(output: str) -> Any:
    """Return the picture as a square array, row by row."""
    import pyarrow.dataset as dataset

    table = dataset.dataset(output, format="parquet").to_table()
    side = math.isqrt(table.num_rows)
    picture = np.zeros((side, side))
    picture[table["row"].to_numpy(), table["column"].to_numpy()] = table["brightness"].to_numpy()
    return picture


def report(result: rel.JobResult, output: str = OUTPUT) -> str:
    """Return the brightest points, and the picture as PNG where matplotlib is installed.

    Args:
        result: what the job left.
        output: the folder of the picture.
    """
    picture = picture_of(output)
    half = len(picture) // 2
    best = np.argsort(picture, axis=None)[::-1][: len(SKY_L)]
    rows, columns = np.unravel_index(best, picture.shape)
    lines = [f"{picture[y, x]:6.2f} at {x - half:+4d} {y - half:+4d}" for y, x in zip(rows, columns, strict=True)]
    try:
        from matplotlib import image
    except ImportError:
        return "\n".join([*lines, f"pixels: {Path(output).resolve()}"])
    path = Path(output).with_suffix(".png")
    image.imsave(path, picture, cmap="inferno", vmin=0.0, origin="lower")
    return "\n".join([*lines, f"the picture: {path.resolve()}; {result.seconds:.2f} s"])
