"""An operator class as a value that can be shipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rayelastic.compile.code.operator_code import View
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import PICKLED, Lane, OperatorBody, OperatorSpec, StateKind, fields_form
from rayelastic.graph.spec.ports import InputPort, OutputPort


@dataclass(frozen=True, slots=True)
class PortsCode(OperatorBody):
    """An instance of a user's operator class in its execution mode. Picklable with cloudpickle.

    Args:
        operator: The operator's name, for messages.
        instance: The user's object.
        inputs: Its input ports.
        outputs: Its output ports.
        lane: VECTORISED or PYTHON.
        reason: The reason for the execution mode.
        state: Makes the initial state of a key, None if it keeps none of keys.
        view: The argument of `invoke`.
        library: The library of these arrays or frames, if vectorised.
        on_error: What happens to a tuple on which `invoke` raises.
        refusal: The code and values of why it isn't compiled (reasons.py), if that was tried.
    """

    operator: str
    instance: Any
    inputs: tuple[InputPort, ...]
    outputs: tuple[OutputPort, ...]
    lane: Lane = field()
    reason: str
    state: Callable[[], Any] | None = None
    view: View = View.TUPLES
    library: str = ""
    on_error: OnError = OnError.FAIL
    refusal: Mapping[str, Any] | None = None
    operator_kind = "operator"
    keeps_object = True

    @property
    def ends(self) -> bool:
        """Whether it acts when its input ends."""
        return hasattr(self.instance, "shutdown")

    @property
    def takes_turns(self) -> bool:
        """Whether it has one input, and emits at once what a tuple makes."""
        return len(self.inputs) == 1 and not self.is_conjunctive and not self.ends

    @property
    def is_conjunctive(self) -> bool:
        """Whether it waits for all its ports."""
        return self.inputs[0].demand is not None

    def keeps_keys(self, keys: tuple[str, ...]) -> bool:  # noqa: ARG002
        """Return False: it may emit anything."""
        return False

    def state_form(self, spec: OperatorSpec) -> str | None:
        """Describe its state: tuples that wait for each other, the user's object, or the state of keys."""
        waiting = " and ".join(f"({fields_form(port.schema)})" for port in spec.inputs if port.demand is not None)
        if waiting:
            keeps = "" if spec.state_kind is StateKind.STATELESS else f", and its object, {PICKLED}"
            return f"tuples of {waiting} that wait for each other{keeps}"
        return OperatorBody.state_form(self, spec)

    def kept_form(self, spec: OperatorSpec) -> str:
        """Describe the user's object, or the state of keys."""
        of = "its object" if spec.state_kind is StateKind.STATEFUL else spec.key_form
        return f"{of}, {PICKLED}"
