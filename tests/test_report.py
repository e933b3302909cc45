"""Pictures and reports: what is drawn and written is what the graph and the ledger hold."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from collections import Counter
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd import report
from jaxcd.api import Algorithm
from jaxcd.discovery import DiscoveryResult, EdgeConfidence
from jaxcd.errors import DataError, FormatError, GraphError, OptionError
from jaxcd.graphs import Mark, MixedGraph, from_dot, random_dag
from jaxcd.plotting import (
    comparison_figure,
    comparison_png,
    graph_figure,
    graph_png,
    graph_svg,
    plot_graph,
)
from jaxcd.plotting.labels import short_labels
from jaxcd.plotting.layout import layered_layout
from jaxcd.privacy.budget import unit_words
from jaxcd.privacy.certificate import Certified
from jaxcd.report import FILES, check_folder, grouped_ledger, metrics_json, write_report
from tests.helpers import SEEDS, measured, refused, simulated

EVIL = '<script>alert("x")</script> & \'$y$'
PAG = MixedGraph.from_edges(["a", "b", "c", "d", "e"], ["a o-> b", "b <-> c", "c o-o d", "a --> d"])

# ---- pictures
# --------------------------------------------------------------------------------------------------


@st.composite
def dags(draw: st.DrawFn) -> nx.DiGraph:
    n = draw(st.integers(1, 14))
    degree = draw(st.floats(0, min(3.0, n - 1)))
    return random_dag(n, expected_degree=degree, seed=draw(SEEDS))


@settings(max_examples=40)
@given(dags(), SEEDS)
def test_arrows_of_a_dag_point_down_and_boxes_are_apart(dag: nx.DiGraph, seed: int) -> None:
    place = {name: i for i, name in enumerate(dag)}
    arcs = [(place[a], place[b]) for a, b in dag.edges]
    widths = np.random.default_rng(seed).uniform(0.3, 2.0, len(dag)).tolist()
    layout = layered_layout(widths, height=0.3, directed=arcs, undirected=[])
    for i, j in arcs:
        assert layout.centers[i, 1] > layout.centers[j, 1] + 0.3
        np.testing.assert_allclose(layout.routes[i, j][[0, -1]], layout.centers[[i, j]], atol=1e-9)
    for i in range(len(dag)):
        assert widths[i] / 2 - 1e-9 <= layout.centers[i, 0] <= layout.width - widths[i] / 2 + 1e-9
        assert 0.15 - 1e-9 <= layout.centers[i, 1] <= layout.height - 0.15 + 1e-9
        for j in range(i):
            across, up = np.abs(layout.centers[i] - layout.centers[j])
            assert across > (widths[i] + widths[j]) / 2 or up > 0.3


@settings(max_examples=25)
@given(st.integers(2, 9), SEEDS)
def test_every_mixture_of_edges_has_a_layout(n: int, seed: int) -> None:
    """Cycles, and edges that only follow, are laid out too; pairs keep their keys."""
    rng = np.random.default_rng(seed)
    pairs = [
        (i, j) if rng.random() < 0.5 else (j, i)
        for i in range(n)
        for j in range(i)
        if rng.random() < 0.5
    ]
    kinds = rng.integers(0, 3, len(pairs))
    parts = [[pair for pair, kind in zip(pairs, kinds, strict=True) if kind == k] for k in range(3)]
    layout = layered_layout(
        [0.8] * n, height=0.3, directed=parts[0], undirected=parts[1], routed=parts[2]
    )
    assert set(layout.routes) == set(pairs)
    assert all(np.isfinite(route).all() for route in layout.routes.values())
    assert len({tuple(center) for center in layout.centers.round(6)}) == n


@pytest.mark.parametrize(("degree", "seed"), [(2, 5), (3, 6), (4, 9)])
def test_every_curve_of_a_large_graph_is_inside_the_drawing(degree: int, seed: int) -> None:
    dag = random_dag(60, expected_degree=degree, seed=seed)
    place = {name: i for i, name in enumerate(dag)}
    arcs = [(place[a], place[b]) for a, b in dag.edges]
    layout = layered_layout([0.5] * 60, height=0.3, directed=arcs, undirected=[])
    for route in layout.routes.values():
        assert (route >= -1e-9).all()
        assert (route <= np.array([layout.width, layout.height]) + 1e-9).all()


def test_arcs_are_as_short_as_possible() -> None:
    """A short branch ends beside the end of a long chain, not at the top."""
    chain = [(0, 1), (1, 2), (2, 3)]
    layout = layered_layout(
        [0.5] * 7, height=0.3, directed=[*chain, (4, 3), (5, 3), (6, 5)], undirected=[]
    )
    y = layout.centers[:, 1]
    assert y[4] == y[5] == y[2] > y[3]
    assert y[6] == y[1]


def test_a_tree_is_drawn_without_crossings_and_from_its_middle() -> None:
    edges = [(3, 1), (1, 4), (0, 1), (0, 2), (5, 2), (6, 2)]
    layout = layered_layout([0.5] * 7, height=0.3, directed=[], undirected=edges)
    x, y = layout.centers.T
    assert y[0] > y[1] == y[2] > y[3] == y[4] == y[5] == y[6]
    children = {1: (3, 4), 2: (5, 6)}
    left, right = sorted(children, key=lambda v: x[v])
    assert max(x[v] for v in children[left]) < min(x[v] for v in children[right])


def _patches(ax: Any, kind: str) -> list[Any]:
    return [patch for patch in ax.patches if type(patch).__name__ == kind]


@pytest.mark.parametrize(
    "graph", [PAG, jaxcd.networks.load("asia").cpdag(), MixedGraph.empty(["x", "y"])]
)
def test_every_mark_is_drawn_once(graph: MixedGraph) -> None:
    ax = graph_figure(graph).axes[0]
    assert len(_patches(ax, "Polygon")) == np.count_nonzero(graph.marks == Mark.ARROW)
    assert len(_patches(ax, "Circle")) == np.count_nonzero(graph.marks == Mark.CIRCLE)
    assert len(_patches(ax, "FancyBboxPatch")) == graph.n_nodes
    assert len(ax.lines) == graph.n_edges
    assert sorted(text.get_text() for text in ax.texts) == sorted(graph.names)


def test_the_arrowhead_is_at_the_child() -> None:
    ax = graph_figure(MixedGraph.from_edges(["parent", "child"], ["parent --> child"])).axes[0]
    tip = _patches(ax, "Polygon")[0].get_xy()[0]
    centers = {text.get_text(): np.array(text.get_position()) for text in ax.texts}
    assert np.hypot(*(tip - centers["child"])) < 0.25 < np.hypot(*(tip - centers["parent"]))


def test_comparison_counts_and_colors() -> None:
    names = ["a", "b", "c", "d"]
    truth = MixedGraph.from_edges(names, ["a --> b", "b --> c", "c --- d"])
    estimate = MixedGraph.from_edges(["d", "c", "b", "a"], ["a --> b", "b --- c", "a --> d"])
    ax = graph_figure(estimate, truth=truth).axes[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "as in the truth: 1",
        "true pair, other marks: 1",
        "not in the truth: 1",
        "missing: 1",
    ]
    handles = ax.get_legend().legend_handles
    drawn = Counter((line.get_color(), line.get_linestyle()) for line in ax.lines)
    assert drawn == Counter((handle.get_color(), handle.get_linestyle()) for handle in handles)
    assert handles[3].get_linestyle() == "--"
    red = [patch for patch in _patches(ax, "Polygon") if patch.get_facecolor()[0] > 0.7]
    assert len(red) == 1


def test_a_comparison_has_the_estimate_at_the_left_and_the_truth_at_the_right() -> None:
    estimate = MixedGraph.from_edges(
        ["e", "d", "c", "b", "a"], ["a o-o b", "b <-> c", "a --> d", "c o-> e"]
    )
    figure = comparison_figure(estimate, PAG, titles=("Priv-FCI", "$truth$"), highlight=["a"])
    assert [text.get_text() for text in figure.texts] == ["Priv-FCI", "$truth$"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "as in the truth: 2",
        "true pair, other marks: 1",
        "not in the truth: 1",
        "missing: 1",
    ]
    places = []
    for ax, graph in zip(figure.axes, (estimate, PAG), strict=True):
        assert len(_patches(ax, "Polygon")) == np.count_nonzero(graph.marks == Mark.ARROW)
        assert len(_patches(ax, "Circle")) == np.count_nonzero(graph.marks == Mark.CIRCLE)
        assert len(ax.lines) == graph.n_edges
        places.append({text.get_text(): text.get_position() for text in ax.texts})
    assert places[0] == places[1] and set(places[0]) == set(PAG.names)
    first, second = (ax.get_position() for ax in figure.axes)
    assert first.x1 <= second.x0
    colors = [Counter(line.get_color() for line in ax.lines) for ax in figure.axes]
    black, blue, red, grey = (handle.get_color() for handle in figure.legends[0].legend_handles)
    assert colors == [{black: 2, blue: 1, red: 1}, {black: 2, blue: 1, grey: 1}]
    assert comparison_png(estimate, PAG, dpi=40) == comparison_png(estimate, PAG, dpi=40)
    assert comparison_png(MixedGraph.empty(["x"]), MixedGraph.empty(["x"]), dpi=40).startswith(
        b"\x89PNG"
    )


def _strengths(values: dict[tuple[int, int], float], d: int) -> np.ndarray:
    array = np.zeros((d, d))
    for (i, j), value in values.items():
        array[i, j] = array[j, i] = value
    return array


def test_probable_edges_have_thicker_lines_and_keep_their_colors() -> None:
    names = ["a", "b", "c", "d"]
    graph = MixedGraph.from_edges(names, ["a --> b", "b --> c", "a --- d"])
    truth = MixedGraph.from_edges(names, ["a --> b", "b --- c", "c --> d"])
    strengths = _strengths({(0, 1): 1.0, (1, 2): 0.5, (0, 3): 0.0, (2, 3): 0.9}, 4)
    plain, shown = (
        graph_figure(graph, truth=truth, strengths=s).axes[0] for s in (None, strengths)
    )
    assert [line.get_color() for line in shown.lines] == [line.get_color() for line in plain.lines]
    assert len({line.get_linewidth() for line in plain.lines}) == 1
    order = [(edge.a, edge.b) for edge in graph.edges()]
    widths = dict(zip(order, (line.get_linewidth() for line in shown.lines[:3]), strict=True))
    assert 0 < widths["a", "d"] < widths["b", "c"] < widths["a", "b"]
    assert widths["b", "c"] == pytest.approx((widths["a", "b"] + widths["a", "d"]) / 2)
    assert shown.lines[3].get_linewidth() == plain.lines[3].get_linewidth()  # the missing edge
    left, right = comparison_figure(graph, truth, strengths=strengths).axes[:2]
    assert len({line.get_linewidth() for line in left.lines}) == 3
    assert len({line.get_linewidth() for line in right.lines}) == 1
    for wrong in (np.zeros((3, 3)), np.full((4, 4), np.nan), np.triu(strengths), 2 * strengths):
        refused(OptionError, "strengths", plot_graph, graph, strengths=wrong)


def test_comparison_refuses() -> None:
    for call, message in (
        (lambda: comparison_figure(PAG, PAG, titles="ab"), "two texts"),
        (lambda: comparison_figure(PAG, None), "use plot_graph"),  # type: ignore[arg-type]
        (lambda: comparison_figure(PAG.marks, PAG), "estimate: a ndarray"),  # type: ignore[arg-type]
        (lambda: comparison_figure(PAG, PAG, highlight="ab"), "one text"),
    ):
        refused(OptionError, message, call)
    refused(
        GraphError, "unknown", comparison_figure, PAG, MixedGraph.empty(["a", "b", "c", "d", "z"])
    )


def test_the_same_graph_gives_the_same_file() -> None:
    first, second = (
        graph_png(PAG, dpi=50),
        graph_png(MixedGraph(PAG.names, np.array(PAG.marks)), dpi=50),
    )
    assert first == second
    assert first.startswith(b"\x89PNG\r\n\x1a\n")


def test_any_name_can_be_drawn() -> None:
    names = ["$x_1$", "\N{CJK UNIFIED IDEOGRAPH-4E00}", "a" * 300, "two\nlines", EVIL]
    graph = MixedGraph.from_edges(names, [f"{names[0]} --> {names[1]}"])
    assert graph_png(graph, dpi=40).startswith(b"\x89PNG")  # warnings are errors here


def test_plot_graph_uses_the_axes_it_is_given_and_no_pyplot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from matplotlib.figure import Figure

    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    ax = Figure(figsize=(3, 3)).add_subplot()
    assert plot_graph(PAG, ax=ax, highlight=["a"]) is ax
    assert {box.get_facecolor() for box in _patches(ax, "FancyBboxPatch")} != {
        _patches(ax, "FancyBboxPatch")[1].get_facecolor()
    }
    assert plot_graph(PAG).figure is not ax.figure
    assert "matplotlib.pyplot" not in sys.modules


def test_plot_graph_refuses() -> None:
    refused(GraphError, "nobody", plot_graph, PAG, highlight=["nobody"])
    refused(OptionError, "one text", plot_graph, PAG, highlight="ab")
    refused(
        GraphError, "unknown", plot_graph, PAG, truth=MixedGraph.empty(["a", "b", "c", "d", "z"])
    )
    refused(OptionError, "not a MixedGraph", plot_graph, nx.DiGraph())
    refused(
        OptionError, "ax = 'graph.png' is no axes of matplotlib", plot_graph, PAG, ax="graph.png"
    )


# ---- reports
# --------------------------------------------------------------------------------------------------


def _run(noise: Any = None, budget: Any = None, **options: Any) -> jaxcd.DiscoveryResult:
    data = jaxcd.networks.load("cancer").sample(200, key=jax.random.key(0))
    return jaxcd.discover(
        data,
        budget=budget or jaxcd.Budget(1.0, 1e-6),
        key=None,
        noise=noise,
        max_level=1,
        **options,
    )


@pytest.fixture(scope="module")
def secure() -> jaxcd.DiscoveryResult:
    return _run()


class _Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def _only_its_own_script(folder: Path) -> None:
    """One script, which the page's policy names by its digest, and which asks for nothing."""
    text = (folder / "report.html").read_text(encoding="utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert script == (Path(report.__file__).parent / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert f"script-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy
    assert _Page(text).tags.count("script") == 1
    assert not re.search(r"fetch|XMLHttp|import|eval|innerHTML|https?:", script)


def _strict(path: Path) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def test_files_hold_the_result(secure: jaxcd.DiscoveryResult, tmp_path: Path) -> None:
    truth = jaxcd.networks.load("cancer").cpdag()
    folder = write_report(secure, tmp_path / "new" / "report", truth=truth)
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert [path.name for path in folder.parent.iterdir()] == ["report"]

    graph = _strict(folder / "graph.json")
    assert (
        MixedGraph.from_json_dict(graph)
        == secure.graph
        == from_dot((folder / "graph.dot").read_text())
    )
    sets = {frozenset(entry["pair"]): tuple(entry["given"]) for entry in graph["separating_sets"]}
    assert sets == dict(secure.separating_sets)

    privacy = _strict(folder / "privacy.json")
    assert privacy["guarantee"] == {
        "accounting": "gaussian",
        "epsilon": 1.0,
        "delta": 1e-6,
        "relation": "replace-one",
        "proven": True,
        "reason": secure.cost.reason,
        "rho": secure.cost.rho,
        "unit": "one row",
        "max_rows_per_person": 1,
        "failure_delta": 0.0,
    }
    assert jaxcd.verify(privacy).holds
    assert privacy["secure_noise"] is True
    assert privacy["settings"]["n_samples"] == 200
    assert [row["label"] for row in privacy["ledger"]] == [
        row["label"] for row in secure.info["ledger"]
    ]
    # Gaussian noise has no pure epsilon
    assert any("epsilon" not in row for row in privacy["ledger"])

    page = _Page((folder / "report.html").read_text(encoding="utf-8"))
    sources = [
        value or ""
        for name, value in page.attributes
        if name in ("src", "href", "srcset", "data", "action")
    ]
    assert len(sources) == 1 and sources[0].startswith("data:image/svg+xml;base64,")
    assert base64.b64decode(sources[0].split(",", 1)[1]) == graph_svg(
        secure.graph,
        truth=truth,
        strengths=None if secure.confidence is None else secure.confidence.adjacency,
    )
    assert not {"link", "iframe", "object", "form"} & set(page.tags)
    _only_its_own_script(folder)
    for words in (
        "fixed before the data was read",
        "What is and is not guaranteed",
        "Against the truth",
        "faithfulness",
    ):
        assert words in page.text
    assert "SIMULATED" not in page.text and "NO PRIVACY" not in page.text
    assert "exhausted" not in page.text.lower() or secure.exhausted
    assert f"{metrics_json(secure.graph, truth)['arc_f1']['f1']:.4g}" in page.text


def test_a_result_saves_and_plots_itself(secure: jaxcd.DiscoveryResult, tmp_path: Path) -> None:
    assert secure.save(str(tmp_path / "x")) == tmp_path / "x"
    assert len(secure.plot().texts) == 5
    refused(OptionError, "ax = 'graph.png'.*savefig", secure.plot, "graph.png")
    refused(OptionError, "confidence: a float is no confidence", secure.with_confidence, 0.9)


def test_a_report_tells_how_sure_the_edges_are(
    secure: jaxcd.DiscoveryResult, tmp_path: Path
) -> None:
    names, d = secure.graph.names, secure.graph.n_nodes
    rng = np.random.default_rng(0)
    undirected = np.triu(rng.uniform(0.2, 0.6, (d, d)), 1)
    directed = np.triu(np.full((d, d), 0.25), 1)
    confidence = EdgeConfidence(
        names,
        undirected + undirected.T + directed + directed.T,
        directed,
        undirected + undirected.T,
        20,
        f"shares {EVIL}",
    )
    told = secure.with_confidence(confidence)
    plain = replace(secure, confidence=None)
    assert (
        json.loads((plain.save(tmp_path / "plain") / "graph.json").read_text())["confidence"]
        is None
    )
    folder = told.save(tmp_path / "told")
    content = json.loads((folder / "graph.json").read_text())
    assert MixedGraph.from_json_dict(content) == secure.graph
    assert (
        content["confidence"]["n_draws"] == 20
        and len(content["confidence"]["pairs"]) == d * (d - 1) // 2
    )
    for pair in content["confidence"]["pairs"]:
        a, b = pair["pair"]
        found = secure.graph.edge(a, b)
        assert pair["found"] == (None if found is None else found.symbol)
        i, j = names.index(a), names.index(b)
        assert pair["adjacent"] == confidence.adjacency[i, j] and pair["forward"] == directed[i, j]
    page = _Page((folder / "report.html").read_text(encoding="utf-8"))
    assert "Confidence in the edges" in page.text and EVIL in page.text
    _only_its_own_script(folder)
    assert all(f"{pair['adjacent']:.2f}" in page.text for pair in content["confidence"]["pairs"])
    assert (folder / "graph.png").read_bytes() != (
        tmp_path / "plain" / "graph.png"
    ).read_bytes() or not secure.graph.n_edges
    widths = {line.get_linewidth() for line in told.plot().lines}
    assert len(widths) == secure.graph.n_edges  # every probability is another


def test_a_confidence_in_adjacencies_alone_is_reported(
    secure: jaxcd.DiscoveryResult, tmp_path: Path
) -> None:
    confidence = EdgeConfidence(
        secure.graph.names, secure.graph.adjacency * 0.75, None, None, 0, "margins"
    )
    released = {"released_margins": ({"pair": secure.graph.names[:2], "margin": 1.0},)}
    result = _Stub(
        **{
            field: getattr(secure, field)
            for field in ("graph", "separating_sets", "cost", "spent", "exhausted")
        },
        info={**secure.info, **released},
        confidence=confidence,
    )
    folder = write_report(result, tmp_path / "x")
    pairs = _strict(folder / "graph.json")["confidence"]["pairs"]
    assert len(pairs) == secure.graph.n_edges and all(
        set(pair) == {"pair", "found", "adjacent"} for pair in pairs
    )
    # they would fill the page
    assert "released_margins" not in _strict(folder / "privacy.json")["settings"]


def test_simulated_noise_and_no_privacy_are_shouted(tmp_path: Path) -> None:
    simulated = write_report(
        _run(noise=jaxcd.SimulatedNoise(jax.random.key(0))), tmp_path / "simulated"
    )
    assert "SIMULATED NOISE: NOT FOR RELEASE" in (simulated / "report.html").read_text()
    assert _strict(simulated / "privacy.json")["secure_noise"] is False
    assert _strict(simulated / "privacy.json")["guarantee"]["proven"] is False
    exact = write_report(_run(budget=jaxcd.NO_PRIVACY), tmp_path / "exact")
    text = (exact / "report.html").read_text()
    assert "NO PRIVACY" in text and "would change by a factor" not in text
    assert _strict(exact / "privacy.json")["guarantee"]["epsilon"] == "inf"
    assert _strict(exact / "privacy.json")["secure_noise"] is None


@pytest.mark.parametrize("by", ["test", "score", "mmhc"])
def test_a_search_of_randomised_records_states_their_guarantee(by: str, tmp_path: Path) -> None:
    """Under the condition that the code cannot check, and not as a guarantee of its own."""
    data = jaxcd.networks.load("cancer").sample(200, key=jax.random.key(0))
    mechanism = jaxcd.local.KaryResponse(epsilon=5.0)
    records = jaxcd.local.randomise(data, mechanism, noise=simulated())
    test = jaxcd.local.ChannelAwareChiSquare(mechanism)
    run = {
        "test": lambda: jaxcd.pc(
            records, test=test, decider=jaxcd.Threshold(), budget=jaxcd.NO_PRIVACY, key=None
        ),
        "score": lambda: jaxcd.ges(
            records, score=jaxcd.local.ChannelAwareBIC(mechanism), budget=jaxcd.NO_PRIVACY
        ),
        "mmhc": lambda: jaxcd.mmhc(records, test=test, budget=jaxcd.NO_PRIVACY),
    }[by]()
    told = run.info["randomised_records"]
    assert told["mechanism"] == "KaryResponse(epsilon=5.0)" and told["epsilon_ldp"] == 5.0
    assert told["proved"] and "jaxcd.local.kary_response" in told["proof"]
    assert np.isinf(run.cost.epsilon) and not run.cost.proven
    folder = run.save(tmp_path / "x")
    page = _Page((folder / "report.html").read_text(encoding="utf-8")).text
    for text in (str(run), page):
        assert "no privacy" not in text.lower() and "epsilon = 5 " in text
        assert "if each record was randomised by KaryResponse(epsilon=5.0) before it was" in text
        assert "cannot be checked here" in text and "whoever collects" in text
    assert "computed from exact" not in page and "from randomised records" in page
    assert DiscoveryResult.load(folder).info == run.info
    # who does not say that records were randomised is told what that is worth
    plain = jaxcd.ges(records, score=jaxcd.BIC(), budget=jaxcd.NO_PRIVACY)
    assert "randomised_records" not in plain.info and "no privacy" in str(plain)


def test_the_ledger_explains_what_it_holds(tmp_path: Path) -> None:
    """A sum of epsilons needs no other account, and names none."""
    data = jaxcd.networks.load("cancer").sample(200, key=jax.random.key(0))
    for budget, others in ((jaxcd.Budget(1.0), False), (jaxcd.Budget(1.0, 1e-6), True)):
        run = jaxcd.pc(
            data,
            test=jaxcd.CovarianceNorm(),
            decider=jaxcd.SparseVector(),
            budget=budget,
            key=None,
            max_level=0,
        )
        page = _Page((run.save(tmp_path / str(others)) / "report.html").read_text("utf-8")).text
        assert "epsilon of each" in page and "Each was charged before" in page
        for words in ("rho of each", "zero-concentrated"):
            assert (words in page) == others
        assert "ZCDP" not in page  # all have an epsilon of their own


def test_what_is_said_of_randomised_records_is_of_the_columns_of_the_search() -> None:
    """Those who collect have the others, too: a search of two of five states no less for five."""
    data = jaxcd.networks.load("cancer").sample(200, key=jax.random.key(0))
    mechanism = jaxcd.local.ClippedGeometric(epsilon=1.0)
    records = jaxcd.local.randomise(data, mechanism, noise=simulated())
    score = jaxcd.local.ChannelAwareBIC(mechanism)
    run = jaxcd.ges(records.select(records.names[:2]), score=score, budget=jaxcd.NO_PRIVACY)
    words = run.info["randomised_records"]["words"]
    # 2 and 4e-10 for rounding, said rounded up
    assert "epsilon = 2.00001 for the 2 columns of this search together" in words
    assert "collected beside these, and levels that were merged since, are not counted" in words


def test_of_several_rows_a_person_nothing_is_said_of_randomised_records() -> None:
    """Epsilon is of one row; randomise refuses such a domain."""
    mechanism = jaxcd.local.ClippedGeometric(epsilon=1.0)
    two = jaxcd.Categorical(("no", "yes"))
    domain = jaxcd.Domain({"a": two, "b": two}, person="who")
    cells = {"a": ["no", "yes"] * 50, "b": ["no", "no", "yes", "yes"] * 25}
    who = [f"p{i // 2}" for i in range(100)]
    records = jaxcd.Dataset.from_frame(pd.DataFrame({**cells, "who": who}), domain=domain)
    test = jaxcd.local.ChannelAwareChiSquare(mechanism)
    for run in (
        jaxcd.pc(records, test=test, decider=jaxcd.Threshold(), budget=jaxcd.NO_PRIVACY, key=None),
        jaxcd.ges(records, score=jaxcd.local.ChannelAwareBIC(mechanism), budget=jaxcd.NO_PRIVACY),
        jaxcd.mmhc(records, test=test, budget=jaxcd.NO_PRIVACY),
    ):
        assert "randomised_records" not in run.info and "no privacy" in str(run)


def test_a_search_that_is_told_of_two_mechanisms_is_refused() -> None:
    data = jaxcd.networks.load("cancer").sample(200, key=jax.random.key(0))
    one, other = (jaxcd.local.KaryResponse(epsilon=size) for size in (5.0, 1.0))
    test, score = jaxcd.local.ChannelAwareChiSquare(one), jaxcd.local.ChannelAwareBIC(other)
    with pytest.raises(OptionError, match=r"two mechanisms.*give both the same"):
        jaxcd.mmhc(data, test=test, score=score, budget=jaxcd.NO_PRIVACY)


class _Stub(Certified, SimpleNamespace):
    pass


def _stub(names: list[str], **changes: Any) -> _Stub:
    cost = jaxcd.privacy.PrivacyCost(
        1.0, 0.0, jaxcd.privacy.Relation.REPLACE_ONE, True, f"because {EVIL}"
    )
    row = {"label": EVIL, "mechanism": "Pure", "epsilon": 0.1, "rho": 0.005}
    fields = {
        "graph": MixedGraph.from_edges(names, [f"{names[0]} --> {names[1]}"]),
        "separating_sets": {frozenset((names[1], names[2])): (names[0],)},
        "cost": cost,
        "spent": cost,
        "exhausted": True,
        "info": {
            "test": EVIL,
            "ledger": [{"index": k, **row} for k in range(3)],
            "reasons": (EVIL,),
            "secure_noise": True,
        },
    }
    return _Stub(**(fields | changes))


def test_names_are_escaped(tmp_path: Path) -> None:
    result = _stub([EVIL, "b<i>", "c&amp;"])
    page = _Page((write_report(result, tmp_path / "x") / "report.html").read_text(encoding="utf-8"))
    assert "i" not in page.tags
    _only_its_own_script(tmp_path / "x")
    assert page.text.count(EVIL) >= 5 and "c&amp;" in page.text
    assert "exhausted" in page.text.lower()


class _Html(str):
    """A text that template engines take for HTML already."""

    def __html__(self) -> str:
        return self


def test_a_text_that_calls_itself_html_is_escaped(tmp_path: Path) -> None:
    names = [_Html(EVIL), _Html("<b>{{ 7 * 7 }}</b>"), _Html("{% raw %}")]
    row = {"label": _Html(EVIL), "mechanism": _Html("<u>"), "epsilon": 0.1, "rho": 0.005}
    info = {
        _Html("<i>"): _Html(EVIL),
        "ledger": [{"index": 0, **row}],
        "reasons": (_Html(EVIL),),
        "secure_noise": True,
    }
    folder = write_report(_stub(names, info=info), tmp_path / "x")
    page = _Page((folder / "report.html").read_text(encoding="utf-8"))
    assert not {"u", "i"} & set(page.tags)
    _only_its_own_script(folder)
    assert "<b>{{ 7 * 7 }}</b>" in page.text and "{% raw %}" in page.text and "49" not in page.text
    assert page.text.count(EVIL) >= 5


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0.5, float("inf")])), max_size=12)
)
def test_grouped_ledger_keeps_every_event(rows: list[tuple[str, float]]) -> None:
    table = [
        {"index": k, "label": label, "epsilon": epsilon} for k, (label, epsilon) in enumerate(rows)
    ]
    groups = grouped_ledger(table)
    assert Counter(
        {(group["label"], group["epsilon"]): group["count"] for group in groups}
    ) == Counter(rows)
    assert [group["label"] for group in groups] == [label for label, _ in dict.fromkeys(rows)]


def test_infinity_and_unknown_values_are_json() -> None:
    info = {
        "a": np.float64("inf"),
        "b": float("nan"),
        "c": np.int64(3),
        "d": jaxcd.privacy.Relation.REPLACE_ONE,
        "e": {1: (2, object)},
    }
    content = _stub(["a", "b", "c"], info=info).certificate()
    assert content["settings"] == {
        "a": "inf",
        "b": "nan",
        "c": 3,
        "d": "replace-one",
        "e": {"1": [2, str(object)]},
    }
    json.dumps(content, allow_nan=False)


def test_existing_folder_is_kept_without_force(
    secure: jaxcd.DiscoveryResult, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("keep me")
    (folder / "graph.dot").write_text("old")
    refused(OptionError, r"mine' exists.*force=True", write_report, secure, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["graph.dot", "notes.txt"]
    write_report(secure, folder, force=True)
    assert (folder / "notes.txt").read_text() == "keep me"
    assert from_dot((folder / "graph.dot").read_text()) == secure.graph
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_check_folder_refuses_files(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for path in (file, tmp_path / "dangling"):
        refused(OptionError, "is a file", check_folder, path, force=True)
    refused(OptionError, "cannot be made", check_folder, file / "below" / "it")
    if Path("/proc/self").exists():  # where nobody can make a file
        refused(OptionError, "no file can be made in '/proc'", check_folder, Path("/proc/a/b"))
    assert check_folder(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"
    assert not (tmp_path / "a").exists()


def test_a_failure_leaves_nothing(
    secure: jaxcd.DiscoveryResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.raises(
        GraphError, write_report, secure, tmp_path / "x", truth=MixedGraph.empty(["other"])
    )
    assert list(tmp_path.iterdir()) == []
    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.name == "privacy.json":
            raise OSError(28, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    refused(OSError, "No space", write_report, secure, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


# ---- the page for a privacy office, and what is read back


def _office(folder: Path) -> dict[str, str]:
    """The lines of the table for the privacy office."""
    text = (folder / "report.html").read_text(encoding="utf-8")
    table = text[text.index("For the file of the privacy office") :]
    table = table[: table.index("</table>")]
    return {
        name: unescape(value)
        for name, value in re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td></tr>", table)
    }


def test_the_page_has_what_a_privacy_office_files(tmp_path: Path) -> None:
    budget = jaxcd.Budget(2.0, 1e-6, max_rows_per_person=3)
    run = _run(budget=budget, n_confidence_draws=0)
    folder = write_report(run, tmp_path / "x", command="jaxcd discover 'a.csv'", date="2026-01-31")
    lines = _office(folder)
    assert lines["date"] == "2026-01-31" and lines["command"] == "jaxcd discover 'a.csv'"
    assert f"jaxcd {run.certificate()['versions']['jaxcd']}" in lines["software"]
    assert lines["unit"] == unit_words(budget.unit, 3) == "a person with up to 3 rows"
    assert lines["relation"] == (
        "replace-one: the number of rows stays, up to 3, of one person, are replaced"
    )
    assert lines["budget"].startswith("epsilon = 2, delta = 1e-06, fixed before") and (
        "; proved;" in lines["budget"]
    )
    assert lines["domain"] == "5 declared columns" and "number of rows" in lines["taken as public"]
    page = _Page((folder / "report.html").read_text(encoding="utf-8"))
    for words in ("Found: In a table of 200 rows and 5 columns, ", "How sure: ", "Price: "):
        assert words in page.text
    # every column with its levels stands in the folded domain
    for name in run.graph.names:
        assert f"<td>{name}</td><td>categorical</td>" in (folder / "report.html").read_text()
    assert page.tags.count("details") == 4  # ledger, domain, settings, separating sets
    assert _office(_run(budget=jaxcd.NO_PRIVACY).save(tmp_path / "y"))["budget"] == "none"
    # the same result on the same day gives the same page
    again = write_report(run, tmp_path / "z", command="jaxcd discover 'a.csv'", date="2026-01-31")
    for name in FILES:
        assert (folder / name).read_bytes() == (again / name).read_bytes()


def test_the_page_of_a_pag_says_what_its_marks_are(tmp_path: Path) -> None:
    """An edge of it is no direct relation, and an arrow needs no absence of hidden causes."""
    pages = {
        latent: _Page(
            (_run(latent=latent).save(tmp_path / str(latent)) / "report.html").read_text()
        )
        for latent in (False, True)
    }
    for words in ("A circle is an end", "a hidden cause joins them", "whatever other columns"):
        assert words in pages[True].text and words not in pages[False].text
    for words in ("directly related", "if there is no hidden common cause"):
        assert words in pages[False].text and words not in pages[True].text


def test_the_domain_counts_the_columns_that_are_read(tmp_path: Path) -> None:
    """As the first sentence of the page does; what each column says stands in the list of all."""
    levels = {"type": "categorical", "levels": ["no", "yes"]}
    entries = {
        "a": levels | {"other": "yes"},
        "b": levels | {"intervention": True},
        "id": {"ignore": True},
        "person": {"person": True},
    }
    (tmp_path / "d.json").write_text(json.dumps({"columns": entries}), encoding="utf-8")
    pairs = enumerate(["no,yes", "x,no"] * 9)
    rows = "".join(f"{cells},{i},{i}\n" for i, cells in pairs)
    (tmp_path / "t.csv").write_text("a,b,id,person\n" + rows, encoding="utf-8")
    budget = jaxcd.Budget(1.0, unit="person")
    run = jaxcd.discover(tmp_path / "t.csv", domain=tmp_path / "d.json", budget=budget, key=None)
    folder = run.save(tmp_path / "x")
    assert _office(folder)["domain"] == "2 declared columns"
    assert _office(folder)["relation"].endswith("the number of people stays, one is replaced")
    page = _Page((folder / "report.html").read_text(encoding="utf-8")).text
    for words in (
        "In a table of 18 people and 2 columns",
        "can learn from this run about one person, with however many rows",
        "the smaller the budget and the number of people, the more",
        "no, yes; any other cell counts as yes",
        "no, yes; says under which conditions a row was taken",
        "not read",
        "says which rows belong to one person",
    ):
        assert words in page
    bare = jaxcd.Dataset.from_array(np.eye(2)[[0, 1] * 9], names=["a", "b"])
    bare_run = jaxcd.discover(bare, budget=jaxcd.NO_PRIVACY, key=None)
    assert _office(bare_run.save(tmp_path / "y"))["domain"] == "none was declared"


@pytest.mark.parametrize("accounting", list(jaxcd.privacy.Accounting))
def test_no_field_contradicts_another(accounting: Any, tmp_path: Path) -> None:
    """What was spent has no claim of its own, and Gaussian events no epsilon."""
    run = _run(budget=jaxcd.Budget(1.0, 1e-6, accounting=accounting), algorithm=Algorithm.PC)
    privacy = _strict(run.save(tmp_path / "x") / "privacy.json")
    assert privacy["guarantee"]["proven"] is True and "proven" not in privacy["spent"]
    assert privacy["spent"]["epsilon"] <= privacy["guarantee"]["epsilon"]
    assert not re.search(r"\binf\b", (tmp_path / "x" / "privacy.json").read_text())
    assert any("epsilon" not in row for row in privacy["ledger"])  # there is Gaussian noise
    assert not re.search(r"\binf\b", (tmp_path / "x" / "report.html").read_text())


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_budget_without_a_delta_has_no_accounting(delta: float, tmp_path: Path) -> None:
    words = _office(_run(budget=jaxcd.Budget(1.0, delta)).save(tmp_path / "x"))["budget"]
    assert ("accounting" in words) == (delta > 0) and "before the data was read" in words


def test_a_delta_that_is_too_large_is_told_everywhere(tmp_path: Path) -> None:
    words = "is not below 1 / 200 rows"
    with pytest.warns(jaxcd.errors.PrivacyWarning, match=words):
        run = _run(budget=jaxcd.Budget(1.0, 0.01))
    folder = run.save(tmp_path / "x")
    assert words in _strict(folder / "privacy.json")["warnings"][0]
    assert words in _office(folder)["warnings"]
    data = np.random.default_rng(0).uniform(size=(2, 200))
    with pytest.warns(jaxcd.errors.PrivacyWarning, match=words):
        pair = jaxcd.reci(*data, budget=jaxcd.Budget(1.0, 0.01), bounds=((0, 1), (0, 1)))
    assert words in pair.certificate()["warnings"][0]


def test_a_printed_result_has_its_warnings() -> None:
    """As its page and the command line have: a column beyond what moments see joins others."""
    rows = np.random.default_rng(0).normal(size=(3_000, 3)) * [1, 1, 1e9]
    data = jaxcd.Dataset.from_array(
        rows, domain=jaxcd.Domain({name: jaxcd.Numeric() for name in "xyz"})
    )
    options = {"budget": jaxcd.Budget(2.0, 1e-6), "noise": jaxcd.SimulatedNoise(jax.random.key(0))}
    bought = jaxcd.release(data, jaxcd.SecondMoments(), **options)
    for run in (jaxcd.search(bought), jaxcd.discover(data, linear=True, **options)):
        assert any("many rows are far outside" in words for words in run.info["warnings"])
        for words in run.info["warnings"]:
            assert f"\nWarning: {words}" in str(run)
    quiet = jaxcd.Dataset.from_array(
        rows / [1, 1, 1e9], domain=jaxcd.Domain({name: jaxcd.Numeric(-9, 9) for name in "xyz"})
    )
    assert "Warning" not in str(
        jaxcd.discover(quiet, budget=jaxcd.NO_PRIVACY, key=jax.random.key(0))
    )


def test_what_is_recommended_with_a_warning_is_reported_with_it(tmp_path: Path) -> None:
    data = jaxcd.networks.load("asia").sample(60, key=jax.random.key(0))
    budget = jaxcd.Budget(0.01)
    expected = jaxcd.recommend(data.domain, 60, budget=budget).warning
    assert expected is not None
    run = jaxcd.discover(data, budget=budget, noise=simulated())
    assert run.info["warnings"] == (expected,)
    assert expected in _office(run.save(tmp_path / "x"))["warnings"]


def _runs() -> dict[str, DiscoveryResult]:
    """A run of each kind whose info is of another shape."""
    pc, tree = Algorithm.PC, Algorithm.TREE
    rng = np.random.default_rng(0)
    numeric = measured(rng.normal(size=(200, 3)), -3.0, 3.0)
    return {
        "release": _release_run(),
        "pc": _run(noise=simulated(), algorithm=pc),
        "fci": _run(noise=simulated(), algorithm=Algorithm.FCI),
        "tree": jaxcd.discover(
            numeric, budget=jaxcd.Budget(1.0, 1e-6), noise=simulated(), algorithm=tree
        ),
        "no privacy": _run(budget=jaxcd.NO_PRIVACY, algorithm=pc),
    }


def _release_run() -> DiscoveryResult:
    data = jaxcd.networks.load("earthquake").sample(50_000, key=jax.random.key(0))
    return jaxcd.discover(data, budget=jaxcd.Budget(1.0), noise=simulated(), n_confidence_draws=3)


@pytest.mark.parametrize("kind", ["release", "pc", "fci", "tree", "no privacy"])
def test_a_saved_result_is_read_back_whole(kind: str, tmp_path: Path) -> None:
    run = _runs()[kind]
    found = DiscoveryResult.load(run.save(tmp_path / "x"))
    for name in ("graph", "separating_sets", "cost", "spent", "exhausted", "info", "is_latent"):
        assert getattr(found, name) == getattr(run, name), name
    assert type(found.info["ledger"]) is type(run.info["ledger"])
    assert found.confidence == run.confidence and found == run
    assert found.certificate() == run.certificate()
    # and written again it is the same, on the same day
    for name in FILES:
        first = write_report(found, tmp_path / "y", date="2026-01-31", force=True) / name
        second = write_report(run, tmp_path / "z", date="2026-01-31", force=True) / name
        assert first.read_bytes() == second.read_bytes(), name


def test_what_the_confidence_means_is_read_back(tmp_path: Path) -> None:
    run = _release_run()
    found = DiscoveryResult.load(run.save(tmp_path / "x"))
    assert run.confidence is not None and run.confidence.meaning
    assert found == run and hash(found.confidence) == hash(run.confidence)
    mute = replace(run, confidence=replace(run.confidence, meaning=""))
    assert found != mute
    file = mute.save(tmp_path / "old") / "result.json"
    own = json.loads(file.read_text(encoding="utf-8"))
    del own["confidence"]["meaning"]  # of files from before it was written
    file.write_text(json.dumps(own), encoding="utf-8")
    assert DiscoveryResult.load(tmp_path / "old") == mute


def test_a_result_that_does_not_say_whether_it_is_a_pag_is_read_by_its_search(
    tmp_path: Path,
) -> None:
    for kind in ("pc", "fci"):
        folder = _runs()[kind].save(tmp_path / kind)
        own = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        del own["is_latent"]
        (folder / "result.json").write_text(json.dumps(own), encoding="utf-8")
        assert DiscoveryResult.load(folder).is_latent == (kind == "fci")


def test_the_versions_of_a_result_stay_those_that_made_it(tmp_path: Path) -> None:
    run = replace(_release_run(), made_with={"jaxcd": "0.0.1", "python": "3.1"})
    found = DiscoveryResult.load(run.save(tmp_path / "x"))
    assert found.certificate()["versions"] == {"jaxcd": "0.0.1", "python": "3.1"}


def test_a_folder_that_was_changed_is_refused(tmp_path: Path) -> None:
    refused(DataError, "there is no file", DiscoveryResult.load, tmp_path)
    folder = _release_run().save(tmp_path / "x")
    for name, old, new in (
        ("privacy.json", '"epsilon": 1.0', '"epsilon": 0.1'),
        ("graph.json", "-->", "<--"),
        ("result.json", '"proven": false', '"proven": true'),
    ):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))
        refused(FormatError, "contradict each other", DiscoveryResult.load, folder)
        (folder / name).write_text(text)
    whole = (folder / "result.json").read_text()
    for old in ('"epsilon": 1.0', '"n_samples": 500'):
        assert old in whole
        many = f"{old.partition(':')[0]}: {10**400}"  # no float holds it
        (folder / "result.json").write_text(whole.replace(old, many, 1))
        refused(FormatError, "is damaged", DiscoveryResult.load, folder)
    (folder / "result.json").write_text("{}")
    refused(FormatError, "is damaged", DiscoveryResult.load, folder)
    (folder / "result.json").write_text("{")
    refused(FormatError, "not valid JSON", DiscoveryResult.load, folder)
    (folder / "result.json").write_text('{"info": {}, "info": {}}')
    refused(FormatError, "'info' is given twice", DiscoveryResult.load, folder)


def test_lines_of_less_probable_edges_are_broken() -> None:
    names = ["a", "b", "c", "d"]
    graph = MixedGraph.from_edges(names, ["a --> b", "b --> c", "c --- d"])
    strengths = _strengths({(0, 1): 0.9, (1, 2): 0.5, (2, 3): 0.49}, 4)
    lines = graph_figure(graph, strengths=strengths).axes[0].lines
    order = [(edge.a, edge.b) for edge in graph.edges()]
    patterns = {pair: line._dash_pattern[1] for pair, line in zip(order, lines, strict=True)}
    assert patterns["a", "b"] is None
    assert None not in (patterns["b", "c"], patterns["c", "d"])
    assert patterns["b", "c"] != patterns["c", "d"]


def test_a_wide_graph_is_shown_as_a_matrix_too(tmp_path: Path) -> None:
    dag = random_dag(60, expected_degree=2, seed=1)
    names = [str(name) for name in dag]
    graph = MixedGraph.from_edges(names, [f"{a} --> {b}" for a, b in dag.edges])
    text = (
        write_report(_stub(names[:3], graph=graph, separating_sets={}), tmp_path / "x")
        / "report.html"
    ).read_text()
    (matrix,) = re.findall(r'<svg class="matrix".*?</svg>', text, re.DOTALL)
    shown = {unescape(words) for words in re.findall(r"<title>(.*?)</title>", matrix)}
    for a, b in dag.edges:
        assert {f"{a} --> {b}", f"{b} <-- {a}"} <= shown
    assert len(shown) == 60 + 2 * dag.number_of_edges()
    # at the crossing of row and column: row a, column b
    at = {
        name: float(y) for y, name in re.findall(r'y="([\d.]+)" text-anchor="end">([^<]*)<', matrix)
    }
    for x, y, words in re.findall(
        r'<text x="(\d+)" y="(\d+)" text-anchor="middle">[^<]*<title>(.*?)</title>', matrix
    ):
        first, _, second = unescape(words).split(" ")
        assert (float(y), float(x) + 4) == (at[first], at[second])
    assert (
        '<svg class="matrix"'
        not in (write_report(_stub(["a", "b", "c"]), tmp_path / "y") / "report.html").read_text()
    )


def test_given_edges_are_not_called_found(tmp_path: Path) -> None:
    """Four independent columns, a required edge, and a column that a condition sets."""
    rng = np.random.default_rng(2)
    domain = jaxcd.Domain(
        {name: jaxcd.Categorical((0, 1)) for name in "abcd"}, interventions={"a": {1: ("b",)}}
    )
    data = jaxcd.Dataset.from_codes(rng.integers(0, 2, (5_000, 4)), domain=domain)
    known = jaxcd.Knowledge(required=[("c", "d")])
    run = jaxcd.discover(
        data,
        budget=jaxcd.Budget(8.0),
        key=None,
        noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        knowledge=known,
        n_confidence_draws=2,
    )
    assert {(edge.a, edge.b) for edge in run.graph.edges()} == {("a", "b"), ("c", "d")}
    run.save(tmp_path / "report")
    text = (tmp_path / "report" / "report.html").read_text()
    assert "0 pairs of columns were found" in text and "2 edges were not found but given" in text
    assert "there is no edge to be sure of" in text and text.count("(given)") == 2
    # what was known as a file of it has it
    assert json.dumps(run.info["knowledge"], ensure_ascii=False) in unescape(text)


@pytest.mark.parametrize("search", [jaxcd.pc, jaxcd.fci])
def test_searches_by_tests_say_what_they_were_told(search: Any) -> None:
    data = jaxcd.networks.load("asia").sample(500, key=jax.random.key(0))
    known = jaxcd.Knowledge(required=[("asia", "tub")])
    options = {"test": jaxcd.ChiSquare(), "decider": jaxcd.Threshold(0.05)}
    run = search(data, **options, budget=jaxcd.NO_PRIVACY, knowledge=known)
    assert run.info["knowledge"] == known.to_json_dict()


@given(st.lists(st.text("ab \x00", min_size=1, max_size=40), unique=True, max_size=6))
def test_short_labels_are_short_and_tell_names_apart(names: list[str]) -> None:
    names = [f"a question of the survey {name} and so on, as before" for name in names]
    labels = short_labels(names, longest=20)
    assert len(set(labels)) == len(names) and all(1 <= len(label) <= 20 for label in labels)
    assert all(label.isprintable() for label in labels)
    assert short_labels(["age", "sex"], longest=20) == ["age", "sex"]
