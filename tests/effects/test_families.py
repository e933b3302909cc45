"""Effects from the tables of families: sums against enumeration, and noise against its law."""

from __future__ import annotations

from itertools import product

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.effects.agreeing import _MANY, AgreeingTables, _kept
from jaxcd.effects.contracting import Contraction
from jaxcd.effects.families import FamilyFormula, families_of
from jaxcd.effects.likelihood import Contrast, likeliest
from jaxcd.graphs import MixedGraph, random_dag
from jaxcd.ops.interactions import subsets
from jaxcd.ops.moments import contrast_basis

SIZES = {0: 2, 1: 3, 2: 2, 3: 3, 4: 2, 5: 2}


def by_enumeration(columns, tables, kept):
    """The sum of the product, level by level."""
    used = sorted({c for own in columns for c in own})
    found = np.zeros([SIZES[c] for c in kept])
    for levels in product(*(range(SIZES[c]) for c in used)):
        at = dict(zip(used, levels, strict=True))
        value = np.prod(
            [t[tuple(at[c] for c in own)] for own, t in zip(columns, tables, strict=True)]
        )
        found[tuple(at[c] for c in kept)] += value
    return found


@pytest.mark.parametrize("seed", range(8))
def test_sums_of_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = [(v, *rng.permutation(v)[: rng.integers(0, 3)].tolist()) for v in range(6)]
    kept = tuple(rng.permutation([v for v in range(6)])[:2].tolist())
    times = [c for own in columns for c in own]
    columns += [(c,) for c in range(6) if times.count(c) == 1 and c not in kept]
    tables = [rng.normal(size=[SIZES[c] for c in own]) for own in columns]
    plan = Contraction(columns, SIZES, kept)
    assert np.allclose(plan(tables), by_enumeration(columns, tables, kept))


@pytest.mark.parametrize("seed", range(10))
def test_the_formula_and_its_slope(seed: int) -> None:
    """Against the joint law with x set, on random DAGs."""
    rng = np.random.default_rng(seed)
    dag = MixedGraph.from_dag(random_dag(6, expected_degree=3.0, seed=seed))
    arcs, names = dag.directed, dag.names
    pairs = [(x, y) for x in names for y in names if x != y and _reaches(arcs, dag, x, y)]
    x, y = pairs[seed % len(pairs)]
    of_names = families_of(dag, x, y)
    families = tuple(tuple(dag.index(name) for name in own) for own in of_names)
    assert dag.index(x) not in [own[0] for own in families]
    shapes = tuple(tuple(SIZES[c] for c in own) for own in families)
    tables = [rng.uniform(1, 9, size=shape) for shape in shapes]
    i, j = dag.index(x), dag.index(y)
    contrast = Contrast(0, SIZES[i] - 1, rng.normal(size=SIZES[j]))
    formula = FamilyFormula(families, shapes, i, j, contrast)
    sign = np.zeros(SIZES[i])
    sign[0], sign[-1] = -1, 1
    thetas = [t / t.sum(axis=0) for t in tables]
    columns = [(i,), (j,), *families]
    expected = by_enumeration(columns, [sign, contrast.scores, *thetas], ())
    flat, extra = np.concatenate([t.ravel() for t in tables]), np.full(len(tables), 1e-9)
    assert formula.value(flat, extra) == pytest.approx(float(expected), abs=1e-7)
    slope = formula.slope(flat, extra)
    for place in range(flat.size):
        step = np.zeros(flat.size)
        step[place] = 1e-4
        ends = formula.value(flat + step, extra) - formula.value(flat - step, extra)
        assert slope[place] == pytest.approx(ends / 2e-4, abs=1e-6)


def _reaches(arcs: np.ndarray, dag: MixedGraph, x: str, y: str) -> bool:
    paths = np.linalg.matrix_power(np.eye(len(arcs), dtype=int) + arcs, len(arcs))
    return bool(paths[dag.index(x), dag.index(y)])


ASIA = jaxcd.networks.load("asia")
ROWS = ASIA.sample(50_000, key=jax.random.key(3))
OPTIONS = {"treatment": "smoke", "outcome": "dysp", "graph": ASIA.dag}


def marginals(seed: int, rows=ROWS):
    return jaxcd.release(
        rows,
        jaxcd.Marginals(),
        budget=jaxcd.Budget(1.0, 1e-6),
        noise=jaxcd.SimulatedNoise(jax.random.key(seed)),
    )


@pytest.mark.slow
def test_tables_that_agree_have_the_noise_they_say() -> None:
    """The counts of the families over draws of the noise: as far from those of the rows as the
    stated variance says, which is less than that of the release.
    """
    graph = MixedGraph.from_dag(ASIA.dag).reordered(ROWS.domain.names)
    codes, errors, ratios = np.asarray(ROWS.codes), [], []
    for seed in range(25):
        release = marginals(seed)
        agreeing, own = AgreeingTables(release, graph), []
        for v in range(graph.n_nodes):
            columns = (v, *np.flatnonzero(graph.directed[:, v]).tolist())
            names = tuple(release.names[c] for c in columns)
            table, before = agreeing.table(names), release.tabulated().table(names)
            counts = np.zeros(table.counts.shape)
            np.add.at(counts, tuple(codes[:, list(columns)].T), 1.0)
            weights = np.random.default_rng(v).normal(size=counts.shape)
            stated = agreeing.noise([(names, weights)])
            own.append(float((weights * (table.counts - counts)).sum()) / stated**0.5)
            ratios.append(stated / before.noise(weights))
        errors.append(own)
    assert max(ratios) <= 1 + 1e-9 and np.mean(ratios) < 0.95
    assert np.mean(np.square(errors)) == pytest.approx(1.0, abs=0.35)
    assert np.abs(np.mean(errors, axis=0)).max() < 4 / 25**0.5


@pytest.mark.parametrize(("length", "low", "high"), [(0.0, 0.0, 0.1), (4.0, 0.45, 0.55)])
def test_what_is_kept_of_a_mean_is_not_from_drawing(length: float, low: float, high: float) -> None:
    """Means of 100 vectors of 400 numbers with variance 1 are 4 long, squared, beside the truth."""
    rng = np.random.default_rng(5)
    rows = rng.normal((length / 400) ** 0.5, 1.0, size=(100, 400))
    spread = ((rows - rows.mean(axis=0)) ** 2).sum() / 100
    squared = (rows.mean(axis=0) ** 2).sum()
    kept = _kept(np.array([squared]), np.array([spread]), np.array([100.0]))
    assert low <= float(kept[0, 0]) <= high
    none = _kept(np.array([3.0, 0.0, 2.0]), np.zeros(3), np.array([1.0, 0.0, 1e6]))
    assert none[:, 0].tolist() == [0.0, 0.0, 1.0]


def test_corrections_are_the_best_linear_estimate() -> None:
    """S A^T (S_s + S_C + A S A^T)^-1 c of the module, row by row and in doubles."""
    graph = MixedGraph.from_dag(ASIA.dag).reordered(ROWS.domain.names)
    release = marginals(1)
    agreeing = AgreeingTables(release, graph)
    codes, times = np.unique(agreeing._drawn(_MANY), axis=0, return_counts=True)
    share = times / times.sum()
    of_each = [contrast_basis(k)[codes[:, j]] for j, k in enumerate(agreeing._sizes)]

    def phi(columns: tuple[int, ...]) -> np.ndarray:
        return np.prod([of_each[j] for j in columns], axis=0)  # two levels: one number a row

    inside = {
        s for own in agreeing._families.values() for s in subsets(tuple(sorted(own)), smallest=1)
    }
    others = agreeing._others(graph, inside, most=10_000)
    phis = np.concatenate([phi(s) for s in others], axis=1)
    noise = np.array([release.variances[s] for s in others])
    own_noise = np.array([release.variances[s] for s in agreeing._offset])
    slopes, rest = np.zeros((len(others), len(own_noise))), phis - share @ phis
    for own in agreeing._families.values():
        shape = [2] * len(own)
        cell = np.ravel_multi_index(tuple(codes[:, own].T), shape)
        mean = np.zeros((2 ** len(own), len(others)))
        for place in np.unique(cell):
            here = cell == place
            row = cell % 2 ** (len(own) - 1) == place % 2 ** (len(own) - 1)
            m, of_row = times[here].sum(), times[row].sum()
            of_cell = np.average(phis[here], axis=0, weights=times[here])
            mean[place] = of_cell - np.average(phis[row], axis=0, weights=times[row])
            squares = times[here] @ ((phis[here] - of_cell) ** 2).sum(axis=1)
            error = squares / max(m - 1, 1e-9) * (1 / m - 1 / of_row)
            length = (mean[place] ** 2).sum()
            mean[place] *= max(0.0, 1 - error / length) if m > 1 and length > 0 else 0.0
        rest -= mean[cell]
        tables = np.moveaxis(mean.reshape(*shape, -1), -1, 0)
        agreeing._add(slopes, own, tables)
    left = release.n_samples * (rest.T * share) @ rest * _MANY / (_MANY - len(others))
    total = left + np.diag(noise) + slopes * own_noise @ slopes.T
    weights = np.linalg.solve(total, slopes * own_noise)
    assert np.abs(weights).max() > 0.01
    assert np.allclose(agreeing._weights, weights, atol=1e-6)


@pytest.mark.parametrize("kind", ["histogram", pytest.param("marginals", marks=pytest.mark.slow)])
def test_coverage_and_width(kind: str) -> None:
    """Smoke on dysp, .2337 in the network: intervals cover, and are narrower than by adjustment."""
    inside, narrower = 0, []
    for seed in range(30):
        rows = ASIA.sample(50_000, key=jax.random.key(100 + seed))
        if kind == "marginals":
            release = marginals(seed, rows)
        else:
            noise = jaxcd.SimulatedNoise(jax.random.key(seed))
            budget = jaxcd.Budget(0.5)
            release = jaxcd.release(rows, jaxcd.Histogram(), budget=budget, noise=noise)
        found = jaxcd.effect(release, **OPTIONS)
        by_set = jaxcd.effect(release, whole_graph=False, **OPTIONS)
        inside += found.low < 0.23367 < found.high
        narrower.append((found.high - found.low) / (by_set.high - by_set.low))
        assert found.adjustment == by_set.adjustment
    assert inside >= 24
    assert np.median(narrower) < 0.9


def test_a_log_linear_release_is_read_by_its_interactions() -> None:
    release = jaxcd.release(
        ROWS,
        jaxcd.LogLinear(),
        budget=jaxcd.Budget(2.0, 1e-6),
        noise=jaxcd.SimulatedNoise(jax.random.key(2)),
    )
    graph = MixedGraph.from_dag(ASIA.dag)
    families = families_of(graph, "smoke", "bronc")
    assert all(release.tabulated().is_measured(names) for names in families)
    found = jaxcd.effect(release, treatment="smoke", outcome="bronc", graph=ASIA.dag)
    assert found.low < 0.3 < found.high and found.high - found.low < 0.1


def test_a_family_that_was_not_measured_leaves_the_adjustment_set() -> None:
    release = jaxcd.release(
        ROWS,
        jaxcd.Marginals(max_candidates=1),
        budget=jaxcd.Budget(0.1, 1e-6),
        noise=jaxcd.SimulatedNoise(jax.random.key(5)),
    )
    families = families_of(MixedGraph.from_dag(ASIA.dag), "smoke", "dysp")
    assert not all(release.tabulated().is_measured(names) for names in families)
    by_set = jaxcd.effect(release, whole_graph=False, **OPTIONS)
    assert jaxcd.effect(release, **OPTIONS) == by_set


def test_likeliest_tables_are_not_negative() -> None:
    table = np.array([[40.0, -12.0], [300.0, 5.0]])
    found = likeliest(table, 100.0, 333.0)
    assert found.min() >= 0 and found.sum() == pytest.approx(333)
    assert np.allclose(likeliest(np.abs(table), 0.0, 357.0), np.abs(table).ravel())
