"""``jaxcd.falsify``: true graphs stand, wrong ones fall, and Holm's rule is Holm's."""

from __future__ import annotations

import itertools
import math
import pickle

import jax
import networkx as nx
import numpy as np
import pandas as pd
import pytest

import jaxcd
from jaxcd.effects.falsifying import _conditions, _holm
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import DSeparation, MixedGraph, random_dag
from tests.helpers import designed

ASIA = jaxcd.networks.load("asia")


def bought(network=ASIA, n: int = 20_000, seed: int = 0, epsilon: float = 1.0):
    return jaxcd.release(
        network.sample(n, key=jax.random.key(seed)),
        jaxcd.Histogram(),
        budget=jaxcd.Budget(epsilon),
        noise=jaxcd.SimulatedNoise(jax.random.key(seed + 100)),
    )


def test_conditions_are_implied_and_complete() -> None:
    """Every condition holds by d-separation; the first ones are the local Markov conditions, which
    imply all others.
    """
    for seed in range(20):
        dag = MixedGraph.from_dag(random_dag(6, expected_degree=2.5, seed=seed))
        found = _conditions(dag, range(6))
        separation = DSeparation(dag)
        pairs = {frozenset(pair) for pair in found}
        apart = [
            frozenset(pair)
            for pair in itertools.combinations(range(6), 2)
            if not dag.adjacency[tuple(pair)]
        ]
        assert pairs == set(apart)
        for (v, w), sets in found.items():
            assert sets[0] == tuple(np.flatnonzero(dag.directed[:, v]).tolist())
            assert all(separation.separated(v, w, given) for given in sets)
            assert v not in separation.ancestors(w)


def test_holm() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.uniform(0, 0.2, rng.integers(0, 8))
        order, fails = np.argsort(p), np.zeros(len(p), dtype=bool)
        for k, place in enumerate(order):
            if p[place] > 0.05 / (len(p) - k):
                break
            fails[place] = True
        assert _holm(np.log(p).tolist(), 0.05) == fails.tolist()


def test_true_graphs_stand_and_wrong_ones_fall() -> None:
    rejected, fallen, runs = 0, 0, 20
    arcs = list(ASIA.dag.edges)
    for seed in range(runs):
        release = bought(seed=seed)
        found = jaxcd.falsify(release, ASIA.dag, n_permutations=0)
        rejected += found.falsified
        assert found.falsified == (found.pvalue <= 0.05) and math.isnan(found.chance_pvalue)
        assert found.n_tested == found.n_implied == 28 - len(arcs)
        wrong = ASIA.dag.copy()
        wrong.remove_edge("smoke", "bronc")
        fallen += jaxcd.falsify(release, wrong, n_permutations=0).falsified
    assert rejected <= 4 and fallen == runs  # four: a chance of .003 at a level of .05


@pytest.mark.parametrize("epsilon", [6.0, 20.0, None])
def test_true_graphs_stand_in_sparse_tables_of_little_noise(epsilon: float | None) -> None:
    """64 uneven strata of 1,000 rows: G rejects true independences there by the dozen."""
    budget = jaxcd.NO_PRIVACY if epsilon is None else jaxcd.Budget(epsilon)
    names = {"z": 8, "w": 8, "a": 3, "c": 3}
    domain = jaxcd.Domain({name: jaxcd.Categorical(range(k)) for name, k in names.items()})
    true = nx.DiGraph([("z", "a"), ("z", "c"), ("w", "a"), ("w", "c")])
    rejected, runs = 0, 20
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        z, w = (rng.choice(8, 1_000, p=rng.dirichlet(np.ones(8))) for _ in "zw")
        rows = [z, w]
        for _ in "ac":
            law = rng.dirichlet(np.full(3, 3.0), size=(8, 8)).cumsum(axis=2)[z, w, :2]
            rows.append((law < rng.random((1_000, 1))).sum(axis=1))
        data = jaxcd.Dataset.from_array(np.stack(rows, axis=1), domain=domain)
        noise = None if epsilon is None else jaxcd.SimulatedNoise(jax.random.key(seed))
        release = jaxcd.release(data, jaxcd.Histogram(), budget=budget, noise=noise)
        rejected += jaxcd.falsify(release, true, n_permutations=0).falsified
    assert rejected <= 4  # as above; by G it is 5, 10 and 10


def test_violations_name_what_fails() -> None:
    release = bought()
    wrong = ASIA.dag.copy()
    wrong.remove_edge("smoke", "bronc")
    found = jaxcd.falsify(release, wrong)
    worst = found.violations[0]
    assert {worst.x, worst.y} == {"smoke", "bronc"} and worst.pvalue < 1e-6
    assert [one.pvalue for one in found.violations] == sorted(o.pvalue for o in found.violations)
    assert "does not fit" in found.sentence


def test_chance() -> None:
    release = bought()
    true = jaxcd.falsify(release, ASIA.dag, n_permutations=50)
    assert true.chance_pvalue == pytest.approx(1 / 51) and true.same_class < 0.1
    names = list(ASIA.names)
    turned = nx.relabel_nodes(ASIA.dag, dict(zip(names, [*names[3:], *names[:3]], strict=True)))
    other = jaxcd.falsify(release, turned, n_permutations=50)
    assert other.chance_pvalue > 0.1 and other.falsified
    assert jaxcd.falsify(release, turned, n_permutations=50) == other


def test_equal_is_what_says_the_same_without_permutations_too() -> None:
    found = jaxcd.falsify(bought(), graph=ASIA.dag, n_permutations=0)
    assert math.isnan(found.chance_pvalue)
    same = pickle.loads(pickle.dumps(found))
    assert same == found and hash(same) == hash(found)


def test_cpdag_is_tested_as_its_members() -> None:
    release = bought()
    assert jaxcd.falsify(release, ASIA.cpdag()).pvalue == pytest.approx(
        jaxcd.falsify(release, jaxcd.graphs.consistent_extension(ASIA.cpdag())).pvalue
    )


def test_hidden_nodes_and_nothing_to_test() -> None:
    release = bought()
    complete = MixedGraph.from_arcs(ASIA.names, np.triu(np.ones((8, 8), dtype=bool), 1))
    found = jaxcd.falsify(release, complete)
    assert (found.n_tested, found.pvalue, found.violations) == (0, 1.0, ())
    assert "Nothing" in found.sentence
    hidden = nx.DiGraph([("hidden", "smoke"), ("hidden", "tub")])
    assert jaxcd.falsify(release, hidden).n_implied == 0  # only the hidden node separates them


def test_the_share_of_the_class_is_unknown_with_hidden_nodes() -> None:
    """A permutation of the names that are there says nothing of the hidden ones; 0 was told."""
    every = nx.DiGraph([("hidden", name) for name in ("smoke", "tub")])
    every.add_nodes_from(["asia", "xray"])
    found = jaxcd.falsify(bought(), every, n_permutations=10)
    assert found.n_implied == 5 and math.isnan(found.same_class)


def test_second_moments_and_marginals() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 3))
    x[:, 1] += x[:, 0]
    x[:, 2] += x[:, 1]
    domain = jaxcd.Domain({name: jaxcd.Numeric(-12, 12) for name in "abc"})
    data = jaxcd.Dataset.from_array(np.clip(x, -12, 12), names=list("abc"), domain=domain)
    noise = jaxcd.SimulatedNoise(jax.random.key(1))
    budget = jaxcd.Budget(1.0, 1e-6)
    release = jaxcd.release(data, jaxcd.SecondMoments(), budget=budget, noise=noise)
    assert not jaxcd.falsify(release, nx.DiGraph([("a", "b"), ("b", "c")])).falsified
    assert jaxcd.falsify(release, nx.DiGraph([("a", "b"), ("c", "b")])).falsified
    rows = ASIA.sample(20_000, key=jax.random.key(0))
    tables = jaxcd.release(rows, jaxcd.Marginals(), budget=budget, noise=noise)
    found = jaxcd.falsify(tables, ASIA.dag)
    assert 0 < found.n_tested <= found.n_implied


def test_refusals() -> None:
    release = bought(n=500)
    with pytest.raises(OptionError, match="no release"):
        jaxcd.falsify(ASIA, ASIA.dag)
    with pytest.raises(OptionError, match="alpha"):
        jaxcd.falsify(release, ASIA.dag, alpha=0)
    with pytest.raises(GraphError, match="DAG or a CPDAG"):
        jaxcd.falsify(release, MixedGraph.from_edges(["smoke", "tub"], ["smoke <-> tub"]))
    with pytest.raises(GraphError, match="fewer than two"):
        jaxcd.falsify(release, nx.DiGraph([("u", "v")]))


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals()], ids=["hist", "marg"])
def test_how_contexts_depend_on_each_other_is_no_condition(kind) -> None:
    """arm -> x -> y <- site, with 85 % of a site's rows of one arm, by design."""
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    data = designed(20_000, 0)
    bought = jaxcd.release(data, kind, budget=jaxcd.Budget(1.0, 1e-6), noise=noise)
    graph = MixedGraph.from_edges(data.names, ["arm --> x", "site --> y", "x --> y"])
    found = jaxcd.falsify(bought, graph)
    assert found.violations == () and found.n_implied == 2  # site and x, arm and y
    wrong = MixedGraph.from_edges(data.names, ["arm --> x", "site --> y"])
    fails = {(v.x, v.y) for v in jaxcd.falsify(bought, wrong).violations}
    assert fails == {("y", "x"), ("y", "arm")}


@pytest.mark.parametrize("how", ["bins", "level"])
def test_what_a_cell_does_not_tell_is_not_held_fixed(how: str) -> None:
    """b separates a from c; its bins do not, nor do its missing cells read as a level."""
    rng, n = np.random.default_rng(0), 5_000
    if how == "bins":
        columns = dict.fromkeys("abc", jaxcd.Numeric(-8, 8))
        a = rng.normal(size=n)
        b = a + rng.normal(size=n)
        c = b + rng.normal(size=n)
        kind: jaxcd.releases.ReleaseKind = jaxcd.Discretised()
    else:
        columns = dict.fromkeys("abc", jaxcd.Categorical((0, 1), missing=("NA",)))
        a = rng.integers(0, 2, n)
        b = np.where(rng.random(n) < 0.8, a, 1 - a)
        c = np.where(rng.random(n) < 0.8, b, 1 - b)
        kind = jaxcd.Histogram()
    frame = pd.DataFrame({"a": a, "b": b, "c": c}).astype(object)
    if how == "level":
        frame.loc[rng.random(n) < 0.3, "b"] = None
    data = jaxcd.Dataset.from_frame(frame, domain=jaxcd.Domain(columns))
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    bought = jaxcd.release(data, kind, budget=jaxcd.Budget(2.0, 1e-6), noise=noise)
    chain = MixedGraph.from_edges(list("abc"), ["a --> b", "b --> c"])
    found = jaxcd.falsify(bought, chain, missing="level")
    assert (found.n_tested, found.n_implied) == (0, 1) and not found.falsified
    collider = MixedGraph.from_edges(list("abc"), ["a --> b", "c --> b"])
    assert jaxcd.falsify(bought, collider, missing="level").falsified
    if how == "level":
        found = jaxcd.falsify(bought, chain)
        assert (found.n_tested, found.n_implied) == (1, 1) and not found.falsified


def test_missing_numbers_that_are_left_out_do_not_make_a_column_coarse() -> None:
    rng, n = np.random.default_rng(0), 4_000
    a = rng.normal(size=n)
    b = a + rng.normal(size=n)
    frame = pd.DataFrame({"a": a, "b": b, "c": b + rng.normal(size=n)}).astype(object)
    frame.loc[rng.random(n) < 0.2, "b"] = None
    domain = jaxcd.Domain(dict.fromkeys("abc", jaxcd.Numeric(-8, 8, missing=("NA",))))
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    bought = jaxcd.release(data, jaxcd.Features(), budget=jaxcd.NO_PRIVACY)
    chain = MixedGraph.from_edges(list("abc"), ["a --> b", "b --> c"])
    assert bought.coarse == () and jaxcd.falsify(bought, chain).n_tested == 1
    assert bought.reading("level").coarse == ("a", "b", "c")


def test_permutations_of_which_nothing_can_be_tested_say_nothing() -> None:
    """a and b may be missing, so only c is held fixed: every testable graph is the graph itself."""
    unknown = jaxcd.Categorical((0, 1), missing=("NA",))
    domain = jaxcd.Domain({"a": unknown, "b": unknown, "c": jaxcd.Categorical((0, 1))})
    rng = np.random.default_rng(0)
    c = rng.integers(0, 2, 2_000)
    frame = pd.DataFrame(
        {name: np.where(rng.random(2_000) < 0.8, c, 1 - c) for name in "ab"} | {"c": c}
    )
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    chain = MixedGraph.from_edges(list("acb"), ["a --> c", "c --> b"])
    found = jaxcd.falsify(bought, chain, missing="level", n_permutations=30)
    assert found.n_tested == 1 and not found.falsified
    assert 0 < found.n_permutations < 30 and found.chance_pvalue == 1
    assert "not fit better" in found.sentence
    nothing = MixedGraph.from_edges(list("acb"), ["c --> a", "a --> b"])
    found = jaxcd.falsify(bought, nothing, missing="level", n_permutations=30)
    assert (found.n_tested, found.n_permutations) == (0, 0) and math.isnan(found.chance_pvalue)
