"""The files in cluster/: the launcher's against Ray's own schema, KubeRay's for what a job of ours needs.

KubeRay's published schemas have two megabytes and aren't part of the repository; cluster/kuberay.yaml was checked with
those of its commit feeaf72 (unknown fields being mistakes).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

CLUSTER = Path(__file__).resolve().parents[2] / "cluster"


def ray_schema() -> dict[str, Any]:
    import ray.autoscaler

    schema: dict[str, Any] = json.loads((Path(ray.autoscaler.__file__).parent / "ray-schema.json").read_text())
    return schema


def kuberay(kind: str) -> dict[str, Any]:
    documents = yaml.safe_load_all((CLUSTER / "kuberay.yaml").read_text())
    found: dict[str, Any] = next(document for document in documents if document["kind"] == kind)
    return found


def test_the_launchers_file_fits_rays_schema() -> None:
    file = yaml.safe_load((CLUSTER / "launcher.yaml").read_text())
    jsonschema.validate(file, ray_schema())
    assert "--num-cpus=0" in " ".join(file["head_start_ray_commands"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(file | {"head_start_commands": []}, ray_schema())


def test_the_kuberay_cluster_is_guarded_and_survives_its_head() -> None:
    spec = kuberay("RayCluster")["spec"]
    assert spec["gcsFaultToleranceOptions"]["redisAddress"] == f"{kuberay('Service')['metadata']['name']}:6379"
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        (container,) = group["template"]["spec"]["containers"]
        variables = {one["name"]: one for one in container["env"]}
        assert variables["RAY_AUTH_MODE"]["value"] == "token"
        assert "secretKeyRef" in variables["RAY_AUTH_TOKEN"]["valueFrom"]
        assert "RAY_health_check_failure_threshold" in variables
    job = kuberay("RayJob")
    assert job["apiVersion"] == kuberay("RayCluster")["apiVersion"] == "ray.io/v1"
    assert job["spec"]["clusterSelector"] == {"ray.io/cluster": kuberay("RayCluster")["metadata"]["name"]}
    assert (CLUSTER.parent / job["spec"]["entrypoint"].split()[1]).is_file()
