"""What an operator class became: a value that can be shipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rayelastic.compile.code.operator_code import View
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.ports import InputPort, OutputPort

__all__ = ["PortsCode"]


@dataclass(frozen=True, slots=True)
class PortsCode:
    """An instance of a user's operator class in its lane. Picklable with cloudpickle.

    Args:
        operator: its name, for messages.
        instance: what the user made.
        inputs: its input ports.
        outputs: its output ports.
        lane: VECTORISED or PYTHON.
        reason: why that lane, in words.
        state: what makes the initial state of a key, None if it keeps none of keys.
        view: what `invoke` is called with.
        library: whose arrays or frames these are, in the vectorised lane.
        on_error: what happens to a tuple on which `invoke` raises.
    """

    operator: str
    instance: Any
    inputs: tuple[InputPort, ...]
    outputs: tuple[OutputPort, ...]
    lane: Lane
    reason: str
    state: Callable[[], Any] | None = None
    view: View = View.TUPLES
    library: str = ""
    on_error: OnError = OnError.FAIL

    @property
    def ends(self) -> bool:
        """Whether it has something to do at the end of its input."""
        return hasattr(self.instance, "shutdown")

    @property
    def is_conjunctive(self) -> bool:
        """Whether it waits for all its ports."""
        return self.inputs[0].demand is not None
