"""Regressions chosen by leave-one-out error, and the tests on their residuals: against dense linear
algebra, closed forms, simulation, and each other."""

from __future__ import annotations

from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxcd
from jaxcd.citests import Query
from jaxcd.citests.column_maps import indicators, mapped, softened
from jaxcd.citests.kci import estimated_traces, sum_of_squares, traces
from jaxcd.citests.regressions import Candidate, Regressions
from jaxcd.citests.residual_products import ProductsInMemory
from jaxcd.citests.single_index import direction
from jaxcd.errors import DomainError, OptionError, SensitivityError
from jaxcd.ops import double_precision, ridge
from tests.helpers import refused

TESTS = (jaxcd.RCIT(n_permutations=99), jaxcd.GCM(), jaxcd.GCM(weighted=True), jaxcd.KCI())


def numeric(values: np.ndarray, labels: tuple[int, ...] = ()) -> jaxcd.Dataset:
    domain = {
        f"x{j}": jaxcd.Categorical(tuple(range(int(values[:, j].max()) + 1)))
        if j in labels
        else jaxcd.Numeric()
        for j in range(values.shape[1])
    }
    return jaxcd.Dataset.from_array(values, names=list(domain), domain=jaxcd.Domain(domain))


def rejected(test: jaxcd.citests.CITest, draw, n_runs: int) -> int:
    """How many of the data sets draw(rng) are called dependent: columns x, y, Z."""
    found = 0
    for run in range(n_runs):
        values = draw(np.random.default_rng(run))
        query = Query.of(0, 1, range(2, values.shape[1]))
        prepared = test.prepare(numeric(values), key=jax.random.key(run))
        found += bool(prepared.evaluate(query.given, [query], alpha=0.05).margin[0] > 0)
    return found


def test_free_terms_are_fitted_without_a_penalty():
    """Against the dense penalised normal equations, where only the factor's weights are penalised;
    and the leave-one-out errors against leaving each row out."""
    rng = np.random.default_rng(0)
    n, mu = 12, 0.3
    factor, free = rng.normal(size=(n, 3)), np.column_stack([np.ones(n), rng.normal(size=n)])
    y = rng.normal(size=(n, 2))

    def weights(rows: np.ndarray) -> np.ndarray:
        design = np.hstack([free, factor])[rows]
        return np.linalg.solve(design.T @ design + np.diag([0, 0, mu, mu, mu]), design.T @ y[rows])

    design = np.hstack([free, factor])
    left_out = [y[i] - design[i] @ weights(np.delete(np.arange(n), i)) for i in range(n)]
    with double_precision():

        def smoother(factor: np.ndarray, *terms: np.ndarray) -> ridge.Smoother:
            columns = jnp.asarray(factor)
            return ridge.smoother_of(
                columns, columns.T @ columns, tuple(map(jnp.asarray, terms)), n_head=n
            )

        own, target, one = smoother(factor, free), jnp.asarray(y), jnp.asarray([mu])
        found, _ = ridge.leave_one_out_residuals(own, target, one)
        losses = ridge.leave_one_out_losses(own, target, jnp.asarray([mu, 7.0]))
        np.testing.assert_allclose(losses[:, 0], np.sum(np.square(left_out), axis=0), rtol=1e-9)
        # A free column twice, and a factor inside the free span: nothing is counted twice.
        twice = smoother(free[:, 1:] * [1.0, 2.0], free, free[:, :1])
        plain, _ = ridge.leave_one_out_residuals(twice, target, one)
    np.testing.assert_allclose(found, y - design @ weights(np.arange(n)), atol=1e-9)
    fitted = free @ np.linalg.lstsq(free, y, rcond=None)[0]
    np.testing.assert_allclose(plain, y - fitted, atol=1e-9)


def test_the_choice_follows_the_law():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(300, 3))
    regressions = Regressions(z, rank=100)
    noise = 0.1 * rng.normal(size=300)
    targets = np.column_stack(
        [
            np.sin(2 * z.sum(axis=1) / np.sqrt(3)) + noise,
            np.sin(2 * z[:, 0]) + np.abs(z[:, 1]) + np.cos(2 * z[:, 2]) + noise,
            z[:, 0] * z[:, 1] * z[:, 2] + noise,
            rng.normal(size=300),
            np.full(300, 3.0),
        ]
    )
    chosen = regressions.choose((0, 1, 2), targets)
    assert [candidate.kernel for candidate in chosen[:3]] == ["index", "sum", "joint"]
    assert chosen[4] == Candidate("raw", "none")
    rest = regressions.residuals((0, 1, 2), targets)
    # What is left is the noise, and little more or less (the signals have .7 to 1.3).
    assert (np.abs(rest[:, :2].std(axis=0) / noise.std() - 1) < 0.5).all()
    assert (rest[:, 4] == 0).all()
    # Each alone, and all in another order.
    order = [3, 0, 4, 2, 1]
    np.testing.assert_allclose(
        regressions.residuals((0, 1, 2), targets[:, order]), rest[:, order], atol=1e-9
    )
    for j in range(5):
        alone = Regressions(z, rank=100).residuals((0, 1, 2), targets[:, [j]])
        np.testing.assert_allclose(alone[:, 0], rest[:, j], atol=1e-9)


def test_the_spread_is_divided_out_and_a_constant_spread_is_left():
    rng = np.random.default_rng(2)
    z, e = rng.uniform(-2, 2, size=(300, 1)), rng.normal(size=(300, 2))
    targets = np.column_stack([np.sin(z[:, 0]) + np.exp(z[:, 0]) * e[:, 0], z[:, 0] + e[:, 1]])
    found = Regressions(z, rank=100).standardised_residuals((0,), targets)
    share = np.array([np.corrcoef(found[:, j], e[:, j])[0, 1] for j in range(2)])
    assert (share > 0.93).all()
    logs = np.log(np.abs(found) + 1e-3)
    assert abs(np.corrcoef(logs[:, 0], z[:, 0])[0, 1]) < 0.1


@pytest.mark.parametrize(
    "column",
    [
        np.random.default_rng(0).normal(size=20_000),
        np.random.default_rng(0).integers(0, 5, 20_000).astype(float),
        np.zeros(20_000),
        np.tile([0.0, -0.0, 1.0, 1.0, 3.0], 4_000),
    ],
    ids=["no ties", "few levels", "constant", "zeros of both signs"],
)
def test_maps_by_ranks_are_those_of_scipy_and_of_first_rows_those_of_all(column):
    shares = (stats.rankdata(column) - 0.5) / len(column)
    scores = mapped(column, "scores")
    np.testing.assert_allclose(scores, stats.norm.ppf(shares), atol=1e-12)
    ranks = mapped(column, "ranks")
    spread = shares.std() if np.ptp(column) else 1.0
    np.testing.assert_allclose(ranks, (shares - shares.mean()) / spread, atol=1e-12)
    for kind, whole in (("scores", scores), ("ranks", ranks)):
        assert np.array_equal(mapped(column, kind, 1_000), whole[:1_000])


def test_labels_stand_as_indicators():
    codes = np.array([2.0, 0.0, 1.0, 2.0])
    assert indicators(codes).tolist() == [[0, 1], [0, 0], [1, 0], [0, 1]]
    assert indicators(np.full(3, 7.0)).tolist() == [[0.0]] * 3
    rng = np.random.default_rng(3)
    labels = rng.permutation(np.repeat(np.arange(4.0), 75))
    y = np.array([3.0, -1.0, 5.0, 0.0])[labels.astype(int)] + 0.1 * rng.normal(size=300)
    rest = Regressions(labels[:, None], labels=(0,), rank=100).residuals((0,), y[:, None])[:, 0]
    means = np.array([y[labels == k].mean() for k in range(4)])[labels.astype(int)]
    np.testing.assert_allclose(rest, y - means, atol=0.01)


@pytest.mark.parametrize("weights", [[1.0], [3.0, 1.0, 0.5], list(0.4 ** np.arange(40.0))])
def test_the_null_of_a_sum_of_squares(weights):
    """Exact for one weight, where it is a chi-square; else against simulation."""
    rng = np.random.default_rng(4)
    rotation = np.linalg.qr(rng.normal(size=(len(weights),) * 2))[0]
    covariance = rotation @ np.diag(weights) @ rotation.T
    draws = rng.chisquare(1, size=(200_000, len(weights))) @ np.array(weights)
    for level in (0.1, 0.05, 0.01):
        point = float(np.quantile(draws, 1 - level))
        log_pvalue, margin = sum_of_squares(point, traces(covariance), level)
        # Binomial: three standard errors are .002 at .1; what is more is the approximation.
        assert np.exp(log_pvalue) == pytest.approx(level, abs=0.006)
        assert abs(margin) < 0.05 * point
        if len(weights) == 1:
            assert np.exp(log_pvalue) == pytest.approx(stats.chi2.sf(point, 1), rel=1e-9)
    assert sum_of_squares(0.0, traces(np.zeros((2, 2))), 0.05) == (0.0, 0.0)
    far, _ = sum_of_squares(1e5, traces(covariance), 0.05)
    assert np.isfinite(far) and far < -1000


class TestTracesOfTheCovarianceOfProducts:
    def products(self, one: np.ndarray, other: np.ndarray):
        return ProductsInMemory([one.T, other.T, np.ones((1, len(one)))])

    def test_are_means_over_different_rows(self):
        """Against all pairs and triples of nine rows."""
        rng = np.random.default_rng(11)
        # a third factor that differs little keeps the estimates within what they are held to
        one, other = rng.normal(size=(9, 3)) + 2, rng.normal(size=(9, 2)) + 2
        rows = (one[:, :, None] * other[:, None]).reshape(9, -1)
        gram = rows @ rows.T
        pairs = [gram[i, j] ** 2 for i, j in permutations(range(9), 2)]
        triples = [gram[i, j] * gram[j, k] * gram[k, i] for i, j, k in permutations(range(9), 3)]
        found = estimated_traces(self.products(one, other))
        np.testing.assert_allclose(
            found, [np.diag(gram).mean(), np.mean(pairs), np.mean(triples)], rtol=1e-12
        )

    @pytest.mark.parametrize("n", [8, 60])
    def test_are_traces_that_a_covariance_can_have(self, n):
        for seed in range(20):
            one, other = np.random.default_rng(seed).standard_cauchy(size=(2, n, 2))
            first, second, third = estimated_traces(self.products(one, other))
            assert 0 < first**2 / 4 <= second * (1 + 1e-12) and second <= first**2 * (1 + 1e-12)
            assert second**2 / first <= third * (1 + 1e-9) and third <= second**1.5 * (1 + 1e-9)

    def test_of_one_product_are_those_of_a_chi_square(self):
        one, other = np.random.default_rng(1).normal(size=(2, 30, 1))
        found = estimated_traces(self.products(one, other))
        np.testing.assert_allclose(found, [found.first, found.first**2, found.first**3])

    def test_keep_the_level_of_kci_where_errors_have_no_mean(self):
        """With the traces of the sample's own covariance 8 of 400 are rejected."""
        hits = 0
        for seed in range(400):
            values = np.random.default_rng(seed).standard_cauchy(size=(50, 2))
            prepared = jaxcd.KCI().prepare(jaxcd.Dataset.from_array(values))
            hits += int(prepared.evaluate((), [Query.of(0, 1)], alpha=0.05).margin[0] > 0)
        assert 11 <= hits <= 33


def test_gcm_is_the_formula_of_the_paper():
    """With linear relations of normal columns the regressions are least squares, and T of Shah and
    Peters is known."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(300, 2))
    x, y = z @ [1.0, 2.0] + rng.normal(size=300), z @ [1.0, -1.0] + rng.normal(size=300)
    data = numeric(np.column_stack([x, y, z]))
    answer = jaxcd.ci_test(
        data, "x0", "x1", given=["x2", "x3"], test=jaxcd.GCM(), budget=jaxcd.NO_PRIVACY
    )
    design = np.column_stack([np.ones(300), z])
    r, s = (v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y))
    wanted = np.sqrt(300) * np.mean(r * s) / np.std(r * s)
    assert answer.statistic == pytest.approx(wanted, abs=0.3)
    assert answer.pvalue == pytest.approx(2 * stats.norm.sf(abs(answer.statistic)), rel=1e-9)
    assert answer.margin == pytest.approx(abs(answer.statistic) - stats.norm.isf(0.025), rel=1e-9)


def test_weights_see_a_dependence_whose_sign_changes():
    def draw(rng):
        z, e, f = rng.normal(size=(3, 300))
        return np.column_stack([z + e, z + np.sign(z) * e + 0.5 * f, z])

    assert rejected(jaxcd.GCM(weighted=True), draw, 10) == 10
    assert rejected(jaxcd.GCM(), draw, 10) <= 4


def paper(rng: np.random.Generator) -> np.ndarray:
    z = rng.uniform(-0.5, 0.5, size=(300, 5))
    e = rng.uniform(-0.5, 0.5, size=(300, 2))
    return np.hstack([np.sin(z.sum(axis=1, keepdims=True)) + 0.5 * e, z])


def spread(rng: np.random.Generator) -> np.ndarray:
    z = rng.normal(size=(300, 1))
    return np.hstack([z + (0.3 + np.abs(z)) * rng.normal(size=(300, 2)), z])


def binary(rng: np.random.Generator) -> np.ndarray:
    z = rng.normal(size=(300, 1))
    return np.hstack([rng.random((300, 2)) < 1 / (1 + np.exp(-2 * z)), z])


def season(rng: np.random.Generator) -> np.ndarray:
    z = rng.uniform(0, 2 * np.pi, size=(1_000, 1))
    means = np.hstack([np.sin(z), np.cos(2 * z)]) + 0.5 * np.sin(12 * z)
    return np.hstack([means + 0.6 * rng.normal(size=(1_000, 2)), z])


# Binomial(12, 0.05) exceeds 4 with probability 2e-4, Binomial(20, 0.05) exceeds 5 with 3e-4.  With
# normal scores alone RCIT rejected .2 of the first (.56 at n = 4,000), nearly all of the second.
@pytest.mark.slow
def test_rcit_keeps_its_level_where_normal_scores_alone_lost_it():
    assert rejected(jaxcd.RCIT(), paper, 12) <= 4
    assert rejected(jaxcd.RCIT(), spread, 12) <= 4


@pytest.mark.slow
def test_kci_keeps_its_level_where_residuals_depend_on_z():
    assert rejected(jaxcd.KCI(), binary, 20) <= 5
    assert rejected(jaxcd.RCIT(), binary, 10) >= 8


def test_waves_of_one_column_are_followed_with_few_rows():
    """GCM rejected nearly 16 of 20 while narrow kernels were compared from 2,000 rows on only."""
    assert rejected(jaxcd.GCM(), season, 20) <= 5


@pytest.mark.parametrize("test", TESTS, ids=lambda t: f"{t.name} {getattr(t, 'weighted', '')}")
def test_dependence_is_seen_and_degenerate_columns_have_answers(test):
    rng = np.random.default_rng(6)
    z, e, f = rng.normal(size=(3, 300))
    values = np.column_stack([z + e, np.sin(z) + e + 0.3 * f, z, np.full(300, 4.0), z + e, z > 0])
    prepared = test.prepare(numeric(values.astype(float)), key=jax.random.key(0))
    queries = [Query.of(a, b, (2,)) for a, b in ((0, 1), (0, 3), (3, 4), (0, 4), (1, 5))]
    answers = prepared.evaluate((2,), queries, alpha=0.05)
    assert np.isfinite(answers.margin).all() and (answers.log_pvalue <= 0).all()
    assert answers.margin[0] > 0 and answers.margin[3] > 0
    assert (answers.margin[1:3] <= 0).all() and (answers.log_pvalue[1:3] == 0).all()
    # Z constant, Z a copy of x, Z twice.
    for given in ((3,), (4,), (2, 3)):
        rest = sorted({0, 1, 2, 3, 4, 5} - set(given))
        queries = [Query.of(a, b, given) for a in rest for b in rest if a < b]
        assert np.isfinite(prepared.evaluate(given, queries, alpha=0.05).margin).all()


@pytest.mark.parametrize("test", [jaxcd.GCM(weighted=True), jaxcd.KCI()], ids=lambda t: t.name)
def test_labels_are_taken_in_every_place(test):
    rng = np.random.default_rng(8)
    group = rng.integers(0, 3, 300)
    z, e = rng.normal(size=(2, 300))
    x = rng.integers(0, 3, 300)
    values = np.column_stack([x, (x == 1) + group + 0.5 * e, group, z + group])
    prepared = test.prepare(numeric(values, labels=(0, 2)))
    given = prepared.evaluate((2,), [Query.of(0, 1, (2,)), Query.of(0, 3, (2,))], alpha=0.05)
    assert given.margin[0] > 0 > given.margin[1]
    # Names of labels do not matter.
    other = values.copy()
    other[:, 0], other[:, 2] = 2 - values[:, 0], (values[:, 2] + 1) % 3
    renamed = test.prepare(numeric(other, labels=(0, 2)))
    again = renamed.evaluate((2,), [Query.of(0, 1, (2,))], alpha=0.05)
    assert again.margin[0] > 0


def test_bad_input_is_refused():
    data = numeric(np.random.default_rng(0).normal(size=(7, 2)))
    for test in (jaxcd.GCM(), jaxcd.KCI()):
        with pytest.raises(DomainError, match="8 rows"):
            test.prepare(data)
        with pytest.raises(SensitivityError):
            jaxcd.ci_test(
                numeric(np.ones((20, 2))), "x0", "x1", test=test, budget=jaxcd.Budget(1.0)
            )
    refused(OptionError, "rank", jaxcd.GCM, rank=0)
    refused(OptionError, "bandwidth", jaxcd.KCI, bandwidth=-1.0)


def steep(seed: int, n: int = 8000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Z of five columns, and two columns that are independent given Z: exponentials of sums."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 5))
    weights = rng.uniform(0.5, 1.5, (5, 2)) * rng.choice([-1, 1], (5, 2))
    errors = rng.normal(size=(n, 2))
    return z, np.exp(z @ weights) + errors, errors


def test_softened_is_one_to_one_and_only_where_few_rows_hold_all():
    _, columns, _ = steep(0)
    for column in columns.T:
        found = softened(column)
        order = np.argsort(column)
        assert np.all(np.diff(found[order]) >= 0) and np.any(found != column)
        np.testing.assert_allclose(softened(1e200 * column), found, rtol=1e-9)
    rng = np.random.default_rng(1)
    for column in (rng.normal(size=300), rng.exponential(size=300), rng.integers(0, 2, 300)):
        np.testing.assert_array_equal(softened(column.astype(float)), column)
    mostly_equal = np.r_[np.zeros(200), 5.0]
    np.testing.assert_array_equal(softened(mostly_equal), mostly_equal)
    np.testing.assert_array_equal(softened(np.zeros(10)), np.zeros(10))


@pytest.mark.parametrize("scale", [1.0, 3.0, 0.1, 1e-7])
def test_a_share_of_exactly_a_half_is_no_more_than_that(scale):
    """98 rows of size 1 and 2 of size 7 in 200, and 100 zeros: 98 against 98."""
    column = scale * np.repeat([0.0, 1.0, -1.0, 7.0], [100, 49, 49, 2])
    shifted = np.concatenate([column[1:], column[:1]])
    for each in (column, shifted):
        np.testing.assert_array_equal(softened(each), each)


@pytest.mark.slow
def test_an_exponential_of_five_columns_leaves_most_rows_their_error():
    """Least squares of the column itself would fit its largest rows, and leave in all others a
    function of Z larger than the error.
    """
    z, columns, errors = steep(2)
    regressions = Regressions(np.column_stack([z, columns]), rank=200)
    rest = regressions.standardised_residuals(
        (0, 1, 2, 3, 4), regressions.coordinates((5, 6), "target")
    )
    for k in range(2):
        ranks = (np.argsort(np.argsort(v)) for v in (rest[:, k], errors[:, k]))
        assert np.corrcoef(*ranks)[0, 1] > 0.8


def test_no_direction_is_looked_for_where_nothing_is_seen(monkeypatch):
    rng = np.random.default_rng(3)
    z, y = rng.normal(size=(2000, 3)), rng.normal(size=(2000, 1))
    asked = []
    monkeypatch.setattr(
        "jaxcd.citests.regressions.direction", lambda *a: asked.append(a) or direction(*a)
    )
    regressions = Regressions(np.column_stack([z, y]), rank=50)
    assert regressions.choose((0, 1, 2), y)[0].shared and not asked
    wave = np.cos(z @ [[1.0], [1.0], [1.0]]) + 0.5 * y
    assert regressions.choose((0, 1, 2), wave)[0].kernel == "index" and asked
