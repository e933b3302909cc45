"""Every notebook runs from top to bottom, and is kept with its outputs."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_is_a_notebook() -> None:
    names = [path.stem for path in NOTEBOOKS]
    assert (
        names
        == (
            "cause_or_effect choosing_a_budget first_private_graph "
            "from_graph_to_effect hidden_confounders local_privacy nonlinear panels "
            "three_hospitals where_the_rows_stay"
        ).split()
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_kept_with_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    # one run, top to bottom
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 4
    text = path.read_text(encoding="utf-8")
    assert str(Path.home()) not in text and sys.prefix not in text


# zmq and jupyter_client are not ours to keep free of warnings.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_at_a_small_size(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    # A kernel of the running interpreter, whatever kernels are installed, that writes to no home
    # folder.
    spec = tmp_path / "kernels" / "running"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "running", "language": "python"})
    )
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("JAXCD_NOTEBOOK_ROWS", "1500")
    monkeypatch.setenv(
        "PYTHONPATH",
        os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
    )
    manager = AsyncKernelManager(
        kernel_name="running",
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(tmp_path / "kernels")]),
    )
    notebook = nbformat.read(path, as_version=4)
    kept = [cell.source for cell in notebook.cells]
    client = NotebookClient(
        notebook, km=manager, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.owns_km = True  # else the kernel stays until all tests are done
    client.execute()
    # The client leaves its sockets to the collector; collected here, their warnings stay in this
    # test, which ignores them.
    del client
    gc.collect()
    assert [cell.source for cell in notebook.cells] == kept
    outputs = [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    shown = "".join(output.get("text", "") for output in outputs)
    assert re.search(r"epsilon=1, delta=1e-06 \(replace-one[^;]*; proved", shown)
    assert "n_samples=1500" in "".join(
        output.get("data", {}).get("text/plain", "") for output in outputs
    )
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 4
