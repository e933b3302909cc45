"""Adjustment sets against brute force: every DAG, CPDAG and PAG on a few nodes.

The truth is the definition.  A set is valid for a DAG if the adjustment formula gives the
interventional distribution in a model with random tables (tables that make a wrong set right have
probability zero).  It is valid for a class if it is so for every member; for a MAG if it is so for
the DAGs with hidden nodes that it stands for: one hidden node for each ``<->``, and one or none
behind each ``-->`` that leaves the MAG as it is.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from jaxcd.errors import GraphError
from jaxcd.graphs import Adjustment, MixedGraph, dag_to_cpdag, dag_to_mag
from tests.brute_force import all_dags
from tests.discovery.pag_reference import ARROW, TAIL, agreement, classes

NAMES = tuple("abcde")


def letters(n: int) -> str:
    return "".join(chr(ord("A") + v) for v in range(n))


@functools.cache
def joint(arcs: bytes, n: int, cut: int | None = None) -> np.ndarray:
    """The joint table of random binary conditional tables; without the factor of ``cut``."""
    graph = np.frombuffer(arcs, dtype=bool).reshape(n, n)
    table, everything = np.ones((2,) * n), letters(n)
    for v in range(n):
        parents = np.flatnonzero(graph[:, v]).tolist()
        own = np.random.default_rng([v, *parents, 7]).uniform(0.1, 0.9, (2,) * len(parents))
        factor = np.stack([own, 1 - own], axis=-1)
        if v == cut:
            continue
        axes = "".join(everything[u] for u in (*parents, v))
        table = np.einsum(f"{everything},{axes}->{everything}", table, factor)
    return table


def valid_by_definition(graph: np.ndarray, x: int, y: int, given: tuple[int, ...]) -> bool:
    n = len(graph)
    arcs = np.ascontiguousarray(graph).tobytes()
    keep = lambda table, axes: np.einsum(  # noqa: E731
        f"{letters(n)}->{''.join(letters(n)[v] for v in axes)}", table
    )
    truth = keep(joint(arcs, n, x), (x, y))
    table = keep(joint(arcs, n), (x, y, *given)).reshape(2, 2, -1)
    share = table.sum(axis=(0, 1))
    found = (table / table.sum(axis=1, keepdims=True) * share).sum(axis=-1)
    return bool(np.allclose(found, truth, rtol=0, atol=1e-12))


@functools.cache
def valid_sets(arcs: bytes, n: int, x: int, y: int, observed: int) -> frozenset[tuple[int, ...]]:
    graph = np.frombuffer(arcs, dtype=bool).reshape(n, n)
    others = [v for v in range(observed) if v not in (x, y)]
    subsets = itertools.chain.from_iterable(
        itertools.combinations(others, k) for k in range(len(others) + 1)
    )
    return frozenset(z for z in subsets if valid_by_definition(graph, x, y, z))


def sets_of_class(dags: list[np.ndarray], x: int, y: int, observed: int) -> set[tuple[int, ...]]:
    found = [
        valid_sets(np.ascontiguousarray(dag).tobytes(), len(dag), x, y, observed) for dag in dags
    ]
    return set(frozenset.intersection(*found))


def check(graph: MixedGraph, dags: list[np.ndarray]) -> None:
    """The sets of the graph are those that are valid in all the DAGs."""
    n = graph.n_nodes
    for x, y in itertools.permutations(range(n), 2):
        truth = sets_of_class(dags, x, y, n)
        question = Adjustment(graph, graph.names[x], graph.names[y])
        found = [
            tuple(graph.index(name) for name in names) for names in question.sets(minimal=False)
        ]
        assert set(found) == truth, (str(graph), x, y)
        assert question.exists == bool(truth)
        minimal = {z for z in truth if not any(set(other) < set(z) for other in truth)}
        small = [tuple(graph.index(name) for name in names) for names in question.sets()]
        assert set(small) == minimal and len(small) == len(minimal)
        if truth:
            assert question.is_valid(question.canonical)
        if not question.is_latent:
            assert (question.optimal is None) == (not truth)
            assert not truth or question.is_valid(question.optimal)


def upper_dags(n: int) -> list[np.ndarray]:
    """Every DAG on n nodes up to names."""
    pairs = list(itertools.combinations(range(n), 2))
    found = []
    for choice in itertools.product((False, True), repeat=len(pairs)):
        graph = np.zeros((n, n), dtype=bool)
        for (i, j), there in zip(pairs, choice, strict=True):
            graph[i, j] = there
        found.append(graph)
    return found


def members_of(cpdag: MixedGraph) -> list[np.ndarray]:
    """The DAGs with this CPDAG, by trying every orientation of its skeleton."""
    pairs = np.argwhere(np.triu(cpdag.adjacency))
    found = []
    for choice in itertools.product((False, True), repeat=len(pairs)):
        graph = np.zeros_like(cpdag.adjacency)
        for (i, j), turned in zip(pairs, choice, strict=True):
            graph[(j, i) if turned else (i, j)] = True
        if np.linalg.matrix_power(graph.astype(float), len(graph)).any():
            continue
        if dag_to_cpdag(MixedGraph.from_arcs(cpdag.names, graph)) == cpdag:
            found.append(graph)
    return found


def check_cpdags(n: int) -> int:
    graphs = {dag_to_cpdag(MixedGraph.from_arcs(NAMES[:n], dag)) for dag in upper_dags(n)}
    for graph in graphs:
        check(graph, members_of(graph))
    return len(graphs)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_every_dag(n: int) -> None:
    for dag in upper_dags(n):
        check(MixedGraph.from_arcs(NAMES[:n], dag), [dag])


def test_names_in_any_order() -> None:
    for dag in all_dags(3):
        check(MixedGraph.from_arcs(NAMES[:3], dag), [dag])


@pytest.mark.parametrize("n", [2, 3, 4])
def test_every_cpdag(n: int) -> None:
    assert check_cpdags(n) > 0


# ---- hidden columns


def dags_behind(mag: MixedGraph) -> list[np.ndarray]:
    """DAGs over the nodes and hidden ones, whose MAG this is: a hidden node behind every ``<->``,
    and behind any of the directed edges that allow one.
    """
    n = mag.n_nodes
    spouses = np.argwhere(np.triu(mag.bidirected)).tolist()

    def with_hidden(pairs: list[list[int]]) -> np.ndarray:
        size = n + len(pairs)
        graph = np.zeros((size, size), dtype=bool)
        graph[:n, :n] = mag.directed
        for k, (i, j) in enumerate(pairs):
            graph[n + k, [i, j]] = True
        return graph

    def is_behind(pairs: list[list[int]]) -> bool:
        dag = MixedGraph.from_arcs(
            (*mag.names, *(f"hidden{k}" for k in range(len(pairs)))), with_hidden(pairs)
        )
        return dag_to_mag(dag, latent=[f"hidden{k}" for k in range(len(pairs))]) == mag

    assert is_behind(spouses)
    loose = [pair for pair in np.argwhere(mag.directed).tolist() if is_behind([*spouses, pair])]
    found = []
    for size in range(len(loose) + 1):
        for some in itertools.combinations(loose, size):
            if is_behind([*spouses, *some]):
                found.append(with_hidden([*spouses, *some]))
    return found


def pags(n: int) -> dict[MixedGraph, list[MixedGraph]]:
    """Every PAG without selection on n nodes, with the MAGs of its class."""
    found = {}
    for members in classes(n):
        plain = [
            m
            for m in members
            if not any(m[i][j] == m[j][i] == TAIL for i in range(n) for j in range(n) if i != j)
        ]
        if plain:
            graph = MixedGraph(NAMES[:n], np.array(agreement(plain), dtype=np.int8))
            found[graph] = [MixedGraph(NAMES[:n], np.array(m, dtype=np.int8)) for m in plain]
    return found


def canonical_name(graph: MixedGraph) -> bytes:
    return min(
        graph.permuted(order).marks.tobytes()
        for order in itertools.permutations(range(graph.n_nodes))
    )


@pytest.mark.parametrize("n", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_every_pag_by_tables(n: int) -> None:
    seen = set()
    for graph, mags in pags(n).items():
        if (name := canonical_name(graph)) in seen:
            continue
        seen.add(name)
        if (graph.marks == 1).any() or graph.bidirected.any():
            check(graph, [dag for mag in mags for dag in dags_behind(mag)])
    assert len(seen) >= {2: 2, 3: 4, 4: 20}[n]


@pytest.mark.parametrize("n", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_every_mag_with_a_hidden_cause(n: int) -> None:
    seen = set()
    for mags in pags(n).values():
        for mag in mags:
            if mag.bidirected.any() and (name := canonical_name(mag)) not in seen:
                seen.add(name)
                check(mag, dags_behind(mag))
    assert len(seen) > (n == 4) * 10


def behind(mags: list[MixedGraph]) -> Iterator[np.ndarray]:
    for mag in mags:
        yield from dags_behind(mag)


def linear_sets(dag: np.ndarray, x: int, y: int, observed: int) -> set[tuple[int, ...]]:
    """The sets for which the regression on x and the set has the total effect as its coefficient,
    in a linear model with random weights.
    """
    size = len(dag)
    rng = np.random.default_rng([size, int(dag.sum())])
    reduced = np.linalg.inv(np.eye(size) - dag * rng.uniform(0.3, 1.0, (size, size)))
    covariance = reduced.T @ reduced
    others, found = [v for v in range(observed) if v not in (x, y)], set()
    for k in range(len(others) + 1):
        for given in itertools.combinations(others, k):
            left = [x, *given]
            slopes = np.linalg.solve(covariance[np.ix_(left, left)], covariance[left, y])
            if abs(slopes[0] - reduced[x, y]) < 1e-9:
                found.add(given)
    return found


def check_linear(graph: MixedGraph, dags: Iterable[np.ndarray]) -> int:
    n = graph.n_nodes
    truth: dict[tuple[int, int], set | None] = dict.fromkeys(itertools.permutations(range(n), 2))
    for dag in dags:
        for x, y in truth:
            if truth[x, y] != set():
                found = linear_sets(dag, x, y, n)
                truth[x, y] = found if truth[x, y] is None else truth[x, y] & found
    for (x, y), wanted in truth.items():
        question = Adjustment(graph, NAMES[x], NAMES[y])
        found = {tuple(map(graph.index, z)) for z in question.sets(minimal=False)}
        assert found == wanted, (str(graph), x, y)
    return len(truth)


@pytest.mark.slow
def test_every_pag() -> None:
    seen = set()
    for graph, mags in pags(4).items():
        name = canonical_name(graph)
        if name not in seen and ((graph.marks == 1).any() or graph.bidirected.any()):
            seen.add(name)
            check_linear(graph, behind(mags))
    assert len(seen) >= 15


@pytest.mark.slow
def test_every_dag_and_cpdag_of_five() -> None:
    classes_of: defaultdict[MixedGraph, list[np.ndarray]] = defaultdict(list)
    for dag in upper_dags(5):
        check_linear(graph := MixedGraph.from_arcs(NAMES, dag), [dag])
        classes_of[dag_to_cpdag(graph)] = []
    for cpdag in classes_of:
        check_linear(cpdag, members_of(cpdag))
    assert len(classes_of) > 100


# ---- what it refuses, and the optimal set


def test_optimal_set_is_the_one_of_every_member() -> None:
    """Henckel et al.: in an amenable CPDAG it is that of each DAG of the class."""
    compared = 0
    for cpdag in {dag_to_cpdag(MixedGraph.from_arcs(NAMES[:4], dag)) for dag in upper_dags(4)}:
        members = [MixedGraph.from_arcs(NAMES[:4], dag) for dag in members_of(cpdag)]
        for x, y in itertools.permutations(NAMES[:4], 2):
            question = Adjustment(cpdag, x, y)
            if question.exists and question.may_affect:
                assert {Adjustment(dag, x, y).optimal for dag in members} == {question.optimal}
                compared += 1
    assert compared > 50


def test_optimal_set_has_the_least_variance() -> None:
    """In linear models, where the variance of a coefficient is known in closed form."""
    rng = np.random.default_rng(1)
    for dag in upper_dags(4):
        weights = dag * rng.uniform(0.5, 1.5, (4, 4)) * rng.choice([-1, 1], (4, 4))
        reduced = np.linalg.inv(np.eye(4) - weights)
        covariance = reduced.T @ np.diag(rng.uniform(0.5, 2, 4)) @ reduced
        graph = MixedGraph.from_arcs(NAMES[:4], dag)

        def variance(x: int, y: int, given: list[int], covariance=covariance) -> float:
            left = [x, *given]
            inverse = np.linalg.inv(covariance[np.ix_(left, left)])
            rest = covariance[y, y] - covariance[y, left] @ inverse @ covariance[left, y]
            return rest * inverse[0, 0]

        for x, y in itertools.permutations(range(4), 2):
            question = Adjustment(graph, NAMES[x], NAMES[y])
            if not question.exists or not question.may_affect:
                continue
            best = variance(x, y, [graph.index(z) for z in question.optimal])
            for names in question.sets(minimal=False):
                assert best <= variance(x, y, [graph.index(z) for z in names]) * (1 + 1e-9)


def test_selection_is_refused() -> None:
    graph = MixedGraph.from_edges(["a", "b", "c", "d"], ["a --- b", "c o-> d"])
    with pytest.raises(GraphError, match="selection"):
        graph.adjustment_sets("c", "d")


def test_unknown_names_and_itself() -> None:
    graph = MixedGraph.from_edges(["a", "b"], ["a --> b"])
    with pytest.raises(GraphError, match="no node 'c'"):
        graph.adjustment_sets("a", "c")
    with pytest.raises(GraphError, match="two nodes"):
        graph.adjustment_sets("a", "a")
    with pytest.raises(GraphError, match="single string"):
        graph.is_adjustment_set("a", "b", "ab")


def test_methods_of_a_graph() -> None:
    graph = MixedGraph.from_edges(list("axby"), ["a --> x", "a --> b", "b --> y", "x --> y"])
    assert graph.adjustment_sets("x", "y", minimal=False) == (("a",), ("b",), ("a", "b"))
    assert graph.adjustment_sets("x", "y", max_size=0) == ()
    assert graph.optimal_adjustment_set("x", "y") == ("b",)
    assert graph.is_amenable("x", "y") and graph.is_adjustment_set("x", "y", ["a"])
    assert ARROW == 2


@pytest.mark.parametrize("n", [3, 4])
def test_every_dag_with_nodes_that_nobody_measured(n: int) -> None:
    """The sets that hold no hidden node are those of all sets; there is one iff the search says."""
    for arcs in upper_dags(n):
        graph = MixedGraph.from_arcs(NAMES[:n], arcs)
        for x, y in itertools.permutations(graph.names, 2):
            others = [name for name in graph.names if name not in (x, y)]
            whole = Adjustment(graph, x, y)
            for size in range(1, len(others) + 1):
                for hidden in itertools.combinations(others, size):
                    question = Adjustment(graph, x, y, hidden=hidden)
                    allowed = {
                        s
                        for k in range(len(others) + 1)
                        for s in itertools.combinations(others, k)
                        if whole.is_valid(s) and not set(s) & set(hidden)
                    }
                    assert question.exists == bool(allowed)
                    assert {*map(frozenset, question.sets(minimal=False))} == {
                        *map(frozenset, allowed)
                    }
                    assert question.optimal is None or whole.is_valid(question.optimal)
