"""Feature covariances under attack: the sensitivity by search over neighbours, an audit, and what
the data can change of the charges.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

import jaxcd
from jaxcd.data import Categorical, Dataset, Domain, Numeric
from jaxcd.ops.moments import contrast_basis
from jaxcd.ops.tilted_moments import pack
from jaxcd.privacy import epsilon_lower_bound
from jaxcd.privacy.sensitive import exact_values
from jaxcd.releases.features.feature_covariances import (
    Features,
    cosine_features,
    feature_moments,
    feature_sensitivity,
)
from tests.helpers import simulated


def vectors(ranks: np.ndarray, r: int, decay: float) -> list[np.ndarray]:
    """Features of rows of ranks (n, p)."""
    return [cosine_features(column, n_features=r, decay=decay) for column in ranks.T]


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize(("r", "decay"), [(2, 0.0), (6, 0.5), (9, 1.0)])
@pytest.mark.parametrize("anchor", [0.5, 1.0])
def test_no_pair_of_neighbours_exceeds_the_sensitivity_and_some_pair_reaches_it(
    p: int, r: int, decay: float, anchor: float
):
    rng = np.random.default_rng(p)
    others = rng.random((3, p))
    bound = feature_sensitivity((r,) * p, anchor=anchor)

    def change(rows: np.ndarray) -> float:
        here, there = np.clip(rows, 0, 1).reshape(2, 1, p)
        moments = [
            feature_moments(vectors(np.concatenate([row, others]), r, decay), anchor=anchor)
            for row in (here, there)
        ]
        return float(np.linalg.norm(pack(moments[0]) - pack(moments[1])))

    corners = (
        list(itertools.product((0.0, 0.5, 1.0), repeat=2 * p))
        if p <= 2
        else rng.integers(0, 3, (200, 2 * p)) / 2
    )
    found = [change(np.array(corner)) for corner in corners]
    starts = [np.array(corners[int(np.argmax(found))]), *rng.random((2, 2 * p))]
    searched = [
        optimize.minimize(
            lambda v: -change(v), start, method="Nelder-Mead", options={"maxiter": 150}
        ).fun
        for start in starts
    ]
    largest = max(*found, *(-value for value in searched))
    assert largest <= bound
    assert largest >= 0.97 * bound
    assert bound < 1.001 * (p + anchor**2)
    if anchor == 1.0:
        assert bound < math.sqrt((p + 1) * (p + 2))  # the bound for features of length at most one


@pytest.mark.parametrize("k", [(2, 2), (2, 3), (3, 3, 2), (2, 2, 2, 2)])
def test_discrete_columns_by_brute_force(k: tuple[int, ...]):
    rows = np.array(list(itertools.product(*map(range, k))))
    columns = [
        (contrast_basis(r) / math.sqrt(1 - 1 / r))[codes]
        for r, codes in zip(k, rows.T, strict=True)
    ]
    packed = [
        pack(feature_moments([c[[i]] for c in columns], anchor=0.5)) for i in range(len(rows))
    ]
    largest = max(float(np.linalg.norm(a - b)) for a in packed for b in packed)
    assert (
        0.9 * (len(k) + 0.25) < largest <= feature_sensitivity(tuple(r - 1 for r in k), anchor=0.5)
    )


def test_whole_data_sets_with_the_maps_fixed(monkeypatch: pytest.MonkeyPatch):
    """Neighbours through the release itself: what enters the mechanism differs by no more than the
    sensitivity that it is told.
    """
    seen: list[np.ndarray] = []
    told: list[tuple[float, float]] = []
    import jaxcd.releases.features.feature_covariances as module

    real_maps, real_gaussian = module.bought_ranks, module.gaussian
    kept = []

    def maps(*arguments, **options):  # type: ignore[no-untyped-def]
        kept.append(real_maps(*arguments, **options))
        return kept[0]

    def recorded(accountant, values, *, sensitivity, pad, **options):  # type: ignore[no-untyped-def]
        seen.append(exact_values(values))
        told.append((sensitivity, pad))
        return real_gaussian(accountant, values, sensitivity=sensitivity, pad=pad, **options)

    monkeypatch.setattr(module, "bought_ranks", maps)
    monkeypatch.setattr(module, "gaussian", recorded)
    rng = np.random.default_rng(0)
    domain = Domain({"a": Numeric(), "b": Numeric(-1, 1), "c": Categorical((0, 1, 2))})
    values = np.column_stack(
        [rng.normal(size=200), rng.uniform(-1, 1, 200), rng.integers(0, 3, 200)]
    )
    for row in ([1e300, -1, 0], [-1e-300, 1, 1], [0, 0, 2], values[0]):
        rows = values.copy()
        rows[0] = row
        noise = simulated()
        Features().release(
            Dataset.from_array(rows, domain=domain), budget=jaxcd.Budget(1.0, 1e-6), noise=noise
        )
    for a, b in itertools.combinations(seen, 2):
        assert np.linalg.norm(a - b) <= told[0][0] + 2 * told[0][1] * math.sqrt(a.size)
    assert len(set(told)) == 1


def test_sums_do_not_depend_on_the_order_of_rows():
    """Exact sums: neighbours differ in the replaced row only, to the last bit."""
    rng = np.random.default_rng(1)
    features = vectors(rng.random((20_000, 3)), 6, 0.5)
    order = rng.permutation(20_000)
    shuffled = feature_moments([v[order] for v in features], anchor=0.5)
    np.testing.assert_array_equal(feature_moments(features, anchor=0.5), shuffled)


def test_an_audit_stays_below_the_claim_and_is_not_blind():
    """Two neighbouring data sets of three binary columns, and the linear statistic that tells the
    moments best.
    """
    domain = Domain({name: Categorical((0, 1)) for name in "abc"})
    here = np.tile([[0, 0, 0]], (8, 1))
    there = here.copy()
    there[0] = (0, 1, 1)
    epsilon, delta, runs = 14.0, 0.05, 150

    def moments(rows: np.ndarray) -> np.ndarray:
        signs = [(contrast_basis(2) / math.sqrt(0.5))[column] for column in rows.T]
        return pack(feature_moments(signs, anchor=0.5))

    origin, change = moments(here), moments(there) - moments(here)

    def statistic(rows: np.ndarray) -> float:
        release = Features().release(
            Dataset.from_array(rows, domain=domain), budget=jaxcd.Budget(epsilon, delta)
        )
        return float((pack(release.moments) - origin) @ change / (change @ change))

    found = [np.array([statistic(rows) for _ in range(runs)]) for rows in (here, there)]
    for mean, values in zip((0.0, 1.0), found, strict=True):
        assert abs(values.mean() - mean) < 5 * values.std() / math.sqrt(runs)
    events = [[int((values <= 0).sum()), int((values >= 1).sum())] for values in found]
    bound = epsilon_lower_bound(*events, runs, confidence=1 - 1e-6)
    assert 0.05 < bound < epsilon


def test_charges_and_shapes_do_not_depend_on_the_data():
    domain = Domain({"a": Numeric(), "b": Numeric(0, 1), "c": Categorical(("u", "v", "w"))})
    rng = np.random.default_rng(0)
    ordinary = [
        [x, u, "uvw"[c]]
        for x, u, c in zip(rng.normal(size=60), rng.random(60), rng.integers(0, 3, 60), strict=True)
    ]
    constant = [[1e308, 0.0, "u"]] * 60
    releases = [
        Features(n_features=4).release(
            Dataset.from_array(rows, domain=domain), budget=jaxcd.Budget(1.0, 1e-6)
        )
        for rows in (ordinary, constant)
    ]
    first, second = releases
    assert first.charges == second.charges and [row["label"] for row in first.charges] == [
        "rank maps",
        "feature covariances",
    ]
    assert (first.spent, first.cost, first.sigma, first.sizes) == (
        second.spent,
        second.cost,
        second.sigma,
        (4, 4, 2),
    )
    assert np.isfinite(second.moments).all()


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_the_number_of_features_and_the_charges_tell_nothing_about_rows(epsilon: float):
    """Rows that have nothing in common but their number get the same features, noise, charges and
    shapes.
    """
    n = 1_500
    rng = np.random.default_rng(0)
    domain = Domain({"a": Numeric(), "b": Numeric(), "c": Categorical((0, 1, 2))})
    tables = [
        np.zeros((n, 3)),
        np.column_stack([rng.standard_cauchy(n), rng.normal(size=n), rng.integers(0, 3, n)]),
        np.column_stack([np.arange(n), np.arange(n) ** 3.0, np.arange(n) % 3]),
    ]
    found = [
        Features().release(
            Dataset.from_array(table, domain=domain),
            budget=jaxcd.Budget(epsilon, 1e-6),
            noise=simulated(),
        )
        for table in tables
    ]
    facts = [
        (
            release.sizes,
            release.sigma,
            release.anchor,
            release.charges,
            release.spent,
            release.moments.shape,
        )
        for release in found
    ]
    assert facts[0] == facts[1] == facts[2]
    assert not np.array_equal(found[0].moments, found[1].moments)
