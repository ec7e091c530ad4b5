"""cluster/Dockerfile built by buildah, without a daemon, and word count run in the image.

The images that it begins with are fetched where a registry of images answers. Elsewhere one with the same name is made
of Debian's packages and Ray's wheel first, with what the file needs of it: a user `ray` whose Python on PATH has Ray.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cluster import machines

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "cluster" / "Dockerfile"
TIMEOUT = 3000.0  # seconds; the extension is compiled in it
LACKING = machines.missing() or ("" if shutil.which("buildah") else "no buildah on this machine (./dev programs)")

BEGINNING = """
FROM scratch
COPY debian /
RUN useradd --create-home --gid users --shell /bin/bash ray && install -d -o ray -g users /opt/python \\
    && apt-get update && apt-get install -y --no-install-recommends python3-venv python3-dev
USER ray
ENV PATH=/opt/python/bin:/usr/bin:/bin:/usr/sbin:/sbin
RUN python3 -m venv /opt/python && pip install --no-cache-dir 'ray[default]=={version}'
"""
RUN = """
set -e
if command -v g++; then exit 1; fi
command -v java
cd $(mktemp -d)
python -m zipfile -e /opt/rayelastic.zip .
RAY_USAGE_STATS_ENABLED=0 python examples/word_count_job.py
"""

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.nightly,
    pytest.mark.skipif(bool(LACKING), reason=LACKING or "everything is there"),
]


def buildah(*arguments: str) -> str:
    """Runs buildah with images of its own, kept in `build`, and gives what it wrote."""
    kept = machines.BASE / "images"
    variables = os.environ | {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "overlay"}
    own = ["buildah", "--root", f"{kept}/root", "--runroot", f"{kept}/run"]
    done = subprocess.run(
        [*own, *arguments], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, f"buildah {' '.join(arguments)}\n{(done.stdout + done.stderr)[-5000:]}"
    return done.stdout.strip()


@pytest.mark.timeout(3 * TIMEOUT)
def test_the_image_is_built_and_counts_words(tmp_path: Path) -> None:
    (begins,) = re.findall(r"^ARG BASE=(\S+)", FILE.read_text(), re.MULTILINE)
    name = f"docker.io/{begins}"
    if name not in buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
        version = re.search(r":([\d.]+)-", begins)
        assert version is not None
        (tmp_path / "Dockerfile").write_text(BEGINNING.format(version=version[1]))
        machines.debian()
        buildah("bud", "--file", str(tmp_path / "Dockerfile"), "--tag", name, str(machines.BASE))
    image = "localhost/rayelastic-test"
    buildah("bud", "--pull-never", "--file", str(FILE), "--tag", image, str(ROOT))
    container = buildah("from", "--pull-never", image)
    try:
        said = buildah("run", container, "--", "bash", "-c", RUN)
    finally:
        buildah("rm", container)
    assert re.search(r"[\d,]+ words, [\d,]+ distinct", said), said
