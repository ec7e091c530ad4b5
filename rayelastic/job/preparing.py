"""A topology becomes the specification of a job: checked and planned, with nothing started."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.errors import ConfigError, ErrorCode, GraphError
from rayelastic.graph.fluent.topology import Topology as GraphTopology
from rayelastic.graph.records.shown import shown
from rayelastic.plan.config import JobConfig, Regions
from rayelastic.plan.fusion import plan_topology
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.ingest.external_source import DriverSink, ExternalSource
from rayelastic.runtime.port.certificates import server_context
from rayelastic.runtime.port.secure_socket import check_encryption
from rayelastic.runtime.saved.first_values import check_first_values
from rayelastic.runtime.saved.restoring import LATEST, check_keepable, check_restorable, checked, latest, newest
from rayelastic.runtime.values.specs import JobSpec

if TYPE_CHECKING:
    from pathlib import Path

    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.snapshot import Manifest, Snapshot
    from rayelastic.topology import Topology

__all__ = ["prepare"]


def prepare(
    topology: Topology,
    config: JobConfig | None = None,
    *,
    name: str | None = None,
    restore: Snapshot | Checkpoint | str | Path | None = None,
    regions: Regions = Regions.FIXED,
) -> JobSpec:
    """Validate and plans a topology without starting anything.

    Args:
        topology: what to run.
        config: `JobConfig()` if not given.
        name: the name of the job; the topology's if not given.
        restore: the snapshot to go on from, or where checkpoints are, of which the newest whole one counts. "latest":
            that of the job's own checkpoints; without any that was ever complete, the start.
        regions: what becomes of them if the configuration doesn't say.

    Raises:
        DeclarationError: the topology, a source, a sink or the configuration is wrong.
        StateError: the snapshot is damaged, or the topology can't go on from it; checkpoints are asked for, and an
            operator begins with what can't be pickled, or no other job could restore them.
    """
    _check_given(topology, config)
    config = (config or JobConfig()).or_regions(regions)
    if config.network.secure:
        check_encryption(config.network.link_certificates)
    if config.network.tls is not None:
        server_context(config.network.tls)
    topology.validate(shipped=False)
    if isinstance(config.checkpoint, Checkpoint):
        check_first_values(topology.operators.values())
        check_keepable(config.checkpoint, topology.operators.values())
    saved, epoch = None, 0
    if (found := _found(restore, config, name or topology.name)) is not None:
        saved, manifest = found
        epoch = manifest.epoch
        check_restorable(saved, manifest, topology.operators)
    return JobSpec(
        name=name or topology.name,
        operators={name: _for_pe(operator) for name, operator in topology.operators.items()},
        plan=plan_topology(topology, config),
        config=config,
        restore=saved,
        epoch=epoch,
    )


def _check_given(topology: object, config: object) -> None:
    if not isinstance(topology, GraphTopology):
        raise GraphError(
            f"{shown(topology)} isn't a topology",
            hint="Pass the rel.Topology itself, on which streams are declared",
            code=ErrorCode.NOT_A_TOPOLOGY,
        )
    if config is not None and not isinstance(config, JobConfig):
        raise ConfigError(
            f"{shown(config)} isn't a configuration", hint="Pass rel.JobConfig(...)", code=ErrorCode.WRONG_TYPE
        )


def _found(
    restore: Snapshot | Checkpoint | str | Path | None, config: JobConfig, job: str
) -> tuple[Snapshot, Manifest] | None:
    """What a job goes on from; None: it begins at its start."""
    if restore is None:
        return None
    return latest(config.checkpoint, job) if restore == LATEST else newest(checked(restore), job)


def _for_pe(operator: OperatorSpec) -> OperatorSpec:
    """Return the operator without what only the driver can hold."""
    if isinstance(operator.body, ExternalSource | DriverSink):
        return replace(operator, body=operator.body.for_pe())
    return operator
