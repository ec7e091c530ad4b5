"""The addresses of the functions of Numba's run-time library that compiled code with lists, dicts and sets calls.

They are C functions in two of Numba's extension modules, which are loaded without Numba. Importing Numba takes a
second, and a process that only runs compiled code needs nothing else of it. Knows nothing of compiling.
"""

from __future__ import annotations

import functools
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

_NRT, _HELPERS = "NRT_", "numba_"  # Numba's prefixes of the two modules' functions


def address_of(name: str) -> int:
    """Return the address of a function by its name in machine code; 0 if the library doesn't have it.

    >>> address_of("NRT_Allocate") != 0, address_of("numba_dict_lookup") != 0, address_of("NRT_nothing")
    (True, True, 0)
    """
    if name.startswith(_NRT):
        return _addresses("numba.core.runtime._nrt_python", "core/runtime").get(name.removeprefix(_NRT), 0)
    if name.startswith(_HELPERS):
        return _addresses("numba._helperlib", "").get(name.removeprefix(_HELPERS), 0)
    return 0


@functools.cache
def _addresses(module: str, folder: str) -> dict[str, int]:
    package = find_spec("numba")
    places = [] if package is None else [str(Path(one) / folder) for one in package.submodule_search_locations or ()]
    found = PathFinder.find_spec(module, places)
    if found is None or found.loader is None:
        return {}
    loaded: Any = module_from_spec(found)
    found.loader.exec_module(loaded)
    return dict(loaded.c_helpers)
