"""Rows over several devices and several processes: the same bits as on one."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jaxcd

HERE = Path(__file__).parent
sys.path.append(str(HERE))
import in_processes  # noqa: E402

CHECKS, SLOW = (
    re.findall(rf"@{word}\ndef (\w+)", (HERE / "on_devices.py").read_text())
    for word in ("check", "slow_check")
)


def went_wrong(*options: str) -> dict[str, str]:
    """In each check of ``on_devices.py``."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(HERE / "on_devices.py"), *options],
        env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def eight_devices() -> dict[str, str]:
    return went_wrong()


@pytest.fixture(scope="module")
def eight_devices_for_long() -> dict[str, str]:
    return went_wrong("--slow")


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_slow_ones_on_1_3_and_8_devices(eight_devices_for_long: dict[str, str], name: str) -> None:
    assert eight_devices_for_long[name] == "", eight_devices_for_long[name]


@pytest.mark.parametrize("name", CHECKS)
def test_on_1_3_and_8_devices(eight_devices: dict[str, str], name: str) -> None:
    assert eight_devices[name] == "", eight_devices[name]


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what two processes of two devices each wrote, of rows in row groups."""
    folder = tmp_path_factory.mktemp("processes")
    asia = jaxcd.networks.load("asia").sample(20_011, key=jax.random.key(0))
    rng = np.random.default_rng(0)
    names = ("a", "b", "c")
    numbers = rng.standard_normal((5_003, 3)) @ np.triu(np.ones((3, 3)))
    domains = {
        "tables": asia.domain,
        "numbers": jaxcd.Domain(dict.fromkeys(names, jaxcd.Numeric(-9, 9))),
    }
    frames = {
        "tables": asia.to_frame().astype(str),
        "numbers": pd.DataFrame(numbers, columns=names),
    }
    for name, frame in frames.items():
        domains[name].write(folder / f"{name}.json")
        table = pa.Table.from_pandas(frame)
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=len(frame) // 6)
    run_together([str(HERE / "in_processes.py")], 2, str(folder))
    return folder


def run_together(script: list[str], n_processes: int, *arguments: str) -> None:
    """The script in so many processes of two devices, each told ADDRESS, how many, and which."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    started = [
        subprocess.Popen(
            [sys.executable, *script, address, str(n_processes), str(process), *arguments],
            env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(n_processes)
    ]
    try:
        for process in started:
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
    finally:
        for process in started:
            process.kill()


@pytest.mark.slow
def test_two_processes_get_what_one_gets(two_processes: Path) -> None:
    """Each gives noise of its own; the first's is that of the run."""
    rows = {}
    for name in in_processes.KINDS:
        # the rows of the first process, then those of the second
        n_groups = pq.ParquetFile(two_processes / f"{name}.parquet").num_row_groups
        groups = [*range(0, n_groups, 2), *range(1, n_groups, 2)]
        rows[name] = in_processes.rows_of(two_processes, name, groups)
    alone = two_processes / "alone"
    alone.mkdir()
    in_processes.answers(rows, alone, 0)
    files = sorted(path.name for path in alone.iterdir())
    assert len(files) == 8
    for name in files:
        expected = np.load(alone / name)
        for process in "01":
            found = np.load(two_processes / name.replace("-0", f"-{process}"))
            assert set(found) == set(expected)
            for part in expected:
                assert np.array_equal(found[part], expected[part]), (name, process, part)


@pytest.mark.slow
def test_two_processes_publish_one_secure_release(two_processes: Path) -> None:
    first, second = (jaxcd.Release.load(two_processes / f"secure-{i}.npz") for i in "01")
    for name, part in first._parts()[1].items():
        assert np.array_equal(part, second._parts()[1][name])
    assert first.cost == second.cost and first.cost.proven
    assert first.n_samples == 20_011
    # charged once, whole
    spent = jaxcd.LedgerFile(two_processes / "ledger").spent
    assert spent.rho == pytest.approx(first.spent.rho)


@pytest.mark.slow
def test_the_program_of_the_docs_runs(two_processes: Path) -> None:
    text = (HERE.parents[1] / "docs" / "devices.md").read_text()
    (program,) = re.findall(
        r"<!-- run by tests/data/test_shards.py -->\n```python\n(.*?)```", text, re.S
    )
    script, out = two_processes / "together.py", two_processes / "out.npz"
    script.write_text(program)
    files = [str(two_processes / f"tables.{kind}") for kind in ("parquet", "json")]
    run_together([str(script)], 2, *files, str(out))
    bought = jaxcd.Release.load(out)
    assert bought.n_samples == 20_011 and bought.cost.proven


@pytest.mark.slow
def test_what_several_processes_refuse(two_processes: Path) -> None:
    for process in "01":
        told = json.loads((two_processes / f"told-{process}.json").read_text())
        # sums: two words of int64 for each of 4 x 4 entries; counts: 128 cells; and a mark each
        assert told["programs"] == [[8 * (2 * 16 + 1)], [], [4 * (128 + 1)]]
        assert told["devices"] == 4 and told["proven"] is True
        assert told["repr"].startswith("Shards(n_samples=20011, 4 devices of 2 processes; asia:")
        assert "without subsampling" in told["subsample"]
        assert "without subsampling" in told["part"]
        assert "max_parents" in told["occupied"]
        assert "each of them would answer" in told["site"]
        assert "do not ask the same questions" in told["question"]
