"""The layers below stand alone: graph and plan import with neither Ray, NumPy nor the extension, policy with NumPy."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys

for name in ("ray", "numpy", "pyarrow", "pandas", "numba", "cloudpickle", "pyspark", "raydp", "rayelastic._native"):
    sys.modules[name] = None  # importing it raises

import importlib, pkgutil
import rayelastic.errors

def import_all_of(package):
    package = importlib.import_module(package)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        __import__(module.name)

import_all_of("rayelastic.graph")
import_all_of("rayelastic.plan")
del sys.modules["numpy"]
import_all_of("rayelastic.policy")

from rayelastic.connectors.generate.declaration import sequence
from rayelastic.connectors.memory.declaration import list as list_sink
from rayelastic.fluent.topology import Topology
from rayelastic.graph.operators import aggregates
from rayelastic.plan.config import JobConfig
from rayelastic.plan.explain import explain
from rayelastic.plan.fusion import plan_topology

topology = Topology("t", compiler=None)
numbers = topology.source(sequence(10), name="numbers")
numbers.key_by("value").aggregate(name="counts", n=aggregates.count()).sink(list_sink(), name="out")
topology.validate(shipped=False)
plan = plan_topology(topology, JobConfig(pes=2))
assert plan.text() and explain(topology, plan)
loaded = [name for name in sys.modules if name.startswith("rayelastic.")]
expected = ("errors", "reasons", "graph", "plan", "policy", "connectors", "fluent", "_native")
strangers = [name for name in loaded if name.split(".")[1] not in expected]
assert not strangers, strangers
"""


def test_graph_plan_and_policy_import_alone() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
