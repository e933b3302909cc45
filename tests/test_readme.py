"""The README is true: its commands, its Python, its tables and its links."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import jaxcd
from jaxcd.audit import BUGS

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
FIRST = (
    "pip install . && jaxcd discover --network asia --rows 100000 --epsilon 1 --delta 1e-6 "
    "--out asia"
)
SECOND = 'pip install ".[test]" && pytest'


def blocks(language: str) -> list[str]:
    """The code blocks of a language, without their indentation."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", TEXT, re.MULTILINE | re.DOTALL)
    return ["\n".join(line[len(indent) :] for line in body.splitlines()) for indent, body in found]


def options(command: str) -> dict[str, str]:
    words = shlex.split(command.partition("jaxcd discover")[2])
    return dict(zip(words[::2], words[1::2], strict=True))


def test_the_two_commands_are_those_of_the_continuous_integration() -> None:
    assert blocks("sh")[:2] == [FIRST, SECOND]
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    tested = next(line for line in lines if line.endswith("&& pytest"))
    assert tested.replace(" --quiet", "") == SECOND
    ran = options(next(line for line in lines if "jaxcd discover" in line))
    wanted = options(FIRST)
    assert ran.keys() == wanted.keys()
    assert {name for name in wanted if wanted[name] != ran[name]} == {"--rows", "--out"}
    assert ran["--rows"] == "5000" and "with 5,000 rows" in TEXT


def test_the_python_runs() -> None:
    code, released = blocks("python")
    assert len(code.splitlines()) == 5
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(code, "README.md", "exec"), {})
    assert "Guarantee: epsilon=1, delta=1e-06 (replace-one; proved" in shown.getvalue()
    assert 0 <= float(shown.getvalue().splitlines()[-1]) <= 1
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec(compile(released, "README.md", "exec"), {})
    assert "either --> xray" in shown.getvalue()


def test_the_domain_can_be_read(tmp_path: Path) -> None:
    (text,) = blocks("json")
    (tmp_path / "domain.json").write_text(text)
    domain = jaxcd.Domain.read(tmp_path / "domain.json")
    assert domain.declared and domain.is_discrete


def test_links_and_paths_exist() -> None:
    for folder, text in ((ROOT, TEXT), (ROOT / "docs", RESULTS)):
        links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
        assert links and not [link for link in links if not (folder / link).is_file()]
    titles = {title.lower().replace(" ", "-") for title in re.findall("^## (.+)$", RESULTS, re.M)}
    anchors = re.findall(r"docs/benchmarks\.md#([\w-]+)\)", TEXT)
    assert len(anchors) >= 4 and titles.issuperset(anchors)
    paths = re.findall(r"`(jaxcd/[\w/]+\.py)`", TEXT)
    assert len(paths) >= 6 and not [path for path in paths if not (ROOT / path).is_file()]
    modules = re.findall(r"`python -m (benchmarks\.\w+) --quick`", RESULTS)
    assert modules == [
        f"benchmarks.{name}"
        for name in (
            "priv_pc",
            "frontier",
            "releases",
            "knowledge",
            "missing",
            "people",
            "reading",
            "engines",
            "shards",
            "robustness",
            "interventions",
            "run_time",
            "private_nonlinear",
            "kernels",
            "calibration",
            "private_tests",
            "rcit_pc",
            "fci_oracle",
            "priv_fci",
            "mixed",
            "reliability",
            "rare_levels",
            "many_levels",
            "model_noise",
            "search_peers",
            "synthetic_peers",
            "pairs",
            "neither",
            "pairs_published",
            "kusner_table2",
            "local_frontier",
            "local_multi",
            "local_pairs",
        )
    ]
    assert not [
        module for module in modules if not (ROOT / (module.replace(".", "/") + ".py")).is_file()
    ]


def test_names_exist() -> None:
    tables = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", TEXT, re.MULTILINE)
    names = {name for cell in tables for name in re.findall(r"`(\w+)`", cell)}
    assert len(names) == 44 and not [name for name in names if not hasattr(jaxcd, name)]
    for dotted in re.findall(r"`jaxcd\.([\w.]+)`", TEXT):
        target = jaxcd
        for part in dotted.split("."):
            target = getattr(target, part)


def test_the_number_of_planted_bugs() -> None:
    page = (ROOT / "docs" / "check-it-yourself.md").read_text(encoding="utf-8")
    assert f"| planted bugs | {len(BUGS)} mistakes" in page


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_the_sensitivities(alpha: float) -> None:
    z = stats.norm.isf(alpha / 2)
    wanted = {"CovarianceNorm": 3.0, "PooledCovariance": 4.172, "KendallTau": 2 + z / 45}
    for name in (
        "CovarianceNorm",
        "PooledCovariance",
        "KendallTau",
        "ChiSquare",
        "GTest",
        "FisherZ",
    ):
        bound = getattr(jaxcd, name)().margin_sensitivity(
            alpha=alpha, n_samples=10**6, relation=jaxcd.privacy.Relation.REPLACE_ONE
        )
        if name not in wanted:
            assert bound is None
            continue
        assert bound.value <= wanted[name] + 1e-12
        np.testing.assert_allclose(bound.value, wanted[name], atol=1e-3)


def test_the_defaults_of_discover() -> None:
    from jaxcd.api import choose

    domain = jaxcd.networks.load("asia").domain
    assert choose(domain, budget=jaxcd.Budget(1.0, 1e-6)).decider.name == "LevelwiseGaussian"
    assert choose(domain, budget=jaxcd.Budget(1.0)).decider.name == "SparseVector"
