"""The nearest interactions without negative cells, against a general solver and by what a nearest
point must satisfy.
"""

from __future__ import annotations

import itertools
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import jaxcd
from jaxcd.ops.interactions import interaction, subsets, table_of_interactions
from jaxcd.ops.nearest_interactions import nearest_interactions
from jaxcd.releases.tables.set_function import SetFunction
from tests.helpers import simulated

Columns = tuple[int, ...]


def noisy(
    cardinalities: Columns, sets: list[Columns], *, n: int, scale: float, seed: int
) -> tuple[dict[Columns, np.ndarray], dict[Columns, np.ndarray], dict[Columns, float]]:
    """Exact interactions of sparse counts, the same with noise, and the variances."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, rng.dirichlet(np.full(math.prod(cardinalities), 0.1)))
    table = counts.reshape(cardinalities)
    known = sorted({u for s in sets for u in subsets(s)})
    exact = {
        u: interaction(table.sum(axis=tuple(j for j in range(len(cardinalities)) if j not in u)))
        for u in known
    }
    variances = {u: (scale * rng.uniform(0.3, 2)) ** 2 for u in known}
    moved = {
        u: v + math.sqrt(variances[u]) * rng.standard_normal(v.shape) for u, v in exact.items()
    }
    return exact, moved, variances


def distance(
    one: dict[Columns, np.ndarray], other: dict[Columns, np.ndarray], variances: dict
) -> float:
    return sum(float(np.sum((one[u] - other[u]) ** 2)) / v for u, v in variances.items())


def least_cell(
    values: dict[Columns, np.ndarray], cardinalities: Columns, sets: list[Columns], n: int
) -> float:
    return min(
        float(table_of_interactions(s, cardinalities, n, values.__getitem__).min()) for s in sets
    )


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_nearest(seed: int):
    """The distance of a general solver, on overlapping triples and a pair."""
    k, n = (2, 3, 2, 2), 200
    sets = [(0, 1, 2), (1, 2, 3), (0, 3)]
    _, moved, variances = noisy(k, sets, n=n, scale=25.0, seed=seed)
    found = nearest_interactions(moved, variances, k, n, sets)
    starts = np.cumsum([0, *(v.size for v in moved.values())])

    def unpacked(x: np.ndarray) -> dict[Columns, np.ndarray]:
        return {
            u: x[a:b].reshape(moved[u].shape)
            for u, a, b in zip(moved, starts[:-1], starts[1:], strict=True)
        }

    def cells(x: np.ndarray) -> np.ndarray:
        values = unpacked(x)
        tables = [table_of_interactions(s, k, n, values.__getitem__).ravel() for s in sets]
        return np.concatenate(tables)

    weights = np.concatenate([np.full(v.size, 1 / variances[u]) for u, v in moved.items()])
    start = np.concatenate([v.ravel() for v in moved.values()])
    slopes = np.stack([cells(e) - cells(0 * e) for e in np.eye(len(start))], axis=1)
    solved = optimize.minimize(
        lambda x: float(weights @ (x - start) ** 2),
        np.zeros(len(start)),
        jac=lambda x: 2 * weights * (x - start),
        constraints={"type": "ineq", "fun": cells, "jac": lambda x: slopes},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-9},
    )
    assert solved.success and least_cell(moved, k, sets, n) < -5
    assert least_cell(found, k, sets, n) > -1
    # a little nearer than possible, by what its cells are still below 0
    assert distance(found, moved, variances) == pytest.approx(solved.fun, rel=0.03, abs=0.05)


@pytest.mark.parametrize(("scale", "seed"), [(40.0, 25), (40.0, 29), (40.0, 0), (150.0, 2)])
def test_the_point_of_a_least_distance_program(scale: float, seed: int):
    """Ten triples, against Lawson and Hanson's solution by non-negative least squares: every entry,
    and every cell.  In the first two cases mending some tables makes another one negative.
    """
    k, n = (2, 3, 2, 3, 2, 2), 2_000
    sets = list(itertools.combinations(range(6), 3))[::2]
    _, moved, variances = noisy(k, sets, n=n, scale=scale, seed=seed)
    found = nearest_interactions(moved, variances, k, n, sets)
    deviations = np.repeat(
        [math.sqrt(variances[u]) for u in moved], [v.size for v in moved.values()]
    )
    stops = np.cumsum([v.size for v in moved.values()])

    def cells(moves: np.ndarray, total: float) -> np.ndarray:
        parts = dict(zip(moved, np.split(moves * deviations, stops[:-1]), strict=True))
        values = {u: part.reshape(moved[u].shape) for u, part in parts.items()}
        tables = [table_of_interactions(s, k, total, values.__getitem__) for s in sets]
        return np.concatenate([table.ravel() for table in tables])

    start = np.concatenate([v.ravel() for v in moved.values()]) / deviations
    slopes = np.stack([cells(unit, 0) for unit in np.eye(len(start))])
    program = np.vstack([slopes, -cells(start, n)]) / scale
    target = np.append(np.zeros(len(start)), 1.0)
    residual = program @ optimize.nnls(program, target, maxiter=10_000)[0] - target
    solved = -residual[:-1] / residual[-1]
    reached = np.concatenate([v.ravel() for v in found.values()]) / deviations - start
    assert math.sqrt(solved @ solved) > 1
    assert math.dist(reached, solved) < 0.025
    assert cells(start + reached, n).min() > -0.01 * deviations.max()


def test_the_steps_lead_there_where_noise_hides_everything():
    """Plain gradients are not there after as many."""
    k, n = (4, 5, 6, 2, 3, 2), 5_000
    sets = list(itertools.combinations(range(6), 3))[::2]
    for seed in range(3):
        _, moved, variances = noisy(k, sets, n=n, scale=3_000.0, seed=seed)
        found = nearest_interactions(moved, variances, k, n, sets)
        deviation = math.sqrt(max(variances.values()))
        assert least_cell(found, k, sets, n) > -0.004 * deviation
        assert least_cell(moved, k, sets, n) < -deviation


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 300.0))
def test_it_is_never_further_from_the_rows(seed: int, scale: float):
    """The rows' own interactions have no negative cell, so the nearest ones are nearer to them."""
    k, n = (3, 2, 4, 2), 500
    sets = [*itertools.combinations(range(4), 2), (0, 1, 3)]
    exact, moved, variances = noisy(k, sets, n=n, scale=scale, seed=seed)
    found = nearest_interactions(moved, variances, k, n, sets)
    assert distance(found, exact, variances) <= distance(moved, exact, variances) * 1.01 + 0.01
    assert least_cell(found, k, sets, n) >= min(least_cell(moved, k, sets, n), -0.2 * scale)


def test_what_has_no_noise_stays():
    k, n, sets = (2, 3), 100, [(0, 1)]
    exact, moved, variances = noisy(k, sets, n=n, scale=30.0, seed=1)
    assert nearest_interactions(exact, dict.fromkeys(exact, 0.0), k, n, sets) == exact
    moved[0,], variances[0,] = exact[0,], 0.0
    found = nearest_interactions(moved, variances, k, n, sets)
    assert np.allclose(found[0,], exact[0,], rtol=0, atol=1e-9)
    assert least_cell(found, k, sets, n) > -1 > least_cell(moved, k, sets, n)


def test_much_noise_on_one_table_leaves_the_others_no_negative_cells():
    """A column that is mostly missing has a thousand times the noise of the others."""
    k, n, sets = (2, 3, 2, 2), 300, [(0, 1, 2), (0, 3)]
    _, moved, variances = noisy(k, sets, n=n, scale=20.0, seed=3)
    variances |= {(3,): 2e8, (0, 3): 2e8}
    found = nearest_interactions(moved, variances, k, n, sets)
    assert least_cell(found, k, [(0, 1, 2)], n) > -1
    assert least_cell(moved, k, [(0, 1, 2)], n) < -10


def test_a_table_without_noise_is_left_as_it_is():
    k, n = (2, 3, 2), 300
    _, moved, variances = noisy(k, [(0, 1), (2,)], n=n, scale=20.0, seed=3)
    moved[2,], variances[2,] = np.array([-2.0 * n]), 0.0  # of no rows
    found = nearest_interactions(moved, variances, k, n, [(0, 1), (2,)])
    assert least_cell(found, k, [(0, 1)], n) > -1
    assert np.allclose(found[2,], moved[2,], rtol=1e-12, atol=0)


def test_the_order_of_columns_does_not_matter():
    k, n = (2, 3, 4), 300
    _, moved, variances = noisy(k, [(0, 1, 2)], n=n, scale=20.0, seed=3)
    found = nearest_interactions(moved, variances, k, n, [(0, 1, 2)])
    turned = {
        tuple(sorted(2 - j for j in u)): v.transpose(range(v.ndim)[::-1]) for u, v in moved.items()
    }
    again = nearest_interactions(
        turned,
        {tuple(sorted(2 - j for j in u)): v for u, v in variances.items()},
        k[::-1],
        n,
        [(0, 1, 2)],
    )
    for u, v in found.items():
        other = again[tuple(sorted(2 - j for j in u))]
        assert np.allclose(v, other.transpose(range(v.ndim)[::-1]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-9, 1e12, 1e100])
def test_noise_of_any_size(scale: float):
    k, n, sets = (2, 3, 1), 50, [(0, 1, 2)]
    known = {u: np.ones([k[j] - 1 for j in u]) * scale for u in subsets((0, 1, 2))}
    found = nearest_interactions(known, dict.fromkeys(known, scale**2), k, n, sets)
    assert all(np.isfinite(v).all() for v in found.values())


def test_no_information_is_negative():
    """Of tables that agree, dependence given anything is at least none; of tables that were made
    non-negative one by one it was hundreds of nats less.
    """
    data = jaxcd.networks.load("asia").sample(10_000, key=jax.random.key(0))
    bought = jaxcd.release(
        data, jaxcd.Marginals(), budget=jaxcd.Budget(0.5, 1e-6), noise=simulated(4)
    )

    def least(release: object) -> float:
        values = SetFunction(release)
        triples = [s for s in bought.interactions if len(s) == 3 and bought.is_measured(s)]
        return min(
            values.information(x, y, (z,), cell_price=0.0, noise_price=0.0)
            for s in triples
            for x, y, z in itertools.permutations(s)
        )

    assert least(bought) < -50
    assert least(bought.agreed) > -5


def test_a_release_agrees_in_its_own_reading():
    data = jaxcd.networks.load("cancer").sample(2_000, key=jax.random.key(1))
    bought = jaxcd.release(
        data, jaxcd.Marginals(), budget=jaxcd.Budget(0.3, 1e-6), noise=simulated(5)
    )
    level = bought.reading("level")
    assert level.agreed.missing is level.missing and level.agreed.agreed is level.agreed
    assert bought.agreed.variances == bought.variances
    exact = jaxcd.release(data, jaxcd.Marginals(), budget=jaxcd.NO_PRIVACY)
    for columns, values in exact.agreed.interactions.items():
        assert np.array_equal(values, exact.interactions[columns])
