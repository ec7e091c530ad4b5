"""The native extension can't be rewritten, and the package has the notices and a list of what it contains of others."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rayelastic import _native


@pytest.mark.skipif(not shutil.which("readelf"), reason="no readelf here: apt install binutils")
def test_tables_and_stack_of_the_native_extension_are_guarded() -> None:
    def shown(*options: str) -> str:
        command = ["readelf", "-W", *options, str(Path(_native.__file__))]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    segments = shown("--segments")
    assert re.search(r"FLAGS_1\).*\bNOW\b", shown("--dynamic")), "all symbols are bound before anything runs"
    assert "GNU_RELRO" in segments, "tables of addresses are read only"
    assert re.search(r"GNU_STACK.* RW ", segments), "the stack isn't executable"


def test_each_part_of_others_is_listed_and_has_its_notice() -> None:
    files = importlib.metadata.files("rayelastic") or []
    bills = [file for file in files if file.match("*.dist-info/sboms/rayelastic.cdx.json")]
    assert len(bills) == 1
    bill = json.loads(bills[0].read_text())
    assert bill["metadata"]["component"]["version"] == importlib.metadata.version("rayelastic")
    notices = {Path(file).stem for file in files if file.match("*.dist-info/licenses/licenses/*.txt")}
    assert {part["name"].lower().replace("-", "_") for part in bill["components"]} == notices
    for part in bill["components"]:
        assert re.fullmatch(r"\d+\.\d+\.\d+", part["version"]), part
        assert part["purl"].endswith(part["version"]), part


def test_the_notice_of_nanobind_is_that_of_the_version_in_use() -> None:
    try:
        files = importlib.metadata.files("nanobind") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("nanobind is needed to build, and isn't here")
    notice = next(file for file in files if file.match("*.dist-info/licenses/LICENSE"))
    root = Path(__file__).resolve().parents[3]
    assert (root / "licenses" / "nanobind.txt").read_text() == notice.read_text()
