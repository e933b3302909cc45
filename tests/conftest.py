"""The folder of public data files: ``--data FOLDER``, else ``JAXCD_DATA``, else ``../shared/data``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# ``benchmarks`` is not installed.  At the end of the path, so that an installed jaxcd is what is tested.
sys.path.append(str(Path(__file__).resolve().parents[1]))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--data", default=os.environ.get("JAXCD_DATA"), help="folder of public data files (default: $JAXCD_DATA)"
    )


@pytest.fixture(scope="session")
def data_folder(pytestconfig: pytest.Config) -> Path:
    """The data folder; a test that needs it is skipped where there is none."""
    given = pytestconfig.getoption("--data")
    folder = Path(given) if given else Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    if given and not folder.is_dir():
        raise pytest.UsageError(f"the data folder {given!r} does not exist; correct --data or JAXCD_DATA")
    if not folder.is_dir():
        pytest.skip("no data folder; set JAXCD_DATA or give --data")
    return folder.resolve()
