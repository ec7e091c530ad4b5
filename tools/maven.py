"""Copies jars and what they depend on from Maven Central into a folder of `build/programs`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path


def copy_jars(jars: Path, coordinates: Iterable[tuple[str, str, str]]) -> int:
    """Copy the jars of some coordinates (group, name, version) into a folder; return Maven's exit status."""
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for group, name, version in coordinates
    )
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent) as folder:
        Path(folder, "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>rayelastic</groupId><artifactId>programs</artifactId>"
            f"<version>1</version><dependencies>{wanted}</dependencies></project>",
            encoding="utf-8",
        )
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}/jars"]
        status = subprocess.run(["mvn", "-B", "-q", *copy], cwd=folder, check=False).returncode
        if status == 0:
            shutil.rmtree(jars, ignore_errors=True)
            Path(folder, "jars").rename(jars)
        return status
