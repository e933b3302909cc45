"""Tree-guided PC: what the orientation step asks, and what it concludes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import jaxcd
from jaxcd import MixedGraph
from jaxcd.errors import OptionError
from tests.helpers import coded, refused, simulated

BINARY = jaxcd.Categorical(("no", "yes"))
BUDGET = jaxcd.Budget(4.0, 1e-6)


def sample(n: int, edges: dict[str, tuple[str, ...]], strength: float, seed: int) -> jaxcd.Dataset:
    """Each column copies the "or" of its parents with probability ``strength`` and is a fair coin
    otherwise.
    """
    rng = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {}
    for name, parents in edges.items():
        coin = rng.integers(0, 2, n)
        value = np.maximum.reduce([columns[p] for p in parents]) if parents else coin
        columns[name] = np.where(rng.random(n) < strength, value, coin)
    codes = np.column_stack(list(columns.values())).astype(np.int32)
    return coded(codes, jaxcd.Domain({name: BINARY for name in edges}))


def run(data: jaxcd.Dataset, seed: int = 0, **options: float) -> jaxcd.DiscoveryResult:
    return jaxcd.tree_pc(
        data,
        test=jaxcd.CovarianceNorm(),
        budget=BUDGET,
        key=None,
        noise=simulated(seed),
        options=jaxcd.decisions.TreeOptions(**options),
    )


def labels(result: jaxcd.DiscoveryResult) -> list[str]:
    return [row["label"] for row in result.info["ledger"]]


CHAIN = {"a": (), "b": ("a",), "c": ("b",), "d": ("c",)}
COLLIDER = {"a": (), "b": (), "c": ("a", "b"), "d": ("c",)}
#: the ends of the collider x -> z <- y depend on each other through w
CROSSED = {"w": (), "x": ("w",), "y": ("w",), "z": ("x", "y")}


@pytest.mark.parametrize("seed", range(3))
def test_a_chain_costs_no_question_about_colliders(seed):
    result = run(sample(40_000, CHAIN, 0.7, seed), seed)
    assert result.graph == MixedGraph.from_edges(list("abcd"), ["a --- b", "b --- c", "c --- d"])
    assert not any("orient" in label for label in labels(result))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("strength", [0.4, 0.8])
def test_a_collider_with_independent_ends(seed, strength):
    result = run(sample(40_000, COLLIDER, strength, seed), seed)
    assert result.graph == MixedGraph.from_edges(list("abcd"), ["a --> c", "b --> c", "c --> d"])


@pytest.mark.parametrize("seed", range(3))
def test_a_collider_with_dependent_ends_is_asked_for(seed):
    result = run(sample(80_000, CROSSED, 0.7, seed), seed)
    assert result.graph == MixedGraph.from_edges(
        list("wxyz"), ["w --- x", "w --- y", "x --> z", "y --> z"]
    )
    assert sum("orient" in label for label in labels(result)) == 1


def test_an_edge_that_alone_connects_dependent_columns_is_kept_and_not_asked_about():
    """In a chain every edge is a bridge: shrink asks nothing, and what it would have cost goes to
    later batches.
    """
    result = run(sample(40_000, CHAIN, 0.7, 0), 0)
    assert not any("shrink" in label for label in labels(result))
    everything = run(sample(40_000, CHAIN, 0.7, 0), 0, evident_sigmas=1e9)
    assert any("shrink" in label for label in labels(everything))


@pytest.mark.parametrize(
    "options", [{"false_edges": 0.25, "forest_bonus": 0.0, "evident_sigmas": 0.0}, {}]
)
@pytest.mark.parametrize("seed", range(12))
def test_columns_that_the_release_calls_dependent_are_connected_in_the_graph(seed, options):
    """Whatever the noise: reverse deletion never takes the last path between evidently dependent
    columns, and adds no edge.
    """
    data = sample(3_000, CROSSED if seed % 2 else COLLIDER, 0.4, seed)
    result = run(data, seed, **options)
    network = result.graph.to_networkx().to_undirected()
    sigmas = options.get("evident_sigmas", 2.0)
    released = {
        row["pair"]: row for row in result.info["released_margins"] if row["level"] == "release"
    }
    evident = [
        pair for pair, row in released.items() if row["margin"] > max(0, sigmas * row["sigma"])
    ]
    assert evident
    assert all(nx.has_path(network, x, y) for x, y in evident)
    assert all(
        released[tuple(sorted(edge, key=data.names.index))]["margin"] > 0 for edge in network.edges
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_pair_that_noise_calls_dependent_is_not_joined_because_a_collider_opens_it(seed):
    """Grow asks about the empty set too: given their child, a and b depend on each other strongly,
    without it they do not.
    """
    asked = []
    session = jaxcd.queries.Session

    class Spy(session):
        def margins(self, queries):
            asked.extend(queries)
            return super().margins(queries)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxcd.discovery.constraint.tree.Session", Spy)
        run(sample(3_000, CROSSED, 0.4, seed), seed)
    sizes = {(query.x, query.y): [] for query in asked}
    for query in asked:
        sizes[query.x, query.y].append(len(query.given))
    assert sizes and all(0 in found for found in sizes.values())


def test_without_tolerance_for_false_colliders_only_the_release_shows_them():
    """With infinite thresholds nothing that is bought can orient: what is found then, every
    tolerance finds.
    """
    for seed in range(4):
        data = sample(6_000, COLLIDER, 0.3, seed)
        strict, lenient = (
            run(data, seed, false_colliders=tolerance).graph for tolerance in (0.0, 0.3)
        )
        assert strict.skeleton() == lenient.skeleton()
        assert (strict.directed & ~lenient.directed).sum() == 0


def test_a_negative_tolerance_is_refused():
    refused(OptionError, "false_colliders", jaxcd.decisions.TreeOptions, false_colliders=-0.1)
