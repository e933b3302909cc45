"""Options: the folder of public data files (``--data FOLDER``, else ``JAXCD_DATA``, else
``../shared/data``), and ``--slow``.  And one folder of compiled programs for all workers and the
commands that they start: most of the time of the tests goes into compiling small programs.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import typer.main

# How long an example takes says nothing of whether it is right.  With CI set the examples are the
# same in every run; without it every run looks further.
hypothesis.settings.register_profile(
    "jaxcd", deadline=None, derandomize=os.environ.get("CI") is not None
)
hypothesis.settings.load_profile("jaxcd")

# ``benchmarks`` is not installed.  At the end of the path, so that an installed jaxcd is what is
# tested.
sys.path.append(str(Path(__file__).resolve().parents[1]))


# Before JAX is imported, and for every process of this run; whoever names a folder keeps it.
_COMPILED = "JAX_COMPILATION_CACHE_DIR"
_OWN = None
if _COMPILED not in os.environ:
    os.environ[_COMPILED] = _OWN = tempfile.mkdtemp(prefix="jaxcd-compiled-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"


def pytest_configure(config: pytest.Config) -> None:
    # A program that another worker is writing just now is compiled here as well.
    config.addinivalue_line(
        "filterwarnings", "ignore:Error reading persistent compilation cache entry"
    )


def pytest_unconfigure() -> None:
    if _OWN is not None:
        shutil.rmtree(_OWN, ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slow", action="store_true", help="run also the tests that are marked slow (minutes)"
    )
    parser.addoption(
        "--data",
        default=os.environ.get("JAXCD_DATA"),
        help="folder of public data files (default: $JAXCD_DATA)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))


@pytest.fixture(scope="session", autouse=True)
def _read_once() -> Iterator[None]:
    """Typer reads the signatures of all commands at every call, and every certificate the versions
    of what is installed; in one process once will do.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.metadata, "version", functools.cache(importlib.metadata.version))
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session")
def data_folder(pytestconfig: pytest.Config) -> Path:
    """The data folder; a test that needs it is skipped where there is none."""
    given = pytestconfig.getoption("--data")
    folder = (
        Path(given) if given else Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    )
    if given and not folder.is_dir():
        raise pytest.UsageError(
            f"the data folder {given!r} does not exist; correct --data or JAXCD_DATA"
        )
    if not folder.is_dir():
        pytest.skip("no data folder; set JAXCD_DATA or give --data")
    return folder.resolve()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Any:
    """``jaxcd`` on the command line, in this process."""
    from tests.helpers import CommandLine  # imports JAX

    return CommandLine(capsys)
