"""One configuration on data of every kind and on every release, and the normal score of numeric
data.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import jaxcd
from jaxcd.errors import DomainError, OptionError
from jaxcd.releases import GaussianScore, SecondMoments, SetScore
from jaxcd.scores import BIC, BDeu, BDeuScore, BICScore, GaussianDataScore
from tests.brute_force import all_dags, class_totals
from tests.helpers import numbers, refused, sampled

RNG = np.random.default_rng(0)
MIXING = np.array(
    [[1.0, 0.4, 0.0, 0.2], [0.0, 1.0, 0.6, 0.0], [0.0, 0.0, 1.0, 0.5], [0.0, 0.0, 0.0, 1.0]]
)
VALUES = np.tanh(RNG.normal(size=(400, 4)) @ MIXING) * 2 + [0.0, 5.0, -3.0, 1.0]
NUMBERS = jaxcd.Dataset.from_array(VALUES, domain=numbers("abcd", -20.0, 20.0))
LEVELS = sampled("cancer", 2_000)


@pytest.mark.parametrize("penalty", [1.0, 2.5])
def test_the_normal_score_is_that_of_least_squares(penalty: float):
    score = GaussianDataScore(NUMBERS, penalty=penalty)
    for node in range(4):
        spread = VALUES[:, node].std()
        for parents in itertools.chain.from_iterable(
            itertools.combinations([v for v in range(4) if v != node], k) for k in range(4)
        ):
            design = np.column_stack([np.ones(400), VALUES[:, list(parents)]])
            residual = (
                VALUES[:, node] - design @ np.linalg.lstsq(design, VALUES[:, node], rcond=None)[0]
            )
            expected = -400 * math.log(residual.std() / spread) - penalty / 2 * math.log(400) * len(
                parents
            )
            assert score.local(node, parents) == pytest.approx(expected, abs=1e-6)


def test_a_copied_column_has_a_finite_score():
    domain = numbers("abcdef", -20.0, 20.0)
    copied = jaxcd.Dataset.from_array(
        np.column_stack([VALUES, VALUES[:, 0], np.ones(400)]), domain=domain
    )
    score = GaussianDataScore(copied)
    assert math.isfinite(score.local(4, (0, 1, 2, 3))) and score.local(4, (0,)) > score.local(
        4, (1,)
    )
    assert score.local(5, (0, 1)) <= score.local(5, ())


@pytest.mark.parametrize("n", [100, 10_000])
def test_rounding_decides_nothing_between_columns_that_determine_each_other(n: int):
    """Copies, a sum of two, a sum of three: the order of the rows moves the last digits only, and
    equivalent graphs have equal totals.
    """
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n))
    for columns in ((x, x + y, x), (x, y, x + y), (x, x + y, x, 2 * x + y)):
        names = [f"v{j}" for j in range(len(columns))]
        orders = [np.arange(n), *(rng.permutation(n) for _ in range(3))]
        rows = [
            jaxcd.Dataset.from_array(np.column_stack(columns)[order], names=names)
            for order in orders
        ]
        class_totals(GaussianDataScore(rows[0]), all_dags(len(columns)), tolerance=1e-5)
        sold = [jaxcd.release(data, SecondMoments(), budget=jaxcd.NO_PRIVACY) for data in rows]
        for search in (
            lambda data: jaxcd.ges(data, budget=jaxcd.NO_PRIVACY),
            lambda data: jaxcd.exact_search(data, budget=jaxcd.NO_PRIVACY),
        ):
            assert len({str(search(data).graph) for data in rows}) == 1
        assert len({str(jaxcd.search(bought).graph) for bought in sold}) == 1


def test_configurations_choose_the_score():
    histogram = jaxcd.release(LEVELS, jaxcd.Histogram(), budget=jaxcd.NO_PRIVACY)
    marginals = jaxcd.release(LEVELS, jaxcd.Marginals(), budget=jaxcd.NO_PRIVACY)
    moments = SecondMoments().release(NUMBERS, budget=jaxcd.NO_PRIVACY)
    assert isinstance(BIC().prepare(LEVELS), BICScore) and isinstance(
        BDeu().prepare(LEVELS), BDeuScore
    )
    assert isinstance(BIC().prepare(NUMBERS), GaussianDataScore)
    assert isinstance(BIC().prepare(marginals), SetScore) and isinstance(
        BIC().prepare(moments), GaussianScore
    )
    for config in (BIC(), BDeu(), BIC(penalty_discount=2.0), BDeu(equivalent_sample_size=1.0)):
        exact, noiseless = config.prepare(LEVELS), config.prepare(histogram)
        for node, parents in ((0, ()), (2, (0, 1)), (3, (1, 2, 4))):
            assert noiseless.local(node, parents) == pytest.approx(
                exact.local(node, parents), rel=1e-9
            )
    assert BIC().prepare(LEVELS).max_parents == 4
    assert BIC().prepare(LEVELS, max_parents=2).max_parents == 2
    assert BIC().prepare(marginals, max_parents=1).max_parents == 1


def test_penalty_and_prior_are_passed_on():
    assert BIC(penalty_discount=3.0).prepare(LEVELS).local(2, (0,)) == BICScore.of_data(
        LEVELS, penalty=3.0
    ).local(2, (0,))
    assert BIC(penalty_discount=3.0).prepare(NUMBERS).local(2, (0,)) == GaussianDataScore(
        NUMBERS, penalty=3.0
    ).local(2, (0,))
    expected = BDeuScore.of_data(LEVELS, equivalent_sample_size=2.0).local(2, (0,))
    assert BDeu(equivalent_sample_size=2.0).prepare(LEVELS).local(2, (0,)) == expected


def test_refusals():
    for value in (0.0, -1.0, math.nan, math.inf, True, "1"):
        refused(OptionError, "penalty_discount", BIC, penalty_discount=value)
        refused(OptionError, "equivalent_sample_size", BDeu, equivalent_sample_size=value)
        refused(OptionError, "penalty", GaussianDataScore, NUMBERS, penalty=value)
    columns = jaxcd.Domain([("x", jaxcd.Categorical(("a", "b"))), ("y", jaxcd.Numeric(0.0, 2.0))])
    mixed = jaxcd.Dataset.from_array([["a", 0.5], ["b", 0.7], ["a", 1.5]], domain=columns)
    for config in (BIC(), BDeu()):
        with pytest.raises(
            DomainError, match="discrete and numeric columns together, and 'y' is numeric"
        ):
            config.prepare(mixed)
    refused(DomainError, r"'a' is numeric; use BIC\(\)", BDeu().prepare, NUMBERS)
    marginals = jaxcd.release(LEVELS, jaxcd.Marginals(), budget=jaxcd.NO_PRIVACY)
    refused(OptionError, r"marginals.*use BIC\(\)", BDeu().prepare, marginals)
    refused(OptionError, "penalty_discount = 2", BIC(penalty_discount=2.0).prepare, marginals)
