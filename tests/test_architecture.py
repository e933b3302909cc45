"""Arrows point down only: who may import whom, and what no module may touch.

The order: errors <- ops <- graphs, data, privacy <- citests <- queries, scores <- releases <- decisions <- discovery, published <-
doors, guarantees, audit, cli (planning, which asks deciders what they would do, stands beside published); beside it metrics over graphs, and plotting and report over graphs, metrics and privacy.  Imports for
type checkers and inside functions count like any other; what may be imported inside functions only is stated as such.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import jaxcd

ROOT = Path(jaxcd.__file__).resolve().parent
MODULES = {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}

BASE = {"errors", "frozen"}
STATISTICS = BASE | {"ops", "graphs", "data", "privacy", "citests"}
SEARCH = STATISTICS | {"queries", "releases", "decisions", "scores"}
EVERYTHING = SEARCH | {"discovery", "pairwise", "local", "published", "metrics", "plotting", "report", "planning", "choosing", "recommending", "doors", "guarantees"}
ALLOWED = {
    "errors": set(),
    "frozen": set(),
    "ops": BASE,  # the exceptions only: no names, graphs, data or privacy
    "graphs": BASE,
    "data": BASE | {"graphs"},  # networks have DAGs
    "privacy": BASE,
    "citests": STATISTICS - {"citests"},
    "queries": STATISTICS,
    "scores": BASE | {"ops", "graphs", "data"},
    "releases": STATISTICS | {"queries", "scores"},
    "decisions": STATISTICS | {"queries", "releases"},
    "discovery": BASE | {"graphs", "data", "privacy", "citests", "queries", "decisions", "releases", "scores"},
    "pairwise": STATISTICS,
    "local": STATISTICS | {"releases", "scores"},
    "published": SEARCH | {"discovery"},
    "metrics": BASE | {"graphs"},
    "plotting": BASE | {"graphs", "metrics", "privacy"},
    "report": BASE | {"graphs", "metrics", "privacy", "plotting"},
    "planning": SEARCH,
    "choosing": SEARCH,
    "recommending": SEARCH | {"planning", "choosing"},
    "doors": EVERYTHING - {"doors", "guarantees"},
    "guarantees": EVERYTHING - {"doors", "guarantees"},
    "audit": EVERYTHING,
    "cli": EVERYTHING | {"audit"},
    "__main__": {"cli"},
    "__init__": EVERYTHING,
}
#: allowed inside functions only: a graph draws itself when asked to
LAZY = {"discovery": {"plotting", "report"}}


class Import(NamedTuple):
    target: str  # the part of jaxcd: "ops", "graphs", ...
    names: tuple[str, ...]
    lazy: bool
    line: int


def part_of(module: Path) -> str:
    return module.parts[0].removesuffix(".py")


def imports(module: Path, tree: ast.Module) -> Iterator[Import]:
    """Every import of a part of jaxcd, absolute or relative."""
    package = ("jaxcd", *module.parent.parts)
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            sources: list[tuple[str, tuple[str, ...]]] = [(alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join([*above, *(node.module or "").split(".")]).strip(".")
            names = tuple(alias.name for alias in node.names)
            sources = [(f"jaxcd.{name}", ()) for name in names] if source == "jaxcd" else [(source, names)]
        else:
            continue
        for source, names in sources:
            head, _, rest = source.partition(".")
            if head == "jaxcd":
                yield Import(rest.partition(".")[0] or "__init__", names, id(node) in inside, node.lineno)


def test_the_walk_sees_imports():
    """Else the tests below could not fail."""
    tree = ast.parse(
        "import jaxcd.ops.tails\nfrom jaxcd import graphs, data\nfrom ..errors import E\nfrom . import base\n"
        "def f():\n    from jaxcd.report import x\n"
    )
    found = [(i.target, i.lazy) for i in imports(Path("citests/kendall.py"), tree)]
    assert found == [
        ("ops", False),
        ("graphs", False),
        ("data", False),
        ("errors", False),
        ("citests", False),
        ("report", True),
    ]
    assert sum(len(list(imports(module, tree))) for module, tree in MODULES.items()) > 100


@pytest.mark.parametrize("module", list(MODULES), ids=str)
def test_arrows_point_down(module: Path):
    part = part_of(module)
    assert part in ALLOWED, f"{part} has no place in the order of imports: give it one in this test and in the design"
    for found in imports(module, MODULES[module]):
        allowed = ALLOWED[part] | {part} | (LAZY.get(part, set()) if found.lazy else set())
        if part in ("audit", "cli", "doors") and found.target == "__init__":
            continue  # the outermost layer may use the public list
        assert found.target in allowed, f"{module}:{found.line} imports jaxcd.{found.target}"


def of_part(*parts: str) -> list[Path]:
    return [module for module in MODULES if part_of(module) in parts]


@pytest.mark.parametrize("module", of_part("privacy"), ids=str)
def test_privacy_knows_no_test_and_no_graph(module: Path):
    assert {found.target for found in imports(module, MODULES[module])} <= {"privacy", "errors"}


@pytest.mark.parametrize("module", of_part("discovery"), ids=str)
def test_discovery_sees_types_not_data(module: Path):
    """Of data, tests and the session only the names of types: what a search computes is post-processing."""
    types = {"data": {"Dataset", "Domain"}, "citests": {"CITest", "Query", "check_alpha"}, "queries": {"Session"}}
    for found in imports(module, MODULES[module]):
        if found.target in types:
            assert set(found.names) <= types[found.target], f"{module}:{found.line}"
    if "decisions" in {found.target for found in imports(module, MODULES[module])}:
        helpers = {n for f in imports(module, MODULES[module]) if f.target == "decisions" for n in f.names}
        assert not helpers & {"margins_of", "smallest_margins", "openings"}, f"{module} imports {helpers}"
    sensitive = {"expose", "margins", "projections", "pooled_covariances", "evaluate", "codes", "restrict", "column", "log_pvalue"}
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.Attribute):
            assert node.attr not in sensitive, f"{module}:{node.lineno} uses .{node.attr}"


def test_sensitive_values_are_unwrapped_only_where_answers_are_given():
    for module, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "expose":
                assert part_of(module) in {"decisions", "releases", "published", "doors", "queries"}, (
                    f"{module}:{node.lineno}"
                )


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for such an expression, else the empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def uses(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield dotted(node), node.lineno
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)


GENERATORS = {"default_rng", "Generator", "SeedSequence", "BitGenerator", "PCG64", "PCG64DXSM", "Philox"}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_nothing_global_is_touched(module: Path):
    """No JAX configuration, no global random state, no raw keys."""
    for name, line in uses(MODULES[module]):
        where = f"{module}:{line} uses {name}"
        assert not name.startswith("jax.config"), where
        assert name != "random" and not name.startswith("random."), where
        assert name != "jax.random.PRNGKey", where
        for prefix in ("np.random.", "numpy.random."):
            if name.startswith(prefix):
                assert name.removeprefix(prefix).split(".")[0] in GENERATORS, where


def test_the_check_for_globals_sees_them():
    tree = ast.parse("import jax, random\njax.config.update('a', 1)\nfrom jax import config\nnp.random.seed(0)\n")
    assert {"jax.config.update", "jax.config", "random", "np.random.seed"} <= {name for name, _ in uses(tree)}
