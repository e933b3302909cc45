"""HSIC, RCIT and BoundedRCIT: level, power, sharing, sensitivity, refusals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxcd
from jaxcd.citests import Query
from jaxcd.citests.bounded_rcit import residual_shift, ridge_norm
from jaxcd.errors import DomainError, OptionError, SensitivityError
from jaxcd.ops import double_precision, features, hsic, hsic_batch
from jaxcd.privacy import Relation
from tests.helpers import refused


def numeric(columns: np.ndarray, bound: float | None = None) -> jaxcd.Dataset:
    names = [f"x{j}" for j in range(columns.shape[1])]
    column = jaxcd.Numeric() if bound is None else jaxcd.Numeric(-bound, bound)
    return jaxcd.Dataset.from_array(
        columns, names=names, domain=jaxcd.Domain(dict.fromkeys(names, column)), clip=True
    )


def model(seed: int, n: int, dependent: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    x = np.sin(z) + 0.5 * rng.normal(size=n)
    return np.column_stack(
        [x, np.tanh(z) + dependent * np.cos(2 * x) + 0.5 * rng.normal(size=n), z]
    )


@pytest.mark.slow
def test_rcit_keeps_its_level_and_sees_nonlinear_dependence():
    options = dict(test=jaxcd.RCIT(n_permutations=39), budget=jaxcd.NO_PRIVACY, given=("x2",))
    rejected = [
        sum(
            not jaxcd.ci_test(
                numeric(model(s, 300, dependent)), "x0", "x1", key=jax.random.key(s), **options
            ).independent
            for s in range(60)
        )
        for dependent in (False, True)
    ]
    # Binomial(60, 0.05) exceeds 10 with probability 2e-4.
    assert rejected[0] <= 10 and rejected[1] >= 57


def test_pvalues_without_conditioning_are_exact():
    """Under exchangeability p = (1 + rank) / (k + 1) is uniform on the multiples of 1 / (k + 1)."""
    ranks = []
    for s in range(200):
        rng = np.random.default_rng(s)
        data = numeric(rng.normal(size=(25, 2)))
        answer = jaxcd.ci_test(
            data,
            "x0",
            "x1",
            test=jaxcd.HSIC(n_permutations=19),
            budget=jaxcd.NO_PRIVACY,
            key=jax.random.key(s),
        )
        ranks.append(round(answer.pvalue * 20))
        assert answer.independent == (answer.pvalue > 0.05 + 1e-12)
    counts = np.bincount(ranks, minlength=21)[1:]
    assert counts.sum() == 200
    # Chi-square with 19 degrees of freedom exceeds 60 with probability 4e-6.
    assert np.sum((counts - 10) ** 2 / 10) < 60


@pytest.mark.parametrize(("n_permutations", "exact"), [(4, True), (5, True), (8, False)])
def test_the_permutation_level_is_exact_over_all_orders_of_six_rows(n_permutations, exact):
    """All 720 orders of y beside x and all first shifts, each as likely: every p-value of the grid
    is met equally often.  More shifts than rows come back to the data as they are; the p-value is
    then too large, never too small."""
    values = np.array([[-1.3, 0.2], [-0.5, 1.9], [0.1, -0.8], [0.6, 0.5], [1.1, -1.7], [2.0, 1.2]])
    kernel = features.fourier_kernel(length=10.0, bandwidth=1.0)
    size = n_permutations + 1
    options = dict(rank=1, count=size, ties=1e-10, block=6, batch=1)
    with double_precision():
        phi, psi = (hsic.centred_features(jnp.asarray(v), kernel) for v in values.T)
        ordered = [psi[:, list(order)] for order in itertools.permutations(range(6))]
        pool = hsic_batch.Pool(jnp.zeros((721, 6)), jnp.stack([phi, *ordered]), lost=jnp.zeros(721))
        pairs = jnp.asarray([(0, 1 + i) for i in range(720)])
        answers = [hsic_batch.answers(pool, pairs, jnp.asarray(-m), **options) for m in range(size)]
    ranks = 1 + np.concatenate(answers)[:, 1].astype(int)
    counts = np.bincount(ranks, minlength=size + 1)[1:]
    if exact:
        assert counts.tolist() == [720] * size
    else:
        assert (np.cumsum(counts) <= 720 * np.arange(1, size + 1)).all()
        assert counts.tolist() != [720] * size


def test_residuals_and_factorisations_are_shared():
    values = np.random.default_rng(0).normal(size=(150, 5))
    values[:, :4] += np.sin(2 * values[:, 4:])
    test = jaxcd.RCIT(n_permutations=19, rank=40)
    prepared = test.prepare(numeric(values), key=jax.random.key(0))
    queries = [Query.of(a, b, (4,)) for a in range(4) for b in range(a)]
    together = prepared.evaluate((4,), queries, alpha=0.05)
    # A factorisation for each regression that is chosen, at most one a residual and its spread.
    assert prepared.n_residuals == 4 and 1 <= prepared.work["n_factorisations"] <= 6
    before = prepared.work["n_factorisations"]
    prepared.evaluate((4,), queries, alpha=0.05)
    assert prepared.work["n_factorisations"] == before
    alone = test.prepare(numeric(values), key=jax.random.key(0))
    for i, query in enumerate(queries):
        one = alone.evaluate((4,), [query], alpha=0.05)
        assert one.statistic[0] == pytest.approx(together.statistic[i], rel=1e-5)
        assert one.log_pvalue[0] == together.log_pvalue[i]


@pytest.mark.parametrize(
    "test", [jaxcd.HSIC(n_permutations=19), jaxcd.RCIT(n_permutations=19)], ids=lambda t: t.name
)
def test_constant_and_copied_columns_have_defined_results(test):
    x = np.random.default_rng(0).normal(size=25)
    data = numeric(np.column_stack([x, np.full(25, 7.0), x]))
    answers = {
        pair: jaxcd.ci_test(data, *pair, test=test, budget=jaxcd.NO_PRIVACY, key=jax.random.key(0))
        for pair in (("x0", "x1"), ("x0", "x2"))
    }
    assert answers["x0", "x1"].independent and answers["x0", "x1"].pvalue == 1.0
    assert not answers["x0", "x2"].independent
    assert all(math.isfinite(answer.margin) for answer in answers.values())


@pytest.mark.parametrize(
    "penalty, unbounded, bounded",
    [
        (4, 0.742, 0.742),
        (2, 1.101, 1.101),
        (1, 1.665, 1.665),
        (0.5, 2.598, 2.598),
        (0.1, 8.38, 5.81),
        (0.01, 60.2, 18.4),
    ],
)
def test_the_residual_shift_is_that_of_the_specification(penalty, unbounded, bounded):
    assert residual_shift(penalty, math.inf) == pytest.approx(unbounded, rel=2e-3)
    assert residual_shift(penalty, 1.0) == pytest.approx(bounded, rel=2e-3)
    assert ridge_norm(penalty, 1.0) <= 1


@pytest.mark.parametrize("null", list(jaxcd.citests.Null))
@pytest.mark.parametrize("conditional", [False, True])
def test_one_record_moves_the_margin_by_at_most_one(null, conditional):
    """Neighbours differ in one whole record, whose own residual moves too; clusters and outliers
    among the starts.
    """
    test = jaxcd.BoundedRCIT(null=null, n_permutations=19, penalty=0.5, n_features=20)
    query = Query.of(0, 1, (2,) if conditional else ())
    rng = np.random.default_rng(4)
    worst = 0.0
    for trial in range(24):
        n = 40
        columns = (
            rng.choice([-1.0, -0.5, 0.0, 1.0], size=(n, 3))
            if trial % 2
            else rng.uniform(-1, 1, (n, 3))
        )
        if trial % 4 == 3:
            columns[:, 1] = columns[:, 0]
        other = columns.copy()
        other[int(rng.integers(n))] = rng.choice([-1.0, 1.0], size=3)
        margins = [
            test.prepare(numeric(c, 1.0), key=jax.random.key(7))
            .evaluate(query.given, [query], alpha=0.05)
            .margin[0]
            for c in (columns, other)
        ]
        worst = max(worst, abs(margins[0] - margins[1]))
    assert worst <= 1.0
    assert worst >= 0.02


def test_sensitivities_are_stated_where_they_hold():
    options = dict(alpha=0.05, n_samples=1000, relation=Relation.REPLACE_ONE)
    assert jaxcd.RCIT().margin_sensitivity(**options) is None
    assert jaxcd.HSIC().margin_sensitivity(**options) is None
    assert jaxcd.BoundedRCIT().margin_sensitivity(**options).value == 1.0
    # (4 + sqrt 6) records without conditioning: PRIVACY.md H1.
    assert jaxcd.BoundedRCIT().record_sensitivity(
        conditional=False, n_samples=1000
    ) == pytest.approx(6.4495, abs=1e-3)


def test_bad_input_is_refused_before_a_charge():
    data = numeric(np.random.default_rng(0).normal(size=(20, 2)))
    with pytest.raises(DomainError, match="public bounds"):
        jaxcd.ci_test(
            data,
            "x0",
            "x1",
            test=jaxcd.BoundedRCIT(),
            budget=jaxcd.Budget(1.0),
            key=jax.random.key(0),
        )
    with pytest.raises(SensitivityError):
        jaxcd.ci_test(
            data, "x0", "x1", test=jaxcd.RCIT(), budget=jaxcd.Budget(1.0), key=jax.random.key(0)
        )
    with pytest.raises(OptionError, match="key"):
        jaxcd.ci_test(data, "x0", "x1", test=jaxcd.RCIT(), budget=jaxcd.NO_PRIVACY, key=None)
    with pytest.raises(OptionError, match="n_permutations"):
        jaxcd.ci_test(
            data,
            "x0",
            "x1",
            test=jaxcd.RCIT(n_permutations=3),
            budget=jaxcd.NO_PRIVACY,
            key=jax.random.key(0),
        )
    with pytest.raises(DomainError, match="4 rows"):
        jaxcd.ci_test(
            data.__class__.from_array(
                [[1.0, 2.0], [2.0, 1.0]],
                domain=jaxcd.Domain({"a": jaxcd.Numeric(), "b": jaxcd.Numeric()}),
            ),
            "a",
            "b",
            test=jaxcd.HSIC(),
            budget=jaxcd.NO_PRIVACY,
            key=jax.random.key(0),
        )
    for options in (
        {"penalty": 0.0},
        {"bandwidth": -1.0},
        {"norm_bound": math.nan},
        {"n_permutations": 0},
    ):
        refused(OptionError, next(iter(options)), jaxcd.BoundedRCIT, **options)


def _rare_events(rng: np.random.Generator, n: int) -> np.ndarray:
    """Two events of 2 %, more frequent with z."""
    z = rng.normal(size=n)
    x, y = rng.random((2, n)) < 1 / (1 + np.exp(4.5 - z))
    return np.column_stack([x, y, z])


def _levels_of_hidden_numbers(rng: np.random.Generator, n: int) -> np.ndarray:
    z, e, f = rng.normal(size=(3, n))
    x = np.digitize(np.sin(2 * z) + 0.5 * e, (-1, 0, 1))
    return np.column_stack([x, np.digitize(z + 0.5 * f, (-1, 0, 1)), z])


@pytest.mark.slow
@pytest.mark.parametrize("law", [_rare_events, _levels_of_hidden_numbers])
def test_kci_holds_its_level_where_numbers_have_few_values(law) -> None:
    """Of rare events 38 of 40 were called dependent: their residual over its spread, which is a
    function of Z, nearly, is what the regression misses.  .16 of them still are, for they hardly
    ever meet; of 40 more than 14 have a chance of .002 then.
    """
    found = 0
    for seed in range(40):
        data = jaxcd.Dataset.from_array(law(np.random.default_rng(seed), 2_000))
        answer = jaxcd.ci_test(
            data, "x1", "x2", given=["x3"], test=jaxcd.KCI(), budget=jaxcd.NO_PRIVACY
        )
        found += not answer.independent
    assert found <= (14 if law is _rare_events else 7)


def test_kci_reads_two_values_as_it_reads_two_labels() -> None:
    """Functions of two values are one function, up to its scale; penalties may differ a little."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    x = (rng.random(300) < 0.2 + 0.3 * (z > 0)).astype(float)
    values = np.column_stack([x, (x + rng.integers(0, 3, 300)) > 1, z])
    labels = jaxcd.Categorical((0, 1))
    kinds = {
        "numbers": {name: jaxcd.Numeric() for name in "xyz"},
        "labels": {"x": labels, "y": labels, "z": jaxcd.Numeric()},
    }
    query = Query.of(0, 1, [2])
    found = []
    for columns in kinds.values():
        data = jaxcd.Dataset.from_array(values, domain=jaxcd.Domain(columns))
        prepared = jaxcd.KCI().prepare(data)
        found.append(prepared.evaluate(prepared.bucket(query), [query], alpha=0.05).log_pvalue[0])
    assert found[0] == pytest.approx(found[1], rel=0.02) and found[0] < -3


@pytest.mark.parametrize("test", [jaxcd.KCI(), jaxcd.GCM(), jaxcd.GCM(weighted=True)], ids=repr)
@pytest.mark.parametrize("as_labels", [False, True])
def test_events_that_never_meet_are_not_called_dependent(test, as_labels) -> None:
    """Two events of 1 % and 2,000 rows: .2 meetings are expected, so that none says nothing, and
    four say much.
    """
    n = 2_000
    kind = jaxcd.Categorical((0, 1)) if as_labels else jaxcd.Numeric()
    domain = jaxcd.Domain({"x": kind, "y": kind, "z": jaxcd.Numeric()})
    z = np.random.default_rng(0).normal(size=n)
    for meetings, expected in ((0, True), (4, False)):
        x, y = np.zeros(n), np.zeros(n)
        x[:20] = 1
        y[20 - meetings : 40 - meetings] = 1
        data = jaxcd.Dataset.from_array(np.column_stack([x, y, z]), domain=domain)
        for given in ([], ["z"]):
            answer = jaxcd.ci_test(data, "x", "y", given=given, test=test, budget=jaxcd.NO_PRIVACY)
            assert answer.independent == expected, (meetings, given)


@pytest.mark.slow
@pytest.mark.parametrize("test", [jaxcd.KCI(), jaxcd.GCM(), jaxcd.GCM(weighted=True)], ids=repr)
def test_rare_events_in_blocks_give_the_same(test) -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=900)
    x, y = rng.random((2, 900)) < 1 / (1 + np.exp(4 - z))
    data = jaxcd.Dataset.from_array(np.column_stack([x, y, z]))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("rows",))
    for given in ([], [2]):
        query, found = Query.of(0, 1, given), []
        for rows in (data, data.on(mesh)):
            prepared = test.prepare(rows)
            answer = prepared.evaluate(prepared.bucket(query), [query], alpha=0.05)
            found.append((answer.statistic[0], answer.log_pvalue[0]))
        # of penalties whose errors are equal but for rounding, each may take another
        assert found[1] == pytest.approx(found[0], rel=0.02)


@pytest.mark.parametrize("test", [jaxcd.HSIC(), jaxcd.RCIT()], ids=str)
def test_a_copy_is_found_among_twelve_rows(test: Any) -> None:
    """Twelve rows have more orders than shifts: p can be 1 / (k + 1)."""
    x = np.random.default_rng(1).normal(size=12)
    data = jaxcd.Dataset.from_array(np.column_stack([x, x]), names=["a", "b"])
    for seed in range(4):
        answer = jaxcd.ci_test(
            data, "a", "b", test=test, budget=jaxcd.NO_PRIVACY, key=jax.random.key(seed)
        )
        assert answer.pvalue == pytest.approx(1 / 101)


@pytest.mark.slow
def test_the_level_of_few_rows_is_exact() -> None:
    """12 rows and 19 permutations at level .05: 600 independent pairs, standard error .009."""
    rejected = 0
    for seed in range(600):
        rows = np.random.default_rng(seed).normal(size=(12, 2))
        data = jaxcd.Dataset.from_array(rows, names=["a", "b"])
        answer = jaxcd.ci_test(
            data,
            "a",
            "b",
            test=jaxcd.HSIC(n_permutations=19),
            budget=jaxcd.NO_PRIVACY,
            key=jax.random.key(seed),
        )
        rejected += not answer.independent
    assert 0.02 < rejected / 600 < 0.08
