"""Arrows point down only: who may import whom, and what no module may touch.

The order: errors <- ops <- graphs, data, privacy <- citests <- queries, scores <- releases <-
federated, decisions <- discovery, published, single_test <- api, guarantee_list, audit, cli
(advice, which asks deciders what they would do, stands beside published); beside it metrics over
graphs, and plotting and report over graphs, metrics and privacy.  Imports for type checkers and
inside functions count like any other; what may be imported inside functions only is stated as such.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import pytest

import jaxcd
from jaxcd.decisions import Decider
from jaxcd.releases import Release, ReleaseKind
from jaxcd.scores import GraphScore, ScoreConfig

ROOT = Path(jaxcd.__file__).resolve().parent
MODULES = {
    path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.rglob("*.py"))
}

BASE = {"checks", "errors", "frozen", "json_files", "places"}
STATISTICS = BASE | {"ops", "graphs", "data", "privacy", "citests"}
SEARCH = STATISTICS | {"queries", "releases", "decisions", "scores"}
EVERYTHING = SEARCH | {
    "discovery",
    "effects",
    "federated",
    "pairwise",
    "local",
    "published",
    "metrics",
    "plotting",
    "report",
    "advice",
    "single_test",
    "api",
    "guarantee_list",
}
ALLOWED = {
    "checks": {"errors"},
    "errors": set(),
    "frozen": set(),
    "json_files": {"errors"},
    "places": {"errors"},
    "ops": BASE,  # the exceptions only: no names, graphs, data or privacy
    "graphs": BASE,
    "data": BASE | {"graphs", "ops"},  # networks have DAGs, rows are counted
    "privacy": BASE,
    "citests": STATISTICS - {"citests"},
    "queries": STATISTICS,
    "scores": BASE | {"ops", "graphs", "data"},
    "releases": STATISTICS | {"queries", "scores"},
    "federated": STATISTICS | {"queries", "releases"},
    "decisions": STATISTICS | {"queries", "releases"},
    "discovery": BASE
    | {"graphs", "data", "privacy", "citests", "queries", "decisions", "releases", "scores"},
    "effects": SEARCH | {"discovery"},
    "pairwise": STATISTICS,
    "local": STATISTICS | {"releases", "scores"},
    "published": SEARCH | {"discovery"},
    "metrics": BASE | {"graphs"},
    "plotting": BASE | {"graphs", "metrics", "privacy"},
    "report": BASE | {"graphs", "metrics", "privacy", "plotting"},
    "advice": SEARCH,
    "single_test": SEARCH | {"discovery"},
    "api": EVERYTHING - {"api", "guarantee_list"},
    "guarantee_list": EVERYTHING - {"api", "guarantee_list"},
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
            sources = (
                [(f"jaxcd.{name}", ()) for name in names]
                if source == "jaxcd"
                else [(source, names)]
            )
        else:
            continue
        for source, names in sources:
            head, _, rest = source.partition(".")
            if head == "jaxcd":
                yield Import(
                    rest.partition(".")[0] or "__init__", names, id(node) in inside, node.lineno
                )


def test_the_walk_sees_imports():
    """Else the tests below could not fail."""
    tree = ast.parse(
        "import jaxcd.ops.tails\nfrom jaxcd import graphs, data\nfrom ..errors import E\nfrom . "
        "import base\n"
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
    assert part in ALLOWED, (
        f"{part} has no place in the order of imports: give it one in this test and in the design"
    )
    for found in imports(module, MODULES[module]):
        allowed = ALLOWED[part] | {part} | (LAZY.get(part, set()) if found.lazy else set())
        if part in ("audit", "cli", "api") and found.target == "__init__":
            continue  # the outermost layer may use the public list
        assert found.target in allowed, f"{module}:{found.line} imports jaxcd.{found.target}"


def module_names() -> dict[str, Path]:
    names = {}
    for module in MODULES:
        name = ".".join(("jaxcd", *module.with_suffix("").parts))
        names[name.removesuffix(".__init__")] = module
    return names


def file_arrows() -> Iterator[tuple[str, str]]:
    """Every import between two files, at the top, inside functions, or for type checkers."""
    known = module_names()
    for name, module in known.items():
        package = name if module.name == "__init__.py" else name.rpartition(".")[0]
        for node in ast.walk(MODULES[module]):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                above = (
                    package.split(".")[: len(package.split(".")) - node.level + 1]
                    if node.level
                    else []
                )
                source = ".".join([*above, *([node.module] if node.module else [])])
                targets = [
                    f"{source}.{alias.name}" if f"{source}.{alias.name}" in known else source
                    for alias in node.names
                ]
            else:
                continue
            yield from ((name, target) for target in targets if target in known and target != name)


#: A graph converts itself, and answers for its adjustment sets: its methods call what makes graphs.
ONE_CIRCLE = {
    "jaxcd.graphs.adjustment",
    "jaxcd.graphs.ancestral",
    "jaxcd.graphs.cpdag",
    "jaxcd.graphs.converters",
    "jaxcd.graphs.dag",
    "jaxcd.graphs.mixed_graph",
    "jaxcd.graphs.text_formats",
}


def circles(arrows: Iterator[tuple[str, str]]) -> list[set[str]]:
    return [
        set(part) for part in nx.strongly_connected_components(nx.DiGraph(arrows)) if len(part) > 1
    ]


def test_files_import_each_other_in_no_circle():
    assert circles(iter([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])) == [{"a", "b", "c"}]
    assert [circle for circle in circles(file_arrows()) if not circle <= ONE_CIRCLE] == []


def test_rooms_import_each_other_in_no_circle():
    def room(name: str) -> str:
        return ".".join(name.split(".")[:2])

    assert (
        circles(
            (room(a), room(b))
            for a, b in file_arrows()
            if "jaxcd" not in (a, b) and room(a) != room(b)
        )
        == []
    )


def concrete() -> dict[str, str]:
    """Releases, their kinds, deciders and scores: the class, and the room that it lives in."""
    found = {}
    for base in (Release, ReleaseKind, Decider, GraphScore, ScoreConfig):
        stack = [base]
        while stack:
            for kind in stack.pop().__subclasses__():
                stack.append(kind)
                if kind.__module__.startswith("jaxcd.") and not kind.__abstractmethods__:
                    found[kind.__name__] = ".".join(kind.__module__.split(".")[1:3])
    return found


def asked_classes(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The names in the second argument of isinstance and issubclass, and those compared with a
    type.
    """
    for node in ast.walk(tree):
        wanted: list[ast.AST] = []
        if (
            isinstance(node, ast.Call)
            and dotted(node.func) in ("isinstance", "issubclass")
            and len(node.args) == 2
        ):
            wanted = [node.args[1]]
        elif (
            isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Call)
            and dotted(node.left.func) == "type"
        ):
            wanted = list(node.comparators)
        for part in wanted:
            for name in ast.walk(part):
                if isinstance(name, (ast.Name, ast.Attribute)):
                    yield dotted(name).rpartition(".")[2], node.lineno


def test_nobody_asks_for_the_class_of_a_release_a_decider_or_a_score():
    """They answer for themselves; only their own room may know them by name."""
    classes = concrete()
    assert {
        "Histogram",
        "ReleasedFeatures",
        "LevelwiseGaussian",
        "Scheduled",
        "BIC",
        "SetScore",
    } <= set(classes)
    seen = list(asked_classes(ast.parse("isinstance(x, (A, b.C))\ntype(y) is D\n")))
    assert [name for name, _ in seen] == ["A", "C", "b", "D"]
    for module, tree in MODULES.items():
        room = ".".join(module.with_suffix("").parts[:2])
        for name, line in asked_classes(tree):
            assert classes.get(name, room) == room, f"{module}:{line} asks for {name}"


def of_part(*parts: str) -> list[Path]:
    return [module for module in MODULES if part_of(module) in parts]


@pytest.mark.parametrize("module", of_part("privacy"), ids=str)
def test_privacy_knows_no_test_and_no_graph(module: Path):
    assert {found.target for found in imports(module, MODULES[module])} <= {
        "privacy",
        "checks",
        "json_files",
        "places",
        "errors",
    }


def test_a_verification_computes_with_nothing_of_the_ledger():
    """Of the package it imports the exceptions; else it would repeat the ledger's mistakes."""
    files = ("jaxcd.privacy.repricing", "jaxcd.privacy.recomposing")
    arrows = [(name, target) for name, target in file_arrows() if name in files]
    assert {name for name, _ in arrows} == set(files)
    assert {target for _, target in arrows} <= {"jaxcd.errors", "jaxcd.privacy.repricing"}


@pytest.mark.parametrize("module", of_part("discovery"), ids=str)
def test_discovery_sees_types_not_data(module: Path):
    """Of data, tests and the session only the names of types: what a search computes is
    post-processing.  ``as_data`` makes a Dataset of a table, ``with_interventions`` knowledge of
    a domain, ``designed_arcs`` arcs of a domain, and nothing else.
    """
    types = {
        "data": {
            "Dataset",
            "Domain",
            "Interventions",
            "Missing",
            "Tabular",
            "as_data",
            "designed_arcs",
            "with_interventions",
        },
        "citests": {"CITest", "Query", "check_alpha", "check_is_test"},
        "queries": {"Door", "Session"},
    }
    for found in imports(module, MODULES[module]):
        if found.target in types:
            assert set(found.names) <= types[found.target], f"{module}:{found.line}"
    if "decisions" in {found.target for found in imports(module, MODULES[module])}:
        helpers = {
            n for f in imports(module, MODULES[module]) if f.target == "decisions" for n in f.names
        }
        assert not helpers & {"margins_of", "smallest_margins", "openings"}, (
            f"{module} imports {helpers}"
        )
    sensitive = {
        "expose",
        "margins",
        "projections",
        "pooled_covariances",
        "evaluate",
        "codes",
        "restrict",
        "column",
        "log_pvalue",
    }
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.Attribute):
            assert node.attr not in sensitive, f"{module}:{node.lineno} uses .{node.attr}"


def test_sensitive_values_are_unwrapped_only_where_answers_are_given():
    for module, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "expose":
                assert part_of(module) in {
                    "decisions",
                    "releases",
                    "published",
                    "api",
                    "queries",
                }, f"{module}:{node.lineno}"


#: Who may read a Dataset's cells: the room that makes it; the door; CI tests, which the door
#: prepares; scores, which are computed on data without privacy only; randomisers, whose guarantee
#: is that of each record; published algorithms, which are not proved; the audit, on simulated data.
CELLS = {"column", "values", "codes", "discrete", "numeric", "to_frame"}
READERS = {"data", "citests", "scores", "local", "published", "audit"}


def reads_of_cells(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Cells of what is called data, and what a test prepares from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = dotted(node.value).rpartition(".")[2].lstrip("_")
            if node.attr in CELLS and owner in {"data", "dataset", "rows"}:
                yield node.attr, node.lineno
            if node.attr in {"prepare", "prepare_privately"} and owner == "test":
                yield node.attr, node.lineno


def test_rows_are_read_through_the_door_only():
    seen = reads_of_cells(
        ast.parse("data.column(n)\nself._data.codes\ntest.prepare(data)\nx.codes")
    )
    assert sorted(seen) == [("codes", 2), ("column", 1), ("prepare", 3)]
    for module, tree in MODULES.items():
        if part_of(module) in READERS or module == Path("queries/door.py"):
            continue
        for name, line in reads_of_cells(tree):
            raise AssertionError(f"{module}:{line} reads .{name}, and not through the door")


def test_only_the_door_holds_a_dataset_in_a_private_run():
    """Releases, deciders and the session name no Dataset that they could keep."""
    for module in of_part("queries", "decisions", "releases"):
        if module == Path("queries/door.py"):
            continue
        names = {n for f in imports(module, MODULES[module]) if f.target == "data" for n in f.names}
        if "Dataset" in names:
            # models that releases are drawn anew from make data sets of their own
            makers = {"redrawing.py", "fitted_tables.py", "linear_models.py"}
            assert module.name in makers, f"{module} imports Dataset"


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


GENERATORS = {
    "default_rng",
    "Generator",
    "SeedSequence",
    "BitGenerator",
    "PCG64",
    "PCG64DXSM",
    "Philox",
}


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
    tree = ast.parse(
        "import jax, random\njax.config.update('a', 1)\nfrom jax import config\nnp.random.seed(0)\n"
    )
    assert {"jax.config.update", "jax.config", "random", "np.random.seed"} <= {
        name for name, _ in uses(tree)
    }
