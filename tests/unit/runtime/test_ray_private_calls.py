"""One module alone goes behind Ray's public interface: what has to be looked at for a new Ray is in one place."""

import re
from pathlib import Path

import rayelastic

PRIVATE = re.compile(r"ray\._|ray\.experimental|internal_kv|_actor_id|_global_node")
ADAPTER = Path("on_ray/private/adapter.py")


def test_no_other_module_calls_what_is_private_to_ray() -> None:
    root = Path(rayelastic.__file__).parent
    found = {path.relative_to(root) for path in root.rglob("*.py") if PRIVATE.search(path.read_text())}
    assert found == {ADAPTER}
