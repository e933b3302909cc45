"""Effects where the domain says more than levels: rows in which the treatment was set, and missing
cells that are read as a level.
"""

from __future__ import annotations

import jax
import numpy as np
import pandas as pd
import pytest

import jaxcd
from jaxcd.errors import OptionError
from tests.helpers import designed

NOISE = jaxcd.SimulatedNoise(jax.random.key(0))
GRAPH = jaxcd.MixedGraph.from_edges(["arm", "b", "d"], ["arm --> b", "arm --> d", "b --> d"])


def trial(n: int, seed: int) -> jaxcd.Dataset:
    """b raises the share of d by .4 in every arm; arm "set" sets b to 1."""
    rng = np.random.default_rng(seed)
    arm = rng.choice(["control", "set", "other"], n)
    b = np.where(arm == "set", 1, rng.integers(0, 2, n))
    d = (rng.random(n) < 0.2 + 0.4 * b + 0.1 * (arm == "other")).astype(int)
    domain = jaxcd.Domain(
        {
            "arm": jaxcd.Categorical(("control", "set", "other")),
            "b": jaxcd.Categorical((0, 1)),
            "d": jaxcd.Categorical((0, 1)),
        },
        interventions={"arm": {"set": ("b",)}},
    )
    return jaxcd.Dataset.from_frame(pd.DataFrame({"arm": arm, "b": b, "d": d}), domain=domain)


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.LogLinear()])
@pytest.mark.parametrize("whole_graph", [None, False, True])
def test_rows_in_which_the_treatment_was_set_are_left_out(
    kind: jaxcd.releases.ReleaseKind, whole_graph: bool | None
) -> None:
    data = trial(20_000, 0)
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    bought = jaxcd.release(data, kind, budget=jaxcd.Budget(2.0, 1e-6), noise=noise)
    found = jaxcd.effect(bought, treatment="b", outcome="d", graph=GRAPH, whole_graph=whole_graph)
    assert found.adjustment == ("arm",)
    assert found.low < 0.4 < found.high and found.high - found.low < 0.1
    assert any("arm" in each and "left out" in each for each in found.assumptions)


def test_without_noise_it_is_the_adjustment_formula_of_the_other_rows() -> None:
    data = trial(3_000, 1)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    found = jaxcd.effect(bought, treatment="b", outcome="d", graph=GRAPH)
    arm, b, d = np.asarray(data.codes).T
    natural = arm != 1
    by_arm = [
        (arm == a)[natural].mean()
        * (d[(arm == a) & (b == 1)].mean() - d[(arm == a) & (b == 0)].mean())
        for a in (0, 2)
    ]
    assert found.estimate == pytest.approx(sum(by_arm), abs=1e-9)


def set_outcome(n: int, seed: int) -> jaxcd.Dataset:
    """b raises the share of d by .4 where d is not set; half of the rows, in which b is common, set
    d to 1.
    """
    rng = np.random.default_rng(seed)
    arm = rng.choice(["control", "set", "other", "set"], n)
    b = (rng.random(n) < np.where(arm == "set", 0.7, 0.5)).astype(int)
    d = np.where(arm == "set", 1, rng.random(n) < 0.2 + 0.4 * b).astype(int)
    domain = jaxcd.Domain(
        {
            "arm": jaxcd.Categorical(("control", "set", "other")),
            "b": jaxcd.Categorical((0, 1)),
            "d": jaxcd.Categorical((0, 1)),
        },
        interventions={"arm": {"set": ("d",)}},
    )
    return jaxcd.Dataset.from_frame(pd.DataFrame({"arm": arm, "b": b, "d": d}), domain=domain)


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.LogLinear()])
@pytest.mark.parametrize("whole_graph", [None, False, True])
@pytest.mark.parametrize("edges", [["b --> d"], ["arm --> d", "b --> d"], GRAPH])
def test_rows_in_which_the_outcome_was_set_are_left_out(
    kind: jaxcd.releases.ReleaseKind, whole_graph: bool | None, edges: list[str] | jaxcd.MixedGraph
) -> None:
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    budget = jaxcd.Budget(2.0, 1e-6)
    bought = jaxcd.release(set_outcome(20_000, 1), kind, budget=budget, noise=noise)
    graph = (
        edges
        if isinstance(edges, jaxcd.MixedGraph)
        else jaxcd.MixedGraph.from_edges(["arm", "b", "d"], edges)
    )
    found = jaxcd.effect(bought, treatment="b", outcome="d", graph=graph, whole_graph=whole_graph)
    assert found.low < 0.4 < found.high and found.high - found.low < 0.1
    assert any("d was set are left out" in each for each in found.assumptions)


def test_without_noise_they_are_the_differences_of_the_other_rows() -> None:
    data = set_outcome(3_000, 1)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    arm, b, d = np.asarray(data.codes).T
    natural = arm != 1
    graph = jaxcd.MixedGraph.from_edges(["b", "d"], ["b --> d"])
    found = jaxcd.effect(bought, treatment="b", outcome="d", graph=graph)
    wanted = d[natural & (b == 1)].mean() - d[natural & (b == 0)].mean()
    assert found.estimate == pytest.approx(wanted, abs=1e-9)
    hidden = jaxcd.MixedGraph.from_edges(["b", "d"], ["b o-> d"])
    found = jaxcd.effect(bought, treatment="b", outcome="d", graph=hidden)
    assert found.is_open and found.high - found.low == pytest.approx(1, abs=0.1)
    # What setting the outcome does to it is read off the rows in which it was set.
    by_arm = jaxcd.MixedGraph.from_edges(["arm", "d"], ["arm --> d"])
    asked = {"treatment": "arm", "outcome": "d", "levels": ("control", "set")}
    assert jaxcd.effect(bought, **asked, graph=by_arm).estimate == pytest.approx(
        1 - d[arm == 0].mean(), abs=1e-9
    )


def test_where_every_arm_sets_one_of_the_two_the_effect_is_open() -> None:
    domain = jaxcd.Domain(
        {name: jaxcd.Categorical((0, 1)) for name in ("arm", "b", "d")},
        interventions={"arm": {0: ("b",), 1: ("d",)}},
    )
    codes = np.random.default_rng(0).integers(2, size=(200, 3)).astype(np.int32)
    data = jaxcd.Dataset.from_codes(codes, domain=domain)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    found = jaxcd.effect(bought, treatment="b", outcome="d", graph=GRAPH)
    assert (found.low, found.high) == (-1, 1)


def with_missing(levels: tuple[int, ...], kind: type) -> jaxcd.Dataset:
    rng = np.random.default_rng(3)
    n = 4_000
    x = rng.integers(0, 2, n)
    y = np.minimum((rng.random(n) < 0.3 + 0.4 * x) + rng.integers(0, 2, n), len(levels) - 1)
    frame = pd.DataFrame({"x": x, "y": y}).astype(object)
    frame.loc[rng.random(n) < 0.1, "y"] = None
    domain = jaxcd.Domain({"x": jaxcd.Categorical((0, 1)), "y": kind(levels, missing=True)})
    return jaxcd.Dataset.from_frame(frame, domain=domain)


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.LogLinear()])
def test_a_missing_outcome_counts_as_none_of_its_levels(kind: jaxcd.releases.ReleaseKind) -> None:
    data = with_missing((0, 1), jaxcd.Categorical)
    bought = jaxcd.release(data, kind, budget=jaxcd.NO_PRIVACY)
    graph = jaxcd.MixedGraph.from_edges(["x", "y"], ["x --> y"])
    x, y = np.asarray(data.codes).T
    for missing, kept in (("level", y >= 0), ("ignore", y < 2)):
        found = jaxcd.effect(bought, treatment="x", outcome="y", graph=graph, missing=missing)
        wanted = (y == 1)[kept & (x == 1)].mean() - (y == 1)[kept & (x == 0)].mean()
        assert found.estimate == pytest.approx(wanted, abs=0.02)
        assert ("missing" in found.unit) == (missing == "level")


def test_a_mean_has_no_place_for_a_missing_outcome() -> None:
    data = with_missing((0, 1, 2), jaxcd.Ordinal)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    graph = jaxcd.MixedGraph.from_edges(["x", "y"], ["x --> y"])
    asked = {"treatment": "x", "outcome": "y", "graph": graph, "missing": "level"}
    with pytest.raises(OptionError, match="outcome_level"):
        jaxcd.effect(bought, **asked)
    assert jaxcd.effect(bought, **asked, outcome_level=2).unit.startswith("probability of y = 2")


def test_knowledge_beside_a_given_graph_is_refused() -> None:
    bought = jaxcd.release(trial(500, 4), jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    known = jaxcd.Knowledge(forbidden=[("d", "b")])
    with pytest.raises(OptionError, match="oriented_by_knowledge"):
        jaxcd.effect(bought, treatment="b", outcome="d", graph=GRAPH, knowledge=known)


def test_bins_and_missing_cells_are_among_the_assumptions() -> None:
    """z explains all that b and d share; b changes nothing, but bins of z leave some of it."""
    rng = np.random.default_rng(0)
    n = 20_000
    z = rng.normal(size=n)
    b = (rng.random(n) < 1 / (1 + np.exp(-2 * z))).astype(int)
    d = np.where(rng.random(n) < 0.1, np.nan, 2 * z + rng.normal(size=n) > 0)
    domain = jaxcd.Domain(
        {
            "z": jaxcd.data.Binned((-5, -1, 0, 1, 5), missing=True),
            "b": jaxcd.Categorical((0, 1)),
            "d": jaxcd.Categorical((0, 1), missing=True),
        }
    )
    data = jaxcd.Dataset.from_frame(pd.DataFrame({"z": z, "b": b, "d": d}), domain=domain)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    graph = jaxcd.MixedGraph.from_edges(["z", "b", "d"], ["z --> b", "z --> d", "b --> d"])
    bins = "z is held fixed by its bins: within a bin it is no common cause of b and d"
    at_random = "cells of {} are missing completely at random: such rows are left out"

    found = jaxcd.effect(bought, treatment="b", outcome="d", graph=graph)
    assert found.low > 0.02  # of an effect of 0
    assert found.assumptions[2:] == (bins, at_random.format("d"), at_random.format("z"))
    found = jaxcd.effect(bought, treatment="b", outcome="d", graph=graph, missing="level")
    assert found.assumptions[2:] == (bins, "rows in which z is missing are alike in z")
    # nothing is read where the graph says that there is no effect
    assert len(jaxcd.effect(bought, treatment="b", outcome="z", graph=graph).assumptions) == 2


def chain(seed: int, n: int = 20_000) -> pd.DataFrame:
    """z -> x -> m -> y and z -> y; setting x raises the share of y = 1 by .25."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n)
    x = (rng.random(n) < np.array([0.2, 0.5, 0.8])[z]).astype(int)
    m = (np.array([[0.6, 0.8], [0.1, 0.3]])[x] <= rng.random((n, 1))).sum(axis=1)
    y = (rng.random(n) < 0.1 + 0.25 * m + 0.1 * z).astype(int)
    return pd.DataFrame({"z": z, "x": x, "m": m, "y": y})


CHAIN = jaxcd.MixedGraph.from_edges(
    ["z", "x", "m", "y"], ["z --> x", "x --> m", "m --> y", "z --> y"]
)


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals()], ids=["hist", "marg"])
@pytest.mark.parametrize("how", ["bins", "level"])
def test_what_a_cell_does_not_tell_does_not_separate(
    kind: jaxcd.releases.ReleaseKind, how: str
) -> None:
    """m separates x from y given z; its bins do not, nor do its missing cells read as a level."""
    frame, rng = chain(3), np.random.default_rng(4)
    z, x, y = (jaxcd.Categorical(tuple(range(k))) for k in (3, 2, 2))
    m: jaxcd.data.Column
    if how == "bins":
        m = jaxcd.data.Binned((0, 1, 2.5))
    else:
        m = jaxcd.Categorical((0, 1, 2), missing=True)
        frame = frame.astype({"m": object})
        frame.loc[rng.random(len(frame)) < 0.3, "m"] = None
    domain = jaxcd.Domain({"z": z, "x": x, "m": m, "y": y})
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    bought = jaxcd.release(data, kind, budget=jaxcd.Budget(2.0, 1e-6), noise=noise)
    asked = {"treatment": "x", "outcome": "y", "graph": CHAIN, "missing": "level"}
    found = jaxcd.effect(bought, **asked)
    assert found.low < 0.25 < found.high and found.adjustment == ("z",)
    assert found == jaxcd.effect(bought, whole_graph=False, **asked)
    # who asks for it is told what it takes for granted
    by_dag = jaxcd.effect(bought, whole_graph=True, **asked)
    assert by_dag.high < 0.25
    of_one = "one bin of m" if how == "bins" else "which m is missing"
    assert any(f"rows in {of_one} are alike in m" in each for each in by_dag.assumptions)


def test_bins_of_a_lone_cause_change_nothing() -> None:
    """w has no cause and one effect: its bins say of that effect what they say."""
    rng, n = np.random.default_rng(5), 20_000
    w, x = rng.normal(size=n), rng.integers(0, 2, n)
    m = ((w + x + rng.normal(size=n)) > 0.5).astype(int)
    y = (rng.random(n) < 0.2 + 0.5 * m).astype(int)
    columns = {name: jaxcd.Categorical((0, 1)) for name in ("x", "m", "y")}
    domain = jaxcd.Domain({"w": jaxcd.data.Binned((-5, -1, 0, 1, 5)), **columns})
    frame = pd.DataFrame({"w": w, "x": x, "m": m, "y": y})
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=noise)
    graph = jaxcd.MixedGraph.from_edges(["w", "x", "m", "y"], ["w --> m", "x --> m", "m --> y"])
    asked = {"treatment": "x", "outcome": "y", "graph": graph}
    by_dag, by_set = (jaxcd.effect(bought, whole_graph=choice, **asked) for choice in (None, False))
    assert by_dag.high - by_dag.low < by_set.high - by_set.low


def test_missing_cells_that_the_graph_s_tables_leave_out_are_among_the_assumptions() -> None:
    frame, rng = chain(6).astype({"m": object}), np.random.default_rng(7)
    frame.loc[rng.random(len(frame)) < 0.3, "m"] = None
    z, x, y = (jaxcd.Categorical(tuple(range(k))) for k in (3, 2, 2))
    m = jaxcd.Categorical((0, 1, 2), missing=True)
    domain = jaxcd.Domain({"z": z, "x": x, "m": m, "y": y})
    data = jaxcd.Dataset.from_frame(frame, domain=domain)
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(2.0), noise=noise)
    said = "cells of m are missing completely at random: such rows are left out"
    for whole_graph, reads_m in ((None, True), (True, True), (False, False)):
        found = jaxcd.effect(
            bought, treatment="x", outcome="y", graph=CHAIN, whole_graph=whole_graph
        )
        assert (said in found.assumptions) is reads_m
        assert found.low < 0.25 < found.high


@pytest.mark.parametrize("kind", [jaxcd.Histogram(), jaxcd.Marginals()], ids=["hist", "marg"])
@pytest.mark.parametrize("whole_graph", [None, False, True])
def test_contexts_may_depend_on_each_other_by_design(
    kind: jaxcd.releases.ReleaseKind, whole_graph: bool | None
) -> None:
    """arm -> x -> y <- site, with 85 % of a site's rows of one arm: x raises y by .1, and the arm,
    by x, by .06; rows of x = 1 are mostly of the site with more of y.
    """
    noise = jaxcd.SimulatedNoise(jax.random.key(0))
    data = designed(20_000, 0)
    bought = jaxcd.release(data, kind, budget=jaxcd.Budget(1.0, 1e-6), noise=noise)
    graph = jaxcd.MixedGraph.from_edges(data.names, ["arm --> x", "site --> y", "x --> y"])
    for treatment, truth in (("x", 0.1), ("arm", 0.06)):
        found = jaxcd.effect(
            bought, treatment=treatment, outcome="y", graph=graph, whole_graph=whole_graph
        )
        assert found.low < truth < found.high and found.high - found.low < 0.1
        assert found.adjustment in (("site",), ("arm",))
    found = jaxcd.effect(bought, treatment="arm", outcome="site", graph=graph)
    assert found.estimate == 0 and found.adjustment is None
    found = jaxcd.effect(bought, treatment="x", outcome="y", n_draws=2)
    assert found.low < 0.1 < found.high < 0.2


def test_a_class_with_contexts_allows_what_its_dags_allow() -> None:
    """arm -> x and site -> y are told, x --- y is not."""
    data = designed(20_000, 0)
    bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    edges = ["arm --> x", "arm --> y", "site --> x", "site --> y", "x --- y"]
    graph = jaxcd.MixedGraph.from_edges(data.names, edges)
    found = jaxcd.effect(bought, treatment="x", outcome="y", graph=graph)
    assert {one.adjustment for one in found.possible} == {None, ("arm", "site")}


def set_between(n: int, seed: int) -> jaxcd.Dataset:
    """a raises the share of b by .6, b that of c by .5; arm "a" sets a, arm "b" sets b."""
    rng = np.random.default_rng(seed)
    arm = rng.choice(["none", "a", "b"], n)
    a = (rng.random(n) < np.where(arm == "a", 0.9, 0.4)).astype(int)
    b = (rng.random(n) < np.where(arm == "b", 0.1, 0.2 + 0.6 * a)).astype(int)
    c = (rng.random(n) < 0.3 + 0.5 * b).astype(int)
    columns = {"arm": jaxcd.Categorical(("none", "a", "b"))}
    columns.update(dict.fromkeys("abc", jaxcd.Categorical((0, 1))))
    domain = jaxcd.Domain(columns, interventions={"arm": {"a": ("a",), "b": ("b",)}})
    frame = pd.DataFrame({"arm": arm, "a": a, "b": b, "c": c})
    return jaxcd.Dataset.from_frame(frame, domain=domain)


def test_an_effect_says_that_rows_count_in_which_what_is_between_was_set() -> None:
    """The effect is .3, and that of all rows less: those in which b was set have none."""
    bought = jaxcd.release(
        set_between(20_000, 0), jaxcd.Histogram(), budget=jaxcd.Budget(2.0), noise=NOISE
    )
    arcs = ["a --> b", "b --> c"]
    graphs = [
        jaxcd.MixedGraph.from_edges(list("abc"), arcs),
        jaxcd.MixedGraph.from_edges(["arm", *"abc"], ["arm --> a", "arm --> b", *arcs]),
        jaxcd.MixedGraph.from_edges(
            ["arm", *"abc"], ["arm --> a", "arm --> b", "a --- b", arcs[1]]
        ),
    ]
    said = (
        "rows in which arm says that b was set count as they were taken: in them a changes nothing "
        "by way of b"
    )
    for graph in graphs:
        found = jaxcd.effect(bought, treatment="a", outcome="c", graph=graph)
        assert found.high < 0.3 and said in found.assumptions
        # nothing was set on the way
        for treatment, outcome in (("b", "c"), ("a", "b"), ("c", "a")):
            found = jaxcd.effect(bought, treatment=treatment, outcome=outcome, graph=graph)
            assert not any("as they were taken" in each for each in found.assumptions)
    assert said in jaxcd.effect(bought, treatment="a", outcome="c", n_draws=1).assumptions
