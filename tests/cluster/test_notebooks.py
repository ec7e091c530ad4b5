"""Every notebook runs from top to bottom in a real kernel, and what it shows is looked at; an interrupt is survived."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rayelastic.errors import JavaNotFoundError
from rayelastic.on_ray.java import ensure_java

nbformat = pytest.importorskip("nbformat", reason="no nbformat: pip install 'rayelastic[dev]'")
nbclient = pytest.importorskip("nbclient", reason="no nbclient: pip install 'rayelastic[dev]'")
pytest.importorskip("ipykernel", reason="no kernel: pip install 'rayelastic[dev]'")

NOTEBOOKS = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
TIMEOUT = 120.0  # seconds for a cell
KERNEL = "python3"


@pytest.fixture(autouse=True)
def kernels_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels read and write nothing of the user's, and find no Ray that runs on this machine."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    monkeypatch.setenv("RAY_ADDRESS", "local")


def executed(name: str, folder: Path) -> Any:
    """The notebook with its outputs; an error in a cell is the test's."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    client = nbclient.NotebookClient(
        notebook, timeout=TIMEOUT, kernel_name=KERNEL, resources={"metadata": {"path": str(folder)}}
    )
    return client.execute()


def shown(notebook: Any, source: str, kind: str) -> str:
    """What the cell with this source shows, of a MIME type; the last of it."""
    (cell,) = (cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source)
    found = [output.data[kind] for output in cell.outputs if kind in output.get("data", {})]
    assert found, f"{source} shows no {kind}: {cell.outputs}"
    return str(found[-1])


def printed(notebook: Any, source: str) -> str:
    """What the cell with this source prints."""
    (cell,) = (cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source)
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")


def test_a_first_tour(tmp_path: Path) -> None:
    notebook = executed("first_tour", tmp_path)
    graph = shown(notebook, 'rel.Topology("word_count")', "text/html")
    assert all(word in graph for word in ("<svg", "long_words", "compiled", "built-in"))
    assert "rows<table>" in shown(notebook, "result = rel.run(topology)", "text/html")
    assert "did you mean" in printed(notebook, '"typo"').lower()
    assert "division by zero" in printed(notebook, '"divides"')
    assert "running" in shown(notebook, "job.bottleneck", "text/html")
    assert "pe1" in shown(notebook, "rel.submit", "text/html")
    assert "rows<table>" in shown(notebook, "on_ray = ", "text/html")


@pytest.mark.nightly  # changes take their time: a minute and a half
def test_watching_elasticity(tmp_path: Path) -> None:
    notebook = executed("watching_elasticity", tmp_path)
    last = shown(notebook, "job.watch(", "text/html")
    assert "cancelled" in last, "it was updated in place while other cells ran, to the end"
    assert "<svg" in last
    assert "sensors" in shown(notebook, "plot(", "image/svg+xml")
    assert "located" in printed(notebook, "job.bottleneck") or "calibrated" in printed(notebook, "job.bottleneck")
    assert "pe0" in printed(notebook, "tell(first)"), "two waits are waited for at once, on any machine"
    assert printed(notebook, "patience=20.0"), "changes, or why there are none"
    assert "2 replicas" in shown(notebook, "job.rescale", "text/html")
    assert "2 replicas" in last


@pytest.mark.spark
@pytest.mark.nightly  # Spark starts and stops: half a minute
def test_spark_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="no Spark: pip install 'rayelastic[spark]'")
    pytest.importorskip("raydp", reason="no RayDP: pip install 'rayelastic[spark]'")
    try:
        ensure_java()
    except JavaNotFoundError as error:
        pytest.skip(f"no Java: {error}")
    notebook = executed("spark_on_ray", tmp_path)
    assert "paid" in shown(notebook, '"average_price"', "text/html")
    assert "|    S0|" in printed(notebook, "averages = ")
    assert "finished" in shown(notebook, "job.watch(", "text/html")


CELL = """
import pathlib
import threading
import time
import rayelastic as rel

def threads():
    return len(list(pathlib.Path("/proc/self/task").iterdir()))

def left():  # the kernel lists a thread for a moment after it was joined
    until = time.monotonic() + 10
    while threads() > before and time.monotonic() < until:
        threading.Event().wait(0.01)
    return max(0, threads() - before)

def numbers(count):
    topology = rel.Topology("numbers")
    source = topology.source(rel.generate(lambda n: n, count, schema={"n": int}), name="numbers")
    source.sink(rel.call(lambda t: pathlib.Path(f"{count}").touch()), name="out")
    return topology

rel.run(numbers(10))  # what libraries start once is there now
before = threads()
rel.run(numbers(None))
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name=KERNEL, cwd=str(tmp_path), startup_timeout=TIMEOUT)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def answer(client: Any, request: str) -> Any:
    """The reply to a request; others may come first, such as those to questions whether the kernel is ready."""
    while True:
        reply = client.get_shell_msg(timeout=TIMEOUT)
        if reply["parent_header"].get("msg_id") == request:
            return reply["content"]


def test_an_interrupt_stops_the_job_and_the_kernel_goes_on(kernel: tuple[Any, Any], tmp_path: Path) -> None:
    manager, client = kernel
    request = client.execute(CELL, stop_on_error=False)  # else the kernel drops what comes in the moment after an error
    looked, until = threading.Event(), time.monotonic() + TIMEOUT
    while not (tmp_path / "None").exists():
        assert time.monotonic() < until
        looked.wait(0.05)
    manager.interrupt_kernel()
    reply = answer(client, request)
    assert (reply["status"], reply.get("ename")) == ("error", "KeyboardInterrupt")
    wanted = {"rows": "rows", "left": "left()"}
    reply = answer(client, client.execute("rows = rel.run(numbers(5))['out']", user_expressions=wanted))
    assert reply["status"] == "ok", reply
    given = {name: value["data"]["text/plain"] for name, value in reply["user_expressions"].items()}
    assert given == {"rows": "5", "left": "0"}
