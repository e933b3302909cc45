"""``jaxcd.effect``: against the rows, against the true interventions, and what it refuses."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import pickle
from collections.abc import Iterator
from pathlib import Path

import jax
import networkx as nx
import numpy as np
import pandas as pd
import pytest

import jaxcd
from jaxcd.data.structural import linear_gaussian_sem
from jaxcd.effects.identification import possibilities
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import Adjustment, Knowledge, MixedGraph, dag_to_cpdag, random_dag
from jaxcd.graphs.adjustment import members
from tests.graphs.test_adjustment import dags_behind, linear_sets, pags
from tests.helpers import CommandLine, simulated

ASIA = jaxcd.networks.load("asia")
ROWS = ASIA.sample(20_000, key=jax.random.key(0))
FREE = jaxcd.release(ROWS, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)


def bought(data=ROWS, kind=None, epsilon: float = 1.0, delta: float = 0.0, seed: int = 1):
    return jaxcd.release(
        data,
        kind or jaxcd.Histogram(),
        budget=jaxcd.Budget(epsilon, delta),
        noise=jaxcd.SimulatedNoise(jax.random.key(seed)),
    )


def true_effect(network, x: str, y: str) -> float:
    """By the truncated factorisation over the whole joint table."""
    names = network.names
    joint = np.ones([network.domain[name].cardinality for name in names])
    for v in names:
        if v != x:
            parents = network.parents[v]
            order = sorted((*parents, v), key=names.index)
            table = np.moveaxis(
                network.cpts[v], range(len(order)), [order.index(u) for u in (*parents, v)]
            )
            shape = [joint.shape[k] if names[k] in order else 1 for k in range(len(names))]
            joint = joint * table.reshape(shape)
    axes = tuple(k for k, name in enumerate(names) if name not in (x, y))
    pair = joint.sum(axis=axes)
    pair = pair if names.index(x) < names.index(y) else pair.T
    pair = pair / pair.sum(axis=1, keepdims=True)
    return float(pair[1, 1] - pair[0, 1])


PAIRS = [
    (x, y)
    for x, y in itertools.permutations(ASIA.names, 2)
    if Adjustment(MixedGraph.from_dag(ASIA.dag), x, y).may_affect
]


# ---- tables


@pytest.mark.parametrize(("x", "y"), [("smoke", "dysp"), ("bronc", "dysp"), ("either", "xray")])
def test_without_privacy_it_is_the_adjustment_formula(x: str, y: str) -> None:
    found = jaxcd.effect(FREE, treatment=x, outcome=y, graph=ASIA.dag)
    frame = ROWS.to_frame()
    total = 0.0
    by, levels = list(found.adjustment), ASIA.domain[x].levels
    groups = frame.groupby(by) if by else [((), frame)]
    for _, group in groups:
        after, before = (
            (group[group[x] == level][y] == ASIA.domain[y].levels[1]).mean()
            for level in reversed(levels)
        )
        total += len(group) / len(frame) * (after - before)
    assert found.estimate == pytest.approx(total, abs=1e-6)
    assert found.low < total < found.high and found.identified
    assert set(found.adjustment) == set(MixedGraph.from_dag(ASIA.dag).optimal_adjustment_set(x, y))


def test_the_truth_of_all_pairs_without_privacy() -> None:
    """At 95 %, of 18 effects: no more than four outside."""
    inside = 0
    for x, y in PAIRS:
        found = jaxcd.effect(FREE, treatment=x, outcome=y, graph=ASIA.dag)
        inside += found.low <= true_effect(ASIA, x, y) <= found.high
    assert len(PAIRS) == 18 and inside >= 14


@pytest.mark.slow
def test_the_truth_of_all_pairs_with_noise() -> None:
    inside, ignoring = 0, 0
    for seed in range(3):
        data = ASIA.sample(10_000, key=jax.random.key(seed))
        release = bought(data, epsilon=0.5, seed=seed)
        blind = jaxcd.releases.ReleasedHistogram(
            release.domain, release.n_samples, release.values, 0.0, release.cost, release.spent
        )
        for x, y in PAIRS:
            options = {"treatment": x, "outcome": y, "graph": ASIA.dag}
            truth = true_effect(ASIA, x, y)
            found, without = jaxcd.effect(release, **options), jaxcd.effect(blind, **options)
            inside += found.low <= truth <= found.high
            ignoring += without.low <= truth <= without.high
    assert inside >= 46 and ignoring < 41  # of 54


@pytest.mark.slow
def test_the_whole_graph_is_narrower_and_right() -> None:
    """Where levels are rare; nearly the same where they are not."""
    data = ASIA.sample(50_000, key=jax.random.key(3))
    release, inside, ratios = bought(data, seed=5), 0, {}
    for x, y in PAIRS:
        options = {"treatment": x, "outcome": y, "graph": ASIA.dag}
        table = jaxcd.effect(release, **options)
        whole = jaxcd.effect(release, whole_graph=True, **options)
        assert whole.low <= whole.estimate <= whole.high
        assert whole.adjustment == table.adjustment
        inside += whole.low <= true_effect(ASIA, x, y) <= whole.high
        ratios[x, y] = (whole.high - whole.low) / (table.high - table.low)
    assert inside >= 13
    assert ratios["asia", "dysp"] < 0.5 and 0.8 < ratios["smoke", "bronc"] < 1.2
    equal = jaxcd.effect(FREE, treatment="smoke", outcome="dysp", graph=ASIA.dag, whole_graph=True)
    assert equal == jaxcd.effect(FREE, treatment="smoke", outcome="dysp", graph=ASIA.dag)


def test_the_likelihood_of_the_whole_graph_has_its_gradient() -> None:
    from jaxcd.effects.likelihood import Contrast
    from jaxcd.effects.whole_graph import WholeGraph

    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
    values = rng.multinomial(4000, shares.ravel()).reshape(2, 3, 2) + rng.integers(-3, 4, (2, 3, 2))
    graph = MixedGraph.from_edges(list("abc"), ["a --> b", "b --> c", "a --> c"])
    whole = WholeGraph(values, scale=2.0, n_samples=4000, graph=graph)
    point = whole._top + 0.3 * rng.normal(size=len(whole._top))
    contrast = Contrast(0, 1, np.array([0.0, 1.0]))
    weight = (whole.levels[2] == 1) * ((whole.levels[0] == 1) * 1.0 - (whole.levels[0] == 0))
    for function in (whole._likelihood, lambda z: whole._effect(z, 0, weight)):
        gradient = function(point)[1]
        for k in range(len(point)):
            step = np.zeros_like(point)
            step[k] = 1e-5
            slope = (function(point + step)[0] - function(point - step)[0]) / 2e-5
            assert gradient[k] == pytest.approx(slope, rel=1e-3, abs=1e-4)
    found = whole.interval(0, 2, contrast, 0.95)
    assert found.low < found.estimate < found.high


def test_marginals_with_a_known_graph() -> None:
    edges = list(ASIA.dag.edges)
    kind = jaxcd.Marginals(knowledge=jaxcd.Knowledge(required=edges))
    release = bought(kind=kind, epsilon=2.0, delta=1e-6)
    inside = measured = 0
    for x, y in PAIRS:
        found = jaxcd.effect(release, treatment=x, outcome=y, graph=ASIA.dag)
        measured += found.measured
        inside += found.low <= true_effect(ASIA, x, y) <= found.high
    assert measured >= 15 and inside >= 15


def test_noise_of_interactions_is_that_of_the_table() -> None:
    """The variance of a weighted sum of cells, by the linear map from the released numbers."""
    release = bought(kind=jaxcd.Marginals(), epsilon=1.0, delta=1e-6)
    source = release.tabulated()
    columns = max((c for c in release.interactions if release.is_built(c)), key=len)
    names = tuple(release.names[j] for j in reversed(columns))
    table = source.table(names)
    weights = np.random.default_rng(0).normal(size=table.counts.shape)
    total = 0.0
    for subset, values in release.interactions.items():
        if not set(subset) <= set(columns):
            continue
        for place in np.ndindex(values.shape):
            changed = np.array(values)
            changed[place] += 1.0
            moved = dataclasses.replace(
                release, interactions={**release.interactions, subset: changed}
            )
            difference = moved.tabulated().table(names).counts - table.counts
            total += release.variances[subset] * float((weights * difference).sum()) ** 2
    assert table.noise(weights) == pytest.approx(total, rel=1e-9)


def test_what_was_not_measured_is_open() -> None:
    release = bought(kind=jaxcd.Marginals(max_parents=1), epsilon=0.1, delta=1e-6)
    graph = nx.DiGraph([(a, "dysp") for a in ("bronc", "smoke", "asia", "tub")])
    graph.add_edges_from((a, "bronc") for a in ("smoke", "asia", "tub"))
    found = jaxcd.effect(release, treatment="bronc", outcome="dysp", graph=graph)
    if not found.measured:
        assert (found.low, found.high) == (-1.0, 1.0) and math.isnan(found.estimate)
        assert "not measured" in found.sentence
        assert found.to_json_dict()["estimate"] is None


@pytest.mark.parametrize("kind", [jaxcd.Marginals(), jaxcd.LogLinear()], ids=["pairs", "fit"])
@pytest.mark.parametrize(
    ("epsilon", "flipped"),
    [
        pytest.param(10.0, 0.0, marks=pytest.mark.slow),
        pytest.param(100.0, 0.0, marks=pytest.mark.slow),
        (100.0, 2e-4),
    ],
)
def test_columns_that_are_nearly_copies(kind, epsilon: float, flipped: float) -> None:
    """Cells that are empty or nearly so are read as less than nothing half of the time."""
    rng, inside = np.random.default_rng(0), 0
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in "ab"}, declared=True)
    graph = MixedGraph.from_edges(["a", "b"], ["a --> b"])
    for seed in range(20):
        codes = rng.integers(0, 2, (20_000, 2))
        codes[:, 1] = codes[:, 0] ^ (rng.random(20_000) < flipped)
        data = jaxcd.Dataset.from_codes(codes, domain=domain)
        release = bought(data, kind, epsilon, 1e-6, seed)
        found = jaxcd.effect(release, treatment="a", outcome="b", graph=graph)
        assert 0 <= found.high - found.low < 3e-3
        inside += found.low - 2e-5 <= 1 - 2 * flipped <= found.high + 2e-5
    assert inside >= 16


def test_levels_and_scores() -> None:
    rng = np.random.default_rng(0)
    x, noise = rng.integers(0, 3, 4000), rng.integers(0, 2, 4000)
    y = np.minimum(x + noise, 2)
    domain = jaxcd.Domain(
        {
            "größe": jaxcd.Ordinal((0, 10, 20)),
            "y": jaxcd.Categorical(("a", "b", "c")),
            "one": jaxcd.Categorical(("only",)),
        }
    )
    data = jaxcd.Dataset.from_codes(
        np.column_stack([x, y, np.zeros_like(x)]).astype(np.int32), domain=domain
    )
    free = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    graph = MixedGraph.from_edges(["größe", "y", "one"], ["größe --> y"])
    options = {"treatment": "größe", "outcome": "y", "graph": graph}
    found = jaxcd.effect(free, levels=(0, 20), **options)
    assert found.estimate == pytest.approx(y[x == 2].mean() - y[x == 0].mean(), abs=1e-6)
    assert found.levels == (0, 20) and "count 0, 1, 2" in found.unit
    turned = jaxcd.effect(free, levels=("20", "0"), **options)
    assert turned.estimate == pytest.approx(-found.estimate)
    assert jaxcd.effect(free, levels=("0.0", "2e1"), **options).levels == (0, 20)
    one = jaxcd.effect(free, levels=(0, 10), outcome_level="b", **options)
    share = (y[x == 1] == 1).mean() - (y[x == 0] == 1).mean()
    assert one.estimate == pytest.approx(share, abs=1e-6)
    back = jaxcd.effect(
        free,
        treatment="y",
        outcome="größe",
        levels=("a", "b"),
        graph=MixedGraph.from_edges(["größe", "y"], ["y --> größe"]),
    )
    assert back.estimate == pytest.approx(10 * (x[y == 1].mean() - x[y == 0].mean()), abs=1e-5)
    none = jaxcd.effect(free, levels=(0, 20), treatment="größe", outcome="one", graph=graph)
    assert (none.estimate, none.low, none.high) == (0, 0, 0)
    chained = MixedGraph.from_edges(["größe", "one"], ["größe --> one"])
    constant = jaxcd.effect(free, levels=(0, 20), treatment="größe", outcome="one", graph=chained)
    assert (constant.low, constant.high) == (0, 0)
    for wrong, message in (
        ({}, "say which two"),
        ({"levels": (0, 0)}, "the same"),
        ({"levels": (0, 7)}, "no level"),
        ({"levels": "ab"}, "not two levels"),
        ({"levels": (0, 20), "outcome_level": "d"}, "no level"),
    ):
        with pytest.raises(OptionError, match=message):
            jaxcd.effect(free, **options, **wrong)
    with pytest.raises(OptionError, match="one level"):
        jaxcd.effect(free, treatment="one", outcome="y", graph=graph)


def test_missing_cells_are_left_out() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, 5000)
    y = (rng.random(5000) < 0.3 + 0.4 * x).astype(int)
    holes = np.where(rng.random(5000) < 0.2, 2, x)
    domain = jaxcd.Domain(
        {"x": jaxcd.Categorical((0, 1), missing=(999,)), "y": jaxcd.Categorical((0, 1))}
    )
    data = jaxcd.Dataset.from_codes(np.column_stack([holes, y]).astype(np.int32), domain=domain)
    free = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    graph = nx.DiGraph([("x", "y")])
    found = jaxcd.effect(free, treatment="x", outcome="y", graph=graph)
    truth = y[holes == 1].mean() - y[holes == 0].mean()
    assert found.estimate == pytest.approx(truth, abs=1e-6)
    noisy = jaxcd.effect(
        bought(data, jaxcd.Marginals(), 2.0, 1e-6), treatment="x", outcome="y", graph=graph
    )
    assert noisy.low < 0.4 < noisy.high


# ---- classes of graphs


def confounded(n: int = 5_000) -> jaxcd.Release:
    """x --> y with the effect .1, and a hidden cause of both: .4 more."""
    rng = np.random.default_rng(0)
    h = rng.random(n) < 0.5
    x = rng.random(n) < 0.2 + 0.6 * h
    y = rng.random(n) < 0.2 + 0.5 * h + 0.1 * x
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in "xy"}, declared=True)
    data = jaxcd.Dataset.from_codes(np.column_stack([x, y]).astype(np.int32), domain=domain)
    return jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)


@pytest.mark.parametrize("search", [jaxcd.fci, jaxcd.gfci])
def test_the_pag_of_a_run_is_one_whatever_its_edges(search, tmp_path, command) -> None:
    """A required edge says that x causes y, and not that nothing else causes both."""
    release, required = confounded(), Knowledge(required=[("x", "y")])
    options = {"decider": jaxcd.Threshold()} if search is jaxcd.fci else {}
    run = search(release, test=jaxcd.ChiSquare(), knowledge=required, **options)
    assert str(run.graph) == "x --> y"
    ask = {"treatment": "x", "outcome": "y"}
    for graph, more in ((run, {}), (run.graph, {"latent": True}), ([run, run], {})):
        found = jaxcd.effect(release, graph=graph, **ask, **more)
        assert found.is_open and not found.identified and math.isnan(found.estimate)
        assert found.low < 0.1 < found.high
    assert jaxcd.effect(release, graph=run.graph, **ask).identified
    dag = jaxcd.exact_search(release, knowledge=required)
    assert str(dag.graph) == "x --> y" and jaxcd.effect(release, graph=dag, **ask).identified
    assert not Adjustment(run.graph, "x", "y", is_latent=True).exists
    path = release.save(tmp_path / "bought.npz")
    words = f"effect {path} --treatment x --outcome y --graph"
    folder = run.save(tmp_path / "run")
    alone = tmp_path / "alone.json"
    alone.write_bytes((folder / "graph.json").read_bytes())
    for graph in (folder / "graph.json", folder / "graph.dot", f"{alone} --latent"):
        assert "hidden causes" in command(f"{words} {graph}")[1]
    assert "if the graph is right" in command(f"{words} {alone}")[1]


def test_a_hidden_cause_needs_a_graph() -> None:
    with pytest.raises(OptionError, match="latent.*gfci"):
        jaxcd.effect(FREE, treatment="smoke", outcome="dysp", latent=True)


def test_possibilities_are_those_of_all_members() -> None:
    """IDA: one for each set of parents that the treatment has in some DAG of the class."""
    checked = 0
    for seed in range(8):
        dag = random_dag(5, expected_degree=1.8, seed=seed)
        names = [str(node) for node in dag.nodes]
        cpdag = dag_to_cpdag(MixedGraph.from_dag(dag))

        pairs = np.argwhere(np.triu(cpdag.adjacency))
        members = []
        for choice in itertools.product((False, True), repeat=len(pairs)):
            arcs = np.zeros((5, 5), dtype=bool)
            for (i, j), turned in zip(pairs, choice, strict=True):
                arcs[(j, i) if turned else (i, j)] = True
            member = MixedGraph.from_arcs(names, arcs)
            if member.is_dag() and dag_to_cpdag(member) == cpdag:
                members.append(member)
        for x, y in itertools.permutations(range(5), 2):
            parents = set()
            for member in members:
                question = Adjustment(member, names[x], names[y])
                own = frozenset(np.flatnonzero(member.directed[:, x]))
                parents.add(own if question.may_affect else None)
            found = possibilities(cpdag, names[x], names[y])
            if len(found) == 1:
                continue  # one set does for all members: test_adjustment has these
            own = {
                None
                if option.is_zero
                else frozenset(np.flatnonzero(option.question.graph.directed[:, x]))
                for option in found
            }
            assert own == parents
            checked += 1
    assert checked > 10


def test_cpdag_gives_bounds() -> None:
    found = jaxcd.effect(FREE, treatment="smoke", outcome="dysp", graph=ASIA.cpdag())
    assert not found.identified and found.adjustment is None and len(found.possible) > 1
    assert found.low == min(one.low for one in found.possible)
    assert found.high == max(one.high for one in found.possible)
    assert found.low <= true_effect(ASIA, "smoke", "dysp") <= found.high
    assert math.isnan(found.estimate) and found.to_json_dict()["estimate"] is None
    assert found.measured and all(one.low <= one.estimate <= one.high for one in found.possible)
    whole = jaxcd.effect(FREE, treatment="either", outcome="xray", graph=ASIA.cpdag())
    assert whole.identified


def test_pag() -> None:
    names = ["a", "x", "y"]
    open_graph = MixedGraph.from_edges(names, ["a o-> x", "x --> y"])  # x --> y is visible
    domain = jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in names})
    codes = np.random.default_rng(0).integers(0, 2, (500, 3)).astype(np.int32)
    data = jaxcd.Dataset.from_codes(codes, domain=domain)
    free = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    found = jaxcd.effect(free, treatment="x", outcome="y", graph=open_graph)
    assert found.identified and found.adjustment == ()
    hidden = MixedGraph.from_edges(names, ["x o-> y"])
    lost = jaxcd.effect(free, treatment="x", outcome="y", graph=hidden)
    assert not lost.identified and lost.is_open and lost.low > -1 and lost.high < 1
    assert lost.possible[0].estimate == 0 and len(lost.possible) == 1  # x <-> y; x --> y tells none
    assert math.isnan(lost.estimate) and "hidden" in lost.sentence
    zero = jaxcd.effect(free, treatment="y", outcome="x", graph=open_graph)
    assert zero.identified and (zero.estimate, zero.low, zero.high) == (0, 0, 0)
    assert "no effect" in zero.sentence
    several = dataclasses.replace(zero, n_graphs=11)
    assert "none of the 11 graphs" in several.sentence and "small epsilon" in several.sentence


def with_hidden_cause(kind):
    """A release of x, y, z, where u is behind x and z, and z behind y."""
    rng, n = np.random.default_rng(0), 5_000
    u = rng.normal(size=n)
    x, z = u + rng.normal(size=n), u + rng.normal(size=n)
    values = np.column_stack([x, x + z + rng.normal(size=n), z])
    if isinstance(kind, jaxcd.SecondMoments):
        domain = jaxcd.Domain(dict.fromkeys("xyz", jaxcd.Numeric()))
        return jaxcd.release(
            jaxcd.Dataset.from_array(values, domain=domain), kind, budget=jaxcd.NO_PRIVACY
        )
    domain = jaxcd.Domain(dict.fromkeys("xyz", jaxcd.Categorical((0, 1))))
    data = jaxcd.Dataset.from_codes((values > 0).astype(np.int32), domain=domain)
    return jaxcd.release(data, kind, budget=jaxcd.NO_PRIVACY)


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.SecondMoments()])
def test_a_node_that_the_release_lacks_is_a_hidden_cause(kind) -> None:
    release = with_hidden_cause(kind)
    asked = {"treatment": "x", "outcome": "y"}
    edges = [("u", "x"), ("u", "y"), ("w", "x"), ("x", "y")]
    open_pag = MixedGraph.from_edges(["x", "y", "z"], ["x o-> y"])
    bounds = jaxcd.effect(release, **asked, graph=open_pag)
    for whole_graph in (None, False, True):
        lost = jaxcd.effect(release, **asked, graph=nx.DiGraph(edges), whole_graph=whole_graph)
        assert not lost.identified and lost.is_open and math.isnan(lost.estimate)
        assert (lost.low, lost.high) == (bounds.low, bounds.high)
        assert lost.unmeasured == ("u",) and "u has to be held fixed" in lost.sentence
        assert lost.possible == () and lost.adjustment is None
        assert not any("no cause of two columns" in words for words in lost.assumptions)
        assert lost.to_json_dict()["unmeasured"] == ["u"]
    both = jaxcd.effect(release, **asked, graph=[nx.DiGraph(edges), nx.DiGraph([("x", "y")])])
    assert not both.identified and both.unmeasured == ("u",)


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.SecondMoments()])
@pytest.mark.parametrize(
    ("edges", "adjustment"),
    [
        ([("u", "x"), ("u", "z"), ("z", "y"), ("x", "y")], ("z",)),  # z is in its place
        ([("u", "x"), ("x", "y")], ()),  # of one child it is the cause of no dependence
        ([("x", "u"), ("u", "y")], ()),  # between the two nothing is held fixed
        ([("x", "y"), ("x", "u"), ("y", "u")], ()),
    ],
)
def test_a_node_that_the_release_lacks_does_no_harm_where_another_set_will_do(
    edges, adjustment, kind
) -> None:
    release = with_hidden_cause(kind)
    found = jaxcd.effect(release, treatment="x", outcome="y", graph=nx.DiGraph(edges))
    assert found.identified and found.adjustment == adjustment and found.unmeasured == ()
    assert found.low <= found.estimate <= found.high
    named = jaxcd.effect(release, treatment="y", outcome="x", graph=nx.DiGraph(edges))
    assert named.identified and named.estimate == 0
    for treatment, outcome in (("u", "y"), ("x", "u")):
        with pytest.raises(OptionError, match="'u' is no column of the release"):
            jaxcd.effect(release, treatment=treatment, outcome=outcome, graph=nx.DiGraph(edges))


def test_a_class_with_a_node_that_the_release_lacks() -> None:
    """Each DAG of it is asked by itself: a node that none needs leaves the possible effects."""
    release = with_hidden_cause(jaxcd.SecondMoments())
    asked = {"treatment": "x", "outcome": "y"}
    names = ["x", "y", "z", "u"]
    harmless = MixedGraph.from_edges(names, ["x --- y", "z --- u"])
    found = jaxcd.effect(release, **asked, graph=harmless)
    assert not found.is_open and len(found.possible) == 2 and found.unmeasured == ()
    needed = MixedGraph.from_edges(names, ["x --- y", "x --- u", "y --- u"])
    lost = jaxcd.effect(release, **asked, graph=needed)
    assert lost.is_open and lost.unmeasured == ("u",) and math.isnan(lost.estimate)
    options = possibilities(needed, "x", "y", ("u",))
    assert options[-1].is_open and any(option.is_zero for option in options)


def test_many_columns_held_fixed_in_the_place_of_one_that_the_release_lacks() -> None:
    """More than the largest set that is listed."""
    names = ["x", "y", *(f"z{j}" for j in range(6))]
    edges = [("u", "x"), ("x", "y"), *(("u", name) for name in names[2:])]
    edges += [(name, "y") for name in names[2:]]
    rows = np.random.default_rng(0).normal(size=(300, len(names)))
    domain = jaxcd.Domain(dict.fromkeys(names, jaxcd.Numeric()))
    data = jaxcd.Dataset.from_array(rows, domain=domain)
    free = jaxcd.release(data, jaxcd.SecondMoments(), budget=jaxcd.NO_PRIVACY)
    found = jaxcd.effect(free, treatment="x", outcome="y", graph=nx.DiGraph(edges))
    assert found.identified and set(found.adjustment) == set(names[2:])


def unidentified(n: int, step: int) -> Iterator[tuple[MixedGraph, list[MixedGraph], str, str]]:
    """Pairs of which a PAG leaves the effect open."""
    for graph, mags in list(pags(n).items())[::step]:
        for x, y in itertools.permutations(graph.names, 2):
            question = Adjustment(graph, x, y, is_latent=True)
            if question.may_affect and not question.exists and question.is_latent:
                yield graph, mags, x, y


@pytest.mark.parametrize(
    ("n", "step"), [(3, 1), (4, 36), pytest.param(4, 9, marks=pytest.mark.slow)]
)
def test_members_of_a_pag_and_what_they_say_of_effects(n: int, step: int) -> None:
    """Sets and zeros are those of the DAGs behind each MAG; one MAG leaves the effect open."""
    checked = 0
    for graph, mags, x, y in unidentified(n, step):
        found = possibilities(graph, x, y)
        assert found[-1].is_open and not any(option.is_open for option in found[:-1])
        assert set(members(graph)) == set(mags)
        wanted, is_open = set(), False
        place = {name: k for k, name in enumerate(graph.names)}
        for mag in mags:
            if not Adjustment(mag, x, y, is_latent=True).may_affect:
                wanted.add("zero")
                continue
            sets = set.intersection(
                *(linear_sets(dag, place[x], place[y], n) for dag in dags_behind(mag))
            )
            is_open = is_open or not sets
            if sets:
                wanted.add(frozenset(sets))
        assert is_open
        told = {
            "zero"
            if option.is_zero
            else frozenset(tuple(place[name] for name in names) for names in option.sets)
            for option in found[:-1]
        }
        assert told == wanted, (str(graph), x, y)
        checked += 1
    assert checked > 20


def test_too_many_members_are_not_listed() -> None:
    whole = MixedGraph(list("abcde"), 1 - np.eye(5, dtype=np.int8))
    assert members(whole) is None
    assert [option.is_open for option in possibilities(whole, "a", "b")] == [True]


def test_noise_does_not_turn_the_bounds_around() -> None:
    """With noise of 2,000 on 50 rows the bounds are all that is possible, or nearly."""
    domain = jaxcd.Domain({"x": jaxcd.Categorical((0, 1)), "y": jaxcd.Categorical((0, 1, 2))})
    codes = np.random.default_rng(0).integers(0, 2, (50, 2)).astype(np.int32)
    data = jaxcd.Dataset.from_codes(codes, domain=domain)
    pag = MixedGraph.from_edges(["x", "y"], ["x o-o y"])
    for seed in range(30):
        release = bought(data, epsilon=1e-3, seed=seed)
        found = jaxcd.effect(release, treatment="x", outcome="y", graph=pag)
        assert -2 <= found.low < found.high <= 2, seed


@pytest.mark.parametrize("seed", range(6))
def test_nothing_hidden_leads_out_of_the_bounds(seed: int) -> None:
    """A hidden cause of treatment and outcome, at its worst: the ends are reached."""
    rng = np.random.default_rng(seed)
    counts = rng.dirichlet(np.ones(6)).reshape(2, 3)  # treatment, outcome with scores 0, 1, 2
    n = 200_000
    rows = rng.choice(6, size=n, p=counts.ravel())
    codes = np.column_stack([rows // 3, rows % 3])
    domain = jaxcd.Domain({"x": jaxcd.Categorical(("a", "b")), "y": jaxcd.Ordinal((0, 1, 2))})
    data = jaxcd.Dataset.from_codes(codes.astype(np.int32), domain=domain)
    graph = MixedGraph.from_edges(["x", "y"], ["x o-o y"])
    for release in (
        jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY),
        jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=simulated(seed)),
    ):
        found = jaxcd.effect(release, treatment="x", outcome="y", graph=graph)
        share = counts.sum(axis=1)
        means = counts @ np.arange(3)
        low = means[1] - (means[0] + 2 * share[1])  # rows of b would be 2 under a, of a 0 under b
        high = means[1] + 2 * share[0] - means[0]
        assert found.low == pytest.approx(low, abs=0.03) and found.low <= low + 0.01
        assert found.high == pytest.approx(high, abs=0.03) and found.high >= high - 0.01


def test_without_a_graph() -> None:
    network = jaxcd.networks.load("cancer")
    release = bought(network.sample(50_000, key=jax.random.key(3)))
    options = {"treatment": "Cancer", "outcome": "Xray", "n_draws": 2}
    found = jaxcd.effect(release, **options)
    assert found.n_graphs == 3 and "searches" in found.assumptions[0]
    assert found == jaxcd.effect(release, **options)
    assert found.low <= true_effect(network, "Cancer", "Xray") <= found.high
    graphs = jaxcd.effects.drawn_graphs(release, n_draws=2)
    again = jaxcd.effect(release, treatment="Cancer", outcome="Xray", graph=graphs)
    assert (again.low, again.high) == (found.low, found.high)


def test_a_run_is_a_graph() -> None:
    run = jaxcd.ges(jaxcd.release(ROWS, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY))
    found = jaxcd.effect(FREE, treatment="smoke", outcome="bronc", graph=run)
    assert found == jaxcd.effect(FREE, treatment="smoke", outcome="bronc", graph=run.graph)


def test_equal_is_what_says_the_same_be_it_nan() -> None:
    graph = jaxcd.ges(FREE).graph
    found = jaxcd.effect(FREE, treatment="smoke", outcome="bronc", graph=graph)
    assert math.isnan(found.estimate) and len(found.possible) > 1
    unmeasured = [dataclasses.replace(one, estimate=float("nan")) for one in found.possible]
    for one in (found, dataclasses.replace(found, possible=tuple(unmeasured)), unmeasured[0]):
        same = pickle.loads(pickle.dumps(one))
        assert same == one and hash(same) == hash(one)
        assert same != dataclasses.replace(one, estimate=0.0) and same != dataclasses.astuple(one)


# ---- linear models


def linear(seed: int, n: int, p: int = 6):
    dag = random_dag(p, expected_degree=2.5, seed=seed)
    model = linear_gaussian_sem(dag, key=jax.random.key(seed))
    return model, model.sample(n, key=jax.random.key(seed + 1))


def test_coefficients_without_privacy_are_regressions() -> None:
    model, data = linear(3, 20_000)
    free = jaxcd.release(data, jaxcd.SecondMoments(), budget=jaxcd.NO_PRIVACY)
    frame, graph, compared = data.to_frame(), MixedGraph.from_dag(model.dag), 0
    for x, y in itertools.permutations(graph.names, 2):
        if not Adjustment(graph, x, y).may_affect:
            continue
        found = jaxcd.effect(free, treatment=x, outcome=y, graph=graph)
        columns = frame[[x, *found.adjustment]].to_numpy()
        design = np.column_stack([np.ones(len(columns)), columns])
        slopes, rest, *_ = np.linalg.lstsq(design, frame[y].to_numpy(), rcond=None)
        variance = rest[0] / (len(design) - design.shape[1])
        error = math.sqrt(variance * np.linalg.inv(design.T @ design)[1, 1])
        # The tilt downweights far rows: estimates differ by a share of their error.
        assert abs(found.estimate - slopes[1]) < error
        half = (found.high - found.low) / 2 / 1.96
        assert error * 0.98 < half < error * 1.35
        assert found.sentence.startswith(f"One unit more of {x} would change the mean of {y} by")
        nearly_sure = jaxcd.effect(free, treatment=x, outcome=y, graph=graph, level=0.99999999)
        assert "(99.999999 % interval)" in nearly_sure.sentence
        doubled = jaxcd.effect(free, treatment=x, outcome=y, graph=graph, levels=(1, 3))
        assert doubled.estimate == pytest.approx(2 * found.estimate)
        compared += 1
    assert compared >= 5


def moments(columns: dict[str, np.ndarray]) -> jaxcd.Release:
    domain = jaxcd.Domain(dict.fromkeys(columns, jaxcd.Numeric(-9, 9)), declared=True)
    data = jaxcd.Dataset.from_frame(pd.DataFrame(columns), domain=domain)
    return jaxcd.release(data, jaxcd.SecondMoments(), budget=jaxcd.NO_PRIVACY)


@pytest.mark.parametrize("own", [0.0, 1e-5, None], ids=["a function", "nearly", "constant"])
def test_a_treatment_that_does_not_vary_by_itself_tells_nothing(own, command, tmp_path) -> None:
    """Of a --> b with c --> a, c --> b nothing is known where c determines a."""
    rng, n = np.random.default_rng(0), 2_000
    c = rng.normal(size=n)
    a = np.ones(n) if own is None else c + own * rng.normal(size=n)
    release = moments({"c": c, "a": a, "b": c + rng.normal(size=n)})
    edges = ["a --> b"] if own is None else ["c --> a", "c --> b", "a --> b"]
    graph = MixedGraph.from_edges(["c", "a", "b"], edges)
    found = jaxcd.effect(release, treatment="a", outcome="b", graph=graph)
    assert (found.low, found.high) == (-math.inf, math.inf) and math.isnan(found.estimate)
    assert found.identified and not found.measured and "does not vary by itself" in found.sentence
    json.dumps(found.to_json_dict(), allow_nan=False)
    other = jaxcd.effect(release, treatment="c", outcome="b", graph=nx.DiGraph([("c", "b")]))
    assert other.high - other.low < 0.2
    text = tmp_path / "graph.json"
    text.write_text(json.dumps(graph.to_json_dict()))
    words = f"effect {release.save(tmp_path / 'bought')} --treatment a --outcome b --graph {text}"
    assert "does not vary by itself" in command(words)[1]


@pytest.mark.parametrize("own", [1.0, 0.1])
def test_a_treatment_that_noise_hides_tells_nothing(own: float) -> None:
    """Intervals cover also where what varies in the treatment alone is less than the noise: what
    is released of it then is the noise, by which the cause c would be divided.
    """
    graph = MixedGraph.from_edges(["c", "a", "b"], ["c --> a", "c --> b", "a --> b"])
    domain = jaxcd.Domain(dict.fromkeys("cab", jaxcd.Numeric(-9, 9)), declared=True)
    inside, open_ended = 0, {}
    for n in (300, 30_000):
        open_ended[n] = 0
        for seed in range(20):
            rng = np.random.default_rng(seed)
            c = rng.normal(size=n)
            a = c + own * rng.normal(size=n)
            frame = pd.DataFrame({"c": c, "a": a, "b": a - c + rng.normal(size=n)})
            data = jaxcd.Dataset.from_frame(frame, domain=domain)
            release = bought(data, jaxcd.SecondMoments(), 0.5, 1e-6, seed)
            found = jaxcd.effect(release, treatment="a", outcome="b", graph=graph)
            inside += found.low <= 1 <= found.high
            open_ended[n] += math.isinf(found.high)
            assert math.isinf(found.high) == math.isnan(found.estimate)
    assert inside >= 36  # of 40
    assert open_ended[300] > 10 and open_ended[30_000] == 0


@pytest.mark.slow
@pytest.mark.parametrize("held", [False, True])
def test_coefficients_of_few_rows_cover(held: bool) -> None:
    """Student's quantiles; with as many rows as numbers nothing is known of the error."""
    rng = np.random.default_rng(0)
    graph = MixedGraph.from_edges(["c", "a", "b"], ["a --> b", *["c --> a", "c --> b"][: 2 * held]])
    inside = 0
    for n in (3 + held, 5, 8) * 40:
        c = rng.normal(size=n)
        a = c * held + rng.normal(size=n)
        release = moments({"c": c, "a": a, "b": a / 2 + c + rng.normal(size=n)})
        found = jaxcd.effect(release, treatment="a", outcome="b", graph=graph)
        inside += found.low <= 0.5 <= found.high
    assert inside >= 107  # of 120
    few = moments({"c": c[: 2 + held], "a": a[: 2 + held], "b": (a + c)[: 2 + held]})
    found = jaxcd.effect(few, treatment="a", outcome="b", graph=graph)
    assert (found.low, found.high) == (-math.inf, math.inf) and "too few rows" in found.sentence


def test_noise_makes_students_quantiles_no_narrower() -> None:
    _, data = linear(0, 60)
    for release in (bought(data, jaxcd.SecondMoments(), 50.0, 1e-6), moments(data.to_frame())):
        names = release.names
        regressions = release.linear()
        found = regressions.coefficient(names[0], names[1], names[2:4])
        quiet = dataclasses.replace(release, sigma=0.0).linear()
        without = quiet.coefficient(names[0], names[1], names[2:4])
        assert without.freedom == 60 - 2 - 2
        assert found.freedom >= without.freedom and found.variance >= without.variance
        assert (found.freedom > 60) == (release.sigma > 0)


def test_coefficients_with_noise_cover() -> None:
    inside = total = 0
    for seed in range(12):
        model, data = linear(seed, 20_000)
        release = bought(data, jaxcd.SecondMoments(), 1.0, 1e-6, seed)
        graph = MixedGraph.from_dag(model.dag)
        names = list(graph.names)
        weights = np.zeros((6, 6))
        for node in names:
            how = model.mechanisms[node]
            for parent, weight in zip(how.parents, how.weights, strict=True):
                weights[names.index(parent), names.index(node)] = weight
        truth = np.linalg.inv(np.eye(6) - weights)
        for i, j in itertools.permutations(range(6), 2):
            if Adjustment(graph, names[i], names[j]).may_affect:
                found = jaxcd.effect(release, treatment=names[i], outcome=names[j], graph=graph)
                inside += found.low <= truth[i, j] <= found.high
                total += 1
    assert total > 60 and 0.88 < inside / total <= 1.0


# ---- refusals


def test_refusals() -> None:
    options = {"treatment": "smoke", "outcome": "dysp", "graph": ASIA.dag}
    with pytest.raises(OptionError, match="no release"):
        jaxcd.effect(ROWS, **options)
    with pytest.raises(OptionError, match="no column"):
        jaxcd.effect(FREE, treatment="smok", outcome="dysp")
    with pytest.raises(OptionError, match="treatment itself"):
        jaxcd.effect(FREE, treatment="smoke", outcome="smoke")
    with pytest.raises(OptionError, match="level"):
        jaxcd.effect(FREE, **options, level=1.5)
    for levels in ({"yes", "no"}, {"yes": 1, "no": 0}, "yn"):
        with pytest.raises(OptionError, match=r"not two levels \(from, to\) of 'smoke'"):
            jaxcd.effect(FREE, **options, levels=levels)
    for odd in ({"levels": np.eye(2)}, {"outcome_level": np.ones(2)}):
        with pytest.raises(OptionError, match="no level of"):
            jaxcd.effect(FREE, **options, **odd)
    with pytest.raises(OptionError, match="seed"):
        jaxcd.effect(FREE, treatment="smoke", outcome="dysp", seed=2**63)
    for whole_graph in (0, "no"):
        with pytest.raises(OptionError, match="whole_graph"):
            jaxcd.effect(FREE, **options, whole_graph=whole_graph)
    with pytest.raises(GraphError, match="no node 'smoke'"):
        jaxcd.effect(FREE, treatment="smoke", outcome="dysp", graph=nx.DiGraph([("dysp", "b")]))
    with pytest.raises(GraphError, match="is no graph"):
        jaxcd.effect(FREE, treatment="smoke", outcome="dysp", graph="smoke -> dysp")
    with pytest.raises(OptionError, match="empty"):
        jaxcd.effect(FREE, treatment="smoke", outcome="dysp", graph=[])
    cyclic = nx.DiGraph([("smoke", "dysp"), ("dysp", "tub"), ("tub", "smoke")])
    with pytest.raises(GraphError, match="cycle"):
        jaxcd.effect(FREE, treatment="smoke", outcome="dysp", graph=cyclic)


def test_an_interval_of_next_to_no_level_is_the_estimate() -> None:
    for release in (FREE, bought()):
        options = {"treatment": "smoke", "outcome": "dysp", "graph": ASIA.dag, "level": 1e-300}
        found = jaxcd.effect(release, **options)
        assert found.low == pytest.approx(found.estimate) == pytest.approx(found.high)


def test_two_numbers_of_a_numeric_treatment_have_an_order() -> None:
    rows = np.random.default_rng(0).normal(size=(100, 2))
    release = moments({"a": rows[:, 0], "b": rows[:, 1]})
    graph = nx.DiGraph([("a", "b")])
    for levels in ({0.0, 1.0}, "01", (1.0,), 1.0, (10**400, 0)):
        with pytest.raises(OptionError, match="'a'"):
            jaxcd.effect(release, treatment="a", outcome="b", graph=graph, levels=levels)


def test_a_level_of_numpys_can_be_written() -> None:
    rows = np.random.default_rng(0).normal(size=(100, 2))
    release = moments({"a": rows[:, 0], "b": rows[:, 1]})
    graph = nx.DiGraph([("a", "b")])
    options = {"levels": np.float32([0, 1]), "level": np.float32(0.5)}
    found = jaxcd.effect(release, treatment="a", outcome="b", graph=graph, **options)
    assert json.loads(json.dumps(found.to_json_dict()))["level"] == 0.5


def test_an_outcome_of_one_level_is_no_word_of_the_graph() -> None:
    """Nothing changes it, though the graph has the arc."""
    columns = {"a": jaxcd.Categorical((0, 1)), "b": jaxcd.Categorical((0,))}
    codes = np.column_stack([np.arange(50) % 2, np.zeros(50, int)])
    data = jaxcd.Dataset.from_codes(codes, domain=jaxcd.Domain(columns))
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    for arcs, by_graph in (([("a", "b")], False), ([("b", "a")], True)):
        graph = nx.DiGraph(arcs)
        found = jaxcd.effect(bought, treatment="a", outcome="b", graph=graph)
        assert found.low == found.estimate == found.high == 0
        assert found.sentence.startswith("By the graph, a has no effect on b") == by_graph


def test_features_are_refused() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    domain = jaxcd.Domain({name: jaxcd.Numeric(-6, 6) for name in "ab"})
    data = jaxcd.Dataset.from_array(np.clip(x, -6, 6), names=list("ab"), domain=domain)
    release = bought(data, jaxcd.Features(), 1.0, 1e-6)
    with pytest.raises(OptionError, match="neither tables nor moments"):
        jaxcd.effect(release, treatment="a", outcome="b", graph=nx.DiGraph([("a", "b")]))


def _half_written(_: object, path: Path, **__: object) -> None:
    path.write_bytes(b"half")
    raise OSError("the disk is full")


def test_picture(tmp_path, monkeypatch) -> None:
    found = jaxcd.effect(FREE, treatment="smoke", outcome="dysp", graph=ASIA.cpdag())
    found.plot(tmp_path / "forest.png")
    old = (tmp_path / "forest.png").read_bytes()
    assert len(old) > 1000
    with monkeypatch.context() as patch:  # what fails while it is written leaves the old one
        patch.setattr("matplotlib.figure.Figure.savefig", _half_written)
        with pytest.raises(OSError, match="full"):
            found.plot(tmp_path / "forest.png")
    assert (tmp_path / "forest.png").read_bytes() == old and len(list(tmp_path.iterdir())) == 1
    figure = jaxcd.effects.forest_plot([found, found], truths=[0.2, 0.2])
    assert len(figure.axes[0].get_yticks()) == 2 * len(found.possible)
    with pytest.raises(OptionError, match="none to draw"):
        jaxcd.effects.forest_plot([])
    with pytest.raises(OptionError, match="truths"):
        jaxcd.effects.forest_plot([found], truths=[0.1, 0.2])


# ---- the command line


def test_command_line(command: CommandLine, tmp_path) -> None:
    path = tmp_path / "asia.npz"
    bought().save(path)
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps(MixedGraph.from_dag(ASIA.dag).to_json_dict()))
    words = f"effect {path} --treatment smoke --outcome dysp --graph {graph}"
    code, out, err = command(words)
    assert code == 0 and "if the graph is right" in out and "Nothing more" in out
    assert err.count("\n") == 1 and "not for release: the noise was simulated" in err
    code, out, err = command(words, "--json", "--plot", tmp_path / "forest.svg")
    read = json.loads(out)
    assert read["identified"] and read["low"] < read["estimate"] < read["high"]
    assert read["proven"] is False and "simulated" in read["reason"]
    assert (tmp_path / "forest.svg").is_file()
    code, out, err = command(words, "--missing", "level")  # as jaxcd search says
    assert code != 0 and not out and "no column of the release has missing cells; drop it" in err
    assert command(words, "--missing", "ignore")[0] == 0
    dot = tmp_path / "graph.dot"
    dot.write_text(ASIA.cpdag().to_dot())
    code, out, _ = command(f"effect {path} --treatment smoke --outcome dysp --graph {dot}")
    assert code == 0 and "together" in out
    # a program gets all the effects of the class as well, and none of them as the effect
    read = json.loads(command(f"{words[: -len(str(graph))]}{dot} --json")[1])
    estimates = [one["estimate"] for one in read["possible"]]
    assert read["estimate"] is None and not read["identified"] and len(estimates) == 3
    assert all(read["low"] <= one <= read["high"] for one in estimates)
    assert all(f"  {one:+.4g}  (" in out for one in estimates)
    assert "the graph leaves open which of them is right:" in out
    assert "  holding nothing fixed\n" in out and "of the graphs" not in out
    code, out, _ = command(f"effect {path} --treatment asia --outcome tub --graph {dot}")
    assert code == 0 and "  no effect\n" in out and "  holding nothing fixed\n" in out
    code, out, _ = command(f"effect {path} --treatment smoke --outcome dysp --draws 1")
    assert code == 0 and "share of the 2 graphs that allow each;" in out
    assert " fixed, in 100% of the graphs\n" in out
    for wrong, message in (
        (f"effect {path} --treatment smoke --outcome nobody --graph {graph}", "no column"),
        (f"effect {tmp_path / 'no.npz'} --treatment a --outcome b", "does not exist"),
        (f"{words} --plot forest.txt", "ends in"),
        (f"{words} --levels yes", "two levels"),
        (f"{words} --levels yes,yes", "levels 'yes' and 'yes': the two are the same"),
        (f"{words} --levels yes,x", "levels: 'x' is no level of 'smoke'; it has 'yes' and 'no'"),
        (f"effect {path} --treatment smoke --outcome dysp --latent", "--graph"),
        (f"{words[: -len(str(graph))]}{path}", "not a graph"),
    ):
        code, out, err = command(wrong)
        assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_cause_that_nobody_measured() -> None:
    """Where all sets need it the effect is open, and bounded; else another set serves."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 4_000)
    x, z = ((rng.random(4_000) < 0.2 + 0.6 * hidden).astype(int) for _ in range(2))
    y = (rng.random(4_000) < 0.2 + 0.3 * x + 0.3 * hidden).astype(int)
    data = jaxcd.Dataset.from_array(
        np.column_stack([x, z, y]),
        names=["x", "z", "y"],
        domain=jaxcd.Domain({name: jaxcd.Categorical((0, 1)) for name in "xzy"}),
    )
    found = jaxcd.effect(
        bought(data, epsilon=5.0),
        treatment="x",
        outcome="y",
        graph=nx.DiGraph([("U", "x"), ("U", "y"), ("U", "z"), ("x", "y")]),
    )
    assert not found.identified and found.adjustment is None and math.isnan(found.estimate)
    assert -1 < found.low < 0.3 < found.high < 1 and "U has to be held" in found.sentence
    served = jaxcd.effect(
        bought(data, epsilon=5.0),
        treatment="x",
        outcome="y",
        graph=nx.DiGraph([("U", "x"), ("U", "z"), ("z", "y"), ("x", "y")]),
    )
    assert served.identified and served.adjustment == ("z",) and served.low < served.high


@pytest.mark.parametrize("levels", [(2.0, 2.0), ("3", 3), (0.0, math.inf)])
def test_two_numbers_to_compare_are_two(levels) -> None:
    rows = np.random.default_rng(0).normal(size=(500, 2))
    domain = jaxcd.Domain({name: jaxcd.Numeric(-9, 9) for name in "ab"})
    data = jaxcd.Dataset.from_array(rows, domain=domain)
    free = jaxcd.release(data, jaxcd.SecondMoments(), budget=jaxcd.NO_PRIVACY)
    graph = MixedGraph.from_edges(["a", "b"], ["a --> b"])
    with pytest.raises(OptionError, match="'a' is numeric; give two different numbers"):
        jaxcd.effect(free, treatment="a", outcome="b", graph=graph, levels=levels)


def test_arrays_are_no_names_and_no_levels() -> None:
    """They ended with a bare error."""
    data = jaxcd.networks.load("cancer").sample(200, key=jax.random.key(0))
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    asked = {"treatment": "Smoker", "outcome": "Cancer", "n_draws": 0}
    for argument in ("treatment", "outcome"):
        with pytest.raises(OptionError, match=f"{argument}: array.* is no column"):
            jaxcd.effect(bought, **{**asked, argument: np.array([])})
    with pytest.raises(OptionError, match="levels array.1. are not two levels"):
        jaxcd.effect(bought, **asked, levels=np.array(1))
