"""Tasks of Spark's Python workers start quickly: an archive is read again only if it has changed."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import gc, importlib, os, sys, zipfile, zipimport
from rayelastic.spark.worker import start_tasks_quickly

OLD = os.path.abspath("old.zip")

def written(*names):
    with zipfile.ZipFile(OLD, "w") as archive:
        for name in names:
            archive.writestr(f"{name}.py", f"said = {name!r}")

reads = []
read = zipimport._read_directory
zipimport._read_directory = lambda archive: reads.append(archive) or read(archive)

written("first")
sys.path.insert(0, OLD)
import first
start_tasks_quickly()
start_tasks_quickly()
importlib.invalidate_caches()
known = len(reads)
for _ in range(100):
    importlib.invalidate_caches()
    assert importlib.util.find_spec("unknown_module") is None
assert len(reads) <= known + 1, (known, len(reads))
assert gc.get_freeze_count() > 1000

written("first", "second_module")
importlib.invalidate_caches()
import second_module
assert second_module.said == "second_module"

os.remove(OLD)
importlib.invalidate_caches()
assert importlib.util.find_spec("third") is None
"""


def test_an_archive_is_read_again_only_if_it_has_changed(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
