"""JobConfig(pes=...): how many processing elements (PEs) a job starts with, or which operators run in which PE."""

from __future__ import annotations

from collections.abc import Mapping

from rayelastic.errors import ConfigError
from rayelastic.plan.settings.checks import check_whole


def checked_pes(pes: object) -> int | dict[str, int | str]:
    """Return the number of PEs, or {operator: number or name of its PE}.

    Raises:
        ConfigError: the value is neither; names the operator.

    >>> checked_pes(2), checked_pes({"counts": 1, "out": "back"}), checked_pes({})
    (2, {'counts': 1, 'out': 'back'}, 1)
    """
    if isinstance(pes, int | float):
        check_whole(f"JobConfig(pes={pes!r})", pes)
        return int(pes)
    if not isinstance(pes, Mapping):
        raise ConfigError(
            f"JobConfig(pes={pes!r}): neither a number nor {{operator: number or name of its PE}}",
            hint="Give a whole number, or {'counts': 1}",
        )
    for operator, pe in pes.items():
        number = isinstance(pe, int) and not isinstance(pe, bool) and pe >= 0
        named = isinstance(pe, str) and pe.isidentifier()
        if not isinstance(operator, str) or not (number or named):
            raise ConfigError(
                f"JobConfig(pes={{{operator!r}: {pe!r}}})",
                operator=operator if isinstance(operator, str) else None,
                hint="Give an operator's name and the number of its PE from 0 on, or a name such as 'front'",
            )
    return dict(pes) or 1
