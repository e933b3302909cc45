"""What importing and asking for help load: nothing slow.  By what is loaded, not by the clock."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import jaxcd

SLOW = {
    "jax",
    "numpy",
    "scipy",
    "networkx",
    "pandas",
    "matplotlib",
    "opendp",
    "rich.console",
    "jinja2",
}


def loaded(code: str) -> set[str]:
    words = f"{code}\nimport sys\nprint(*sorted(sys.modules), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_jaxcd_loads_nothing_slow() -> None:
    assert not loaded("import jaxcd") & SLOW


def test_help_loads_nothing_slow() -> None:
    code = (
        "import contextlib, io\nfrom jaxcd.cli import main\nwith "
        "contextlib.redirect_stdout(io.StringIO()):\n    main(['--help'])"
    )
    assert not loaded(code) & (SLOW - {"rich.console"})


def test_a_search_needs_no_statistics_package() -> None:
    code = (
        "import jaxcd\njaxcd.pc, jaxcd.discover, jaxcd.release, jaxcd.Histogram, "
        "jaxcd.CovarianceNorm"
    )
    assert not loaded(code) & {
        "scipy.stats",
        "scipy.optimize",
        "scipy.interpolate",
        "matplotlib",
        "pandas",
        "pyarrow",
    }


def test_every_public_name_is_there_and_is_the_only_one_of_its_name() -> None:
    for name in jaxcd.__all__:
        assert getattr(jaxcd, name) is not None
        assert name in dir(jaxcd)
    with pytest.raises(AttributeError, match="no_such_name"):
        jaxcd.no_such_name  # noqa: B018


def test_names_that_moved_still_work() -> None:
    assert 55 <= len(jaxcd.__all__) <= 80
    for name, place in (
        ("HSICScore", "jaxcd.pairwise"),
        ("OptionError", "jaxcd.errors"),
        ("Plan", "jaxcd.releases"),
    ):
        assert getattr(jaxcd, name) is getattr(importlib.import_module(place), name)
        assert name not in jaxcd.__all__ and name not in dir(jaxcd)
