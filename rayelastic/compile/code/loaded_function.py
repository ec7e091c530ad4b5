"""A user's function that is loaded into a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rayelastic.compile.code.explain import Explanation, explain
from rayelastic.compile.code.operator_code import OperatorCode


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """An operator function in this process.

    Args:
        code: The shipped function.
        address: The address of the rel_process function if compiled, else 0.
        function: The per-run callable of the other execution modes (see python_lane), else None.
        flags: rel_flags.
        state_initial: The record of a new key.
        owner: Keep it as long as the address is in use.
    """

    code: OperatorCode
    address: int
    function: Callable[..., Any] | None
    flags: int
    state_initial: bytes
    owner: object

    def explain(self, record: tuple[Any, ...], state: tuple[Any, ...] | None = None) -> Explanation:
        """Run the user's Python function on one tuple, for the true exception of a compiled failure.

        Args:
            record: The failing tuple, plain Python scalars in field order.
            state: The values of its key's state record, in field order; the initial state by default.
        """
        return explain(self.code, record, state)
