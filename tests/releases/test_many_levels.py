"""Columns of many levels: found where a model can hold them, refused before anything is spent where
not, and never an array of the square of a pair's cells.
"""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest

import jaxcd
from jaxcd.errors import DomainError
from jaxcd.ops.interactions import interaction
from jaxcd.ops.moments import contrast_basis
from jaxcd.releases.tables import log_linear_choice, log_linear_fit
from tests.helpers import simulated


def table(*levels: int, n: int = 2_000) -> jaxcd.Dataset:
    """Columns of so many levels, and two that are equal."""
    rng = np.random.default_rng(0)
    values = np.column_stack([*(rng.integers(0, k, n) for k in levels), *[np.arange(n) % 2] * 2])
    names = [*(f"c{i}" for i in range(len(levels))), "a", "b"]
    kinds = [jaxcd.Categorical(tuple(range(k))) for k in (*levels, 2, 2)]
    frame = pd.DataFrame(values, columns=names)
    return jaxcd.Dataset.from_frame(
        frame, domain=jaxcd.Domain(dict(zip(names, kinds, strict=True)))
    )


@pytest.mark.parametrize(
    "kind", [jaxcd.LogLinear(), jaxcd.Marginals()], ids=["log-linear", "marginals"]
)
@pytest.mark.parametrize("levels", [(5_000,), (1_200, 1_000)])
def test_too_many_levels_are_refused_before_anything_is_spent(kind, levels):
    budget = jaxcd.Budget(1.0, 1e-7)
    data = table(*levels, n=50)
    ledger = jaxcd.Ledger(budget)
    with pytest.raises(DomainError, match="'c0' .*too many levels.*put levels together"):
        jaxcd.release(data, kind, budget=budget, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_wide_columns_do_not_hide_the_others():
    budget = jaxcd.Budget(4.0, 1e-6)
    found = jaxcd.release(table(300, 250), jaxcd.LogLinear(), budget=budget, noise=simulated())
    graph = jaxcd.search(found).graph
    assert graph.has_edge("a", "b")


def test_a_model_takes_no_pair_that_is_too_wide():
    assert log_linear_choice.fits((0, 1), (90, 91), 4096)
    assert not log_linear_choice.fits((0, 1), (91, 91), 4096)


def test_misfits_one_by_one_are_those_of_one_product(monkeypatch):
    data = table(30, 20)
    found = jaxcd.release(data, jaxcd.LogLinear(), budget=jaxcd.Budget(4.0, 1e-6))
    noisy = log_linear_fit.NoisyInteractions(
        found.cardinalities, found.n_samples, found.interactions, found.variances
    )
    model = log_linear_fit.fit_model(noisy, [(0,), (1,), (2,), (3,)])
    together = log_linear_choice._Directions(noisy, model)
    monkeypatch.setattr(log_linear_choice, "_MOST_AT_ONCE", 0)
    for pair in [(0, 1), (0, 2), (2, 3)]:
        alone = log_linear_choice._Directions(noisy, model).misfit(pair)
        monkeypatch.undo()
        np.testing.assert_allclose(together.misfit(pair), alone, atol=1e-6)
        monkeypatch.setattr(log_linear_choice, "_MOST_AT_ONCE", 0)


@pytest.mark.parametrize("largest", [0, 20])
def test_terms_one_column_after_the_other_give_the_same_fit(monkeypatch, largest):
    """Of many parameters the matrix of the features is never held; here of few, and of some."""
    levels = (6, 5, 3)
    rng = np.random.default_rng(1)
    rows = rng.integers(0, levels, (3_000, 3))
    rows[:, 1] = np.where(rng.random(3_000) < 0.5, rows[:, 0] % 5, rows[:, 1])
    terms = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]
    values = {}
    for term in terms:
        exact = np.zeros([levels[j] for j in term])
        np.add.at(exact, tuple(rows[:, j] for j in term), 1)
        exact = interaction(exact)
        values[term] = exact + 10 * rng.normal(size=exact.shape)
    noisy = log_linear_fit.NoisyInteractions(levels, 3_000, values, dict.fromkeys(terms, 100.0))
    held = log_linear_fit.fit_model(noisy, terms)
    monkeypatch.setattr(log_linear_fit, "_LARGEST_BLOCK", largest)
    one_by_one = log_linear_fit.fit_model(noisy, terms)
    for term in terms:
        np.testing.assert_allclose(one_by_one.theta[term], held.theta[term], atol=1e-3)
    np.testing.assert_allclose(one_by_one.margins[0], held.margins[0], atol=1e-6)


@pytest.mark.parametrize("kind", [(2, 2), (3, 4), (2, 5, 3), (7,)])
def test_the_covariance_of_an_interaction_is_that_of_rows(kind):
    """Of one multinomial row times their number, less what the single columns explain of it."""
    cells = np.random.default_rng(2).exponential(10, size=np.prod(kind))
    singles = [np.ones((len(cells), 1))]
    for place in range(len(kind)):
        ones = [np.ones((k, 1)) for k in kind]
        ones[place] = contrast_basis(kind[place])
        singles.append(functools.reduce(np.kron, ones))
    phi = functools.reduce(np.kron, [contrast_basis(k) for k in kind])
    weights = np.sqrt(cells + 0.5)[:, None]
    known = np.concatenate(singles, axis=1) * weights
    rest = phi * weights - known @ np.linalg.lstsq(known, phi * weights, rcond=None)[0]
    found = log_linear_choice._scatter(cells, kind)
    np.testing.assert_allclose(found, rest.T @ rest, atol=1e-10)
    if len(kind) > 1:
        assert np.linalg.eigvalsh(found)[0] >= 0.5
