"""Small values that one run saves for later ones: a JSON file for each key, written completely or not at all.

A file may be lost, or be damaged: its readers can do without. Knows nothing of the values' meaning.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

KEPT = 1000  # files in a folder; the oldest are removed


class KeptValues:
    """The values of one key.

    Args:
        folder: The folder of the files; made when there is something to save.
        key: The file's name.

    >>> import tempfile
    >>> values = KeptValues(Path(tempfile.mkdtemp()), "4f2a")
    >>> values.read() is None
    True
    >>> values.write({"threads": 2})
    >>> values.read()
    {'threads': 2}
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.file = folder / f"{key}.json"

    def read(self) -> dict[str, Any] | None:
        """Return them; None: there are none, or the file is damaged, which is logged."""
        try:
            values = json.loads(self.file.read_text(encoding="utf-8"))
            if not isinstance(values, dict):
                raise ValueError(f"{type(values).__name__} in place of values by name")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.damaged(error)
            return None
        return values

    def damaged(self, why: object) -> None:
        """Log that the file isn't what was written."""
        log.warning("what earlier runs found is left out: %s: %s", self.file, why)

    def write(self, values: dict[str, Any]) -> None:
        """Replace the values; a failure is logged."""
        folder, unfinished = self.file.parent, self.file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(json.dumps(values), encoding="utf-8")
            unfinished.replace(self.file)
            _remove_oldest(folder)
        except OSError as error:
            log.warning("later runs won't know what was best: %s", error)


def _remove_oldest(folder: Path) -> None:
    files = list(folder.iterdir())  # with those that a lost process left unfinished
    if len(files) > KEPT:
        ages = sorted((file.stat().st_mtime, file) for file in files)
        for _, file in ages[: len(files) - KEPT]:
            file.unlink(missing_ok=True)
