"""The files in cluster/: the launcher's against Ray's own schema, KubeRay's for what a job of ours needs.

KubeRay's published schemas have two megabytes and aren't part of the repository; cluster/kuberay.yaml was checked with
those of its commit feeaf72 (unknown fields being mistakes).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import zipfile
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
    lock = f"{tmp_path}/rayelastic-requirements.lock"
    assert done.stdout.split() == ["install", "-c", lock, f"{wheel}[spark]"]
    for file in CLUSTER.glob("*"):
        installs = re.findall(r"pip install.*?\brayelastic\[.*", file.read_text())
        assert not installs, f"{file.name} takes a name from an index"
        for line in file.read_text().splitlines():
            if "pip install" in line or "/pip install" in line:
                assert re.search(r"-c \S+\.lock", line), f"{file.name} installs the newest of what fits"


def test_the_image_is_built_with_the_versions_of_the_lock_file() -> None:
    text = (CLUSTER / "Dockerfile").read_text()
    build = re.search(r"^RUN (.*?pip wheel.*?)(?<!\\)$", text, re.MULTILINE | re.DOTALL)
    assert build is not None
    for variable in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):
        assert f"{variable}=/opt/source/requirements.lock" in build[1]
    lock = (CLUSTER.parent / "requirements.lock").read_text()
    for package in ("scikit-build-core", "nanobind", "cmake", "ninja", "ray", "numpy", "psutil", "pyspark", "raydp"):
        assert re.search(rf"^{package}==.*\n\s+--hash=sha256:", lock, re.MULTILINE), f"{package} has no hash"


def test_pip_refuses_a_package_that_differs_from_the_lock_file(tmp_path: Path) -> None:
    """A constraint has hashes too: with the name alone on the command line, they are compared."""
    wheel = tmp_path / "ours-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("ours-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n")
        archive.writestr("ours-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("ours-1.0.dist-info/RECORD", "")
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    for digest in (right, "0" * 64):
        lock = tmp_path / "requirements.lock"
        lock.write_text(f"ours==1.0 \\\n    --hash=sha256:{digest}\n")
        where = ["--no-index", "--find-links", str(tmp_path), "--dest", str(tmp_path / "out")]
        command = [sys.executable, "-m", "pip", "download", *where, "-c", str(lock), "ours"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is (digest == right), done.stdout + done.stderr


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
    assert stages == [("${BASE}", "build"), ("${BASE}", "")], "an argument, which may be a digest"
    assert "ARG BASE=rayproject/ray:2.60.0-py311\n" in text
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
