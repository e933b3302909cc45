"""One table of what the package offers: tests, deciders, releases, scores and searches, with what
each can do.

The contract suites run over it (batching in ``queries``, the budget kept, refusals and noise in
``decisions``, replay on neighbours and the view from outside in ``attacks``, and the rest in
``tests/test_catalogue.py``), and ``tests/test_catalogue.py`` fails for a public class that is not
in it.  A new class is one row here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import networkx as nx
import numpy as np
import pytest

import jaxcd
from jaxcd.decisions import Noise
from jaxcd.scores import ScoreConfig
from jaxcd.scores.bge import BGe
from tests.helpers import coded, numbers


def discrete(n: int = 300) -> jaxcd.Dataset:
    """Three ordered columns, a chain."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.2, rng.integers(0, 3, n), a)
    c = np.where(rng.random(n) < 0.2, rng.integers(0, 2, n), (b > 0).astype(int))
    levels = {"a": (0, 1, 2), "b": (0, 1, 2), "c": (0, 1)}
    domain = jaxcd.Domain({name: jaxcd.Ordinal(part) for name, part in levels.items()})
    return coded(np.column_stack([a, b, c]), domain)


def numeric(n: int = 300) -> jaxcd.Dataset:
    """Three numeric columns, a chain."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=n)
    b = a + 0.5 * rng.normal(size=n)
    c = b + 0.5 * rng.normal(size=n)
    columns = np.clip(np.column_stack([a, b, c]), -5, 5)
    return jaxcd.Dataset.from_array(columns, names=list("abc"), domain=numbers("abc", -5, 5))


def mixed(n: int = 300) -> jaxcd.Dataset:
    """A label between two numbers."""
    rng = np.random.default_rng(2)
    a = rng.normal(size=n)
    b = (a + 0.3 * rng.normal(size=n) > 0).astype(int)
    c = b + 0.5 * rng.normal(size=n)
    domain = jaxcd.Domain(
        {"a": jaxcd.Numeric(-5, 5), "b": jaxcd.Categorical((0, 1)), "c": jaxcd.Numeric(-5, 5)}
    )
    return jaxcd.Dataset.from_array(
        np.column_stack([np.clip(a, -5, 5), b, np.clip(c, -5, 5)]), names=list("abc"), domain=domain
    )


@dataclass(frozen=True)
class TestRow:
    """test: a CI test.  data: columns that it takes, or None (a release, a graph).  private:
    whether its sensitivity is bounded.  exact: whether an answer is the same to the last bit in
    every batch.  restricts: whether it answers on a subset of the rows.
    """

    __test__ = False

    test: Any
    data: Callable[..., jaxcd.Dataset] | None
    private: bool
    needs_delta: bool = False
    exact: bool = True
    restricts: bool = True


RCIT = jaxcd.BoundedRCIT(n_features=20, n_permutations=19)
TESTS = (
    TestRow(jaxcd.CovarianceNorm(), discrete, True),
    TestRow(jaxcd.PooledCovariance(), discrete, True),
    TestRow(jaxcd.KendallTau(), discrete, True),
    TestRow(jaxcd.Spearman(), discrete, True),
    TestRow(jaxcd.StratifiedRanks(strata=(6, 3)), numeric, True, needs_delta=True),
    TestRow(jaxcd.StratifiedTau(), numeric, True),
    TestRow(RCIT, numeric, True, exact=False, restricts=False),
    TestRow(jaxcd.ChiSquare(), discrete, False),
    TestRow(jaxcd.GTest(), discrete, False),
    TestRow(jaxcd.FisherZ(), numeric, False),
    TestRow(jaxcd.HSIC(), numeric, False, exact=False, restricts=False),
    TestRow(jaxcd.GCM(), mixed, False, exact=False, restricts=False),
    TestRow(jaxcd.KCI(), mixed, False, exact=False, restricts=False),
    TestRow(jaxcd.RCIT(n_permutations=19), numeric, False, exact=False, restricts=False),
    TestRow(jaxcd.Oracle(nx.DiGraph([("a", "b")])), None, False),
    TestRow(jaxcd.CanonicalCorrelation(), None, False),
)
#: from tables of discrete columns; those of bounded sensitivity; those without
TABLE_TESTS = tuple(row.test for row in TESTS if row.data is discrete)
MARGIN_TESTS = tuple(row.test for row in TESTS if row.data is discrete and row.private)
FREE_TESTS = tuple(row.test for row in TESTS if row.data and not row.private)


def each_test(tests: tuple[Any, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("test", tests, ids=lambda test: test.name)


EACH_TABLE_TEST, EACH_MARGIN_TEST = each_test(TABLE_TESTS), each_test(MARGIN_TESTS)


@dataclass(frozen=True)
class DeciderRow:
    """decider: and the tests that it is tried with, on these data.  private: whether it fits a
    budget.  plans: whether ``jaxcd.plan`` takes it.  least_rows: how few rows its tests
    take.
    """

    decider: Any
    tests: tuple[Any, ...] = MARGIN_TESTS
    data: Callable[..., jaxcd.Dataset] = discrete
    private: bool = True
    plans: bool = True
    least_rows: int = 2

    def __str__(self) -> str:
        return re.sub(r"\b\w+=None(, )?|<|:[^>]*>|alpha=0.05(, )?", "", repr(self.decider))[:60]

    @property
    def test(self) -> Any:
        return self.tests[0]

    def columns(self, codes: np.ndarray, *levels: int) -> jaxcd.Dataset:
        """Codes as the tests take them: ordered levels, or numbers."""
        if self.data is discrete:
            return coded(codes, *levels)
        return jaxcd.Dataset.from_array(codes.astype(float), domain=numbers(len(levels), 0, 5))


DECIDERS = (
    DeciderRow(jaxcd.LevelwiseGaussian()),
    DeciderRow(jaxcd.SparseVector()),
    DeciderRow(jaxcd.SieveAndExamine()),
    DeciderRow(jaxcd.SieveAndExamine(rate=0.5)),
    DeciderRow(jaxcd.NoisyThreshold()),
    DeciderRow(jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN, n_queries=12)),
    DeciderRow(jaxcd.NoisyRank(n_queries=6), (RCIT,), numeric, least_rows=4),
    DeciderRow(jaxcd.ExponentialSelect()),
    DeciderRow(jaxcd.Scheduled(jaxcd.SparseVector()), plans=False),
    DeciderRow(jaxcd.Scheduled(jaxcd.ExponentialSelect()), plans=False),
    DeciderRow(jaxcd.Scheduled(jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN)), plans=False),
    DeciderRow(jaxcd.Threshold(), private=False, plans=False),
)
PRIVATE_DECIDERS = tuple(row for row in DECIDERS if row.private)
EACH_PRIVATE_DECIDER = pytest.mark.parametrize("row", PRIVATE_DECIDERS, ids=str)


@dataclass(frozen=True)
class KindRow:
    """kind: of release, with data that it takes, a test and the scores that its release answers."""

    kind: Any
    data: Callable[..., jaxcd.Dataset]
    test: Any
    scores: tuple[type, ...]
    pure: bool = False


KINDS = (
    KindRow(jaxcd.Histogram(), discrete, jaxcd.GTest(), (jaxcd.BIC, jaxcd.BDeu), pure=True),
    KindRow(jaxcd.Marginals(), discrete, jaxcd.ChiSquare(), (jaxcd.BIC,), pure=True),
    KindRow(jaxcd.LogLinear(), discrete, jaxcd.ChiSquare(), (jaxcd.BIC,), pure=True),
    KindRow(jaxcd.SecondMoments(), numeric, jaxcd.FisherZ(), (jaxcd.BIC,)),
    KindRow(jaxcd.Tetrachoric(), numeric, jaxcd.FisherZ(), (jaxcd.BIC,)),
    KindRow(jaxcd.Discretised(bins=2), mixed, jaxcd.ChiSquare(), (jaxcd.BIC,)),
    KindRow(jaxcd.Features(n_features=2), mixed, jaxcd.CanonicalCorrelation(), (jaxcd.BIC,)),
)


@dataclass(frozen=True)
class ScoreRow:
    """score: a configuration, with data that it takes."""

    score: ScoreConfig
    data: Callable[..., jaxcd.Dataset]


SCORES = (
    ScoreRow(jaxcd.BIC(), discrete),
    ScoreRow(jaxcd.BDeu(), discrete),
    ScoreRow(BGe(), numeric),
    ScoreRow(jaxcd.local.ChannelAwareBIC(jaxcd.local.KaryResponse(3.0)), discrete),
)


@dataclass(frozen=True)
class SearchRow:
    """search: with the options that it needs; by_score: whether it maximises a score (else it asks
    tests).
    """

    search: Callable[..., jaxcd.DiscoveryResult]
    by_score: bool
    options: tuple[tuple[str, Any], ...] = ()


SEARCHES = (
    SearchRow(jaxcd.pc, False),
    SearchRow(jaxcd.fci, False),
    SearchRow(jaxcd.ges, True),
    SearchRow(jaxcd.mmhc, True),
    SearchRow(jaxcd.gfci, True),
    SearchRow(jaxcd.exact_search, True),
    SearchRow(
        jaxcd.order_mcmc, True, (("n_steps", 60), ("burn_in", 20), ("key", jax.random.key(3)))
    ),
)
