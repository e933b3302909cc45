"""A user's own CI test, decider and release, each one class in one place outside the package:
everything works with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxcd
from jaxcd.citests import Sensitivity
from jaxcd.decisions.base import Decider, DecisionRun, Frontier, LevelSize, Price, queries_of
from jaxcd.privacy import Accountant, PrivacyFilter, laplace
from jaxcd.queries import Door, Session
from jaxcd.releases import Plan, Release, ReleaseKind, paid
from jaxcd.releases.redrawing import redrawn
from jaxcd.releases.tables.fitted_tables import CellModel
from jaxcd.scores import BIC, BICScore
from jaxcd.scores.base import LocalScore
from tests.helpers import refused

# ---- a CI test


@dataclass(frozen=True)
class DoubledNorm(jaxcd.CovarianceNorm):
    """The covariance norm with a sensitivity of its author's: twice what is proved."""

    def margin_sensitivity(
        self, *, alpha: float, n_samples: int, relation: jaxcd.privacy.Relation
    ) -> Sensitivity | None:
        stated = super().margin_sensitivity(alpha=alpha, n_samples=n_samples, relation=relation)
        return None if stated is None else Sensitivity(2 * stated.value, stated.pad, "its author")


# ---- a decider


class _EqualRun(DecisionRun):
    def __init__(self, session: Session, accountant: Accountant, n_answers: int) -> None:
        self._session, self._accountant = session, accountant
        self._bound = session.sensitivity()
        session.open(accountant)
        self._price = accountant.ledger.remaining_epsilon / n_answers

    def answer(self, frontier: Frontier) -> None:
        while questions := frontier.peek(1):
            query = queries_of(questions[0])[:1]
            try:
                noisy = laplace(
                    self._accountant,
                    self._session.margins(query),
                    sensitivity=self._bound.value,
                    pad=self._bound.pad,
                    epsilon=self._price,
                    label="mine",
                )
            except jaxcd.errors.BudgetExhausted:
                self.exhausted = True
                return
            if noisy[0] <= 0:
                frontier.separate(questions[0].candidates[0])
            else:
                frontier.keep()


@dataclass(frozen=True)
class FirstSetOnly(Decider):
    """Asks for the first candidate of each question only."""

    alpha: float = 0.05
    n_answers: int | None = None
    divisible = True

    def _count(self, n_columns: int) -> int:
        return self.n_answers or n_columns * n_columns

    def price(self, ledger: PrivacyFilter, *, n_columns: int, sensitivity: float) -> Price:
        n_answers = self._count(n_columns)
        return Price(n_answers, math.sqrt(2) * sensitivity * n_answers / ledger.remaining_epsilon)

    def for_level(self, size: LevelSize) -> FirstSetOnly:
        return FirstSetOnly(self.alpha, max(size.n_questions, 1))

    def start(self, session: Session, accountant: Accountant) -> DecisionRun:
        return _EqualRun(session, accountant, self._count(session.n_variables))


# ---- a release


@dataclass(frozen=True)
class RoundedCells(ReleaseKind):
    """A joint table in steps."""

    step: float = 1.0
    word = "my cells"
    is_pure = True

    def check(self, domain: jaxcd.Domain, n_samples: int) -> None:
        if not domain.is_discrete:
            raise jaxcd.errors.DomainError("data: these are counts; declare levels")

    def plan(self, domain: jaxcd.Domain, n_samples: int, *, budget: jaxcd.Budget) -> Plan:
        self.check(domain, n_samples)
        return Plan.of(math.sqrt(2) * 2 / budget.epsilon, n_samples, number="cell of mine")

    def buy(self, door: Door, accountant: Accountant) -> ReleasedCells:
        shape = door.domain.cardinalities

        def counted(codes: np.ndarray) -> np.ndarray:
            cells = np.ravel_multi_index(tuple(codes.T), shape)
            return np.bincount(cells, minlength=math.prod(shape)).astype(np.int64)

        noisy = laplace(
            accountant,
            door.codes().map(counted),
            sensitivity=2.0,
            epsilon=accountant.ledger.epsilon_limit,
            grid=1.0,
            label="my cells",
        )
        rounded = np.rint(noisy / self.step) * self.step
        return ReleasedCells(
            door.domain, door.n_samples, rounded.reshape(shape), bought=self, **paid(accountant)
        )


@dataclass(frozen=True, eq=False)
class ReleasedCells(Release):
    """The table."""

    domain: jaxcd.Domain
    n_samples: int
    cells: np.ndarray
    cost: jaxcd.privacy.PrivacyCost
    spent: jaxcd.privacy.PrivacyCost
    charges: tuple[Mapping[str, object], ...] = ()
    bought: ReleaseKind | None = None
    kind = "my-cells"

    def _score(self, max_parents: int | None) -> LocalScore:
        table = np.maximum(self.cells, 0.0)
        table = table * (self.n_samples / max(table.sum(), 1.0))
        return BICScore.of_table(
            table,
            names=self.names,
            n_samples=self.n_samples,
            max_parents=3 if max_parents is None else max_parents,
        )

    def scores(self) -> Mapping[type, Callable[[Any, int | None], LocalScore]]:
        return {BIC: lambda score, max_parents: self._score(max_parents)}

    def default_score(self) -> LocalScore:
        return self._score(None)

    def redraw(
        self, adjacency: np.ndarray, *, kind: ReleaseKind | None = None
    ) -> Callable[[jax.Array], Release]:
        return redrawn(
            self,
            CellModel(self.domain, np.maximum(self.cells, 0.0).ravel()),
            kind or self.bought or RoundedCells(),
        )

    def _least_variance(self, epsilon: float, rho: float) -> None:
        return None

    def _parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {}, {"cells": self.cells}

    @classmethod
    def _from_parts(
        cls, common: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> ReleasedCells:
        return cls(cells=arrays["cells"], **common)


@pytest.fixture(scope="module")
def data() -> jaxcd.Dataset:
    return jaxcd.networks.load("cancer").sample(4_000, key=jax.random.key(0))


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    # Other tests list the kinds that the package has.
    assert ReleaseKind._kinds["RoundedCells"] is RoundedCells


def noise(seed: int = 0) -> jaxcd.SimulatedNoise:
    return jaxcd.SimulatedNoise(jax.random.key(seed))


def test_a_test_of_ones_own(data: jaxcd.Dataset, tmp_path: Path) -> None:
    budget = jaxcd.Budget(4.0, 1e-5)
    own, proved = (
        jaxcd.plan(data.domain, 4_000, test=test, decider=jaxcd.SparseVector(), budget=budget)
        for test in (DoubledNorm(), jaxcd.CovarianceNorm())
    )
    assert own.noise == pytest.approx(2 * proved.noise, rel=1e-4)
    run = jaxcd.discover(data, test=DoubledNorm(), budget=budget, key=None)
    assert not run.cost.proven and "DoubledNorm" in run.cost.reason
    assert jaxcd.verify(run.certificate()).holds
    run.save(tmp_path / "report")
    assert "DoubledNorm" in (tmp_path / "report" / "report.html").read_text()
    assert (
        jaxcd.ci_test(data, "Cancer", "Smoker", test=DoubledNorm(), budget=budget).cost.epsilon
        == 4.0
    )


def test_a_decider_of_ones_own(data: jaxcd.Dataset, tmp_path: Path) -> None:
    budget = jaxcd.Budget(40.0)
    planned = jaxcd.plan(
        data.domain, 4_000, test=jaxcd.CovarianceNorm(), decider=FirstSetOnly(), budget=budget
    )
    assert planned.n_answers == 25 and planned.noise > 0
    for decider in (FirstSetOnly(), jaxcd.Scheduled(FirstSetOnly())):
        run = jaxcd.discover(data, decider=decider, budget=budget, key=None)
        assert run.spent.epsilon <= 40 and not run.cost.proven and "FirstSetOnly" in run.cost.reason
        assert {row["label"] for row in run.certificate()["ledger"]} == {"mine"}
        assert jaxcd.verify(run.certificate()).holds
    run.save(tmp_path / "report")
    assert run.graph.n_edges > 0


def test_a_release_of_ones_own(data: jaxcd.Dataset, tmp_path: Path) -> None:
    budget = jaxcd.Budget(2.0)
    assert "cell of mine" in str(
        jaxcd.plan_release(data.domain, 4_000, kind=RoundedCells(), budget=budget).words
    )
    bought = jaxcd.release(data, RoundedCells(2.0), budget=budget)
    assert not bought.cost.proven and "RoundedCells" in bought.cost.reason
    assert jaxcd.verify(bought.certificate()).holds
    run = jaxcd.search(bought)
    assert run.info["algorithm"] == "search_my_cells"
    assert run.graph == jaxcd.exact_search(bought).graph
    assert jaxcd.ges(bought).graph.n_edges > 0
    simulated = jaxcd.release(data, RoundedCells(2.0), budget=budget, noise=noise())
    found = jaxcd.edge_confidence(simulated, jaxcd.search(simulated), n_draws=3)
    run.with_confidence(found).save(tmp_path / "report")
    again = Release.load(simulated.save(tmp_path / "mine.npz"))
    assert np.array_equal(again.cells, simulated.cells) and again.bought == RoundedCells(2.0)
    refused(jaxcd.errors.OptionError, r"my cells.*BIC\(\)", jaxcd.ges, bought, score=jaxcd.BDeu())
