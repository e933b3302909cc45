"""A private run never reports or spends more than its budget, and pays for every draw before it is made."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import jaxcd
from jaxcd.decisions import Noise
from jaxcd.ops.moments import contrast_sensitivity
from jaxcd.privacy import GRID, VECTOR_GRID, Ledger, NoiseSampler, NoiseSource

LEVELS = (2, 3, 2, 4, 3)
DOMAIN = jaxcd.Domain([(f"v{j}", jaxcd.Ordinal(tuple(range(k)))) for j, k in enumerate(LEVELS)])
D = len(LEVELS)
SIZES = (40, 500)  # few different numbers of rows: few compilations
TESTS = (jaxcd.CovarianceNorm(), jaxcd.PooledCovariance(), jaxcd.KendallTau())


def dataset(seed: int, n: int) -> jaxcd.Dataset:
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, D), dtype=np.int32)
    for j, k in enumerate(LEVELS):
        parents = codes[:, rng.permutation(j)[:2]].sum(1) if j else np.zeros(n, dtype=np.int64)
        codes[:, j] = np.where(rng.random(n) < rng.choice([0, 0.5, 1]), parents % k, rng.integers(0, k, n))
    return jaxcd.Dataset.from_codes(codes, domain=DOMAIN)


def converted(rho: float, delta: float) -> float:
    """The smallest epsilon of a rho-zCDP mechanism at delta over the orders of Renyi divergence, found numerically."""
    if rho == 0:
        return 0.0

    def epsilon(log_order: float) -> float:
        order = 1 + math.exp(log_order)
        return rho * order + math.log1p(-1 / order) - math.log(order * delta) / (order - 1)

    grid = np.linspace(-12, 25, 400)
    start = grid[np.argmin([epsilon(x) for x in grid])]
    best = minimize_scalar(epsilon, bounds=(start - 0.2, start + 0.2), method="bounded", options={"xatol": 1e-12})
    return max(0.0, float(best.fun))


deciders = st.one_of(
    st.builds(jaxcd.NoisyThreshold, noise=st.just(Noise.LAPLACE), n_queries=st.sampled_from([None, 1, 7, 1000])),
    st.builds(jaxcd.NoisyThreshold, noise=st.just(Noise.GAUSSIAN), n_queries=st.sampled_from([None, 1, 7, 1000])),
    st.builds(jaxcd.SparseVector, alpha=st.sampled_from([0.01, 0.05, 0.5]), n_rounds=st.sampled_from([None, 1, 3, 40])),
    st.builds(
        jaxcd.SieveAndExamine, n_rounds=st.sampled_from([None, 1, 3, 40]), rate=st.sampled_from([None, 0.5, 1.0])
    ),
    st.builds(
        jaxcd.LevelwiseGaussian,
        level_shares=st.sampled_from([(0.3, 0.4, 0.3), (1.0,), (0.01, 5.0), (1.0, 1.0, 1.0, 1.0)]),
        selection_share=st.sampled_from([0.05, 0.2, 0.9]),
        mean_weight=st.sampled_from([0.3, 1.0, 4.0]),
    ),
)


def needs_delta(decider: Any) -> bool:
    return isinstance(decider, jaxcd.LevelwiseGaussian) or getattr(decider, "noise", None) is Noise.GAUSSIAN


@settings(max_examples=45, deadline=None)
@given(
    decider=deciders,
    test=st.sampled_from(TESTS),
    epsilon=st.floats(-3, 2).map(lambda x: 10.0**x),
    delta=st.sampled_from([0.0, 1e-12, 1e-6, 1e-2]),
    seed=st.integers(0, 10_000),
    n=st.sampled_from(SIZES),
    max_level=st.sampled_from([0, 1, None]),
    colliders=st.sampled_from(jaxcd.ColliderRule),
)
def test_no_run_exceeds_its_budget(decider, test, epsilon, delta, seed, n, max_level, colliders):
    if needs_delta(decider):
        delta = delta or 1e-9
    if not isinstance(decider, jaxcd.NoisyThreshold):  # the others do not answer single questions
        colliders = jaxcd.ColliderRule.SEPARATING_SET
    budget = jaxcd.Budget(epsilon, delta)
    result = jaxcd.pc(
        dataset(seed, n),
        test=test,
        decider=decider,
        budget=budget,
        key=None,
        noise=jaxcd.SimulatedNoise(jax.random.key(seed)),
        max_level=max_level,
        colliders=colliders,
    )
    assert result.cost.epsilon <= epsilon and result.cost.delta <= delta
    assert result.cost.relation is budget.relation
    assert result.spent.epsilon <= epsilon and result.spent.delta <= delta
    # the table, composed again from its rows
    rows = result.info["ledger"]
    assert [row["index"] for row in rows] == list(range(len(rows)))
    pure = math.fsum(math.inf if row["epsilon"] is None else row["epsilon"] for row in rows)
    rho = math.fsum(row["rho"] for row in rows)
    for row in rows:
        if row["epsilon"] is not None and math.isfinite(row["epsilon"]):
            share = 8 if row["mechanism"].startswith("Exponential") else 2
            assert row["rho"] == pytest.approx(row["epsilon"] ** 2 / share, rel=1e-9)
    composed = min(pure, converted(rho, delta) if delta else math.inf)
    assert composed <= epsilon * (1 + 1e-9)
    assert result.spent.epsilon >= composed * (1 - 1e-6)  # and is not understated
    # whatever was not paid for keeps its edge
    names = result.graph.names
    for a, b in itertools.combinations(names, 2):
        assert result.graph.adjacent(a, b) != (frozenset((a, b)) in result.separating_sets)
    assert set(result.info) & {"n_tests", "n_batches"} == set()  # how much was computed depends on the data


@pytest.mark.parametrize("delta", [1e-6, 1e-2])
@pytest.mark.parametrize("decider", [jaxcd.SparseVector(n_rounds=30), jaxcd.LevelwiseGaussian()], ids=lambda d: d.name)
def test_the_table_composed_by_another_library(decider, delta: float):
    """Google's RDP accountant: pure rows as exact pure-DP events, the others as Gaussians of the same rho."""
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    result = jaxcd.pc(
        dataset(1, 500),
        test=jaxcd.CovarianceNorm(),
        decider=decider,
        budget=jaxcd.Budget(2.0, delta),
        key=None,
        noise=jaxcd.SimulatedNoise(jax.random.key(0)),
    )
    assert result.info["ledger"]
    accountant = RdpAccountant(orders=list(np.geomspace(1.01, 4000, 600)))
    for row in result.info["ledger"]:
        accountant.compose(dp_accounting.ZCDpEvent(row["rho"]))
    assert accountant.get_epsilon(delta) <= 2.0 * 1.001


# What is drawn is what was paid for


class Recorder(NoiseSource):
    """Simulated noise that remembers every draw: (method, scale or size, how many, index)."""

    def __init__(self, seed: int = 0) -> None:
        self.draws: list[tuple[str, float, int, int]] = []
        self._inner = jaxcd.SimulatedNoise(jax.random.key(seed))

    @property
    def secure(self) -> bool:
        return False

    def start(self) -> NoiseSampler:
        return RecordingSampler(self.draws, self._inner.start())


class RecordingSampler(NoiseSampler):
    def __init__(self, draws: list[tuple[str, float, int, int]], inner: NoiseSampler) -> None:
        self._draws, self._inner = draws, inner

    @property
    def secure(self) -> bool:
        return False

    def discrete_laplace(self, scale, size, *, index):
        self._draws.append(("laplace", scale, size, index))
        return self._inner.discrete_laplace(scale, size, index=index)

    def discrete_gaussian(self, sigma, size, *, index):
        self._draws.append(("gaussian", sigma, size, index))
        return self._inner.discrete_gaussian(sigma, size, index=index)

    def geometric(self, scale, size, *, index):
        self._draws.append(("geometric", scale, size, index))
        return self._inner.geometric(scale, size, index=index)

    def subset(self, n, m, *, index):
        self._draws.append(("subset", n, m, index))
        return self._inner.subset(n, m, index=index)

    def gumbel_max(self, scores, scale, *, index):
        self._draws.append(("gumbel", scale, len(scores), index))
        return self._inner.gumbel_max(scores, scale, index=index)


def recorded(monkeypatch: pytest.MonkeyPatch, decider, test=TESTS[0], *, n: int = 500, epsilon: float = 2.0, seed: int = 0):
    """A run with the draws of each ledger row; asserts that nothing is drawn under an index before its charge."""
    recorder = Recorder(seed)
    charged: list[int] = []
    original = Ledger.charge

    def charge(self, event):
        assert len({draw[3] for draw in recorder.draws} - set(charged)) == 0
        index = original(self, event)
        charged.append(index)
        return index

    monkeypatch.setattr(Ledger, "charge", charge)
    result = jaxcd.pc(
        dataset(seed, n), test=test, decider=decider, budget=jaxcd.Budget(epsilon, 1e-6), key=None, noise=recorder
    )
    assert {draw[3] for draw in recorder.draws} <= set(charged)
    rows = result.info["ledger"]
    by_row = [[draw[:3] for draw in recorder.draws if draw[3] == row["index"]] for row in rows]
    return result, list(zip(rows, by_row, strict=True))


def delta_of(test, n: int) -> float:
    stated = test.margin_sensitivity(alpha=0.05, n_samples=n, relation=jaxcd.Relation.REPLACE_ONE)
    assert stated is not None
    return stated.value + 2 * stated.pad


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_noise_of_laplace_thresholds(monkeypatch, test):
    _, rows = recorded(monkeypatch, jaxcd.NoisyThreshold(n_queries=15), test)
    assert len(rows) >= 10
    for row, draws in rows:
        assert [(method, size) for method, _, size in draws] == [("laplace", 1)]
        assert delta_of(test, 500) / (draws[0][1] * GRID) <= row["epsilon"]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_noise_of_gaussian_thresholds(monkeypatch, test):
    _, rows = recorded(monkeypatch, jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN, n_queries=15), test)
    assert len(rows) >= 10
    for row, draws in rows:
        assert [(method, size) for method, _, size in draws] == [("gaussian", 1)]
        steps = max(GRID, VECTOR_GRID) * draws[0][1]
        assert delta_of(test, 500) ** 2 / (2 * steps**2) <= row["rho"]


def above_threshold_epsilon(draws: list[tuple[str, float, int]], sensitivity: float) -> float:
    """Sensitivity over the threshold's scale plus twice the sensitivity over the queries' scale."""
    noise = [draw for draw in draws if draw[0] in ("geometric", "laplace")]
    (_, threshold, one), *queries = noise
    assert one == 1
    cost = sensitivity / (threshold * GRID)
    if queries:
        assert len({scale for _, scale, _ in queries}) == 1
        cost += 2 * sensitivity / (queries[0][1] * GRID)
    return cost


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_noise_of_the_sparse_vector(monkeypatch, test):
    result, rows = recorded(monkeypatch, jaxcd.SparseVector(n_rounds=4), test)
    assert 1 <= len(rows) <= 4
    for row, draws in rows:
        assert above_threshold_epsilon(draws, delta_of(test, 500)) <= row["epsilon"]
    assert len(result.separating_sets) <= 4


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_noise_of_sieve_and_examine(monkeypatch, rate: float):
    """Every sieve draws a threshold and a subset of its own; examinations are on the full data."""
    test = TESTS[0]
    n_sieves = n_examinations = 0
    for seed in range(3):
        with monkeypatch.context() as patch:
            result, rows = recorded(patch, jaxcd.SieveAndExamine(n_rounds=5, rate=rate), test, seed=seed, epsilon=20.0)
        kinds = [{method for method, _, _ in draws} for _, draws in rows]
        for (row, draws), kind in zip(rows, kinds, strict=True):
            subsets = [draw for draw in draws if draw[0] == "subset"]
            if row["label"] == "examine":
                n_examinations += 1
                assert kind == {"laplace"} and len(draws) == 1
                assert delta_of(test, 500) / (draws[0][1] * GRID) <= row["epsilon"]
                continue
            n_sieves += 1
            m = 500
            if rate < 1:
                assert len(subsets) == 1
                _, n, m = subsets[0]
                assert n == 500 and m <= rate * 500
            base = above_threshold_epsilon([d for d in draws if d[0] != "subset"], delta_of(test, m))
            assert math.log1p(m / 500 * math.expm1(base)) <= row["epsilon"] * (1 + 1e-12)
        labels = [row["label"] for row, _ in rows]
        # after every examination, confirmed or not, a new sieve: they alternate
        assert all(a != b for a, b in itertools.pairwise(labels)) and labels[0] == "sieve"
        assert len(result.separating_sets) <= labels.count("examine") <= 5
    assert n_sieves >= 4 and n_examinations >= 3


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_noise_of_levelwise_gaussian(monkeypatch, test):
    rows = []
    for seed in range(4):
        with monkeypatch.context() as patch:
            result, found = recorded(patch, jaxcd.LevelwiseGaussian(mean_weight=0.7), test, seed=seed, epsilon=8.0)
        first = found[0]
        # the release: every coordinate of products and weighted means
        width = [k - 1 for k in LEVELS]
        n_products = sum(a * b for a, b in itertools.combinations(width, 2))
        assert sum(size for _, _, size in first[1]) == n_products + sum(width)
        for method, sigma, _ in first[1]:
            assert method == "gaussian"
            assert contrast_sensitivity(LEVELS, 0.7) ** 2 / (2 * (sigma * VECTOR_GRID) ** 2) <= first[0]["rho"]
        rows += found[1:]
    sensitivity = delta_of(test, 500)
    gaussians = [(row, draws) for row, draws in rows if draws[0][0] == "gaussian"]
    selections = [(row, draws) for row, draws in rows if draws[0][0] == "gumbel"]
    assert len(gaussians) + len(selections) == len(rows) and gaussians and selections
    for row, draws in gaussians:
        (_, sigma, size), = draws
        # the step of the grid is at most VECTOR_GRID, and sqrt(size) records the L2 sensitivity of size margins
        assert sensitivity**2 * size / (2 * (sigma * VECTOR_GRID) ** 2) <= row["rho"]
    for row, draws in selections:
        (_, scale, _), = draws
        assert 2 * sensitivity / (scale * GRID) <= row["epsilon"]


# Running dry


@pytest.mark.parametrize(
    ("decider", "removable"),
    [
        (jaxcd.NoisyThreshold(n_queries=1), 1),
        (jaxcd.NoisyThreshold(n_queries=3, noise=Noise.GAUSSIAN), 3),
        (jaxcd.SparseVector(n_rounds=1), 1),
        (jaxcd.SieveAndExamine(n_rounds=1), 1),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_exhausted_runs_end_normally_and_say_so(decider, removable: int):
    """Independent columns and a large budget: all ten pairs would be separated, but only a few are paid for."""
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, 500) for k in LEVELS], axis=1).astype(np.int32)
    result = jaxcd.pc(
        jaxcd.Dataset.from_codes(codes, domain=DOMAIN),
        test=jaxcd.CovarianceNorm(),
        decider=decider,
        budget=jaxcd.Budget(50.0, 1e-6),
        key=None,
        noise=jaxcd.SimulatedNoise(jax.random.key(0)),
    )
    assert result.exhausted
    assert "exhausted" in str(result)
    assert len(result.separating_sets) == removable
    assert result.graph.n_edges == D * (D - 1) // 2 - removable
    assert result.spent.epsilon <= 50.0


def test_runs_with_enough_say_nothing_of_the_kind():
    result = jaxcd.pc(
        dataset(0, 500),
        test=jaxcd.CovarianceNorm(),
        decider=jaxcd.NoisyThreshold(n_queries=100_000),
        budget=jaxcd.Budget(50.0),
        key=None,
        noise=jaxcd.SimulatedNoise(jax.random.key(0)),
        max_level=1,
    )
    assert not result.exhausted and "exhausted" not in str(result)


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_single_tests_keep_their_budget_too(test):
    answer = jaxcd.ci_test(dataset(0, 500), "v0", "v1", given=("v2",), test=test, budget=jaxcd.Budget(0.5), key=None)
    assert answer.cost.epsilon <= 0.5 and answer.cost.delta == 0 and answer.cost.proven
    assert answer.statistic is None and answer.pvalue is None and answer.log_pvalue is None
    assert answer.independent == (answer.margin <= 0)


@pytest.mark.parametrize("decider", [jaxcd.SparseVector(), jaxcd.NoisyThreshold(), jaxcd.SieveAndExamine(rate=0.5)])
def test_a_generous_budget_gives_the_graph_without_privacy(decider):
    """Clear dependences, and a budget so large that the noise is far below every margin."""
    rng = np.random.default_rng(0)
    n = 20_000
    a, c, e = rng.integers(0, 2, (3, n))
    b = np.where(rng.random(n) < 0.6, a, rng.integers(0, 2, n))
    d = np.where(rng.random(n) < 0.6, c, rng.integers(0, 2, n))
    domain = jaxcd.Domain([(name, jaxcd.Ordinal((0, 1))) for name in "abcde"])
    data = jaxcd.Dataset.from_codes(np.stack([a, b, c, d, e], 1).astype(np.int32), domain=domain)
    options = {"test": jaxcd.CovarianceNorm(), "key": None}
    private = jaxcd.pc(
        data, decider=decider, budget=jaxcd.Budget(1e4), noise=jaxcd.SimulatedNoise(jax.random.key(0)), **options
    )
    edges = {frozenset((edge.a, edge.b)) for edge in private.graph.edges()}
    if private.exhausted:
        assert edges >= {frozenset("ab"), frozenset("cd")}
    else:
        assert edges == {frozenset("ab"), frozenset("cd")}
