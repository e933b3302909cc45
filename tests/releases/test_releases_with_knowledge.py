"""What knowledge saves a release of pairs: what is not measured, and the noise on the others."""

from __future__ import annotations

import itertools
import math
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxcd
from jaxcd.data import Dataset
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge
from jaxcd.ops.interactions import interaction
from jaxcd.privacy import NO_PRIVACY, Budget
from jaxcd.releases import LogLinear, Marginals
from jaxcd.releases.tables.marginal_purchase import pairs_sensitivity
from tests.helpers import SEEDS, dependent, refused, simulated

KINDS = [Marginals, LogLinear]
LEVELS = (2, 3, 2, 4, 2, 3)
NAMES = [f"v{j}" for j in range(6)]
#: three groups whose members are no causes of each other, and one arc
GROUPS = Knowledge(
    tiers=[["v0", "v1"], ["v2", "v3"], ["v4", "v5"]],
    forbidden_within_tier=True,
    required=[("v0", "v5")],
)
ABSENT = {(0, 1), (2, 3), (4, 5)}


def data(seed: int = 0, n: int = 4_000) -> Dataset:
    return dependent(seed, n, *LEVELS)


@pytest.mark.parametrize("kind", KINDS)
def test_forbidden_pairs_are_measured_only_within_larger_tables(kind: type) -> None:
    bought = kind(knowledge=GROUPS).release(data(), budget=Budget(2.0, 1e-6), noise=simulated(1))
    for pair in itertools.combinations(range(6), 2):
        larger = any(set(pair) < set(s) for s in bought.interactions)
        if pair in ABSENT and kind is Marginals:
            assert (pair in bought.interactions) == larger
        if pair not in ABSENT:
            assert pair in bought.interactions
        assert (pair[1] in bought.candidates[pair[0]]) <= (pair not in ABSENT)
    assert 5 in bought.candidates[0] and 0 in bought.candidates[5]
    run = jaxcd.search(bought, knowledge=GROUPS)
    assert run.graph.has_edge("v0", "v5", symbol="-->")
    assert not any(run.graph.adjacent(NAMES[i], NAMES[j]) for i, j in ABSENT)


@pytest.mark.parametrize("kind", KINDS)
def test_the_price_stays_and_the_noise_falls(kind: type) -> None:
    budget = Budget(1.0, 1e-6)
    plain = kind().release(data(), budget=budget, noise=simulated(1))
    known = kind(knowledge=GROUPS).release(data(), budget=budget, noise=simulated(1))
    assert known.cost == plain.cost
    assert known.spent.epsilon <= known.cost.epsilon
    domain = data().domain
    planned = [k.plan(domain, 4_000, budget=budget).noise for k in (kind(), kind(knowledge=GROUPS))]
    assert planned[1] < planned[0]
    first = [max(v for s, v in r.variances.items() if len(s) == 1) for r in (plain, known)]
    assert first[1] < first[0]


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS)
def test_the_sensitivity_bounds_every_replaced_row(seed: int) -> None:
    """Over all pairs of rows: the change of the columns' and the measured pairs' interactions."""
    rng = np.random.default_rng(seed)
    levels = tuple(int(k) for k in rng.integers(1, 4, size=4))
    pairs = list(itertools.combinations(range(4), 2))
    absent = frozenset(pair for pair in pairs if rng.random() < 0.5)
    sets = [*((j,) for j in range(4)), *(pair for pair in pairs if pair not in absent)]
    rows = list(itertools.product(*map(range, levels)))

    def measured(row: tuple[int, ...]) -> np.ndarray:
        parts = []
        for s in sets:
            counts = np.zeros([levels[j] for j in s])
            counts[tuple(row[j] for j in s)] = 1.0
            parts.append(np.asarray(interaction(counts)).ravel())
        return np.concatenate(parts)

    values = np.array([measured(row) for row in rows])
    exact = max(
        (float(np.linalg.norm(a - b)) for a, b in itertools.combinations(values, 2)), default=0.0
    )
    bound = pairs_sensitivity(levels, absent=absent)
    assert exact <= bound * (1 + 1e-12)
    assert bound <= pairs_sensitivity(levels)
    if absent:  # exact, where it is not the bound for all pairs
        assert bound <= exact * (1 + 1e-9) or math.isclose(bound, pairs_sensitivity(levels))


@pytest.mark.parametrize("budget", [Budget(1.0), Budget(1.0, 1e-6), NO_PRIVACY])
@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=4)
@given(seed=st.integers(0, 10_000))
def test_any_pairs_may_be_known(kind: type, budget: Budget, seed: int) -> None:
    rng = np.random.default_rng(seed)
    share = rng.random()
    arcs = [(a, b) for a, b in itertools.combinations(NAMES, 2) if rng.random() < share]
    required = [arc for arc in arcs if rng.random() < 0.3]
    forbidden = [arc for arc in arcs if arc not in required]
    known = Knowledge(required=required, forbidden=[*forbidden, *((b, a) for a, b in forbidden)])
    bought = kind(knowledge=known).release(data(seed, 500), budget=budget, noise=simulated(seed))
    graph = jaxcd.search(bought, knowledge=known).graph
    assert all(graph.has_edge(a, b, symbol="-->") for a, b in required)
    assert not any(graph.adjacent(a, b) for a, b in forbidden)
    jaxcd.pc(bought, test=jaxcd.GTest(), decider=jaxcd.Threshold(), key=None, knowledge=known)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_in_the_file(kind: type, tmp_path: Path) -> None:
    bought = kind(knowledge=GROUPS).release(data(), budget=Budget(2.0, 1e-6), noise=simulated(1))
    bought.save(tmp_path / "bought.npz")
    loaded = jaxcd.Release.load(tmp_path / "bought.npz")
    assert loaded.bought == kind(knowledge=GROUPS)
    run = jaxcd.search(loaded, knowledge=GROUPS)
    assert run.graph == jaxcd.search(bought, knowledge=GROUPS).graph
    assert jaxcd.edge_confidence(loaded, run, n_draws=2).of("v0", "v5").adjacent == 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_refused(kind: type) -> None:
    refused(OptionError, "no Knowledge", kind, knowledge=[("a", "b")])
    other = kind(knowledge=Knowledge(tiers=[["nobody"]]))
    refused(OptionError, "'nobody'", other.release, data(), budget=Budget(1.0, 1e-6))


def test_discover_buys_with_the_knowledge() -> None:
    wide = dependent(3, 2_000, *(4,) * 7)
    known = Knowledge(tiers=[["v0", "v1"], ["v5", "v6"]], forbidden_within_tier=True)
    budget = Budget(1.0, 1e-6)
    kind = jaxcd.recommend(wide.domain, 2_000, budget=budget).kind
    assert kind is not None
    run = jaxcd.discover(wide, budget=budget, key=None, noise=simulated(4), knowledge=known)
    bought = jaxcd.release(wide, kind.knowing(known), budget=budget, noise=simulated(4))
    assert run.graph == jaxcd.search(bought, knowledge=known).graph
    assert bought.bought == kind.knowing(known) != kind


@pytest.mark.parametrize("kind", [Marginals, LogLinear])
def test_a_required_edge_of_a_column_of_one_level_costs_nothing(kind: type) -> None:
    """Of a set with such a column there is nothing to measure; shares of 0 / 0 lost the later
    rounds.
    """
    data = jaxcd.networks.load("asia").sample(20_000, key=jax.random.key(0))
    codes = np.column_stack([data.discrete, np.zeros(data.n_samples, dtype=int)])
    levels = {name: jaxcd.Categorical((0, 1)) for name in data.names}
    domain = jaxcd.Domain({**levels, "site": jaxcd.Categorical((0,))})
    table = Dataset.from_array(codes, domain=domain)
    known = Knowledge(required=[("site", data.names[0])])
    budget = Budget(2.0, 1e-6)
    bought = [
        jaxcd.release(table, each, budget=budget, noise=simulated())
        for each in (kind(), kind(knowledge=known))
    ]
    assert len(bought[0].charges) == len(bought[1].charges)
    assert bought[1].spent.epsilon == pytest.approx(bought[0].spent.epsilon, rel=1e-6)
    assert jaxcd.search(bought[1], knowledge=known).graph.adjacent("site", data.names[0])


@pytest.mark.parametrize("kind", [Marginals, LogLinear])
def test_nothing_is_shared_out_where_all_sets_have_a_column_of_one_level(kind: type) -> None:
    """A division by zero warned, after the first round had been charged."""
    codes = np.random.default_rng(0).integers(0, 2, (50, 3))
    codes[:, 0] = 0
    levels = {"a": (0,), "b": (0, 1), "c": (0, 1)}
    domain = jaxcd.Domain({name: jaxcd.Categorical(part) for name, part in levels.items()})
    known = Knowledge(required=[("b", "a")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bought = jaxcd.release(
            Dataset.from_codes(codes, domain=domain),
            kind(knowledge=known),
            budget=Budget(4.0, 1e-9),
            noise=simulated(),
        )
    assert jaxcd.search(bought, knowledge=known).graph.adjacent("a", "b")
