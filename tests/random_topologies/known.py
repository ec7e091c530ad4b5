"""Differences that are known, each with its reason. Empty where the engine does what the guide says.

Where the interpreter does the same for the moment (flow.QUIRKS), and nothing differs any more, a difference is known.
"""

from __future__ import annotations

KNOWN: dict[str, str] = {
    "B2": "reduce and fold of a key mix fields of two tuples where the newer is null",
    "B3": "keys of like types with other parameters match nothing",
    "B4": "corrected is true of windows that were never emitted",
    "null keys": "null keys are joined",
    "reduce order": "reduce with emit='update' doesn't emit the key fields first",
}

__all__ = ["KNOWN"]
