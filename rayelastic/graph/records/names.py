"""What fields can be called."""

from __future__ import annotations

import keyword

__all__ = ["is_field_name"]


def is_field_name(name: object) -> bool:
    """Whether a field can be called so: it is an attribute of a tuple."""
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
