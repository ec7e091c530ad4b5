"""User functions with side outputs, or that go on behind tuples on which they fail, become native operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.compile.lanes.tolerant_lane import tolerant
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from rayelastic.compile import LoadedFunction, OperatorCode
    from rayelastic.graph.spec.operator_spec import OperatorSpec


def tolerant_operator(spec: OperatorSpec, loaded: LoadedFunction, native: _native.Operator | None) -> _native.Operator:
    """Make the operator.

    Args:
        spec: of the operator.
        loaded: its function.
        native: the compiled operator that fails with its function; None in the other lanes.
    """
    code = loaded.code
    schemas = [native_schema(port.schema) for port in spec.outputs]
    diverts = spec.on_error is OnError.DIVERT
    if native is not None:

        def explain(record: tuple[Any, ...]) -> str:
            return loaded.explain(record).message

        return _native.Operator.tolerant(native, schemas[-1] if diverts else None, explain)
    return _native.Operator.python_ports(
        spec.name,
        _per_run(spec, code),
        [native_schema(code.input_schema)],
        schemas,
        [code.input_schema.tuple_type],
        view=code.view.value,
        keyed=_states(spec, code),
        letters=diverts,
    )


def _per_run(spec: OperatorSpec, code: OperatorCode) -> Any:
    ports = spec.outputs[:-1] if spec.on_error is OnError.DIVERT else spec.outputs
    checks = [_native.RecordCheck(spec.name, native_schema(port.schema)) for port in ports]
    return tolerant(code, ports, spec.on_error, checks)


def ttl_of(spec: OperatorSpec) -> tuple[int, str, int, str]:
    """Return the time to live of an operator's keys, as the native layer takes it."""
    return (0, "", 0, "last") if spec.ttl is None else spec.ttl.described


def _states(spec: OperatorSpec, code: OperatorCode) -> _native.KeyedState | None:
    if code.state is None or code.lane is Lane.VECTORISED:
        return None
    return _native.KeyedState.objects(native_schema(code.input_schema), list(code.keys), code.state, ttl_of(spec))
