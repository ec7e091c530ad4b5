"""The picture of radio imaging against NumPy, and against the sky that was looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rayelastic as rel
from rayelastic.topologies import radio_imaging as radio

SAMPLES, FREQUENCIES, CELLS = 4000, 2, 64


def reference(samples: int, frequencies: int, cells: int) -> np.ndarray:
    """The same sum, all samples at once."""
    n = np.arange(1, samples + 1)[:, None]
    f = 1 - 0.3 * np.arange(frequencies) / frequencies
    u, v, w = (n * step % 1 for step in (radio.U_STEP, radio.V_STEP, radio.W_STEP))
    reach = cells - 2 * radio.MARGIN
    u, v = ((one - 0.5) * reach * f for one in (u, v))
    w = np.floor(f * w * radio.W_PLANES) * radio.W_MOST / radio.W_PLANES
    u, v, w = u.ravel(), v.ravel(), w.ravel()
    sky = zip(radio.SKY_L, radio.SKY_M, radio.SKY_FLUX, strict=True)
    seen = sum(flux * np.exp(-2j * np.pi * (u * l + v * m - w * (l * l + m * m) / 2)) for l, m, flux in sky)  # noqa: E741
    a = radio.TAPER + 1j * w
    row, column = (np.floor(one + 0.5).astype(int) for one in (v, u))
    grid = np.zeros((cells, cells), dtype=complex)
    for down in range(-radio.SUPPORT, radio.SUPPORT + 1):
        for across in range(-radio.SUPPORT, radio.SUPPORT + 1):
            square = (row + down - v) ** 2 + (column + across - u) ** 2
            np.add.at(
                grid, (row + down + cells // 2, column + across + cells // 2), seen / a * np.exp(-np.pi * square / a)
            )
    return radio.transformed(grid, samples * frequencies)


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize(
    "config",
    [rel.JobConfig(threads=rel.Threads(model="manual")), rel.JobConfig(threads=rel.Threads(count=2, model="dynamic"))],
)
def test_the_picture_equals_the_reference(tmp_path: Path, workers: int, config: rel.JobConfig) -> None:
    output = str(tmp_path / "sky")
    rel.run(radio.build(output, SAMPLES, FREQUENCIES, CELLS, workers), config)
    expected = reference(SAMPLES, FREQUENCIES, CELLS)
    np.testing.assert_allclose(radio.picture_of(output), expected, atol=1e-9 * np.abs(expected).max())


def test_the_picture_shows_the_sky(tmp_path: Path) -> None:
    output = str(tmp_path / "sky")
    result = rel.run(radio.build(output, SAMPLES, FREQUENCIES, CELLS))
    picture = radio.picture_of(output)
    for l, m, flux in zip(radio.SKY_L, radio.SKY_M, radio.SKY_FLUX, strict=True):  # noqa: E741
        row, column = round(m * CELLS) + CELLS // 2, round(l * CELLS) + CELLS // 2
        around = picture[row - 2 : row + 3, column - 2 : column + 3]
        assert around.max() == pytest.approx(flux, rel=0.15)
        assert around.max() == picture[row, column]
    assert "the picture" in radio.report(result, output)
    assert (tmp_path / "sky.png").stat().st_size > 0
