"""Structural models: what is drawn from what, against formulas and partial correlations."""

from __future__ import annotations

import copy
import math
import pickle

import jax
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcd.data import Numeric, networks, structural
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import dag_to_cpdag
from tests.helpers import refused

CONSTRUCTORS = (
    structural.nonlinear_sem,
    structural.linear_gaussian_sem,
    structural.additive_noise_sem,
)
DIAMOND = nx.DiGraph([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])


@st.composite
def dags(draw, max_nodes=7):
    names = draw(
        st.lists(
            st.text("abcxyz_0", min_size=1, max_size=4), min_size=2, max_size=max_nodes, unique=True
        )
    )
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    dag = nx.DiGraph()
    dag.add_nodes_from(draw(st.permutations(names)))
    dag.add_edges_from(pair for pair in pairs if draw(st.booleans()))
    return dag


def reordered(dag: nx.DiGraph, rng: np.random.Generator) -> nx.DiGraph:
    other = nx.DiGraph()
    other.add_nodes_from([list(dag.nodes)[i] for i in rng.permutation(len(dag))])
    edges = list(dag.edges)
    other.add_edges_from(edges[i] for i in rng.permutation(len(edges)))
    return other


def chain(length: int) -> nx.DiGraph:
    return nx.DiGraph([(f"x{i}", f"x{i + 1}") for i in range(length)])


@settings(max_examples=25)
@given(dags(), st.integers(0, 1000), st.sampled_from(CONSTRUCTORS))
def test_samples_are_reproducible_and_do_not_depend_on_the_order_of_nodes(dag, seed, constructor):
    model = constructor(dag, key=jax.random.key(seed))
    data = model.sample(20, key=jax.random.key(seed + 1))
    assert data.names == model.names == tuple(dag.nodes)
    assert data.numeric.shape == (20, len(dag)) and np.isfinite(data.numeric).all()
    assert data.domain.declared and all(data.domain[name] == Numeric() for name in data.names)
    assert set(model.dag.edges) == set(dag.edges) and model.cpdag() == dag_to_cpdag(dag)
    again = constructor(reordered(dag, np.random.default_rng(seed)), key=jax.random.key(seed))
    other = again.sample(20, key=jax.random.key(seed + 1))
    for name in data.names:
        np.testing.assert_array_equal(data.values(name), other.values(name))
        assert again.mechanisms[name] == model.mechanisms[name]


@pytest.mark.parametrize("constructor", CONSTRUCTORS)
def test_keys_matter(constructor):
    model = constructor(DIAMOND, key=jax.random.key(0))
    assert dict(model.mechanisms) != dict(constructor(DIAMOND, key=jax.random.key(1)).mechanisms)
    first, second = (model.sample(50, key=jax.random.key(k)).numeric for k in (0, 1))
    assert not np.any(first == second)


@pytest.mark.parametrize("law", structural.NoiseLaw)
def test_noise_is_independent_across_nodes_and_of_variance_one(law):
    dag = nx.DiGraph()
    dag.add_nodes_from(f"v{i}" for i in range(12))
    n = 20_000
    values = (
        structural.nonlinear_sem(dag, key=jax.random.key(0), law=law)
        .sample(n, key=jax.random.key(1))
        .numeric
    )
    correlation = np.corrcoef(values.T) - np.eye(12)
    assert np.abs(correlation).max() < 5 / math.sqrt(n)
    assert np.abs(values.mean(axis=0)).max() < 5 / math.sqrt(n)
    # the fourth moment is at most 6
    assert np.abs(values.var(axis=0) - 1).max() < 5 * math.sqrt(5 / n)
    kurtosis = (values**4).mean() - 3
    expected = {"gaussian": 0.0, "uniform": -1.2, "laplace": 3.0}[law.value]
    assert kurtosis == pytest.approx(expected, abs=0.25)


@settings(max_examples=15)
@given(dags(max_nodes=6), st.integers(0, 1000))
def test_linear_gaussian_covariance_is_the_formula(dag, seed):
    noise, n = 0.7, 20_000
    model = structural.linear_gaussian_sem(dag, key=jax.random.key(seed), noise=noise)
    names = model.names
    weights = np.zeros((len(names), len(names)))
    for i, node in enumerate(names):
        mechanism = model.mechanisms[node]
        for parent, weight in zip(mechanism.parents, mechanism.weights, strict=True):
            assert 0.5 <= abs(weight) <= 1.5
            weights[i, names.index(parent)] = weight
    inverse = np.linalg.inv(np.eye(len(names)) - weights)
    covariance = noise**2 * inverse @ inverse.T
    values = model.sample(n, key=jax.random.key(seed + 1)).numeric
    error = values.T @ values / n - covariance  # the means are 0
    spread = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / n)
    assert np.abs(error / spread).max() < 5.5


def test_partial_correlations_respect_the_dag():
    """In the diamond a is independent of d given b and c, and b of c given a; neither without
    them.
    """
    n = 50_000
    values = (
        structural.linear_gaussian_sem(DIAMOND, key=jax.random.key(3))
        .sample(n, key=jax.random.key(4))
        .numeric
    )
    names = tuple(DIAMOND.nodes)

    def partial(x, y, given):
        places = [names.index(v) for v in (x, y, *given)]
        precision = np.linalg.inv(np.cov(values[:, places].T))
        return -precision[0, 1] / math.sqrt(precision[0, 0] * precision[1, 1])

    assert abs(partial("a", "d", "bc")) < 5 / math.sqrt(n) and abs(
        partial("b", "c", "a")
    ) < 5 / math.sqrt(n)
    assert abs(partial("b", "c", "")) > 0.1 and abs(partial("b", "c", "ad")) > 0.1
    assert all(abs(partial(x, y, "")) > 0.1 for x, y in DIAMOND.edges)


@pytest.mark.parametrize("function", ["sin", "cos", "tanh", "square", "exp", "identity"])
def test_a_node_is_its_function_plus_noise(function):
    dag = nx.DiGraph([("p", "x"), ("q", "x")])
    model = structural.nonlinear_sem(dag, key=jax.random.key(2), functions=(function,), noise=1e-9)
    data = model.sample(500, key=jax.random.key(3))
    how = model.mechanisms["x"]
    weighted = dict(zip(how.parents, how.weights, strict=True))
    index = np.clip(weighted["p"] * data.values("p") + weighted["q"] * data.values("q"), -7, 7)
    apply = {"square": np.square, "identity": lambda v: v}.get(function) or getattr(np, function)
    np.testing.assert_allclose(data.values("x"), apply(index), atol=1e-7)


def test_functions_are_equally_likely_and_signs_even():
    dag = nx.DiGraph([(f"r{i}", f"s{i}") for i in range(400)])
    model = structural.nonlinear_sem(dag, key=jax.random.key(0))
    children = [model.mechanisms[f"s{i}"] for i in range(400)]
    counts = {
        name: sum(child.function == name for child in children)
        for name in ("sin", "cos", "tanh", "square", "exp")
    }
    assert sum(counts.values()) == 400 and all(abs(count - 80) < 5 * 8 for count in counts.values())
    weights = np.array([child.weights[0] for child in children])
    assert (np.abs(weights) >= 0.5).all() and (np.abs(weights) <= 1.5).all()
    assert abs((weights > 0).mean() - 0.5) < 0.125
    assert abs(np.abs(weights).mean() - 1) < 5 * 0.29 / 20


@pytest.mark.parametrize("function", ["square", "exp"])
def test_long_chains_of_unbounded_functions_stay_finite(function):
    model = structural.nonlinear_sem(
        chain(40), key=jax.random.key(0), functions=(function,), weights=(1.5, 1.5)
    )
    values = model.sample(500, key=jax.random.key(1)).numeric
    assert np.isfinite(values).all() and np.abs(values).max() < 1e6 + 10


def test_additive_noise_functions_are_smooth_of_variance_one():
    dag = nx.DiGraph([("p", f"x{i}") for i in range(200)])
    model = structural.additive_noise_sem(dag, key=jax.random.key(0))
    grid = np.linspace(-1, 1, 5)[:, None]
    functions = np.array([model.mechanisms[f"x{i}"].mean(grid) for i in range(200)])
    covariance = functions.T @ functions / 200
    expected = np.exp(-((grid - grid.T) ** 2) / 2)
    assert np.abs(covariance - expected).max() < 5 * math.sqrt(2 / 200)
    near = model.mechanisms["x0"].mean(grid + 1e-4)
    assert np.abs(near - functions[0]).max() < 1e-2


@pytest.mark.parametrize("constructor", CONSTRUCTORS)
def test_children_depend_on_parents_and_roots_do_not(constructor):
    """With the noise of every other node fixed, only descendants of a node may change with its
    mechanism.
    """
    model = constructor(DIAMOND, key=jax.random.key(5))
    changed = dict(model.mechanisms)
    changed["b"] = structural.SingleIndex(("a",), (3.0,), "identity", 1.0)
    first, second = (
        m.sample(200, key=jax.random.key(6)) for m in (model, structural.StructuralModel(changed))
    )
    same = {name: bool((first.values(name) == second.values(name)).all()) for name in model.names}
    assert same == {"a": True, "b": False, "c": True, "d": False}


def test_a_network_gives_its_structure():
    dag = networks.load("asia").dag
    model = structural.nonlinear_sem(dag, key=jax.random.key(0))
    assert model.names == tuple(dag.nodes) and set(model.dag.edges) == set(dag.edges)
    assert "8 nodes, 8 edges" in repr(model)


def test_models_can_be_copied_and_pickled_and_are_frozen():
    model = structural.nonlinear_sem(
        DIAMOND, key=jax.random.key(0), law=structural.NoiseLaw.UNIFORM
    )
    expected = model.sample(10, key=jax.random.key(1)).numeric
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.sample(10, key=jax.random.key(1)).numeric, expected)
    with pytest.raises(AttributeError):
        model.law = structural.NoiseLaw.GAUSSIAN
    with pytest.raises(TypeError):
        model.mechanisms["a"] = model.mechanisms["b"]
    model.dag.remove_node("a")
    assert "a" in model.names


@pytest.mark.parametrize("constructor", CONSTRUCTORS)
def test_wrong_graphs(constructor):
    key = jax.random.key(0)
    refused(
        GraphError, "cycle", constructor, nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]), key=key
    )
    refused(GraphError, "relabel", constructor, nx.DiGraph([(0, 1)]), key=key)
    refused(GraphError, "DiGraph", constructor, nx.Graph([("a", "b")]), key=key)


def test_wrong_mechanisms():
    root = structural.SingleIndex((), (), "identity", 1.0)
    with pytest.raises(GraphError, match="unknown parent"):
        structural.StructuralModel(
            {"a": structural.SingleIndex(("z",), (1.0,), "sin", 1.0), "b": root}
        )
    with pytest.raises(GraphError, match="twice"):
        structural.StructuralModel(
            {"a": structural.SingleIndex(("b", "b"), (1.0, 1.0), "sin", 1.0), "b": root}
        )
    loop = {
        v: structural.SingleIndex((w,), (1.0,), "sin", 1.0) for v, w in (("a", "b"), ("b", "a"))
    }
    refused(GraphError, "cycle", structural.StructuralModel, loop)


@pytest.mark.parametrize(
    ("constructor", "options"),
    [
        (structural.nonlinear_sem, {"noise": math.nan}),
        (structural.nonlinear_sem, {"functions": ()}),
        (structural.nonlinear_sem, {"functions": ("log",)}),
        (structural.nonlinear_sem, {"functions": "sin"}),
        (structural.nonlinear_sem, {"weights": (0.0, 1.0)}),
        (structural.nonlinear_sem, {"weights": (1.0, math.nan)}),
        (structural.linear_gaussian_sem, {"noise": 0.0}),
        (structural.linear_gaussian_sem, {"weights": (2.0, 1.0)}),
        (structural.additive_noise_sem, {"bandwidth": 0.0}),
        (structural.additive_noise_sem, {"n_waves": 0}),
        (structural.additive_noise_sem, {"n_waves": True}),
        (structural.additive_noise_sem, {"key": 3}),
    ],
)
def test_wrong_options(constructor, options):
    with pytest.raises(OptionError, match=next(iter(options))):
        constructor(DIAMOND, **{"key": jax.random.key(0)} | options)


@pytest.mark.parametrize(
    "wrong", [{"n": 0}, {"n": True}, {"n": 2.0}, {"key": jax.random.split(jax.random.key(0), 2)}]
)
def test_wrong_samples(wrong):
    model = structural.nonlinear_sem(DIAMOND, key=jax.random.key(0))
    with pytest.raises(OptionError, match=next(iter(wrong))):
        model.sample(wrong.get("n", 10), key=wrong.get("key", jax.random.key(0)))
