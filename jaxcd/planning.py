r"""What a budget can see, before any data is read.

For a domain, a number of rows, a test, a decider and a budget the planner says how many answers the budget buys, how large the noise of
each is, and the smallest margin that will be found with high probability, in the margin's own unit (records for the tests on
tables) and as a share of the rows.  For a release it says how large the noise on a released number is.  Everything follows from
public facts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jaxcd.citests import CITest
from jaxcd.data import Domain
from jaxcd.decisions import Decider, TreeOptions
from jaxcd.errors import DomainError, OptionError, SensitivityError
from jaxcd.ops import moments, tails
from jaxcd.ops import tilted_moments as tilted
from jaxcd.privacy import Budget, Ledger
from jaxcd.releases import Features, Histogram, Marginals, SecondMoments
from jaxcd.releases.histogram import HISTOGRAM_SENSITIVITY
from jaxcd.releases.marginal_screen import pairs_for_laplace

__all__ = ["Plan", "ReleasePlan", "plan", "plan_release"]

_MISS = 0.05
# A dependence this strong (as a share of the rows) is the least that is usually worth finding; see PRIVACY.md O (theta = 0.01).
_USUAL_EFFECT = 0.01


@dataclass(frozen=True)
class Plan:
    """n_answers: answers that are paid for.  noise: standard deviation of the noise on a margin.  smallest_margin: what is seen
    with probability at least 0.95, noise of the decision included.  smallest_share: the same divided by the rows.
    sensible: whether a dependence of one record in a hundred can be seen.  words: the same in a sentence."""

    n_answers: int
    noise: float
    smallest_margin: float
    smallest_share: float
    sensible: bool
    words: str


def plan(domain: Domain, n_samples: int, *, test: CITest, decider: Decider | TreeOptions, budget: Budget) -> Plan:
    r"""Plans a private run: what will the budget see?

    domain: the declared domain.  n_samples: public, at least 2.  test, decider, budget: as for :func:`jaxcd.pc`; TreeOptions for
    :func:`jaxcd.tree_pc`.

    For the deciders that pay by the answer the noise is that of one answer when the budget is divided among all of them; for
    LevelwiseGaussian it is that of the first level after the release with all pairs still open, for TreeOptions that of the
    questions whether to add an edge with all pairs open: the worst case.  The smallest margin is (kappa + 1.645) noise, kappa
    the decision threshold.

    Raises OptionError where an argument is not of its kind, SensitivityError for a test without bounded sensitivity.
    """
    check_facts(domain, n_samples)
    _check_budget(budget)
    bound = test.margin_sensitivity(alpha=decider.alpha, n_samples=n_samples, relation=budget.relation)
    if bound is None:
        raise SensitivityError(f"test: {test.name} has no bounded sensitivity, so no budget buys an answer; use CovarianceNorm")
    ledger = Ledger(budget)
    n_answers, noise, kappa = decider.price(ledger, n_columns=domain.n_columns, sensitivity=bound.value + 2 * bound.pad)
    smallest = (kappa + tails.normal_quantile(_MISS)) * noise
    sensible = smallest <= _USUAL_EFFECT * n_samples
    needed = math.ceil(smallest / _USUAL_EFFECT)
    words = (
        f"{n_answers} answers with noise of {noise:.0f} each; dependences of {smallest:.0f} (of {n_samples} rows) are seen with "
        f"probability 0.95. " + ("That is enough for effects of 1%." if sensible else f"Effects of 1% need about {needed} rows.")
    )
    return Plan(n_answers, noise, smallest, smallest / n_samples, sensible, words)


@dataclass(frozen=True)
class ReleasePlan:
    """noise: standard deviation of the noise on a released number, in records.  smallest_share: three times that as a share of the
    rows: less is noise.  words: the same in a sentence."""

    noise: float
    smallest_share: float
    words: str


def plan_release(
    domain: Domain, n_samples: int, *, kind: Histogram | Marginals | SecondMoments | Features, budget: Budget
) -> ReleasePlan:
    r"""Plans a release: how large is its noise?

    domain: the declared domain.  n_samples: public, at least 2.  kind, budget: as for :func:`jaxcd.release`.

    The noise is, for a histogram, that of a cell, sqrt(2) 2 / epsilon; for marginals, that of an interaction of the first round, when
    all pairs are bought; for second moments, that of an entry of the last round if the earlier ones found the right units, n times
    the noise on a correlation; for features, n times that on a correlation of two features.

    Raises OptionError where an argument is not of its kind or the budget has no delta for Gaussian noise, DomainError where the
    release does not take the columns.
    """
    check_facts(domain, n_samples)
    _check_budget(budget)
    ledger = Ledger(budget)
    if isinstance(kind, Histogram):
        kind.check(domain)
        noise, number = math.sqrt(2) * HISTOGRAM_SENSITIVITY / budget.epsilon, "cell"
    elif isinstance(kind, Marginals):
        noise, number = _noise_of_marginals(domain, kind, ledger), "number of a pair"
    elif isinstance(kind, SecondMoments):
        kind.check(domain)
        noise, number = n_samples * math.sqrt(_moments_variance(domain, n_samples, kind, ledger)), "entry"
    elif isinstance(kind, Features):
        noise, number = _noise_of_features(domain, n_samples, kind, ledger), "correlation of two features"
    else:
        raise OptionError(f"kind = {kind!r} is no kind of release; use jaxcd.Histogram(), Marginals(), SecondMoments() or Features()")
    share = 3 * noise / n_samples
    seen = f"what is below {share:.2%} of the {n_samples:,} rows is noise" if share < 1 else f"nothing in {n_samples:,} rows stands out of it"
    words = f"Each {number} has noise of {noise:.3g} records; {seen}."
    return ReleasePlan(noise, share, words)


def check_facts(domain: Domain, n_samples: int) -> None:
    """Raises OptionError unless these are a domain and a number of rows."""
    if not isinstance(domain, Domain):
        raise OptionError(f"domain: a {type(domain).__name__} is not a Domain; declare one, or read it with Domain.read")
    if isinstance(n_samples, bool) or not isinstance(n_samples, int) or not n_samples >= 2:
        raise OptionError(f"n_samples = {n_samples!r} is not a number of rows; give a whole number from 2")


def _check_budget(budget: Budget) -> None:
    if not isinstance(budget, Budget):
        raise OptionError(f"budget = {budget!r} is not a Budget; there is nothing to plan without one")


def _noise_of_marginals(domain: Domain, kind: Marginals, ledger: Ledger) -> float:
    if not domain.is_discrete:
        raise DomainError("domain: marginals count levels, and there are numeric columns; declare those ordinal with public bins")
    cardinalities = tuple(cardinality or 1 for cardinality in domain.cardinalities)
    share = kind.shares[0] / sum(kind.shares)
    if ledger.remaining_rho > 0:
        return moments.contrast_sensitivity(cardinalities, 1.0) / math.sqrt(2 * share * ledger.remaining_rho)
    weights, _, sensitivity = pairs_for_laplace(cardinalities)
    least = min((weight for columns, weight in weights.items() if len(columns) == 2), default=1.0)
    return math.sqrt(2) * sensitivity / (share * ledger.remaining_epsilon * least)


def _moments_variance(domain: Domain, n_samples: int, kind: SecondMoments, ledger: Ledger) -> float:
    """Variance of the noise on an entry of the last round, for columns whose covariance is the identity."""
    bought = kind.scale_share if kind.centres is None or kind.scales is None else 0.0
    if not ledger.remaining_rho > 0:
        raise OptionError("budget: second moments need Gaussian noise and delta > 0; give the budget a delta such as 1e-6")
    rho = ledger.remaining_rho * (1 - bought) * kind.shares[-1] / sum(kind.shares)
    units = np.ones(domain.n_columns)
    rate = tilted.best_rate(units, n_samples=n_samples, anchor=1.0, rho=rho)
    return tilted.relative_variances(units, n_samples=n_samples, rate=rate, anchor=1.0, rho=rho)[1]


def _noise_of_features(domain: Domain, n_samples: int, kind: Features, ledger: Ledger) -> float:
    if not ledger.remaining_rho > 0:
        raise OptionError("budget: features need Gaussian noise and delta > 0; give the budget a delta such as 1e-6")
    rho = ledger.remaining_rho * kind.shares(domain)[1]
    kind = kind.chosen(domain, n_samples, rho=rho)
    sizes = [size for size in kind.sizes(domain) if size > 0]
    # Features of length one: the variance of each is one over their number.
    return kind.noise(domain, rho=rho) * sum(sizes) / max(len(sizes), 1)
