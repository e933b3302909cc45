"""Which release for columns some of which are numeric."""

from __future__ import annotations

import math
from dataclasses import replace

from jaxcd.advice.choosing import Algorithm, choose, nominal_beside_numeric
from jaxcd.advice.limits import (
    LIMITS,
    ROWS_ONLY,
    below,
    few_chosen,
    noisy,
    seen_from,
    smallest_share,
)
from jaxcd.advice.planning import plan_release, resolution_words, scale_words
from jaxcd.advice.recommendation import Alternative, Recommendation, of_release
from jaxcd.checks import counted as counted_of
from jaxcd.data import Domain, Numeric
from jaxcd.errors import DataError
from jaxcd.privacy import Budget
from jaxcd.privacy.budget import counted_words
from jaxcd.releases import Discretised, Features, Marginals, Plan, SecondMoments, Tetrachoric

__all__ = [
    "IN_QUANTILES",
    "TAKES_BOTH",
    "linear_by_person",
    "no_tests",
    "numeric",
    "of_any_shape",
    "too_few_rows",
]

# Tetrachoric correlations found more than second moments where they hid less than this share of
# what those hid (random linear Gaussian models, 6 to 200 columns, 1,000 to 100,000 rows).
_SIGNS_OVER_MOMENTS: float = LIMITS["signs_over_moments"]
# Where features hide more than this over the root of the number of columns, as a share of the rows,
# tables of quantiles found more: the spectrum of the noise on a matrix grows with that root
# (benchmarks.mixed, and random mixed models of 10 to 150 columns with 2,000 to 50,000 rows).
_FEATURES_SEE: float = LIMITS["features_over_tables"]
_LINEAR = "All columns are numeric, and their relations were declared to be linear."
_ANY_SHAPE = (
    "There are numeric columns: features of their ranks show relations of any shape that are sums "
    "of functions of single columns."
)
TAKES_BOTH = (
    "There are numeric beside nominal columns: features of ranks and of levels go "
    "together in one table of covariances."
)
_ROWS_ONLY_IN_SUMS = (
    "Numbers that may be missing, and people with several rows, have a place in sums over rows, "
    "such as covariances of features, and none in tests on rows."
)
IN_QUANTILES = "Numeric columns are cut at quantiles, and go into tables."


def numeric(domain: Domain, n_samples: int, budget: Budget, linear: bool) -> Recommendation:
    """Where no cell is missing, by what is known of the relations."""
    # refuses what no private search takes
    choice = choose(domain, budget=budget, algorithm=Algorithm.TREE)
    share = smallest_share(domain, n_samples, choice, budget)
    seen = seen_from(share)
    all_numeric = all(isinstance(column, Numeric) for column in domain.columns.values())
    if linear and all_numeric:
        kind = SecondMoments()
        planned = plan_release(domain, n_samples, kind=kind, budget=budget)
        tree = Alternative(
            choice.title, f"it takes relations of any shape, which costs precision: it {seen}"
        )
        if (signs := _by_signs(domain, n_samples, budget, planned, tree)) is not None:
            return signs
        return _of_moments(domain, planned, budget, tree)
    tree = Alternative(choice.title, f"it {seen}, and found less on most random models")
    found = of_any_shape(domain, n_samples, budget, (tree,))
    if all_numeric and found.warning is not None:
        monotone = (
            "All columns are numeric: signs about their medians show relations of any monotone "
            "shape.",
        )
        signs = _of_signs(domain, n_samples, budget, monotone, (tree,))
        return found if signs.warning is not None else signs
    return found


def linear_by_person(domain: Domain, n_samples: int, budget: Budget) -> Recommendation:
    """Numeric columns where a person may have several rows: no search by tests is private then."""
    kind = SecondMoments()
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    tests = Alternative("searches by tests", ROWS_ONLY)
    if (signs := _by_signs(domain, n_samples, budget, planned, tests)) is not None:
        return signs
    return _of_moments(domain, planned, budget, tests)


def _of_moments(
    domain: Domain, planned: Plan, budget: Budget, other: Alternative
) -> Recommendation:
    warning = noisy(SecondMoments, planned.smallest_share, counted_words(budget.unit))
    reasons = (_LINEAR, planned.words, *scale_words(domain))
    return of_release(SecondMoments(), reasons, (other,), warning)


def _by_signs(
    domain: Domain, n_samples: int, budget: Budget, moments: Plan, other: Alternative
) -> Recommendation | None:
    """Tetrachoric correlations in the place of second moments, where they hide clearly less."""
    kind = Tetrachoric()
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    if not kind.n_selected(domain, n_samples, budget=budget):
        return None
    if planned.smallest_share >= _SIGNS_OVER_MOMENTS * moments.smallest_share:
        return None
    why = Alternative(
        SecondMoments.title,
        f"with noise on all pairs they hide what is below {moments.smallest_share:.2%} of the "
        f"{counted_words(budget.unit)}",
    )
    return _of_signs(domain, n_samples, budget, (_LINEAR,), (why, other))


def _of_signs(
    domain: Domain,
    n_samples: int,
    budget: Budget,
    reasons: tuple[str, ...],
    others: tuple[Alternative, ...],
) -> Recommendation:
    kind, p = Tetrachoric(), domain.n_columns
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    n_pairs, n_chosen = math.comb(p, 2), kind.n_selected(domain, n_samples, budget=budget)
    are = "is" if n_chosen == 1 else "are"
    chosen = (
        f"Of {counted_of(n_pairs, 'pair')} of columns {n_chosen:,} {are} chosen, and share the "
        "noise.",
    )
    shown = (*(chosen if n_chosen else ()), planned.words, *resolution_words(domain, kind.step))
    why = (*reasons, *shown)
    return of_release(kind, why, others, few_chosen(n_chosen, p, counted_words(budget.unit)))


def too_few_rows(domain: Domain, n_samples: int) -> bool:
    """Whether there are too few rows for features."""
    try:
        Features().check(domain, n_samples)
    except DataError:
        return True
    return False


def of_any_shape(
    domain: Domain, n_samples: int, budget: Budget, others: tuple[Alternative, ...]
) -> Recommendation:
    """Numeric columns, alone or beside levels: features, or where their noise hides much tables of
    quantiles.
    """
    kind, counted = Features(), counted_words(budget.unit)
    if too_few_rows(domain, n_samples):
        none = Alternative(Features.title, f"there are more features than {counted}")
        return _in_quantiles(domain, n_samples, budget, (none, *others))
    if nominal_beside_numeric(domain) is not None:
        reason = TAKES_BOTH
    else:
        reason = _ROWS_ONLY_IN_SUMS if not others else _ANY_SHAPE
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    # More features are chosen where there is less noise, so that the noise on a correlation of the
    # chosen ones says less.
    hidden = plan_release(
        domain, n_samples, kind=replace(kind, n_features=2), budget=budget
    ).smallest_share
    most = _FEATURES_SEE / math.sqrt(domain.n_columns)
    if hidden > most:
        why = (
            f"their noise hides {below(hidden, counted)}, and of "
            f"{counted_of(domain.n_columns, 'column')} tables found more from {most:.0%} on"
        )
        features = Alternative(Features.title, why)
        return _in_quantiles(domain, n_samples, budget, (features, *others))
    tables = Alternative(
        Discretised.title,
        "conditioning on a bin is less than conditioning on the number: they found less where "
        f"features hide less than {most:.0%} of the {counted}, but where children are functions of "
        "weighted sums of their parents",
    )
    reasons = (reason, planned.words, *resolution_words(domain, kind.step))
    return of_release(kind, reasons, (tables, *others), None)


def _in_quantiles(
    domain: Domain, n_samples: int, budget: Budget, others: tuple[Alternative, ...]
) -> Recommendation:
    """Tables of numeric columns cut at quantiles."""
    kind = Discretised().chosen(domain, n_samples, budget=budget)
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    reasons = (
        f"Numeric columns are cut at quantiles that the budget buys, into {kind.bins} bins each, "
        "and go into tables.",
        planned.words,
        *resolution_words(domain, kind.step),
    )
    in_levels = kind.in_levels(domain)
    n_chosen = Marginals().n_selected(in_levels, n_samples, budget=budget)
    counted = counted_words(budget.unit)
    warning = few_chosen(n_chosen, domain.n_columns, counted)
    warning = warning or noisy(Discretised, planned.smallest_share, counted)
    return of_release(Discretised(), reasons, others, warning)


def no_tests(domain: Domain) -> Alternative:
    numeric = next(name for name in domain.names if not domain[name].is_discrete)
    return Alternative(
        Marginals.title,
        f"they count levels: column {numeric!r} and its like would have to be declared ordinal "
        "with public bins, or cut at quantiles (jaxcd.Discretised), which found less",
    )
