"""Empirical audits: how well do many runs of a decider tell two neighbouring data sets apart?

The deciders are audited on the worst test that their interface allows: every margin moves by
exactly the stated sensitivity, up or down as the attacker likes.  Clopper-Pearson bounds at
confidence 1 - 10^-7 on the events of a run must not exceed the budget; the same audit must expose a
test that understates its sensitivity, or else it could not fail.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom

import jaxcd
from jaxcd.citests import CITest, Evaluation, PreparedTest, Query, Sensitivity
from jaxcd.citests.tables import DiscreteTest
from jaxcd.data.rows import Codes
from jaxcd.decisions import Noise
from jaxcd.discovery.constraint.skeleton import search_skeleton
from jaxcd.privacy import Accountant, Ledger, epsilon_lower_bound
from jaxcd.privacy.conversion import amplified_epsilon
from jaxcd.queries import Door, Session
from tests.helpers import Quick, coded

CONFIDENCE = 1 - 1e-7
D = 4
DOMAIN = jaxcd.Domain([(f"v{j}", jaxcd.Categorical((0, 1))) for j in range(D)])


@dataclass(frozen=True)
class _Counted(PreparedTest):
    codes: np.ndarray
    rule: Callable[[Query, int], float]

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return len(self.codes)

    def bucket(self, query: Query) -> Hashable:
        return None

    def batch_size(self, bucket: Any) -> int:
        return 1 << 10

    def evaluate(self, bucket: Any, queries: Sequence[Query], *, alpha: float) -> Evaluation:
        ones = int(self.codes[:, 0].sum())
        margin = np.array([self.rule(query, ones) for query in queries], dtype=np.float64)
        return Evaluation(margin, margin, margin)

    def view_counts(self, sets: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        return Codes(self.codes, (2,) * D).counts(sets)

    def restrict(self, rows: np.ndarray) -> PreparedTest:
        return _Counted(self.codes[rows], self.rule)


@dataclass(frozen=True)
class Counting(DiscreteTest):
    """A test whose margins are a rule of the number of ones in column 0; its sensitivity is as
    stated.
    """

    rule: Callable[[Query, int], float]
    stated: float = 1.0

    def prepare(self, data: Any, **_: Any) -> PreparedTest:
        return _Counted(data.codes, self.rule)

    def margin_sensitivity(self, **_: Any) -> Sensitivity | None:
        return Sensitivity(self.stated, 0.0, "by construction")


def outcomes(
    codes: np.ndarray,
    test: CITest,
    decider: Any,
    budget: jaxcd.Budget,
    *,
    runs: int,
    seed: int,
    max_level: int | None,
) -> list[tuple]:
    """(separated pairs with their sets, exhausted) of many runs on one data set."""
    n_columns = codes.shape[1]
    domain = DOMAIN.select(DOMAIN.names[:n_columns])
    data = coded(codes, domain)
    session, sampler = Session(Door(data, budget), test, alpha=decider.alpha), Quick(seed)
    result = []
    for _ in range(runs):
        run = decider.start(session, Accountant(Ledger(budget), sampler))
        skeleton = search_skeleton(
            run,
            n_columns,
            admissible=lambda x, y, given: True,
            max_level=max_level,
            stable=True,
            report=lambda *_: None,
        )
        result.append((tuple(sorted(skeleton.separating_sets.items())), run.exhausted))
    return result


def bound(
    here: list, there: list, events: Sequence[Callable[[tuple], bool]], *, delta: float = 0.0
) -> float:
    """A lower bound on epsilon at this delta that holds for all events, fixed in advance, at
    once.
    """
    n = len(here)
    counts = [np.array([sum(map(event, side)) for event in events]) for side in (here, there)]
    if delta == 0:
        return epsilon_lower_bound(counts[0], counts[1], n, confidence=CONFIDENCE)
    tail = (1 - CONFIDENCE) / (4 * len(events))
    best = 0.0
    for a, b in (counts, counts[::-1]):
        low = np.where(a > 0, beta.ppf(tail, np.maximum(a, 1), n - a + 1), 0.0) - delta
        high = np.where(b < n, beta.ppf(1 - tail, b + 1, np.maximum(n - b, 1)), 1.0)
        best = max([best, *(math.log(x / y) for x, y in zip(low, high, strict=True) if x > 0)])
    return best


ZEROS = np.zeros((4, D), dtype=np.int64)
ONE = ZEROS.copy()
ONE[2] = 1  # the record replaced, in every column

PAIRS = list(itertools.combinations(range(D), 2))


def separated_by(pair: tuple[int, int]) -> Callable[[tuple], bool]:
    return lambda outcome: any(found == pair for found, _ in outcome[0])


def exhausted(outcome: tuple) -> bool:
    return outcome[1]


THREE = [(0, 1), (0, 2), (1, 2)]


def below_then_above(query: Query, ones: int) -> float:
    """Nearly the most that an AboveThreshold can cost: one query moves away from the threshold, the
    next towards it.

    The third is far from it.
    """
    return {(0, 1): -1.0 + ones, (0, 2): 0.0 - ones}.get((query.x, query.y), 1e6)


def round_law(ones: int, epsilon: float) -> np.ndarray:
    """P["the k-th of the three queries is the first above"], k = 0, 1, 2, and P["none"]: a
    quadrature over the threshold.
    """
    share = 1 / (1 + 2 ** (2 / 3))
    threshold_scale, query_scale = 1 / (share * epsilon), 2 / ((1 - share) * epsilon)
    rho = (np.arange(400_000) + 0.5) * (60 * threshold_scale / 400_000)
    weight = np.exp(-rho / threshold_scale)
    weight /= weight.sum()
    limit = rho + query_scale - threshold_scale  # the threshold is raised by the noise's mean
    below = np.ones_like(rho)
    law = []
    for x, y in THREE:
        above = np.exp(-np.maximum(limit + below_then_above(Query(x, y), ones), 0) / query_scale)
        law.append(float((weight * below * above).sum()))
        below = below * (1 - above)
    return np.array([*law, float((weight * below).sum())])


@pytest.fixture(scope="module")
def rounds() -> list[list[tuple]]:
    test, decider = Counting(below_then_above), jaxcd.SparseVector(n_rounds=1)
    return [
        outcomes(codes[:, :3], test, decider, jaxcd.Budget(2.0), runs=2000, seed=seed, max_level=0)
        for seed, codes in enumerate((ZEROS, ONE))
    ]


def test_a_round_has_the_law_of_its_definition(rounds: list):
    """Every outcome of one round is as frequent as the quadrature says, and the law is epsilon-DP,
    with little to spare.
    """
    laws = [round_law(ones, 2.0) for ones in (0, 1)]
    assert 1.7 < np.abs(np.log(laws[0][:2]) - np.log(laws[1][:2])).max() <= 2.0
    for law, runs in zip(laws, rounds, strict=True):
        first = [
            next((k for k, pair in enumerate(THREE) if separated_by(pair)(run)), 3) for run in runs
        ]
        # Whoever separates a pair has used the round up; the budget is exhausted if there was more
        # to ask.
        assert all(
            len(run[0]) <= 1 and run[1] == (k < 2) for k, run in zip(first, runs, strict=True)
        )
        counts = np.bincount(first, minlength=4)
        for count, probability in zip(counts, law, strict=True):
            assert (
                min(
                    binom.cdf(count, len(runs), probability),
                    binom.sf(count - 1, len(runs), probability),
                )
                > 1e-9
            )


def test_a_round_costs_no_more_than_its_price(rounds: list):
    events = [*map(separated_by, THREE), exhausted, lambda run: not run[0]]
    assert 0.9 < bound(*rounds, events) <= 2.0


def halves(query: Query, ones: int) -> float:
    """Pairs alternate between moving up and moving down."""
    place = PAIRS.index((query.x, query.y))
    return (1.0 if place % 2 else -1.0) * (ones - 0.5)


RUNS: list[tuple[Any, jaxcd.Budget, int]] = [
    (jaxcd.NoisyThreshold(n_queries=1), jaxcd.Budget(1.5), 0),
    (jaxcd.NoisyThreshold(n_queries=6), jaxcd.Budget(8.0), 0),
    (jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN, n_queries=6), jaxcd.Budget(2.0, 1e-2), 0),
    (jaxcd.SparseVector(), jaxcd.Budget(3.0), 0),
    (jaxcd.SparseVector(n_rounds=2), jaxcd.Budget(2.0, 1e-2), 0),
    (jaxcd.SieveAndExamine(n_rounds=1, rate=1.0), jaxcd.Budget(2.0), 0),
    (jaxcd.SieveAndExamine(n_rounds=1, rate=0.5), jaxcd.Budget(2.0), 0),
    (jaxcd.LevelwiseGaussian(), jaxcd.Budget(3.0, 1e-2), 2),
]
IDS = [f"{decider.name}{i}" for i, (decider, _, _) in enumerate(RUNS)]


def all_events() -> list[Callable[[tuple], bool]]:
    return [
        exhausted,
        *map(separated_by, PAIRS),
        lambda run: not run[0],
        lambda run: sum(len(given) for _, given in run[0]) > 0,
        # pairs that move up, and pairs that move down
        *(
            lambda run, k=k: sum(separated_by(pair)(run) for pair in PAIRS[k::2]) >= 2
            for k in (0, 1)
        ),
        *(
            lambda run, k=k: not any(separated_by(pair)(run) for pair in PAIRS[k::2])
            for k in (0, 1)
        ),
        lambda run: [separated_by(pair)(run) for pair in PAIRS] == [True, False] * 3,
        lambda run: [separated_by(pair)(run) for pair in PAIRS] == [False, True] * 3,
    ]


@pytest.mark.parametrize(("decider", "budget", "max_level"), RUNS, ids=IDS)
def test_worst_test(decider: Any, budget: jaxcd.Budget, max_level: int):
    sides = [
        outcomes(codes, Counting(halves), decider, budget, runs=400, seed=seed, max_level=max_level)
        for seed, codes in enumerate((ZEROS, ONE))
    ]
    assert len(set(sides[0])) > 1
    assert bound(*sides, all_events(), delta=budget.delta) <= budget.epsilon


@pytest.mark.parametrize(
    ("decider", "budget"),
    [
        (jaxcd.NoisyThreshold(n_queries=1), jaxcd.Budget(1.0)),
        (jaxcd.SparseVector(n_rounds=1), jaxcd.Budget(1.0)),
        (jaxcd.SieveAndExamine(n_rounds=1, rate=1.0), jaxcd.Budget(1.0)),
        (jaxcd.SieveAndExamine(n_rounds=1, rate=0.5), jaxcd.Budget(1.0)),
        (jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN, n_queries=6), jaxcd.Budget(1.0, 1e-2)),
    ],
    ids=["NoisyThreshold", "SparseVector", "Sieve1", "SieveHalf", "Gaussian"],
)
def test_an_understated_sensitivity_is_exposed(decider: Any, budget: jaxcd.Budget):
    """The audit's own test: the margins move eight times as far as stated, and the audit says
    so.
    """
    sides = [
        outcomes(
            codes, Counting(halves, stated=1 / 8), decider, budget, runs=400, seed=seed, max_level=0
        )
        for seed, codes in enumerate((ZEROS, ONE))
    ]
    assert bound(*sides, all_events(), delta=budget.delta) > budget.epsilon


def test_subsampling_is_paid_for_as_amplified():
    """A sieve on m of n records may use the larger price, and does: its law on the worst pair, by
    quadrature, is the budget's.
    """
    epsilon, rate = 1.0, 0.5
    inner = amplified_epsilon(epsilon, rate)
    assert math.log1p(rate * math.expm1(inner)) == pytest.approx(epsilon) and inner > epsilon
    seen, unseen = round_law(1, inner)[:2], round_law(0, inner)[:2]
    mixture = rate * seen + (1 - rate) * unseen
    assert 0.8 * epsilon < np.abs(np.log(mixture) - np.log(unseen)).max() <= epsilon


@pytest.mark.parametrize(
    ("decider", "budget"),
    [
        (jaxcd.NoisyThreshold(n_queries=1), jaxcd.Budget(2.0)),
        (jaxcd.SparseVector(), jaxcd.Budget(2.0)),
        (jaxcd.LevelwiseGaussian(), jaxcd.Budget(2.0, 1e-2)),
    ],
    ids=lambda part: getattr(part, "name", None),
)
@pytest.mark.parametrize(
    "test", [jaxcd.CovarianceNorm(), jaxcd.KendallTau()], ids=lambda test: test.name
)
def test_real_tests_on_tiny_data(test: CITest, decider: Any, budget: jaxcd.Budget):
    """Three binary columns and 30 records near the tests' floors, where one record moves the
    margins most.
    """
    codes = np.zeros((30, 3), dtype=np.int64)
    codes[:14] = 1
    codes[-2:, 0] = 1
    neighbour = codes.copy()
    neighbour[-1] = (0, 1, 1)
    sides = [
        outcomes(part, test, decider, budget, runs=100, seed=seed, max_level=1)
        for seed, part in enumerate((codes, neighbour))
    ]
    pairs = list(itertools.combinations(range(3), 2))
    events = [
        exhausted,
        *map(separated_by, pairs),
        lambda run: not run[0],
        lambda run: len(run[0]) >= 2,
    ]
    assert bound(*sides, events, delta=budget.delta) <= budget.epsilon
