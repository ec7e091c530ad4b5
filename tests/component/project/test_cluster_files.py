"""The files in cluster/: the launcher's against Ray's own schema, KubeRay's for what a job of ours needs.

KubeRay's published schemas have two megabytes and aren't part of the repository; cluster/kuberay.yaml was checked with
those of its commit feeaf72 (unknown fields being mistakes).
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

CLUSTER = Path(__file__).resolve().parents[3] / "cluster"


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


def test_the_launcher_installs_the_wheel_by_its_path(tmp_path: Path) -> None:
    """Somebody else may have the name in a package index."""
    command = yaml.safe_load((CLUSTER / "launcher.yaml").read_text())["setup_commands"][1]
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheels = tmp_path / "rayelastic-wheels"
    wheels.mkdir()
    for tag in (f"{python}-{python}-manylinux_2_28_{platform.machine()}", "cp399-cp399-manylinux_2_28_x86_64"):
        (wheels / f"rayelastic-9.8.7-{tag}.whl").touch()
    (wheels / f"rayelastic-9.8.7-{python}-{python}-manylinux_2_28_other.whl").touch()
    programs = tmp_path / "rayelastic-env" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    (programs / "pip").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (programs / "pip").chmod(0o755)
    (tmp_path / "python3").symlink_to("/bin/true")  # the environment is there already
    environment = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=True)
    wheel = wheels / f"rayelastic-9.8.7-{python}-{python}-manylinux_2_28_{platform.machine()}.whl"
    assert done.stdout.split() == ["install", f"{wheel}[spark]"]
    for file in CLUSTER.glob("*"):
        installs = re.findall(r"pip install.*?\brayelastic\[.*", file.read_text())
        assert not installs, f"{file.name} takes a name from an index"


def test_what_the_launcher_submits_runs_in_the_environment_that_it_made(tmp_path: Path) -> None:
    file = yaml.safe_load((CLUSTER / "launcher.yaml").read_text())
    on_path = file["setup_commands"][-1]
    assert file["file_mounts"]["~/rayelastic-wheels"] == "dist"  # where ./dev wheels leaves them
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    (tmp_path / ".bashrc").touch()
    for _ in range(2):  # `ray up` again repeats it
        subprocess.run(["bash", "-c", on_path], env=environment, check=True)
    assert len((tmp_path / ".bashrc").read_text().splitlines()) == 1
    python = tmp_path / "rayelastic-env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/bin/true")
    shell = ["bash", "-c", "source ~/.bashrc; command -v python; echo $RAY_AUTH_MODE"]  # as Ray's launcher does
    done = subprocess.run(shell, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(python), "token"]


def test_the_image_installs_what_its_first_stage_built() -> None:
    text = (CLUSTER / "Dockerfile").read_text()
    stages = re.findall(r"^FROM (\S+)(?: AS (\w+))?$", text, re.MULTILINE)
    assert stages == [("rayproject/ray:2.60.0-py311", "build"), ("rayproject/ray:2.60.0-py311", "")]
    assert "COPY --chown=ray:users . " in text
    assert "g++" not in text.split("FROM ")[2]
    left_out = set((CLUSTER.parent / ".dockerignore").read_text().split())
    assert {".git", ".venv", "build"} <= left_out
    assert not {"native_sched", "rayelastic", "topologies", "examples", "pyproject.toml", "README.md"} & left_out
    archived = kuberay("RayJob")["spec"]["runtimeEnvYAML"]
    assert "file:///opt/rayelastic.zip" in archived
    assert "/opt/rayelastic.zip" in text


def test_the_kuberay_cluster_is_guarded_and_survives_its_head() -> None:
    spec = kuberay("RayCluster")["spec"]
    assert spec["authOptions"] == {"mode": "token"}
    redis = kuberay("Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert redis["env"][0]["valueFrom"] == spec["gcsFaultToleranceOptions"]["redisPassword"]["valueFrom"]
    assert spec["gcsFaultToleranceOptions"]["redisAddress"] == f"{kuberay('Service')['metadata']['name']}:6379"
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        (container,) = group["template"]["spec"]["containers"]
        variables = {one["name"]: one for one in container["env"]}
        assert not {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"} & set(
            variables
        )  # the operator sets them, and knows the token then
        assert "RAY_health_check_failure_threshold" in variables
    job = kuberay("RayJob")
    assert job["apiVersion"] == kuberay("RayCluster")["apiVersion"] == "ray.io/v1"
    assert job["spec"]["clusterSelector"] == {"ray.io/cluster": kuberay("RayCluster")["metadata"]["name"]}
    assert (CLUSTER.parent / job["spec"]["entrypoint"].split()[1]).is_file()
