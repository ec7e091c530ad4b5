"""A topology becomes the specification of a job: checked and planned, with nothing started."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.errors import ConfigError, ErrorCode, GraphError
from rayelastic.fluent.topology import Topology as GraphTopology
from rayelastic.graph.operators.columns import read_no_further
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.unread import mark_unread
from rayelastic.plan.config import JobConfig, Regions
from rayelastic.plan.fusion import plan_topology
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.checkpoint.restore import (
    LATEST,
    check_initial_values,
    check_keepable,
    check_restorable,
    latest,
    newest,
    snapshot_of,
)
from rayelastic.runtime.ingest.external_source import DriverSink, ExternalSource
from rayelastic.runtime.port.certificates import server_context
from rayelastic.runtime.port.secure_socket import check_encryption
from rayelastic.runtime.values.specs import JobSpec

if TYPE_CHECKING:
    from pathlib import Path

    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.values.snapshot import Manifest, Snapshot
    from rayelastic.topology import Topology


def prepare(
    topology: Topology,
    config: JobConfig | None = None,
    *,
    name: str | None = None,
    restore: Snapshot | Checkpoint | str | Path | None = None,
    regions: Regions = Regions.FIXED,
) -> JobSpec:
    """Validate and plan a topology without starting anything.

    Args:
        topology: The topology to run.
        config: `JobConfig()` by default.
        name: The name of the job; the topology's by default.
        restore: The snapshot to restore. Or the location of checkpoints, of which the newest undamaged one is restored;
            "latest" is that of the job's own checkpoints. If no checkpoint was ever complete, the job starts afresh.
        regions: How regions are replicated if the configuration doesn't set it.

    Raises:
        DeclarationError: The topology, a source, a sink or the configuration is wrong.
        StateError: The snapshot is damaged, or the topology can't restore it. Or checkpoints are requested, and an
            operator's initial state can't be pickled, or no other job could restore them.
    """
    _check_given(topology, config)
    config = (config or JobConfig()).or_regions(regions)
    if config.network.secure:
        check_encryption(config.network.link_certificates)
    if config.network.tls is not None:
        server_context(config.network.tls)
    topology.validate(shipped=False)
    if isinstance(config.checkpoint, Checkpoint):
        check_initial_values(topology.operators.values())
        check_keepable(config.checkpoint, topology.operators.values())
    saved, checkpoint = None, 0
    if (restored := _found(restore, config, name or topology.name)) is not None:
        saved, manifest = restored
        checkpoint = manifest.checkpoint
        check_restorable(saved, manifest, topology.operators)
    return JobSpec(
        name=name or topology.name,
        operators={
            name: _for_pe(operator) for name, operator in mark_unread(read_no_further(topology.operators)).items()
        },
        plan=plan_topology(topology, config),
        config=config,
        restore=saved,
        checkpoint=checkpoint,
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
    """Return the snapshot that a job restores; None: it begins at its start."""
    if restore is None:
        return None
    return latest(config.checkpoint, job) if restore == LATEST else newest(snapshot_of(restore), job)


def _for_pe(operator: OperatorSpec) -> OperatorSpec:
    """Return the operator without the driver's own objects."""
    if isinstance(operator.body, ExternalSource | DriverSink):
        return replace(operator, body=operator.body.for_pe())
    return operator
