"""Makes native operators of the two ends of a stage, and assigns threads to its channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.graph.operators.channels import Channels, channel_heads
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.plan.config import JobConfig


def channels_operator(spec: OperatorSpec, width: _native.ChannelWidth) -> _native.Operator:
    """Make the operator that distributes tuples.

    Args:
        spec: The operator.
        width: The number of channels in use, which a loop may change.
    """
    body = spec.body
    assert isinstance(body, Channels)
    assert spec.input_schema is not None
    schema = native_schema(spec.input_schema)
    if body.keys and body.ordered:
        return _native.Operator.keyed_channels(spec.name, schema, list(body.keys), body.most)
    return _native.Operator.channels(spec.name, schema, width, body.ordered)


def in_turn_operator(spec: OperatorSpec) -> _native.Operator:
    """Make the operator that restores the order."""
    assert spec.input_schema is not None
    return _native.Operator.in_turn(spec.name, native_schema(spec.input_schema), len(spec.inputs))


def pinned_models(operators: Sequence[OperatorSpec], config: JobConfig) -> dict[str, ThreadingModel]:
    """Return the fixed threading models: those that the user has set, and those of elastic channels.

    An elastic channel has its own thread (S01, L01), unless the user sets another model.
    """
    heads = channel_heads({operator.name: operator for operator in operators})
    models = {name: ThreadingModel.DEDICATED for channels in heads.values() for names in channels for name in names}
    for operator in operators:
        if (model := config.threads.model_of(operator.name)) is not None:
            models[operator.name] = model
    return models
