"""Which method for which data and budget, from public facts alone: the domain, the number of rows,
the budget.

The rules stand on comparisons of mean arc F1 against the true CPDAG.  They are in
``recommended.json`` beside this module, each with the result file that it comes from;
``python -m benchmarks.recommending_table`` writes it out of the committed results of
``benchmarks.frontier``, ``benchmarks.mixed`` and its own.  It also holds the limits from which on a
recommendation warns, and says that these were chosen by hand.

1. Discrete columns, at most 4,096 cells together (8,192 with those of missing cells): a joint
   histogram.  One record moves it by 2 whatever the number of columns is, and its score knows the
   noise of every cell.
2. Discrete columns, more cells: marginals.  They share their noise among all pairs, and are
   searched by a score rather than one test after the other.
3. Numeric columns whose relations are declared to be linear, delta > 0: second moments; where noise
   on chosen pairs of signs hides less than nine tenths of what it hides in them (from about 85
   columns on), tetrachoric correlations.
4. Other numeric columns, alone or beside levels, delta > 0: covariances of features; where their
   noise hides more than .85 of the rows over the root of the number of columns (.27 of 10, .09 of
   100), tables of numeric columns cut at quantiles; and where these hide much as well, and all
   columns are numeric, tetrachoric correlations.
5. Numeric beside nominal columns, no privacy: covariances of features.
6. No privacy: PC.
7. Where columns may be hidden (``latent=True``): the same release, and GFCI on it; FCI where 6
   chose tests.  On nine cases of four networks with 100,000 rows (``benchmarks.priv_fci``, epsilon
   1, 4 and 16) GFCI on a histogram found more marks of the true PAG than FCI on it and than FCI by
   private tests in eight; it misses edges that the score is too weak to see (Cancer without its
   middle).  Where the domain declares interventions FCI on the release: a score reads them as if
   nothing were hidden.

A recommendation warns where less than about half of the arcs were found in the runs from which the
limits were chosen.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jaxcd.advice.choosing import Algorithm, choose, nominal_beside_numeric
from jaxcd.advice.discrete_rules import discrete
from jaxcd.advice.numeric_rules import (
    IN_QUANTILES,
    TAKES_BOTH,
    linear_by_person,
    no_tests,
    numeric,
    of_any_shape,
    too_few_rows,
)
from jaxcd.advice.planning import check_facts
from jaxcd.advice.recommendation import Alternative, Recommendation, of_release, of_tests
from jaxcd.checks import check_flag
from jaxcd.data import Domain, Numeric
from jaxcd.data.interventions import Interventions
from jaxcd.errors import OptionError
from jaxcd.privacy import Budget, NoPrivacy, Unit
from jaxcd.privacy.budget import delta_warning
from jaxcd.releases import Discretised, Features

__all__ = ["recommend"]


def recommend(
    domain: Domain | str | Path,
    n_samples: int,
    *,
    budget: Budget | NoPrivacy,
    linear: bool = False,
    latent: bool = False,
) -> Recommendation:
    """Which method suits a domain, a number of rows and a budget, and why.

    The rules and their evidence are in the docstring of :mod:`jaxcd.advice.recommending`.  Nothing
    is read but the arguments, so that nothing is spent.

    Args:
        domain: the declared domain, or the path of its file.
        n_samples: the public number of rows, at least 1.
        budget: the total, or NO_PRIVACY.
        linear: whether the relations among numeric columns may be taken as linear; knowledge, never
            a look at the data.
        latent: whether columns may have common causes that are not in the data; then the graph is a
            PAG.

    Returns:
        The method, its reasons with numbers, and the alternatives; ``print`` shows all of it.

    Raises:
        OptionError: an argument is not of its kind, or ``linear`` where a column has levels.
        DomainError: there is one column only, or numeric ones and the budget has no delta.
        DataError: there are numeric columns and too few rows for features.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("asia").domain
        >>> print(jaxcd.recommend(domain, 10_000, budget=jaxcd.Budget(1.0)).reasons[0])
        8 columns have 256 cells together, at most 4,096: one record changes two of them by 1.
    """
    domain = check_facts(domain, n_samples)
    if not isinstance(budget, (Budget, NoPrivacy)):
        raise OptionError(
            f"budget = {budget!r} is not a budget; use jaxcd.Budget(epsilon=1.0, delta=1e-6), or "
            "jaxcd.NO_PRIVACY"
        )
    if not isinstance(linear, bool):
        raise OptionError(
            f"linear = {linear!r} is not True or False; say True if relations among numeric "
            "columns are linear"
        )
    for name, column in domain.columns.items():
        if linear and not isinstance(column, Numeric):
            raise OptionError(
                "linear=True: it is for tables whose columns are all numeric, and "
                f"{name!r} has levels; leave it out"
            )
    check_flag("latent", latent)
    found = _recommended(domain, n_samples, budget, linear)
    return _with_latent(found, domain, budget) if latent else found


def _recommended(
    domain: Domain, n_samples: int, budget: Budget | NoPrivacy, linear: bool
) -> Recommendation:
    """Where nothing is hidden."""
    mixed = nominal_beside_numeric(domain) is not None
    if isinstance(budget, NoPrivacy):
        no_noise = "No privacy is asked for, so that no noise has to be planned."
        if mixed:
            if too_few_rows(domain, n_samples):
                none = Alternative(Features.title, "there are more features than rows")
                return of_release(Discretised(), (no_noise, IN_QUANTILES), (none,), None)
            return of_release(Features(), (no_noise, TAKES_BOTH), (no_tests(domain),), None)
        return of_tests(choose(domain, budget=budget), (no_noise,), ())
    # Tests on rows have no place for a number that is missing; features have one for it.
    holes = any(
        column.missing is not None for column in domain.columns.values() if not column.is_discrete
    )
    all_linear = linear and all(isinstance(each, Numeric) for each in domain.columns.values())
    if domain.is_discrete:
        found = discrete(domain, n_samples, budget)
    elif budget.delta > 0 and (mixed or holes or (budget.unit is Unit.PERSON and not all_linear)):
        found = of_any_shape(domain, n_samples, budget, ())
    elif budget.unit is Unit.PERSON:
        if mixed or holes:
            raise OptionError(
                "budget: where people have several rows, numeric columns beside others or with "
                "missing cells need Gaussian noise; give the budget a delta such as 1e-6"
            )
        found = linear_by_person(domain, n_samples, budget)
    else:
        found = numeric(domain, n_samples, budget, linear)
    words = delta_warning(budget.epsilon, budget.delta, n_samples, unit=budget.unit)
    return replace(found, delta_warning=words, budget=budget)


def _with_latent(
    found: Recommendation, domain: Domain, budget: Budget | NoPrivacy
) -> Recommendation:
    """The same where columns may be hidden."""
    hidden = "Columns may be hidden, so that the graph is a PAG."
    if found.kind is None:
        choice = choose(domain, budget=budget, algorithm=Algorithm.FCI)
        kept = found.reasons if isinstance(budget, NoPrivacy) else ()
        fresh = of_tests(choice, (*kept, hidden), (), found.warning)
    elif columns := Interventions.of(domain).columns:
        why = (
            f"{columns[0]!r} declares an intervention: FCI reads it as a column of which it is "
            "known what does not cause it, and asks the release, which can be asked again."
        )
        score = Alternative(
            f"{found.title}; from there a PAG (GFCI)",
            f"its score reads {columns[0]!r} as if nothing were hidden",
        )
        fresh = of_release(
            found.kind,
            (*found.reasons, hidden, why),
            (*found.alternatives, score),
            found.warning,
            Algorithm.FCI,
        )
    else:
        tests = Alternative("FCI by tests", "on most networks it found fewer marks of the true PAG")
        more = "GFCI weighs edges by the score, and tests only what a hidden cause may have joined."
        fresh = of_release(
            found.kind,
            (*found.reasons, hidden, more),
            (*found.alternatives, tests),
            found.warning,
            Algorithm.GFCI,
        )
    return replace(fresh, delta_warning=found.delta_warning, budget=found.budget)
