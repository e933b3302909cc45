"""Bayesian networks: the BIF reader, the built-in tables, and sampling against exact
probabilities.
"""

from __future__ import annotations

import gzip
import itertools
import pickle
from pathlib import Path
from typing import Any

import jax
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jaxcd.data import BayesianNetwork, Categorical, Domain, Numeric, Ordinal, networks
from jaxcd.data.bif import parse_bif
from jaxcd.data.networks import _inverse_cdf
from jaxcd.errors import DataError, DomainError, FormatError, GraphError, OptionError
from tests.helpers import refused

BUILTIN = ("cancer", "earthquake", "asia", "survey")

# nodes, edges, free parameters, largest in-degree: from the table that comes with the files
FILES = {
    "cancer": (5, 4, 10, 2),
    "earthquake": (5, 4, 10, 2),
    "asia": (8, 8, 18, 2),
    "survey": (6, 6, 21, 2),
    "sachs": (11, 17, 178, 3),
    "child": (20, 25, 230, 2),
    "alarm": (37, 46, 509, 4),
}


def joint(network: BayesianNetwork) -> np.ndarray:
    """The joint distribution by brute force: the product of the tables at every configuration."""
    position = {name: j for j, name in enumerate(network.names)}
    shape = [network.cpts[name].shape[-1] for name in network.names]
    result = np.ones(shape)
    for place in itertools.product(*map(range, shape)):
        for node in network.names:
            row = tuple(place[position[name]] for name in (*network.parents[node], node))
            result[place] *= network.cpts[node][row]
    return result


# The built-in networks
# --------------------------------------------------------------------------------------------------


def test_available_and_load() -> None:
    assert networks.available() == BUILTIN
    for name in BUILTIN:
        network = networks.load(name.upper())
        n_nodes, n_edges, n_parameters, _ = FILES[name]
        assert network.name == name
        assert len(network.names) == n_nodes
        assert network.dag.number_of_edges() == n_edges
        assert network.n_parameters == n_parameters
        assert network.domain.declared and network.domain.is_discrete
        assert list(network.dag) == list(network.names)
        assert network.dag.name == name
    wrong_names: tuple[Any, ...] = ("alarm", "", None, ["asia"])
    for wrong in wrong_names:
        refused(OptionError, "cancer, earthquake, asia, survey", networks.load, wrong)


@pytest.mark.parametrize("name", BUILTIN)
def test_built_in_tables_equal_the_files(name: str, data_folder: Path) -> None:
    ours, theirs = networks.load(name), networks.read_bif(data_folder / "networks" / f"{name}.bif")
    assert ours.domain == theirs.domain
    assert ours.parents == theirs.parents
    assert ours.name == theirs.name
    for node in ours.names:
        np.testing.assert_allclose(ours.cpts[node], theirs.cpts[node], rtol=1e-14)


def test_asia_probabilities_that_can_be_worked_out_by_hand() -> None:
    table = joint(networks.load("asia"))
    assert table.sum() == pytest.approx(1)
    tub = 0.01 * 0.05 + 0.99 * 0.01
    lung = 0.5 * 0.1 + 0.5 * 0.01
    either = 1 - (1 - tub) * (1 - lung)
    assert table[:, 0].sum() == pytest.approx(tub)
    assert np.moveaxis(table, 6, 0)[0].sum() == pytest.approx(either * 0.98 + (1 - either) * 0.05)


def test_earthquake_posterior() -> None:
    # P(burglary | both call), by the sum over what is not seen
    table = joint(networks.load("earthquake"))
    alarm = 0.02 * 0.95 + 0.98 * 0.94, 0.02 * 0.29 + 0.98 * 0.001
    calls = [0.9 * 0.7 * p + 0.05 * 0.01 * (1 - p) for p in alarm]
    assert table[0, :, :, 0, 0].sum() == pytest.approx(0.01 * calls[0])
    assert table[1, :, :, 0, 0].sum() == pytest.approx(0.99 * calls[1])


def test_cpdag_of_cancer() -> None:
    graph = networks.load("cancer").cpdag()  # the collider at Cancer directs every edge
    edges = {
        ("Pollution", "Cancer"),
        ("Smoker", "Cancer"),
        ("Cancer", "Xray"),
        ("Cancer", "Dyspnoea"),
    }
    position = {name: j for j, name in enumerate(graph.names)}
    for a, b in itertools.permutations(graph.names, 2):
        mark = 2 if (a, b) in edges else 3 if (b, a) in edges else 0
        assert graph.marks[position[a], position[b]] == mark


# Sampling
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILTIN)
def test_samples_follow_the_joint_distribution(name: str) -> None:
    network, n = networks.load(name), 20_000
    data = network.sample(n, key=jax.random.key(0))
    exact = joint(network)
    counts = np.zeros(exact.shape)
    np.add.at(counts, tuple(data.codes.T), 1)
    assert counts[exact == 0].sum() == 0  # what is impossible never happens
    expected = n * exact.ravel()
    frequent = expected >= 5
    observed = np.append(counts.ravel()[frequent], counts.ravel()[~frequent].sum())
    expected = np.append(expected[frequent], expected[~frequent].sum())
    _, pvalue = stats.chisquare(observed, expected)
    assert pvalue > 1e-4
    for j in range(len(network.names)):  # every marginal within 5 standard deviations
        axes = tuple(k for k in range(exact.ndim) if k != j)
        marginal = exact.sum(axis=axes)
        deviation = counts.sum(axis=axes) / n - marginal
        assert np.all(np.abs(deviation) <= 5 * np.sqrt(marginal * (1 - marginal) / n))


def test_samples_of_a_large_file_follow_their_tables(data_folder: Path) -> None:
    network, n = networks.read_bif(data_folder / "networks" / "alarm.bif"), 20_000
    data = network.sample(n, key=jax.random.key(5))
    statistic, freedom = 0.0, 0
    for node in network.names:
        table = network.cpts[node]
        counts = np.zeros(table.shape)
        np.add.at(counts, tuple(data.column(name) for name in (*network.parents[node], node)), 1)
        expected = counts.sum(axis=-1, keepdims=True) * table
        assert counts[table == 0].sum() == 0
        for row, right in zip(
            counts.reshape(-1, table.shape[-1]), expected.reshape(-1, table.shape[-1]), strict=True
        ):
            if right.min() >= 5:
                statistic += float(((row - right) ** 2 / right).sum())
                freedom += len(row) - 1
    assert freedom > 100
    assert 1e-4 < stats.chi2.sf(statistic, freedom) < 1 - 1e-4


def test_a_sample_depends_on_its_key_and_nothing_else() -> None:
    network = networks.load("survey")
    first = network.sample(500, key=jax.random.key(3))
    assert np.array_equal(
        first.codes, networks.load("survey").sample(500, key=jax.random.key(3)).codes
    )
    assert not np.array_equal(first.codes, network.sample(500, key=jax.random.key(4)).codes)
    with jax.enable_x64(True):
        assert np.array_equal(first.codes, network.sample(500, key=jax.random.key(3)).codes)
    assert first.domain == network.domain
    assert first.codes.dtype == np.int32 and first.codes.flags.f_contiguous
    assert not first.codes.flags.writeable


@pytest.mark.parametrize("n", [0, -5, 2.0, float("nan"), True, None])
def test_sample_sizes_that_are_refused(n: Any) -> None:
    refused(OptionError, "n must be", networks.load("asia").sample, n, key=jax.random.key(0))


def test_keys_that_are_refused() -> None:
    for key in (0, None, jax.random.PRNGKey(0), jax.random.split(jax.random.key(0), 2)):
        refused(OptionError, "typed key", networks.load("asia").sample, 10, key=key)


@given(
    rows=st.lists(
        st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any), min_size=1, max_size=4
    ),
    uniform=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=10),
)
def test_inverse_distribution_function(rows: list[list[int]], uniform: list[float]) -> None:
    cpt = np.array(rows, dtype=float)
    cpt /= cpt.sum(axis=1, keepdims=True)
    for r in range(len(rows)):
        codes = _inverse_cdf(cpt, np.full(len(uniform), r), np.array(uniform))
        for u, k in zip(uniform, codes, strict=True):
            assert cpt[r, k] > 0
            assert cpt[r, :k].sum() - 1e-12 <= u < cpt[r, : k + 1].sum() + 1e-12


# Networks made by hand
# --------------------------------------------------------------------------------------------------

BINARY = Domain({"a": Categorical((0, 1)), "b": Categorical((0, 1))})
ROOT, CHILD = [0.5, 0.5], [[0.1, 0.9], [0.2, 0.8]]


def test_a_network_made_by_hand_is_frozen_and_can_be_pickled() -> None:
    network = BayesianNetwork("mine", BINARY, {"a": (), "b": ("a",)}, {"a": ROOT, "b": CHILD})  # type: ignore[dict-item]
    assert set(network.dag.edges) == {("a", "b")}
    assert network.n_parameters == 3
    assert repr(network) == "BayesianNetwork('mine'; 2 nodes, 1 edge, 3 parameters)"
    with pytest.raises(ValueError, match="read-only"):
        network.cpts["a"][0] = 1
    network.dag.remove_edge("a", "b")  # a copy
    assert network.dag.number_of_edges() == 1
    again = pickle.loads(pickle.dumps(network))
    assert np.array_equal(
        again.sample(9, key=jax.random.key(0)).codes, network.sample(9, key=jax.random.key(0)).codes
    )


@pytest.mark.parametrize(
    ("domain", "parents", "cpts", "error", "part"),
    [
        (
            BINARY,
            {"a": ("b",), "b": ("a",)},
            {"a": CHILD, "b": CHILD},
            GraphError,
            "cycle through 'a' -> 'b'",
        ),
        (BINARY, {"a": ("a",), "b": ()}, {"a": CHILD, "b": ROOT}, GraphError, "cycle"),
        (BINARY, {"a": (), "b": ("c",)}, {"a": ROOT, "b": CHILD}, GraphError, "unknown parent 'c'"),
        (BINARY, {"a": (), "b": ("a", "a")}, {"a": ROOT, "b": CHILD}, GraphError, "twice"),
        (BINARY, {"a": ()}, {"a": ROOT, "b": ROOT}, GraphError, "parents must have one entry.*'b'"),
        (BINARY, {"a": (), "b": ()}, {"a": ROOT}, GraphError, "cpts must have one entry.*'b'"),
        (BINARY, {"a": (), "b": ("a",)}, {"a": ROOT, "b": ROOT}, DomainError, "shape"),
        (BINARY, {"a": (), "b": ()}, {"a": ROOT, "b": [0.5, 0.4]}, DomainError, "'b'.*sum to 1"),
        (
            BINARY,
            {"a": (), "b": ()},
            {"a": ROOT, "b": [-0.5, 1.5]},
            DomainError,
            "'b'.*non-negative",
        ),
        (BINARY, {"a": (), "b": ()}, {"a": ROOT, "b": [np.nan, 1]}, DomainError, "'b'.*sum to 1"),
        (
            Domain({"a": Ordinal((0, 1)), "b": Numeric()}),
            {"a": (), "b": ()},
            {"a": ROOT, "b": ROOT},
            DomainError,
            "'a' is ordinal",
        ),
    ],
)
def test_networks_that_are_refused(
    domain: Any, parents: Any, cpts: Any, error: type[Exception], part: str
) -> None:
    refused(error, part, BayesianNetwork, "wrong", domain, parents, cpts)


# The BIF reader
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(FILES))
def test_every_file_is_read_exactly(name: str, data_folder: Path) -> None:
    network = networks.read_bif(data_folder / "networks" / f"{name}.bif")
    n_nodes, n_edges, n_parameters, in_degree = FILES[name]
    dag = network.dag
    assert (dag.number_of_nodes(), dag.number_of_edges(), network.n_parameters) == (
        n_nodes,
        n_edges,
        n_parameters,
    )
    assert max(degree for _, degree in dag.in_degree()) == in_degree
    assert nx.is_directed_acyclic_graph(dag)
    assert network.name == name
    for node in network.names:
        assert set(dag.predecessors(node)) == set(network.parents[node])
        np.testing.assert_allclose(network.cpts[node].sum(axis=-1), 1, rtol=1e-15)
        assert network.cpts[node].shape == tuple(
            network.domain[parent].cardinality for parent in (*network.parents[node], node)
        )


def test_known_entries_of_files(data_folder: Path) -> None:
    sachs = networks.read_bif(data_folder / "networks" / "sachs.bif")
    assert sachs.parents["Akt"] == ("Erk", "PKA")
    row = np.array([7.682262e-05, 1.183068e-01, 8.816163e-01])  # Erk = HIGH, PKA = LOW
    np.testing.assert_allclose(sachs.cpts["Akt"][2, 0], row / row.sum(), rtol=1e-14)
    edges = (data_folder / "sachs" / "sachs_edges_17_bnlearn.csv").read_text().split()[1:]
    assert set(sachs.dag.edges) == {tuple(edge.split(",")) for edge in edges}
    child = networks.read_bif(data_folder / "networks" / "child.bif")
    assert child.domain["LowerBodyO2"] == Categorical(("<5", "5-12", "12+"))
    assert child.domain["CO2Report"] == Categorical(("<7.5", ">=7.5"))
    assert child.domain["ChestXray"].levels[-1] == "Asy/Patch"  # type: ignore[union-attr]


EVERYTHING = """// a comment
network "two words" { property author "A. B; C"; property url http://example.org ; }
/* a comment
   of two lines */
variable a { type discrete [ 2 ] { "x, y", z//w }; property position = (1, 2) ; }
variable "b c" {
  property first ;
  type discrete[3]{ 0 1 2 };  // commas may be left out
}
variable d { type discrete [ 2 ] { yes, no }; }
probability ( a ) { table 0.25, 0.75; }
probability ( "b c" | a ) { property p ; table 0.1 0.2 0.3 0.3 0.6 0.5; }
probability ( d, a, "b c" ) {
  default 0.5, 0.5;
  ( "x, y", 2 ) 1e-1, 9E-1;
  ( z//w 0 ) 1, 0;
}
"""


def test_the_whole_language() -> None:
    parsed = parse_bif(EVERYTHING)
    assert parsed.name == "two words"
    assert parsed.levels == {"a": ("x, y", "z//w"), "b c": ("0", "1", "2"), "d": ("yes", "no")}
    assert parsed.parents == {"a": (), "b c": ("a",), "d": ("a", "b c")}
    np.testing.assert_allclose(parsed.cpts["b c"], [[0.1, 0.3, 0.6], [0.2, 0.3, 0.5]])
    expected = np.full((2, 3, 2), 0.5)
    expected[0, 2], expected[1, 0] = (0.1, 0.9), (1, 0)
    np.testing.assert_allclose(parsed.cpts["d"], expected)


HEAD = (
    "network n { }\nvariable a { type discrete [ 2 ] { x, y }; }\nvariable b { type discrete "
    "[ 2 ] { x, y }; }\n"
)
ROOT_A = "probability ( a ) { table 0.5, 0.5; }\n"


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("", 1, "no variable"),
        ("network n {", 1, "ends in the middle"),
        ("hello", 1, "'hello'"),
        ("network n { }\n/* open", 2, "never closed"),
        ('network n { }\nvariable "a {', 2, "never closed"),
        ("network n { }\nvariable a { type continuous; }", 2, "'continuous'"),
        (
            "network n { }\nvariable a { type discrete [ 3 ] { x, y }; }",
            2,
            "announces 3 levels and lists 2",
        ),
        ("network n { }\nvariable a { type discrete [ 2 ] { x, x }; }", 2, "each once"),
        ("network n { }\nvariable a { type discrete [ 2 ] { x, y } }", 2, "expected ';'"),
        ("network n { }\nvariable a { }", 2, "no type"),
        ("network n { property p }\n", 1, "property must end"),
        (HEAD + "variable a { type discrete [ 2 ] { x, y }; }", 4, "declared twice"),
        (HEAD + ROOT_A, 4, "'b' has no probability block"),
        (HEAD + ROOT_A + ROOT_A, 5, "two probability blocks"),
        (HEAD + "probability ( c ) { table 0.5, 0.5; }", 4, "'c' is not declared"),
        (HEAD + "probability ( a | c ) { table 0.5, 0.5; }", 4, "'c' is not declared"),
        (HEAD + "probability ( a | a ) { table 0.5, 0.5; }", 4, "itself"),
        (HEAD + "probability ( a ) {\n table 0.5, 0.4; }", 5, "'a' for no parents sums to 0.9"),
        (HEAD + "probability ( a ) {\n table 0.5; }", 5, "needs 2 probabilities"),
        (HEAD + "probability ( a ) {\n table 0.5, half; }", 5, "'half'"),
        (HEAD + "probability ( a ) {\n table 0.5, nan; }", 5, "'nan'"),
        (HEAD + "probability ( a ) {\n table 1.5, -0.5; }", 5, "'1.5'"),
        (HEAD + "probability ( a ) {\n row 0.5, 0.5; }", 5, "'row'"),
        (HEAD + "probability ( a ) { table 0.5, 0.5;\n table 0.5, 0.5; }", 5, "keep either"),
        (HEAD + "probability ( a ) { table 0.5, 0.5;\n default 0.5, 0.5; }", 5, "default"),
        (HEAD + "probability ( b | a ) { (x) 0.5, 0.5; }", 4, "'b' has no row for a = y"),
        (
            HEAD + "probability ( b | a ) { (x) 0.5, 0.5;\n (x) 0.5, 0.5; }",
            5,
            "second row for a = x",
        ),
        (
            HEAD + "probability ( b | a ) { (x) 0.5, 0.5;\n (z) 0.5, 0.5; }",
            5,
            "'z' is not a level of 'a'",
        ),
        (HEAD + "probability ( b | a ) { (x) 0.5, 0.5;\n (x, y) 0.5, 0.5; }", 5, "1 parent,"),
        (
            HEAD + "probability ( b | a ) { (x) 0.5, 0.5;\n (y) 0.5, 0.50001; }",
            5,
            "'b' for a = y sums to 1.00001",
        ),
        (HEAD + "probability ( b | a ) { (x) 0.5, 0.5; (y) 0.5, 0.5", 4, "ends in the middle"),
    ],
)
def test_broken_files_name_the_line(tmp_path: Path, text: str, line: int, part: str) -> None:
    path = tmp_path / "broken.bif"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        networks.read_bif(path)
    assert "broken.bif" in str(caught.value)
    assert f"line {line}:" in str(caught.value)
    assert part in str(caught.value)


def test_rows_within_the_tolerance_are_renormalised() -> None:
    tables = "probability ( a ) { table 0.3333333, 0.6666663; }\nprobability ( b ) { table 0, 1; }"
    parsed = parse_bif(HEAD + tables)
    np.testing.assert_allclose(
        parsed.cpts["a"], np.array([0.3333333, 0.6666663]) / 0.9999996, rtol=1e-15
    )


def test_cycles_missing_files_and_packed_files(tmp_path: Path) -> None:
    path = tmp_path / "loop.bif"
    path.write_text(
        HEAD + "probability ( a | b ) { table 1 1 0 0; }\nprobability ( b | a ) { table 1 1 0 0; }"
    )
    refused(FormatError, "loop.bif.*cycle through 'a' -> 'b'", networks.read_bif, path)
    refused(DataError, "nowhere.bif", networks.read_bif, tmp_path / "nowhere.bif")
    packed = tmp_path / "packed.bif.gz"
    packed.write_bytes(gzip.compress(EVERYTHING.encode()))
    assert networks.read_bif(packed).names == ("a", "b c", "d")
    (tmp_path / "cut.bif.gz").write_bytes(packed.read_bytes()[:-12])
    refused(FormatError, "cut.bif.gz", networks.read_bif, tmp_path / "cut.bif.gz")
