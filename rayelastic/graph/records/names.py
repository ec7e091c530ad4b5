"""Valid names of fields."""

from __future__ import annotations

import keyword


def is_field_name(name: object) -> bool:
    """Return whether a field can have this name, as an attribute of a tuple."""
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
