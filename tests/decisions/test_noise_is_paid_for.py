"""Every draw of noise is paid for before it is made, and is as large as the price says.

The noise is recorded on its way from the sampler to the mechanism; the price of each draw is
computed again from the textbook formulas and compared with the row of the ledger under whose index
it was drawn.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import pytest

import jaxcd
from jaxcd.decisions import Noise
from jaxcd.ops.moments import contrast_sensitivity
from jaxcd.privacy import GRID, VECTOR_GRID, Ledger, NoiseSampler, NoiseSource
from tests.catalogue import EACH_MARGIN_TEST, EACH_PRIVATE_DECIDER, MARGIN_TESTS, DeciderRow
from tests.helpers import dependent, simulated, stated

LEVELS = (2, 3, 2, 4, 3)


class Recorder(NoiseSource):
    """Simulated noise that remembers every draw: (method, scale or size, how many, index)."""

    def __init__(self, seed: int = 0) -> None:
        self.draws: list[tuple[str, float, int, int]] = []
        self._inner = simulated(seed)

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

    def rounded_gaussian(self, sigma, size, *, index):
        self._draws.append(("gaussian", sigma, size, index))
        return self._inner.rounded_gaussian(sigma, size, index=index)

    def geometric(self, scale, size, *, index):
        self._draws.append(("geometric", scale, size, index))
        return self._inner.geometric(scale, size, index=index)

    def subset(self, n, m, *, index):
        self._draws.append(("subset", n, m, index))
        return self._inner.subset(n, m, index=index)

    def gumbel_max(self, scores, scale, *, index):
        self._draws.append(("gumbel", scale, len(scores), index))
        return self._inner.gumbel_max(scores, scale, index=index)


def recorded(
    monkeypatch: pytest.MonkeyPatch,
    decider,
    test,
    *,
    data: jaxcd.Dataset | None = None,
    epsilon: float = 2.0,
    seed: int = 0,
    **options,
):
    """A run with the draws of each ledger row; asserts that nothing is drawn under an index before
    its charge.
    """
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
        data or dependent(seed, 500, *LEVELS),
        test=test,
        decider=decider,
        budget=jaxcd.Budget(epsilon, 1e-6),
        key=jax.random.key(1),
        noise=recorder,
        **options,
    )
    assert {draw[3] for draw in recorder.draws} <= set(charged)
    rows = result.info["ledger"]
    by_row = [[draw[:3] for draw in recorder.draws if draw[3] == row["index"]] for row in rows]
    return result, list(zip(rows, by_row, strict=True))


def delta_of(test, n: int) -> float:
    bound = stated(test, n)
    return bound.value + 2 * bound.pad


@EACH_PRIVATE_DECIDER
def test_nothing_is_drawn_before_it_is_charged(monkeypatch, row: DeciderRow):
    """``recorded`` asserts it."""
    _, rows = recorded(monkeypatch, row.decider, row.test, data=row.data(), max_level=1)
    assert rows and any(draws for _, draws in rows)


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


#: decider, and how many events it has at least and at most
PRICED: list[tuple[Any, int, int]] = [
    (jaxcd.NoisyThreshold(n_queries=15), 10, 15),
    (jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN, n_queries=15), 10, 15),
    (jaxcd.SparseVector(n_rounds=4), 1, 4),
    (jaxcd.ExponentialSelect(n_questions=15), 10, 15),
    (jaxcd.Scheduled(jaxcd.NoisyThreshold()), 10, 1000),
    (jaxcd.Scheduled(jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN)), 10, 1000),
    (jaxcd.Scheduled(jaxcd.SparseVector(n_rounds=4)), 1, 16),
    (jaxcd.Scheduled(jaxcd.ExponentialSelect()), 10, 1000),
]


@pytest.mark.parametrize(("decider", "least", "most"), PRICED)
@EACH_MARGIN_TEST
def test_noise_of_one_answer(monkeypatch, test, decider, least: int, most: int):
    """Thresholds with either noise, rounds of the sparse vector, selections; by level and not."""
    result, rows = recorded(monkeypatch, decider, test)
    bound, kind = delta_of(test, 500), getattr(decider, "decider", decider)
    assert least <= len(rows) <= most
    for row, draws in rows:
        if isinstance(kind, jaxcd.SparseVector):
            assert above_threshold_epsilon(draws, bound) <= row["epsilon"]
            continue
        ((method, scale, size),) = draws
        if isinstance(kind, jaxcd.ExponentialSelect):
            assert method == "gumbel" and 2 * bound / (scale * GRID) <= row["epsilon"]
        elif kind.noise is Noise.LAPLACE:
            assert (method, size) == ("laplace", 1) and bound / (scale * GRID) <= row["epsilon"]
        else:
            steps = max(GRID, VECTOR_GRID) * scale
            assert (method, size) == ("gaussian", 1) and bound**2 / (2 * steps**2) <= row["rho"]
    assert len(result.separating_sets) <= most


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_noise_of_sieve_and_examine(monkeypatch, rate: float):
    """Every sieve draws a threshold and a subset of its own; examinations are on the full data."""
    test = MARGIN_TESTS[0]
    n_sieves = n_examinations = 0
    for seed in range(3):
        with monkeypatch.context() as patch:
            result, rows = recorded(
                patch, jaxcd.SieveAndExamine(n_rounds=5, rate=rate), test, seed=seed, epsilon=20.0
            )
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
            base = above_threshold_epsilon(
                [d for d in draws if d[0] != "subset"], delta_of(test, m)
            )
            assert math.log1p(m / 500 * math.expm1(base)) <= row["epsilon"] * (1 + 1e-12)
        labels = [row["label"] for row, _ in rows]
        # after every examination, confirmed or not, a new sieve: they alternate
        assert all(a != b for a, b in itertools.pairwise(labels)) and labels[0] == "sieve"
        assert len(result.separating_sets) <= labels.count("examine") <= 5
    assert n_sieves >= 4 and n_examinations >= 3


@EACH_MARGIN_TEST
def test_noise_of_levelwise_gaussian(monkeypatch, test):
    rows = []
    for seed in range(4):
        with monkeypatch.context() as patch:
            result, found = recorded(
                patch, jaxcd.LevelwiseGaussian(mean_weight=0.7), test, seed=seed, epsilon=8.0
            )
        first = found[0]
        # the release: every coordinate of products and weighted means
        width = [k - 1 for k in LEVELS]
        n_products = sum(a * b for a, b in itertools.combinations(width, 2))
        assert sum(size for _, _, size in first[1]) == n_products + sum(width)
        for method, sigma, _ in first[1]:
            assert method == "gaussian"
            assert (
                contrast_sensitivity(LEVELS, 0.7) ** 2 / (2 * (sigma * VECTOR_GRID) ** 2)
                <= first[0]["rho"]
            )
        rows += found[1:]
    sensitivity = delta_of(test, 500)
    gaussians = [(row, draws) for row, draws in rows if draws[0][0] == "gaussian"]
    selections = [(row, draws) for row, draws in rows if draws[0][0] == "gumbel"]
    assert len(gaussians) + len(selections) == len(rows) and gaussians and selections
    for row, draws in gaussians:
        ((_, sigma, size),) = draws
        # the step of the grid is at most VECTOR_GRID, and sqrt(size) records the L2 sensitivity of
        # size margins
        assert sensitivity**2 * size / (2 * (sigma * VECTOR_GRID) ** 2) <= row["rho"]
    for row, draws in selections:
        ((_, scale, _),) = draws
        assert 2 * sensitivity / (scale * GRID) <= row["epsilon"]


@EACH_MARGIN_TEST
def test_noise_of_tree_guided_pc(test):
    """The release, then whole batches: N margins, or halves of differences of two margins, at Delta
    sqrt(N).
    """
    n_batches = 0
    for seed in range(6):
        recorder = Recorder(seed)
        result = jaxcd.tree_pc(
            dependent(seed, 500, *LEVELS),
            test=test,
            budget=jaxcd.Budget(8.0, 1e-6),
            key=None,
            noise=recorder,
        )
        assert result.cost.epsilon == 8.0 and result.spent.epsilon <= 8.0 and not result.cost.proven
        rows = result.info["ledger"]
        assert {draw[3] for draw in recorder.draws} == {row["index"] for row in rows}
        for row in rows:
            draws = [draw for draw in recorder.draws if draw[3] == row["index"]]
            assert {method for method, *_ in draws} == {"gaussian"}
            if row["index"] == 0:
                bound = contrast_sensitivity(LEVELS, 1.0)
            else:
                n_batches += 1
                ((_, _, size, _),) = draws
                bound = delta_of(test, 500) * math.sqrt(size)
            for _, sigma, _, _ in draws:
                assert bound**2 / (2 * (sigma * VECTOR_GRID) ** 2) <= row["rho"]
    assert n_batches >= 4
