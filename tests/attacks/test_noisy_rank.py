"""Attacks on the noisy rank: replay on neighbours, the exact odds of its answer, and the p-value
that may not be released.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.audit.replaying import Given
from jaxcd.citests import Query
from jaxcd.decisions import noisy_rank as module
from jaxcd.privacy import GRID, Accountant, Ledger, NoiseSampler, integer_sensitivity
from jaxcd.queries import Door, Session
from tests.helpers import measured, simulated

TEST = jaxcd.BoundedRCIT(n_permutations=19, n_features=20)


def pair(trial: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A data set and a neighbour: clusters, copies, spreads; one whole record replaced by a
    corner.
    """
    rng = np.random.default_rng(trial)
    columns = rng.choice([-1.0, 0.0, 1.0], (n, 3)) if trial % 2 else rng.uniform(-1, 1, (n, 3))
    if trial % 3 == 0:
        columns[:, 1] = columns[:, 0]
    other = columns.copy()
    other[int(rng.integers(n))] = rng.choice([-1.0, 1.0], 3)
    return columns, other


class Tape(NoiseSampler):
    """Draws noise and keeps it; with a first tape, changes the noise of T_0 so that the answer is
    the same.
    """

    def __init__(self, seed: int, values: list[np.ndarray], first: Tape | None = None) -> None:
        self._rng, self._values, self._first = np.random.default_rng(seed), values, first
        self.draws: list[tuple[float, np.ndarray, np.ndarray]] = []
        self.shifts: list[float] = []

    @property
    def secure(self) -> bool:
        return True

    def discrete_laplace(self, scale: float, size: int, *, index: int) -> np.ndarray:
        here = self._values[-1]
        if self._first is None:
            parts = np.floor(self._rng.standard_exponential((2, size)) * scale).astype(np.int64)
            noise = parts[0] - parts[1]
        else:
            before_scale, noise, there = self._first.draws[len(self.draws)]
            assert (before_scale, len(noise)) == (scale, size)
            noise = noise.copy()
            # rank 1: M_0 against the largest of the others, whose noise stays
            gap = (there[0] - (there[1:] + noise[1:]).max()) - (
                here[0] - (here[1:] + noise[1:]).max()
            )
            noise[0] += gap
            self.shifts.append(abs(int(gap)) / scale)
        self.draws.append((scale, noise, here))
        return noise

    def _unused(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("only Laplace noise is drawn")

    discrete_gaussian = geometric = subset = gumbel_max = _unused  # type: ignore[assignment]


def test_neighbours_look_the_same_at_the_price_that_was_charged(monkeypatch: pytest.MonkeyPatch):
    """The whole run on a neighbour, the noise of the null as it was and that of the statistic
    moved: everything that leaves the run is the same, and the move costs at most the epsilon of the
    event."""
    values: list[np.ndarray] = []
    quantise = module.quantise

    def tapped(array: Any, *, grid: float) -> np.ndarray:
        values.append(quantise(array, grid=grid))
        return values[-1]

    monkeypatch.setattr(module, "quantise", tapped)
    worst, n_separated, n_kept = 0.0, 0, 0
    for trial in range(8):
        columns, neighbour = pair(trial, 40)
        options = dict(
            test=TEST,
            decider=jaxcd.NoisyRank(n_queries=8),
            budget=jaxcd.Budget(40.0),
            key=jax.random.key(0),
            max_level=1,
        )
        first = Tape(trial, values)
        run = jaxcd.pc(measured(columns, -1, 1), noise=Given(first), **options)
        second = Tape(trial, values, first)
        other = jaxcd.pc(measured(neighbour, -1, 1), noise=Given(second), **options)
        assert repr(run) == repr(other) and pickle.dumps(run) == pickle.dumps(other)
        prices = [row["epsilon"] for row in run.info["ledger"]]
        assert len(second.shifts) == len(prices)
        shares = [shift / price for shift, price in zip(second.shifts, prices, strict=True)]
        assert max(shares) <= 1
        worst = max(worst, *shares)
        n_separated += len(run.separating_sets)
        n_kept += 3 - len(run.separating_sets)
    assert worst > 0.05 and n_separated > 2 and n_kept > 2


@pytest.mark.parametrize("given", [(), (2,)])
def test_statistics_of_neighbours_move_together_by_at_most_the_sensitivity(given: tuple[int, ...]):
    """What the proof adds up: the change of T_0 plus the largest change of a permuted statistic."""
    worst = 0.0
    for trial in range(14):
        rows = []
        for columns in pair(trial, 40):
            session = Session(
                Door(measured(columns, -1, 1), jaxcd.NO_PRIVACY),
                TEST,
                alpha=0.05,
                key=jax.random.key(3),
            )
            rows.append(session.permuted_statistics([Query(0, 1, given)]).expose()[0])
        moved = np.abs(rows[0] - rows[1])
        worst = max(worst, moved[0] + moved[1:].max())
    assert (0.005 if given else 0.05) < worst <= 1.0


def laplace_sf(z: np.ndarray) -> np.ndarray:
    return np.where(z > 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2)


def law_of_the_count(statistics: np.ndarray, scale: float) -> np.ndarray:
    """P[#{s: M_s >= M_0} = j], j = 0 .. k, by integration over M_0 of the counts' law (Laplace
    noise of this scale on each).
    """
    grid = np.linspace(-40, 40, 16_001) * scale + statistics[0]
    density = np.exp(-np.abs((grid - statistics[0]) / scale)) / (2 * scale)
    law = np.zeros((len(grid), len(statistics)))
    law[:, 0] = 1
    for t in statistics[1:]:
        above = laplace_sf((grid - t) / scale)[:, None]
        law[:, 1:] = law[:, 1:] * (1 - above) + law[:, :-1] * above
        law[:, :1] *= 1 - above
    return np.trapezoid(law * density[:, None], grid, axis=0)


def test_odds_of_the_answer_on_the_worst_neighbours():
    """T_0 up and every T_s down, by their whole sensitivities: the odds of both answers change by
    at most e^epsilon, and nearly by it.
    """
    k, epsilon, observed, permuted = 19, 1.0, 0.4, 0.6
    scale = (observed + permuted) / epsilon
    ratios = []
    for start in (-6.0, -2.0, 0.0, 2.0, 8.0):
        before = np.zeros(k + 1)
        before[0] = start
        after = before + np.where(np.arange(k + 1) == 0, observed, -permuted)
        p, q = (law_of_the_count(s, scale)[0] for s in (before, after))
        ratios += [math.log(q / p), math.log((1 - p) / (1 - q))]
    assert max(ratios) <= epsilon + 1e-6 and max(ratios) > 0.95 * epsilon
    # Noise for the sensitivity of T_0 alone would not do.
    p, q = (
        law_of_the_count(s, observed / epsilon)[0]
        for s in (np.full(k + 1, 0.0), np.append(observed, np.full(k, -permuted)))
    )
    assert math.log(q / p) > epsilon


def test_the_pvalue_itself_costs_more_than_epsilon():
    """Why NoisyRank releases answers only: all statistics move by at most Delta = 1, the noise has
    the scale 2 Delta / epsilon that is claimed to be enough for the rank, and the probability of
    one rank falls by more than e^epsilon."""
    epsilon, delta = 1.0, 1.0
    before = np.concatenate([[0.0], np.full(15, -0.5), np.full(4, 8.0)])
    after = np.concatenate([[-1.0], np.full(15, 0.5), np.full(4, 7.0)])
    assert np.abs(before - after).max() <= delta
    p, q = (law_of_the_count(s, 2 * delta / epsilon) for s in (before, after))
    assert p.sum() == pytest.approx(1, abs=1e-4) and q.sum() == pytest.approx(1, abs=1e-4)
    assert p[4] == pytest.approx(0.0607, abs=1e-4) and q[4] == pytest.approx(0.0195, abs=1e-4)
    assert math.log(p[4] / q[4]) > 1.1 * epsilon
    # Each answer "p <= alpha", by itself, is within epsilon on this pair.
    for a, b in ((np.cumsum(p), np.cumsum(q)), (1 - np.cumsum(p), 1 - np.cumsum(q))):
        assert np.abs(np.log(a[:19] / b[:19])).max() <= epsilon


def test_the_published_pair_in_simulation():
    """The mechanism's own draws on the pair above agree with the integral: the answer at rank 5."""
    statistics = np.concatenate([[0.0], np.full(15, -0.5), np.full(4, 8.0)])
    accountant = Accountant(Ledger(jaxcd.NO_PRIVACY), simulated())
    runs = 2000
    answers = [
        module.noisy_rank(accountant, statistics, rank=5, sensitivity=2.0, epsilon=1.0, label="x")
        for _ in range(runs)
    ]
    expected = law_of_the_count(statistics, float(integer_sensitivity(2.0, grid=GRID) + 1) * GRID)[
        :5
    ].sum()
    assert abs(np.mean(answers) - expected) < 5 * math.sqrt(expected * (1 - expected) / runs)
