"""Which release for columns that all have levels."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import fmean

from jaxcd.advice.choosing import MOST_KNOWN_CELLS, kind_of_release, n_cells, n_known_cells
from jaxcd.advice.limits import LIMITS, few_chosen, few_rows, many_levels, noisy, private_searches
from jaxcd.advice.planning import plan_release
from jaxcd.advice.recommendation import Alternative, Recommendation, of_release
from jaxcd.checks import counted as counted_of
from jaxcd.checks import has, shown_count, shown_size
from jaxcd.data import Domain
from jaxcd.privacy import Budget, Unit
from jaxcd.privacy.budget import counted_words
from jaxcd.releases import Histogram, LogLinear, Marginals

__all__ = ["discrete", "noise_of_a_pair"]

# Where the first round of Marginals hides this share, and more, of the average count in a table of
# two columns, LogLinear found more (benchmarks.model_noise), by the most columns: many that depend
# on each other need larger cliques than a model can have.
_MODEL_NOISE: list[tuple[int, float]] = LIMITS["model_noise"]


def discrete(domain: Domain, n_samples: int, budget: Budget) -> Recommendation:
    """By the number of cells, the budget and the rows."""
    found = _by_cells(domain, n_samples, budget)
    # More budget and other releases hardly help here, so that it goes before what asks for more.
    warning = many_levels(domain, n_samples, budget.unit)
    return found if warning is None else found.warned(warning)


def noise_of_a_pair(domain: Domain, n_samples: int, *, budget: Budget) -> float:
    """The share of the average count in a table of two columns, all of which have levels, that the
    noise of the first round of :class:`jaxcd.Marginals` hides; public.
    """
    levels = [k for k in domain.cardinalities if k is not None]
    hidden = plan_release(domain, n_samples, kind=Marginals(), budget=budget).smallest_share
    return hidden * fmean(a * b for a, b in combinations(levels, 2))


def _by_cells(domain: Domain, n_samples: int, budget: Budget) -> Recommendation:
    cells, known = n_cells(domain), n_known_cells(domain)
    kind = kind_of_release(domain)
    private = private_searches(domain, n_samples, budget)
    counted = counted_words(budget.unit)
    columns = f"{counted_of(domain.n_columns, 'column')} {has(domain.n_columns)}"
    if kind == Histogram():
        and_codes = f", and {cells:,} with those of missing cells" if cells > known else ""
        planned = plan_release(domain, n_samples, kind=kind, budget=budget)
        by_person = budget.unit is Unit.PERSON
        one = "person changes them by 2 in all" if by_person else "record changes two of them by 1"
        mean = shown_size(n_samples / cells)
        reasons = [
            f"{columns} {counted_of(known, 'cell')} together, at most "
            f"{MOST_KNOWN_CELLS:,}{and_codes}: one {one}.",
            f"A cell has {mean} {budget.unit.value if mean == '1' else counted} on average and "
            f"noise of {shown_size(planned.noise)}, which the score allows for.",
        ]
        if budget.delta > 0:
            reasons.append("It needs no delta: the release is private with epsilon alone.")
        pairs = Alternative(
            Marginals.title,
            "its noise grows with the number of columns, and where a histogram fits it mostly "
            "found less",
        )
        return of_release(kind, tuple(reasons), (pairs, *private), few_rows(n_samples, budget))
    limit = MOST_KNOWN_CELLS if known > MOST_KNOWN_CELLS else Histogram().max_cells
    joint = Alternative(
        Histogram.title,
        f"{columns} {shown_count(cells)} cells together, too many for noise on each",
    )
    large = (
        f"{columns} {shown_count(cells)} cells together, more than "
        f"{limit:,}: tables of few columns each."
    )
    least = next((share for most, share in _MODEL_NOISE if domain.n_columns <= most), math.inf)
    noise = noise_of_a_pair(domain, n_samples, budget=budget)
    if noise >= least:
        hides = f"is {noise:.1%}" if noise < 1 else "hides all of it"
        measured = Alternative(
            kind.title,
            f"it found more where its noise hides less than {least:.1%} of the average count in "
            f"a table of two columns; here it {hides}",
        )
        kind = LogLinear()
        planned = plan_release(domain, n_samples, kind=kind, budget=budget)
        reasons = [
            large,
            planned.words,
            "With so much noise a model of the pairs that are clearly dependent finds more than "
            "tables of more columns.",
        ]
        warning = noisy(LogLinear, planned.smallest_share, counted)
        return of_release(kind, tuple(reasons), (measured, joint, *private), warning)
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    reasons = [large, planned.words]
    warning = noisy(Marginals, planned.smallest_share, counted)
    n_chosen = Marginals().n_selected(domain, n_samples, budget=budget)
    warning = warning or few_chosen(n_chosen, domain.n_columns, counted)
    return of_release(kind, tuple(reasons), (joint, *private), warning)
