"""Tetrachoric correlations: the quadrants, the law that fills in, the purchase, the search."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import jax
import networkx as nx
import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.stats import multivariate_normal, norm

import jaxcd
from jaxcd.citests import Query
from jaxcd.data import structural
from jaxcd.errors import DomainError, OptionError
from jaxcd.graphs import random_dag
from jaxcd.privacy import noise
from jaxcd.releases import GaussianScore, ReleasedTetrachoric
from jaxcd.releases.tetrachoric import covariance_selection, quadrants
from tests.helpers import measured, numbers, simulated

BUDGET = jaxcd.Budget(1.0, 1e-6)


def joined(run: jaxcd.DiscoveryResult) -> set[frozenset[str]]:
    return {frozenset((edge.a, edge.b)) for edge in run.graph.edges()}


# ---- quadrants


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(-0.98, 0.98))
@settings(max_examples=40, deadline=None)
def test_the_product_of_signs_is_that_of_the_bivariate_normal(a: float, b: float, r: float) -> None:
    both = multivariate_normal(cov=[[1, r], [r, 1]]).cdf([a, b])  # P(x < a, y < b)
    expected = 1 - 2 * norm.cdf(a) - 2 * norm.cdf(b) + 4 * both
    found = quadrants.sign_product(np.array([a]), np.array([b]), np.array([r]))[0]
    assert found == pytest.approx(expected, abs=2e-5)
    ahead = quadrants.sign_product(np.array([a]), np.array([b]), np.array([r + 1e-6]))[0]
    assert quadrants.slope(np.array([a]), np.array([b]), np.array([r]))[0] == pytest.approx(
        (ahead - found) / 1e-6, rel=1e-3, abs=1e-6
    )
    # where it hardly changes with r, many are as good
    inverse = quadrants.tetrachoric(np.array([found]), np.array([a]), np.array([b]))
    again = quadrants.sign_product(np.array([a]), np.array([b]), inverse)[0]
    assert again == pytest.approx(found, abs=1e-9)


def test_a_product_beyond_all_correlations_is_the_largest() -> None:
    zero = np.zeros(2)
    found = quadrants.tetrachoric(np.array([-3.0, 3.0]), zero, zero)
    assert np.allclose(found, [-quadrants.MOST, quadrants.MOST])


# ---- the law that fills in


def drawn_pairs(rng: np.random.Generator, p: int, m: int) -> np.ndarray:
    pairs = np.array(list(itertools.combinations(range(p), 2)))
    return pairs[np.sort(rng.choice(len(pairs), size=m, replace=False))]


@given(st.integers(3, 9), st.integers(0, 2**31), st.floats(1e-4, 1.0))
@settings(max_examples=40, deadline=None)
def test_the_law_meets_the_conditions_of_its_maximum(p: int, seed: int, spread: float) -> None:
    """K is zero where nothing was measured, and Sigma = r + v K where something was."""
    rng = np.random.default_rng(seed)
    pairs = drawn_pairs(rng, p, int(rng.integers(1, math.comb(p, 2))))
    rows = rng.normal(size=(p + 2, p))
    rows[:, 1] = rows[:, 0] + 0.1 * rows[:, 1]
    v = spread * rng.uniform(0.5, 1.5, len(pairs))
    r = np.corrcoef(rows.T)[tuple(pairs.T)] + 3 * np.sqrt(v) * rng.normal(size=len(pairs))
    r = r.clip(-0.99, 0.99)  # they may contradict each other
    sigma = covariance_selection.complete(p, pairs, r, v)
    inverse = np.linalg.inv(sigma)
    np.testing.assert_allclose(np.diag(sigma), 1, atol=1e-9)
    assert np.linalg.eigvalsh(sigma)[0] > 0
    i, j = pairs.T
    size = np.abs(inverse).max()
    np.testing.assert_allclose(sigma[i, j], r + v * inverse[i, j], atol=1e-7 * size)
    unmeasured = ~np.eye(p, dtype=bool)
    unmeasured[i, j] = unmeasured[j, i] = False
    assert np.abs(inverse[unmeasured]).max(initial=0.0) < 1e-7 * size


def test_it_is_the_best_of_all_correlation_matrices() -> None:
    rng = np.random.default_rng(4)
    p, pairs = 4, np.array([(0, 1), (1, 2), (2, 3), (0, 3)])
    r, v = rng.uniform(-0.9, 0.9, 4), np.full(4, 0.05)
    free = np.array(list(itertools.combinations(range(p), 2)))

    def loss(values: np.ndarray) -> float:
        matrix = np.eye(p)
        matrix[free[:, 0], free[:, 1]] = matrix[free[:, 1], free[:, 0]] = values
        sign, log = np.linalg.slogdet(matrix)
        if sign <= 0 or np.linalg.eigvalsh(matrix)[0] <= 0:
            return 1e9
        return float(((matrix[pairs[:, 0], pairs[:, 1]] - r) ** 2 / v).sum() - log)

    found = covariance_selection.complete(p, pairs, r, v)
    best = min(
        optimize.minimize(loss, 0.3 * rng.normal(size=6), method="Nelder-Mead", tol=1e-12).fun
        for _ in range(8)
    )
    assert loss(found[free[:, 0], free[:, 1]]) == pytest.approx(best, abs=1e-5)


def test_along_a_tree_correlations_multiply() -> None:
    pairs, r = np.array([(0, 1), (1, 2), (1, 3), (3, 4)]), np.array([0.9, -0.5, 0.7, 0.99])
    found = covariance_selection.complete(6, pairs, r, np.full(4, 1e-12))
    assert found[0, 4] == pytest.approx(0.9 * 0.7 * 0.99)
    assert found[2, 4] == pytest.approx(-0.5 * 0.7 * 0.99)
    assert np.abs(found[5, :5]).max() < 1e-12


@pytest.mark.parametrize("variance", [1e-12, 1e4])
def test_what_is_exact_or_unknown_is_filled_in_without_a_warning(variance: float) -> None:
    rng = np.random.default_rng(0)
    pairs = drawn_pairs(rng, 12, 30)
    r = np.where(np.arange(30) % 2, 0.99, -0.99) if variance > 1 else np.full(30, 0.5)
    found = covariance_selection.complete(12, pairs, r, np.full(30, variance))
    off = found[pairs[:, 0], pairs[:, 1]]
    assert np.allclose(off, 0.0 if variance > 1 else 0.5, atol=1e-3)


@pytest.mark.parametrize("chosen", [12, 28])
def test_correlations_are_symmetric_to_the_last_bit(chosen: int) -> None:
    rng = np.random.default_rng(0)
    pairs = drawn_pairs(rng, 8, 28)[:chosen]
    n = len(pairs)
    found = covariance_selection.complete(
        8, pairs, rng.uniform(-0.9, 0.9, n), rng.uniform(1e-4, 0.1, n)
    )
    assert np.array_equal(found, found.T) and (np.diag(found) == 1).all()


def test_the_response_is_the_derivative() -> None:
    rng = np.random.default_rng(2)
    pairs = drawn_pairs(rng, 6, 9)
    r, v = rng.uniform(-0.4, 0.4, 9), np.full(9, 0.02)
    sigma = covariance_selection.complete(6, pairs, r, v)
    found = covariance_selection.response(sigma, pairs, v)
    i, j = pairs.T
    for k in range(9):
        ends = []
        for step in (-1e-5, 1e-5):
            moved = r.copy()
            moved[k] += step
            inverse = np.linalg.inv(covariance_selection.complete(6, pairs, moved, v))
            ends.append(np.append(np.diag(inverse), inverse[i, j]))
        np.testing.assert_allclose(found[:, k], (ends[1] - ends[0]) / 2e-5, rtol=1e-4, atol=1e-5)


# ---- the purchase


def chain(p: int, n: int, *, seed: int = 0, lower: float = -30, upper: float = 30) -> jaxcd.Dataset:
    """Each column .8 times the one before, and a normal error."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, p))
    for k in range(1, p):
        values[:, k] += 0.8 * values[:, k - 1]
    names = [f"x{k}" for k in range(p)]
    return jaxcd.Dataset.from_array(values, names=names, domain=numbers(names, lower, upper))


def test_without_privacy_all_numbers_are_those_of_the_rows() -> None:
    data = chain(5, 999)
    bought = jaxcd.release(data, jaxcd.Tetrachoric(), budget=jaxcd.NO_PRIVACY)
    values = np.column_stack([data.values(name) for name in data.names])
    assert (np.abs((values < bought.thresholds).mean(axis=0) - 0.5) < 0.1).all()
    signs = np.where(values >= bought.thresholds, 1, -1)
    assert (bought.signs == signs.sum(axis=0)).all()
    assert (bought.products == (signs.T @ signs)[tuple(bought.pairs.T)]).all()
    assert len(bought.pairs) == 10 and bought.sigma == bought.signs_sigma == 0
    # increasing functions of the columns change nothing but the thresholds
    columns = np.sinh(values / 3)
    other = jaxcd.Dataset.from_array(
        columns, names=list(data.names), domain=numbers(data.names, -20_000, 20_000)
    )
    again = jaxcd.release(other, jaxcd.Tetrachoric(), budget=jaxcd.NO_PRIVACY)
    np.testing.assert_allclose(again.correlation, bought.correlation, atol=0.15)


@pytest.mark.parametrize("declared", [True, False])
def test_thresholds_are_near_the_medians_where_noise_allows(declared: bool) -> None:
    rng = np.random.default_rng(3)
    n = 4_000
    columns = {
        "normal": rng.normal(5, 2, n),
        "heavy": rng.standard_cauchy(n).clip(-1e4, 1e4),
        "skewed": rng.lognormal(3, 2, n).clip(0, 1e4),
        "far": 900 + 30 * rng.normal(size=n),
        "mostly zero": np.where(rng.random(n) < 0.6, 0.0, rng.exponential(size=n)),
    }
    kinds = {k: jaxcd.Numeric(-1e4, 1e4) if declared else jaxcd.Numeric() for k in columns}
    data = jaxcd.Dataset.from_array(
        np.column_stack(list(columns.values())), names=list(columns), domain=jaxcd.Domain(kinds)
    )
    bought = jaxcd.release(
        data, jaxcd.Tetrachoric(), budget=jaxcd.Budget(4.0, 1e-6), noise=simulated()
    )
    below = [
        (column < place).mean()
        for column, place in zip(columns.values(), bought.thresholds, strict=True)
    ]
    assert all(0.3 < share < 0.7 for share in below[:4]), below
    assert 0.55 < below[4] < 1  # most are one value: no threshold is nearer
    assert (bought.scales > 0).all()


def test_constants_and_ties_tell_nothing_and_break_nothing() -> None:
    n = 500
    rng = np.random.default_rng(0)
    columns = np.column_stack(
        [
            np.zeros(n),
            np.full(n, 10.0),
            np.full(n, -10.0),
            rng.integers(0, 2, n),
            rng.normal(size=n),
        ]
    )
    names = list("abcde")
    for domain in (numbers(names, -10, 10), jaxcd.Domain(dict.fromkeys(names, jaxcd.Numeric()))):
        data = jaxcd.Dataset.from_array(columns.clip(-10, 10), names=names, domain=domain)
        for budget in (jaxcd.NO_PRIVACY, BUDGET, jaxcd.Budget(1e-3, 1e-9)):
            for kind in (jaxcd.Tetrachoric(), jaxcd.Tetrachoric(selected=3)):
                bought = jaxcd.release(data, kind, budget=budget, noise=simulated())
                assert np.isfinite(bought.correlation).all()
                assert np.linalg.eigvalsh(bought.correlation)[0] > 0
                run = jaxcd.search(bought)
                if budget is jaxcd.NO_PRIVACY:
                    assert run.graph.n_edges == 0


@pytest.mark.parametrize("rare", [0.0, 0.002])
@pytest.mark.parametrize("budget", [jaxcd.NO_PRIVACY, jaxcd.Budget(4.0, 1e-6)])
def test_nearly_constant_columns_do_not_depend_on_each_other(rare: float, budget: Any) -> None:
    rng, n = np.random.default_rng(0), 20_000
    values = 3.0 + (rng.random((n, 5)) < rare)
    data = jaxcd.Dataset.from_array(values, domain=numbers([f"v{j}" for j in range(5)], -9.0, 9.0))
    for kind in (jaxcd.Tetrachoric(), jaxcd.Tetrachoric(selected=4)):
        bought = jaxcd.release(data, kind, budget=budget, noise=simulated())
        assert jaxcd.search(bought).graph.n_edges == 0
        if budget is jaxcd.NO_PRIVACY:
            found = bought.expected_products(bought.pairs)
            assert found == pytest.approx(bought.products, abs=n / 1_000)


@pytest.mark.parametrize("zeros", [1.0, 0.99])
def test_a_column_that_is_nearly_constant_takes_no_edge_from_the_others(zeros: float) -> None:
    rng, n = np.random.default_rng(0), 5_000
    values = np.cumsum(rng.normal(size=(n, 4)), axis=1)
    values[:, 3] = np.where(rng.random(n) < zeros, 0.0, 3.0 + rng.normal(size=n))
    domain = numbers([f"v{j}" for j in range(4)], -9.0, 9.0)
    bought = jaxcd.release(
        jaxcd.Dataset.from_array(values, domain=domain),
        jaxcd.Tetrachoric(),
        budget=jaxcd.Budget(2.0, 1e-6),
        noise=simulated(),
    )
    assert joined(jaxcd.search(bought)) == {frozenset(("v0", "v1")), frozenset(("v1", "v2"))}


def test_weak_correlations_beside_strong_ones_tell_something() -> None:
    """However precise those are."""
    rng, n = np.random.default_rng(0), 20_000
    hidden = rng.normal(size=n)
    values = np.column_stack([hidden + 0.02 * rng.normal(size=n) for _ in range(4)])
    weak = np.column_stack([rng.normal(size=n), 0.3 * hidden + rng.normal(size=n)])
    bought = jaxcd.release(
        jaxcd.Dataset.from_array(
            np.column_stack([values, weak]), domain=numbers("abcdef", -9.0, 9.0)
        ),
        jaxcd.Tetrachoric(),
        budget=jaxcd.NO_PRIVACY,
    )
    variances = bought.measured_correlations[1]
    assert variances.max() > 50 * np.quantile(variances, 0.25)
    assert bought.tells.all()


@pytest.mark.parametrize("budget", [jaxcd.NO_PRIVACY, BUDGET])
def test_it_warns_where_exact_relations_hide_all_edges(budget: Any) -> None:
    """A total beside its parts hides their edges and those of others; a copy hides none."""
    x, y, e = np.random.default_rng(0).normal(size=(3, 20_000))
    noise = {} if budget is jaxcd.NO_PRIVACY else {"noise": simulated(0)}
    for columns, is_hidden in (
        ((x, y, x + y, x + e), True),
        ((x, y, x + e), False),
        ((x, x, x + e), False),
    ):
        data = measured(np.column_stack(columns))
        bought = jaxcd.release(data, jaxcd.Tetrachoric(), budget=budget, **noise)
        run = jaxcd.search(bought)
        assert bool(joined(run)) != is_hidden
        assert len(bought.warnings) == is_hidden
        if is_hidden:
            (words,) = run.info["warnings"]
            assert words == bought.warnings[0]
            assert "as precise as 0 rows" in words and "leave" in words
    few = jaxcd.release(
        data, jaxcd.Tetrachoric(), budget=jaxcd.Budget(0.01, 1e-6), noise=simulated(0)
    )
    assert few.warnings == ()  # what so small a budget buys


def test_two_rows_and_two_columns() -> None:
    for p, n in ((2, 50), (2, 2), (3, 2)):
        bought = jaxcd.release(chain(p, n), jaxcd.Tetrachoric(), budget=BUDGET, noise=simulated())
        assert 1 <= len(bought.pairs) <= math.comb(p, 2)
        assert len(jaxcd.search(bought).graph.names) == p


def test_each_person_counts_once() -> None:
    """A person of many equal rows is one of a single row."""
    once = chain(4, 300)
    values = np.column_stack([once.values(name) for name in once.names])
    rng = np.random.default_rng(1)
    people = np.repeat(np.arange(len(values)), rng.integers(1, 9, len(values)))
    frame = dict(zip(once.names, values[people].T, strict=True))
    many = jaxcd.Dataset.from_frame(
        polars.DataFrame({**frame, "who": people}),
        domain=dataclasses.replace(once.domain, person="who"),
    )
    budget = dataclasses.replace(BUDGET, unit=jaxcd.privacy.Unit.PERSON)
    kind = jaxcd.Tetrachoric(selected=3)
    bought = jaxcd.release(many, kind, budget=budget, noise=simulated(2))
    plain = jaxcd.release(once, kind, budget=BUDGET, noise=simulated(2))
    assert bought.n_samples == plain.n_samples == 300
    assert (bought.thresholds == plain.thresholds).all()
    assert np.abs(bought.signs - plain.signs).max() <= 1


def test_a_file_says_the_same(tmp_path: Path) -> None:
    bought = jaxcd.release(chain(12, 3_000), jaxcd.Tetrachoric(), budget=BUDGET, noise=simulated())
    again = jaxcd.Release.load(bought.save(tmp_path / "signs.npz"))
    assert isinstance(again, ReleasedTetrachoric)
    assert (again.correlation == bought.correlation).all()
    assert jaxcd.search(again).graph == jaxcd.search(bought).graph
    assert "12 columns, 36 pairs" in repr(again)
    assert jaxcd.verify(bought.certificate()).holds


def test_what_was_paid_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that breaks in the middle of the rounds leaves a release that can be searched."""

    left, draw = 14, noise._SimulatedSampler.gumbel_top

    def breaking(*args: Any, **options: Any) -> list[int]:
        nonlocal left
        left -= 1
        if left < 0:
            raise RuntimeError("the power went")
        return draw(*args, **options)

    monkeypatch.setattr(noise._SimulatedSampler, "gumbel_top", breaking)
    with pytest.raises(RuntimeError) as stopped:
        jaxcd.release(chain(20, 20_000), jaxcd.Tetrachoric(), budget=BUDGET, noise=simulated())
    partial = jaxcd.receipt_of(stopped.value).partial
    assert isinstance(partial, ReleasedTetrachoric) and 0 < len(partial.pairs) < 60
    assert jaxcd.search(partial).graph.n_edges > 0


def test_it_is_drawn_again_however_many_steps_the_medians_take() -> None:
    """Choices leave some of the budget unspent, the more the later they come: the sum of what was
    charged depends on the rows.
    """
    rng = np.random.default_rng(1)
    data = measured(rng.normal(size=(300, 7)))
    budget = jaxcd.Budget(1.0, 1e-6)
    bought = jaxcd.release(data, jaxcd.Tetrachoric(), budget=budget, noise=simulated(0))
    other = jaxcd.release(data, jaxcd.Tetrachoric(), budget=budget, noise=simulated(1))
    assert len(bought.charges) != len(other.charges)
    assert jaxcd.edge_confidence(bought, n_draws=3).n_draws == 3
    with pytest.raises(OptionError, match="^kind: .* is not what the release was bought with"):
        jaxcd.edge_confidence(bought, n_draws=1, kind=jaxcd.Tetrachoric(selected=0))


def test_how_many_are_chosen_and_what_is_seen_follow_from_public_facts() -> None:
    kind, wide = jaxcd.Tetrachoric(), numbers([f"x{k}" for k in range(100)], -1, 1)
    assert kind.n_selected(wide, 50_000, budget=BUDGET) == 300
    few = kind.n_selected(wide, 2_000, budget=BUDGET)
    assert 0 < few < 100
    assert kind.n_selected(wide, 4_000, budget=BUDGET) == pytest.approx(4 * few, abs=4)
    assert kind.n_selected(numbers("abc", -1, 1), 50_000, budget=BUDGET) == 0
    all_pairs = dataclasses.replace(kind, selected=0)
    assert all_pairs.n_selected(wide, 50_000, budget=BUDGET) == 0
    chosen, everything = (
        each.plan(wide, 50_000, budget=BUDGET).noise for each in (kind, all_pairs)
    )
    # noise follows the root of the number of pairs over their share of the budget
    assert everything / chosen == pytest.approx(math.sqrt(4950 / 300 * 0.25 / 0.8), rel=1e-6)


def test_a_budget_without_end_chooses_as_many_pairs_as_a_large_one() -> None:
    domain = numbers(60, -5, 5)
    large, endless = (
        jaxcd.Tetrachoric().n_selected(domain, 10**9, budget=jaxcd.Budget(epsilon, 1e-6))
        for epsilon in (1e6, 1e300)
    )
    assert large == endless > 0


def test_refusals_name_the_cure() -> None:
    with pytest.raises(OptionError, match="four weights"):
        jaxcd.Tetrachoric(shares=(1.0, 1.0))
    with pytest.raises(OptionError, match="selected"):
        jaxcd.Tetrachoric(selected=-1)
    data = jaxcd.networks.load("asia").sample(100, key=jax.random.key(0))
    with pytest.raises(DomainError, match="not numeric; use Marginals"):
        jaxcd.release(data, jaxcd.Tetrachoric(), budget=BUDGET)
    with pytest.raises(OptionError, match="delta"):
        jaxcd.release(chain(3, 100), jaxcd.Tetrachoric(), budget=jaxcd.Budget(1.0))
    with pytest.raises(OptionError, match="delta"):
        jaxcd.plan_release(
            chain(3, 100).domain, 100, kind=jaxcd.Tetrachoric(), budget=jaxcd.Budget(1.0)
        )
    bought = jaxcd.release(chain(3, 500), jaxcd.Tetrachoric(), budget=BUDGET, noise=simulated())
    with pytest.raises(OptionError, match="SecondMoments"):
        jaxcd.effect(bought, treatment="x0", outcome="x1")


# ---- what it finds


def test_only_measured_pairs_are_joined_and_the_rest_is_left_apart() -> None:
    bought = jaxcd.release(
        chain(30, 20_000), jaxcd.Tetrachoric(selected=40), budget=BUDGET, noise=simulated()
    )
    score = GaussianScore(bought)
    measured = set(map(tuple, bought.pairs.tolist()))
    for node in range(30):
        assert all(tuple(sorted((node, u))) in measured for u in score.candidates(node))
    edges = joined(jaxcd.search(bought))
    assert {tuple(sorted(map(bought.names.index, pair))) for pair in edges} <= measured
    found = jaxcd.pc(bought, test=jaxcd.FisherZ(), decider=jaxcd.Threshold(0.001), key=None)
    named = {tuple(sorted(map(bought.names.index, pair))) for pair in joined(found)}
    assert named <= measured
    assert any("were not measured" in words for words in found.info["warnings"])


def test_of_columns_that_no_measured_pairs_lead_between_nothing_is_told() -> None:
    bought = jaxcd.release(
        chain(30, 500), jaxcd.Tetrachoric(), budget=jaxcd.Budget(5.0, 1e-6), noise=simulated()
    )
    told = {tuple(sorted((bought.names[i], bought.names[j]))) for i, j in bought.pairs}
    found = {}
    for pair in itertools.combinations(bought.names, 2):
        try:
            found[pair] = jaxcd.ci_test(bought, *pair, test=jaxcd.FisherZ()).pvalue
        except OptionError as error:
            assert "does not tell" in str(error)
    assert told <= {tuple(sorted(pair)) for pair in found} and len(found) < 435
    assert np.isfinite(list(found.values())).all()
    x, y, z = bought.names[:3]
    graph = jaxcd.MixedGraph.from_edges(bought.names, [f"{x} --> {y}", f"{y} --> {z}"])
    assert jaxcd.falsify(bought, graph).n_tested <= len(found)


@pytest.mark.slow
def test_a_chain_of_many_columns_is_found() -> None:
    """Second moments of so many columns hide it."""
    data = chain(120, 8_000)
    truth = {frozenset((f"x{k}", f"x{k + 1}")) for k in range(119)}
    found = {}
    for kind in (jaxcd.Tetrachoric(), jaxcd.SecondMoments()):
        run = jaxcd.search(jaxcd.release(data, kind, budget=BUDGET, noise=simulated()))
        edges = joined(run)
        found[type(kind).__name__] = 2 * len(edges & truth) / (len(edges) + len(truth))
    assert found["Tetrachoric"] > 0.9 and found["SecondMoments"] < 0.5


def test_a_graph_of_random_arcs_is_found_without_privacy() -> None:
    dag = random_dag(15, expected_degree=2.0, seed=3)
    dag = nx.relabel_nodes(dag, {node: f"v{node}" for node in dag})
    data = structural.linear_gaussian_sem(dag, key=jax.random.key(3)).sample(
        60_000, key=jax.random.key(4)
    )
    run = jaxcd.search(jaxcd.release(data, jaxcd.Tetrachoric(), budget=jaxcd.NO_PRIVACY))
    truth = {frozenset(arc) for arc in dag.edges}
    edges = joined(run)
    assert 2 * len(edges & truth) / (len(edges) + len(truth)) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("selected, n_runs", [(None, 25), (12, 60)])
def test_fisher_z_keeps_its_level_at_measured_pairs(selected: int | None, n_runs: int) -> None:
    queries = [Query.of(i, k, (i + 1,)) for i in range(6) for k in range(i + 2, 8)]
    statistics = []
    for seed in range(n_runs):
        bought = jaxcd.release(
            chain(8, 5_000, seed=seed),
            jaxcd.Tetrachoric(selected=selected),
            budget=BUDGET,
            noise=jaxcd.SimulatedNoise(jax.random.key(seed)),
        )
        prepared = bought.prepare_test(jaxcd.FisherZ())
        asked = [query for query in queries if (query.x, query.y) not in prepared.apart]
        for query in asked:
            found = prepared.evaluate(prepared.bucket(query), [query], alpha=0.05)
            statistics.append(float(found.statistic[0]))
    share = np.mean(np.abs(statistics) > 1.96)
    assert len(statistics) > 150 and 0.01 < share < 0.1, (len(statistics), share)


def test_halving_stops_where_a_median_is_found() -> None:
    """Columns that are done are not asked again, so that fewer events are charged."""
    data = chain(3, 100_000, lower=-40, upper=40)
    bought = jaxcd.release(
        data, jaxcd.Tetrachoric(), budget=jaxcd.Budget(8.0, 1e-6), noise=simulated()
    )
    steps = [row for row in bought.charges if "medians" in str(row["label"])]
    assert len(steps) == 1  # the middle of the bounds is the median
