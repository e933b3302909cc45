"""Greedy equivalence search: its moves against all DAGs on four nodes, its results against the
exact search and the truth.
"""

from __future__ import annotations

import functools
import itertools
import math

import jax
import networkx as nx
import numpy as np
import pytest

import jaxcd
from jaxcd.discovery.score.ges import ges, greedy_equivalence_search
from jaxcd.discovery.score.ges_operators import (
    ClassGraph,
    MoveKind,
    apply_move,
    arc_scores,
    bits,
    class_graph,
    is_open,
    moves_into,
    one_member,
)
from jaxcd.discovery.score.scored import exact_search
from jaxcd.errors import DomainError, OptionError, PrivacyError
from jaxcd.graphs import MixedGraph, dag_to_cpdag
from jaxcd.releases import MeasurementErrorScore
from jaxcd.scores import BIC, BDeu, BDeuScore, BICScore
from tests.brute_force import DrawnScore, all_dags
from tests.helpers import numbers, refused, simulated

NONE = jaxcd.NO_PRIVACY
Parents = tuple[int, ...]


FOUR: list[Parents] = [tuple(((1 << np.arange(4)) @ dag).tolist()) for dag in all_dags(4)]
CLASS_OF = {dag: class_graph(dag) for dag in FOUR}


def changed(dag: Parents, kind: MoveKind) -> set[Parents]:
    """All DAGs that differ in one arc as the kind says."""
    found = set()
    for x, y in itertools.permutations(range(len(dag)), 2):
        forth, back = dag[y] >> x & 1, dag[x] >> y & 1
        other = list(dag)
        if kind is MoveKind.INSERT and not (forth or back):
            other[y] |= 1 << x
        elif kind is MoveKind.DELETE and forth:
            other[y] &= ~(1 << x)
        elif kind is MoveKind.TURN and back:
            other[x] &= ~(1 << y)
            other[y] |= 1 << x
        else:
            continue
        if tuple(other) in CLASS_OF:
            found.add(tuple(other))
    return found


def valid_moves(graph: ClassGraph, kind: MoveKind, max_parents: int = 3):
    for y in range(len(graph.parents)):
        for move in moves_into(graph, y, kind=kind, others=-1, max_parents=max_parents):
            if is_open(graph, move):
                yield move


def test_the_classes_are_those_of_the_graphs_module():
    assert len(FOUR) == 543
    assert len(set(CLASS_OF.values())) == 185  # Gillispie and Perlman 2001
    for dag, graph in CLASS_OF.items():
        adjacency = np.array([[mask >> u & 1 for mask in dag] for u in range(4)])
        expected = dag_to_cpdag(nx.from_numpy_array(adjacency, create_using=nx.DiGraph))
        assert graph is not None and np.array_equal(graph.marks(), expected.marks)
        assert class_graph(one_member(graph)) == graph
    assert class_graph((2, 1)) is None


@pytest.mark.parametrize("kind", MoveKind)
def test_moves_reach_exactly_the_neighbouring_classes(kind: MoveKind):
    """Every class one arc away from some member is reached, and no other."""
    around: dict[ClassGraph, set[ClassGraph]] = {}
    for dag, graph in CLASS_OF.items():
        around.setdefault(graph, set()).update(CLASS_OF[other] for other in changed(dag, kind))
    for graph, expected in around.items():
        reached = [apply_move(graph, move) for move in valid_moves(graph, kind)]
        assert None not in reached
        assert set(reached) == expected - {graph}
        assert graph not in reached


def random_data(seed: int, *, d: int = 4, n: int = 500) -> jaxcd.Dataset:
    """Rows of a random discrete network over a random DAG of about d (d - 1) / 4 arcs."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, d)
    names = tuple(f"v{i}" for i in range(d))
    parents = {v: tuple(u for u in names[:i] if rng.random() < 0.5) for i, v in enumerate(names)}
    cpts = {
        v: rng.dirichlet(np.ones(cards[i]), size=[int(cards[names.index(u)]) for u in parents[v]])
        for i, v in enumerate(names)
    }
    domain = jaxcd.Domain(
        [
            (v, jaxcd.Categorical(tuple(f"{k}" for k in range(c))))
            for v, c in zip(names, cards, strict=True)
        ]
    )
    network = jaxcd.data.BayesianNetwork(f"random {seed}", domain, parents, cpts)
    return network.sample(n, key=jax.random.key(seed)).permuted(rng.permutation(d))


def test_gains_are_differences_of_totals():
    score = BDeuScore.of_data(random_data(0), max_parents=3)
    worth = {
        graph: math.fsum(score.local(v, tuple(bits(mask))) for v, mask in enumerate(dag))
        for dag, graph in CLASS_OF.items()
    }
    for graph in set(CLASS_OF.values()):
        for kind in MoveKind:
            for move in valid_moves(graph, kind):
                gain = sum(
                    sign * score.local(v, tuple(bits(mask)))
                    for sign, v, mask in arc_scores(graph, move)
                )
                assert gain == pytest.approx(
                    worth[apply_move(graph, move)] - worth[graph], abs=1e-7
                )


@pytest.mark.parametrize("kind", [MoveKind.INSERT, MoveKind.TURN])
def test_moves_keep_the_limit_on_parents(kind: MoveKind):
    for graph in set(CLASS_OF.values()):
        if max(mask.bit_count() for mask in one_member(graph)) > 1:
            continue
        reached = {apply_move(graph, move) for move in valid_moves(graph, kind, max_parents=1)}
        unlimited = {apply_move(graph, move) for move in valid_moves(graph, kind)}
        assert reached == {
            g for g in unlimited if max(mask.bit_count() for mask in one_member(g)) <= 1
        }


def exact_table(network: jaxcd.data.BayesianNetwork, n: int) -> BICScore:
    """BIC of n rows that are distributed exactly as the network says."""
    names = network.names
    factors = []
    for v in names:
        axes = [names.index(u) for u in (*network.parents[v], v)]
        factors += [np.asarray(network.cpts[v]), axes]
    joint = np.einsum(*factors, list(range(len(names))))
    return BICScore.of_table(n * joint, names=names, n_samples=n, max_parents=len(names) - 1)


@pytest.mark.parametrize("turning", [True, False])
@pytest.mark.parametrize("name", ["cancer", "earthquake", "asia", "survey"])
def test_on_the_exact_distribution_it_finds_the_class(name: str, turning: bool):
    network = jaxcd.networks.load(name)
    found = greedy_equivalence_search(exact_table(network, 10**7), turning=turning, patience=0)
    assert found.graph == network.cpdag()


@functools.cache
def searched(seed: int):
    score = BIC().prepare(random_data(seed, d=6, n=1000))
    return score, greedy_equivalence_search(score)


def test_it_is_mostly_the_best_of_all_and_never_more():
    hits = 0
    for seed in range(20):
        score, found = searched(seed)
        best = score.total(exact_search(score))
        assert found.score <= best + 1e-6
        hits += found.score > best - 1e-6
    assert hits >= 18


@pytest.mark.parametrize("seed", range(6))
def test_the_score_never_falls_and_is_that_of_the_graph(seed: int):
    score, found = searched(seed)
    climbed = found.trace[: found.n_climbed]
    assert found.n_climbed > 0 and (np.diff(climbed) > 0).all()
    assert found.score >= climbed[-1] - 1e-9
    assert jaxcd.discovery.score_graph(score, found.graph) == pytest.approx(found.score, abs=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_an_end_has_no_better_neighbour(seed: int):
    score, _ = searched(seed)
    found = greedy_equivalence_search(score, patience=0)
    marks = found.graph.marks
    parents = tuple(
        sum(1 << int(u) for u in np.flatnonzero((marks[:, v] == 2) & (marks[v] == 3)))
        for v in range(6)
    )
    around = tuple(
        sum(1 << int(u) for u in np.flatnonzero((marks[:, v] == 3) & (marks[v] == 3)))
        for v in range(6)
    )
    children = tuple(sum(1 << v for v in range(6) if parents[v] >> u & 1) for u in range(6))
    graph = ClassGraph(parents, children, around)
    for kind in MoveKind:
        for move in valid_moves(graph, kind, max_parents=5):
            reached = apply_move(graph, move)
            assert reached is not None
            total = sum(
                score.local(v, tuple(bits(mask))) for v, mask in enumerate(one_member(reached))
            )
            assert total <= found.score + 1e-6


def test_it_does_not_depend_on_the_order_of_columns():
    data = random_data(3, d=6, n=1000)
    one, other = ges(data, budget=NONE), ges(data.permuted([3, 5, 0, 2, 4, 1]), budget=NONE)
    assert one.graph == other.graph.reordered(data.names)
    assert one.info["score"] == pytest.approx(other.info["score"], abs=1e-7)


def test_it_ends_where_equivalent_graphs_differ_in_score():
    """As they do by rounding, where a covariance is almost singular: moves in a circle gain."""
    for seed in range(20):
        found = greedy_equivalence_search(DrawnScore(4, seed=seed)).adjacency
        assert nx.is_directed_acyclic_graph(nx.from_numpy_array(found, create_using=nx.DiGraph))


def test_patience_never_harms():
    for seed in range(6):
        score, found = searched(seed)
        assert found.score >= greedy_equivalence_search(score, patience=0).score - 1e-9


def test_effect_edges_are_those_that_gain_alone():
    data = random_data(7, d=6, n=1000)
    score = BIC().prepare(data)
    found = greedy_equivalence_search(score, effect_edges_only=True)
    for i, j in np.argwhere(found.graph.adjacency).tolist():
        assert score.local(j, (i,)) > score.local(j, ())
    alone = sum(
        score.local(j, (i,)) > score.local(j, ()) for i, j in itertools.combinations(range(6), 2)
    )
    assert 0 < found.graph.n_edges <= alone < 15


def test_limits_on_parents_are_kept_to_the_end():
    found = ges(random_data(2, d=6, n=1000), budget=NONE, max_parents=1).graph
    member = jaxcd.graphs.consistent_extension(found)
    assert member is not None and member.directed.sum(axis=0).max() == 1


def test_numeric_columns():
    dag = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d"), ("d", "e"), ("b", "e")])
    data = jaxcd.data.structural.linear_gaussian_sem(dag, key=jax.random.key(0)).sample(
        20_000, key=jax.random.key(1)
    )
    run = ges(data, budget=NONE)
    assert run.graph == dag_to_cpdag(dag).reordered(run.graph.names)
    assert exact_search(data, budget=NONE).graph == run.graph


def test_releases_are_searched_at_their_own_cost():
    network = jaxcd.networks.load("cancer")
    data = network.sample(50_000, key=jax.random.key(0))
    noise = simulated(1)
    for kind in (jaxcd.Histogram(), jaxcd.Marginals()):
        bought = jaxcd.release(data, kind, budget=jaxcd.Budget(2.0, 1e-6), noise=noise)
        for run in (ges(bought), exact_search(bought)):
            assert run.cost == bought.cost and run.spent == bought.spent
            assert run.graph.names == network.names
            assert run.info["ledger"] == tuple(bought.ledger)
    free = jaxcd.release(data, jaxcd.Histogram(), budget=NONE)
    assert ges(free).graph == ges(data, budget=NONE).graph
    assert ges(free, score=BDeu()).info["score"] == pytest.approx(
        ges(data, score=BDeu(), budget=NONE).info["score"]
    )


def test_second_moments_are_searched():
    dag = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    model = jaxcd.data.structural.linear_gaussian_sem(dag, key=jax.random.key(4))
    values = model.sample(50_000, key=jax.random.key(5))
    domain = numbers(values.names, -20.0, 20.0)
    data = jaxcd.Dataset.from_frame(values.to_frame(), domain=domain, clip=True)
    bought = jaxcd.release(
        data, jaxcd.SecondMoments(), budget=jaxcd.Budget(2.0, 1e-6), noise=simulated(6)
    )
    run = ges(bought)
    assert run.graph == dag_to_cpdag(dag).reordered(run.graph.names) and run.cost == bought.cost


def test_an_exact_search_takes_scores_and_data():
    data = random_data(5)
    score = BIC().prepare(data)
    best = exact_search(score)
    run = exact_search(data, budget=NONE)
    assert best.dtype == bool and run.info["score"] == pytest.approx(score.total(best), abs=1e-9)
    assert run.graph == dag_to_cpdag(MixedGraph.from_arcs(data.names, best))


def test_refusals():
    data = random_data(0)
    for door in (ges, exact_search):
        refused(PrivacyError, "buy a release", door, data, budget=jaxcd.Budget(1.0))
        refused(OptionError, "budget is required", door, data)
        refused(OptionError, "score = 'bic'", door, data, score="bic", budget=NONE)
        refused(OptionError, "max_parents = -1", door, data, budget=NONE, max_parents=-1)
        refused(OptionError, "neither a Dataset nor a Release", door, data.codes, budget=NONE)
        refused(OptionError, "typed key", door, data, budget=NONE, key=3)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=NONE)
    refused(OptionError, "paid for", ges, bought, budget=jaxcd.Budget(1.0))
    mixed = jaxcd.Dataset.from_array(
        [["a", 0.5], ["b", 0.7], ["a", 1.5]],
        domain=jaxcd.Domain([("x", jaxcd.Categorical(("a", "b"))), ("y", jaxcd.Numeric(0.0, 2.0))]),
    )
    refused(DomainError, "'y' is numeric", ges, mixed, budget=NONE)
    refused(OptionError, "patience = 1.5", ges, data, budget=NONE, patience=1.5)
    refused(OptionError, "turning = 1", ges, data, budget=NONE, turning=1)
    refused(
        OptionError, "no sum over nodes", greedy_equivalence_search, MeasurementErrorScore(bought)
    )
