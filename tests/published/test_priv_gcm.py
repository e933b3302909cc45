"""PrivGCM and PrivCRT: sensitivities under attack, laws under the null, and what is refused."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxcd
from jaxcd.citests import Query
from jaxcd.errors import DomainError, OptionError, SensitivityError
from jaxcd.privacy import Accountant, Budget, Ledger
from jaxcd.published import PrivCRT, PrivGCM
from jaxcd.published.priv_gcm import _evaluation
from tests.helpers import simulated

KEY = jax.random.key(0)
GIVEN = Query(0, 1, (2,))


def table(values: np.ndarray, reach: float = 1.0) -> jaxcd.Dataset:
    names = list("xyzw")[: values.shape[1]]
    domain = jaxcd.Domain({name: jaxcd.Numeric(-reach, reach) for name in names})
    return jaxcd.Dataset.from_array(values, names=names, domain=domain)


def law(z: jax.Array, u: jax.Array) -> jax.Array:
    return 0.5 * jnp.sin(2 * z[0]) + 0.4 * (2 * u - 1)


def known_law(n: int, seed: int, share: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    z, e, f = rng.uniform(-1, 1, (3, n))
    return np.column_stack([0.5 * np.sin(2 * z) + 0.4 * e, 0.4 * z + 0.4 * (share * e + f) / 2, z])


CRT = PrivCRT(column="x", quantile=law, n_copies=39, n_features=20)


def neighbours(trial: int, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Constant columns and a record that turns; then columns at the corners, and any ones."""
    rng = np.random.default_rng(trial)
    if trial % 3 == 0:
        values = np.full((n, 3), -1.0)
        values[: trial % n, 2] = 1
    else:
        values = rng.choice([-1.0, 1.0], (n, 3)) if trial % 3 == 1 else rng.uniform(-1, 1, (n, 3))
    values[0] = rng.choice([-1.0, 1.0], 3)
    other = values.copy()
    other[0] = rng.choice([-1.0, 1.0], 3)
    return values, other


@pytest.mark.parametrize("penalty", [1.0, 0.1, 10.0])
def test_no_record_moves_the_products_by_more_than_stated(penalty: float) -> None:
    test, reached = PrivGCM(penalty=penalty, n_features=20), 0.0
    for trial in range(36):
        here, there = (
            test.prepare(table(each), key=KEY)._products(GIVEN) for each in neighbours(trial)
        )
        reached = max(reached, float(np.abs(here - there).sum()))
    stated = test.product_sensitivity(conditional=True)
    assert 0.05 * stated < reached <= stated
    assert PrivGCM().product_sensitivity(conditional=True) == pytest.approx(9.1586, abs=1e-4)


def test_no_record_moves_the_products_without_z_by_more_than_stated() -> None:
    """Columns at both ends in all shares, and a record that goes from corner to corner."""
    test, reached, n = PrivGCM(), 0.0, 41
    stated = test.product_sensitivity(conditional=False)
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    columns = [np.where(np.arange(n) < high, 1.0, -1.0) for high in (1, 6, 11, 21, 31, 41)]
    for x in columns:
        for y in (*columns, *(column[::-1] for column in columns)):
            moved = []
            for corner in corners:
                values = np.column_stack([x, y])
                values[0] = corner
                moved.append(test.prepare(table(values), key=KEY)._products(Query(0, 1)))
            reached = max(reached, *(np.abs(a - b).sum() for a in moved for b in moved))
    assert 0.95 * stated < reached <= stated == 5


def test_without_z_a_mean_is_no_dependence() -> None:
    """Independent columns whose means are not the middle of their bounds."""
    rejected = []
    for seed in range(200):
        values = np.random.default_rng(seed).uniform(0, 1, (300, 2))
        prepared = PrivGCM().prepare(table(values), key=KEY)
        rejected.append(prepared.evaluate((), [Query(0, 1)], alpha=0.1).margin[0] > 0)
    assert np.sum(rejected) <= stats.binom.ppf(0.999, 200, 0.1)


def test_no_record_moves_a_statistic_of_copies_by_more_than_stated() -> None:
    reached = 0.0
    for trial in range(36):
        here, there = (
            CRT.prepare(table(each), key=KEY)._statistics(GIVEN) for each in neighbours(trial)
        )
        reached = max(reached, float(np.abs(here - there).max()))
        ordered = [np.sort(each[1:]) for each in (here, there)]
        assert np.abs(ordered[0] - ordered[1]).max() <= np.abs(here - there).max() + 1e-12
    stated = CRT.statistic_sensitivity(conditional=True)
    assert 0.1 * stated < reached <= stated
    assert CRT.statistic_sensitivity(conditional=False) == 4


def test_copies_of_the_other_rows_do_not_follow_a_record() -> None:
    """They are functions of one row each: with a record in another place nothing else changes."""
    seen = []

    def looking(z: jax.Array, u: jax.Array) -> jax.Array:
        seen.append((z.shape, u.shape))
        return law(z, u)

    test = PrivCRT(column="x", quantile=looking, n_copies=19)
    test.prepare(table(known_law(50, 0)), key=KEY).evaluate((2,), [GIVEN], alpha=0.05)
    assert set(seen) == {((1,), ())}


def test_the_law_of_the_statistics_without_noise() -> None:
    """PrivGCM is the covariance measure of ridge residuals; PrivCRT's p-value is uniform."""
    values = known_law(200, 1)
    prepared = PrivGCM(penalty=0.01).prepare(table(values), key=KEY)
    products = prepared._products(GIVEN)
    found = prepared.evaluate((2,), [GIVEN], alpha=0.05)
    z = math.sqrt(200) * products.mean() / products.std()
    assert found.statistic[0] == pytest.approx(z)
    t = math.sqrt(199 / 200) * z
    assert math.exp(found.log_pvalue[0]) == pytest.approx(2 * stats.t.sf(abs(t), 199))
    critical = stats.t.ppf(0.975, 199) * math.sqrt(200 / 199)
    assert found.margin[0] == pytest.approx(abs(z) - critical)
    ranks = []
    for seed in range(80):
        answer = CRT.prepare(table(known_law(60, seed)), key=jax.random.key(seed))
        ranks.append(math.exp(answer.evaluate((2,), [GIVEN], alpha=0.05).log_pvalue[0]))
    assert stats.kstest(ranks, "uniform").pvalue > 1e-3
    # at p = alpha the answer is "dependent"
    assert answer._answer(0.0, 1, 0.05)[2] > 0 > answer._answer(0.0, 2, 0.05)[2]


def test_the_level_holds_with_few_rows() -> None:
    """The normal law rejects .15 of these."""
    rng = np.random.default_rng(0)
    products = rng.uniform(-1, 1, (20_000, 5)) * rng.uniform(-1, 1, (20_000, 5))
    found = _evaluation(products + rng.laplace(0, 0.5, products.shape), alpha=0.05)
    assert 0.03 < (found.margin > 0).mean() < 0.055
    assert ((found.margin > 0) == (found.log_pvalue < math.log(0.05))).all()
    alone = _evaluation(products[:3, :1], alpha=0.05)
    assert (alone.margin < 0).all() and not alone.log_pvalue.any()


@pytest.mark.parametrize("test", [PrivGCM(n_features=20), CRT], ids=["GCM", "CRT"])
def test_answers_are_paid_for_and_hold_their_level(test) -> None:
    hits = 0
    for seed in range(100):
        account = Accountant(Ledger(Budget(2.0)), simulated(seed))
        prepared = test.prepare(table(known_law(60, seed)), key=jax.random.key(seed))
        bought = prepared.buy(GIVEN, account, epsilon=2.0, alpha=0.1)
        hits += bool(bought.margin[0] > 0)
        assert account.ledger.spent.epsilon == 2.0 and len(account.ledger.to_table()) == 1
    assert hits <= stats.binom.ppf(0.999, 100, 0.1)


def test_a_dependence_is_seen_where_the_budget_allows() -> None:
    """At a price at which there is hardly any noise."""
    data = table(known_law(400, 3, share=1.0))
    for test in (PrivGCM(), CRT):
        answer = jaxcd.ci_test(
            data, "x", "y", given=["z"], test=test, budget=Budget(1e4), key=KEY, noise=simulated(0)
        )
        assert not answer.independent and answer.pvalue is not None and answer.pvalue <= 0.05
        assert not answer.cost.proven  # the noise is simulated
    secure = jaxcd.ci_test(data, "x", "y", given=["z"], test=PrivGCM(), budget=Budget(1.0), key=KEY)
    assert secure.cost.proven and secure.cost.epsilon == 1.0
    foreign = jaxcd.ci_test(data, "x", "y", given=["z"], test=CRT, budget=Budget(1.0), key=KEY)
    assert not foreign.cost.proven and "PrivCRT" in str(foreign.cost.reason)


def test_a_law_that_is_no_number_tells_nothing() -> None:
    for broken in (math.nan, math.inf, -math.inf):
        test = PrivCRT(column="x", quantile=lambda z, u, to=broken: to + 0 * u, n_copies=19)
        answer = jaxcd.ci_test(
            table(known_law(50, 0)),
            "x",
            "y",
            given=["z"],
            test=test,
            budget=Budget(1.0),
            key=KEY,
            noise=simulated(0),
        )
        assert answer.pvalue is not None and 0 < answer.pvalue <= 1


def test_either_column_may_have_the_known_law() -> None:
    values = known_law(60, 0)
    here = CRT.prepare(table(values), key=KEY)._statistics(GIVEN)
    turned = jaxcd.Dataset.from_array(
        values[:, [1, 0, 2]],
        names=["y", "x", "z"],
        domain=jaxcd.Domain({name: jaxcd.Numeric(-1, 1) for name in "yxz"}),
    )
    assert CRT.prepare(turned, key=KEY)._statistics(GIVEN) == pytest.approx(here)
    assert not CRT.prepare(table(values), key=KEY).admissible(Query(1, 2))


def test_refusals() -> None:
    for wrong in ({"penalty": 1e-9}, {"bandwidth": 0.0}, {"n_features": 3}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            PrivGCM(**wrong)
    with pytest.raises(OptionError, match="quantile = 1 is no function"):
        PrivCRT(column="x", quantile=1)
    with pytest.raises(OptionError, match="n_copies = 3"):
        PrivCRT(column="x", quantile=law, n_copies=3)
    data = table(known_law(50, 0))
    with pytest.raises(OptionError, match="column = 'q' is not a column"):
        PrivCRT(column="q", quantile=law).prepare(data, key=KEY)
    with pytest.raises(OptionError, match="key = None"):
        PrivGCM().prepare(data)
    free = jaxcd.Domain({name: jaxcd.Numeric() for name in "xyz"})
    with pytest.raises(DomainError, match="needs public bounds"):
        PrivGCM().prepare(jaxcd.Dataset.from_array(known_law(50, 0), domain=free), key=KEY)
    with pytest.raises(SensitivityError):
        jaxcd.pc(
            data,
            test=PrivGCM(),
            decider=jaxcd.NoisyThreshold(),
            budget=Budget(1.0),
            key=KEY,
            noise=simulated(0),
        )
