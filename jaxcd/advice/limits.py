"""The limits from which on a recommendation warns, and the warnings; what private searches by tests
could see.

The limits are in ``recommended.json``, with what they come from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from itertools import combinations
from statistics import median

from jaxcd.advice.choosing import Algorithm, Choice, choose
from jaxcd.advice.planning import plan
from jaxcd.advice.recommendation import Alternative
from jaxcd.checks import counted as counted_of
from jaxcd.checks import shown_size
from jaxcd.data import Domain
from jaxcd.privacy import Budget, Unit
from jaxcd.privacy.budget import counted_records, counted_words
from jaxcd.scores.level_margin import CHANCE_FIT, FULL_LEVELS, counted_levels, mean_and_margin

__all__ = [
    "HIDDEN",
    "LEAST_COUNT",
    "LIMITS",
    "ROWS_ONLY",
    "below",
    "few_chosen",
    "few_rows",
    "many_levels",
    "noisy",
    "private_searches",
    "seen_from",
    "smallest_share",
]

_FILE = files("jaxcd.advice").joinpath("recommended.json")
LIMITS = json.loads(_FILE.read_text("utf-8"))["limits"]
# From this share of the rows on that noise hides, or below so many rows times epsilon, less than
# about half of the arcs were found.
HIDDEN: Mapping[str, float] = LIMITS["hidden_share"]
LEAST_COUNT = LIMITS["least_rows_times_epsilon"]
# Where fewer pairs for each column can be chosen, less than about half of the arcs were found.
_LEAST_CHOSEN: float = LIMITS["least_chosen"]
# Where an edge between two columns must explain more nats a row than this to pay for its numbers,
# less than about half of the skeleton was found (random tables of 2 to 10 columns of 5 to 40
# levels, 500 to 20,000 rows, epsilon 4 and 16): at .16 to .21 .02 to .50, at .11 to .15 .30 to .97.
_MOST_NATS: float = LIMITS["most_nats_of_an_edge"]
# Numbers of an edge between columns that have two or three levels: merging leaves nothing.
_OF_FEW_LEVELS = 4
ROWS_ONLY = "none of them has a proved bound for a person with several rows"


def many_levels(domain: Domain, n_samples: int, unit: Unit) -> str | None:
    """A warning where the score's price of an edge is more than most edges are worth: the median
    over pairs of columns of what their numbers cost, without noise.
    """
    known = [
        cardinality - (column.missing is not None)
        for column, cardinality in zip(domain.columns.values(), domain.cardinalities, strict=True)
        if cardinality
    ]
    levels = [k for k in known if k > 1]
    paid = counted_levels(levels, FULL_LEVELS)
    columns = [(k - 1, c - 1) for k, c in zip(levels, paid, strict=True)]
    mean, margin = mean_and_margin(math.log(n_samples) / 2, CHANCE_FIT)
    pairs = list(combinations(columns, 2))
    prices = [mean * a * b + margin * c * d for (a, c), (b, d) in pairs]
    numbers = median(a * b for (a, _), (b, _) in pairs) if pairs else 0
    if not pairs or median(prices) / n_samples <= _MOST_NATS:
        return None
    takes = f"takes {counted_of(round(numbers), 'number')}, too many for "
    missed = f"{counted_records(n_samples, unit)}: expect to miss half of the graph or more"
    if numbers <= _OF_FEW_LEVELS:
        return f"an edge {takes}{missed}; search the release by tests as well (pc)"
    return (
        f"the columns have so many levels that an edge {takes}{missed}; merge levels, or search "
        "the release by tests as well (pc)"
    )


def few_chosen(n_chosen: int, n_columns: int, counted: str) -> str | None:
    """A warning where so few pairs can be chosen that little is found; of 0 all are measured."""
    if not 0 < n_chosen < _LEAST_CHOSEN * n_columns:
        return None
    needed = _LEAST_CHOSEN * n_columns
    return (
        f"this budget can measure {n_chosen:,} of {counted_of(math.comb(n_columns, 2), 'pair')} "
        "of columns; "
        f"with fewer than {math.ceil(needed):,} expect to miss half of the graph or more; "
        f"{math.sqrt(needed / n_chosen):.1f} times the {counted} would do"
    )


def few_rows(n_samples: int, budget: Budget) -> str | None:
    most, counted = budget.max_rows_per_person, counted_words(budget.unit)
    count = n_samples * budget.epsilon / most
    if count >= LEAST_COUNT:
        return None
    shared = f" / {most} (rows of a person)" if most > 1 else ""
    return (
        f"{counted} times epsilon{shared} are {shown_size(count, 4)}, and below "
        f"{LEAST_COUNT:,} half of the graph or more can be missed where levels are rare or "
        f"effects weak; for {counted_records(n_samples, budget.unit)} that is epsilon = "
        f"{shown_size(most * LEAST_COUNT / n_samples, 2)}"
    )


def noisy(method: type, share: float, counted: str) -> str | None:
    hidden = HIDDEN[method.__name__]
    if share <= hidden:
        return None
    return (
        f"this budget hides {below(share, counted)}; where more than {hidden:.0%} is hidden, "
        f"expect to miss half of the graph or more; {share / hidden:,.1f} times the {counted}, or "
        "so much larger an epsilon, would do"
    )


def below(share: float, counted: str) -> str:
    """What noise hides that is as large as this share of the rows, or people."""
    return f"what is below {share:.1%} of the {counted}" if share < 1 else f"all {counted}"


def private_searches(domain: Domain, n_samples: int, budget: Budget) -> tuple[Alternative, ...]:
    """The searches by tests, with what they would see."""
    if budget.unit is Unit.PERSON:
        return (Alternative("searches by tests", ROWS_ONLY),)
    searches = []
    if budget.delta > 0:
        searches.append(choose(domain, budget=budget, algorithm=Algorithm.TREE))
    searches.append(choose(domain, budget=budget))
    seen = [
        (choice.title, smallest_share(domain, n_samples, choice, budget)) for choice in searches
    ]
    return tuple(
        Alternative(title, f"it {seen_from(share)}, one test after the other")
        for title, share in seen
    )


def seen_from(share: float) -> str:
    if share >= 1:
        return "sees nothing in so few rows"
    return f"sees dependences from {share:.2%} of the rows on"


def smallest_share(domain: Domain, n_samples: int, choice: Choice, budget: Budget) -> float:
    assert choice.test is not None
    planned = plan(
        domain, n_samples, test=choice.test, budget=budget, decider=choice.decider, tree=choice.tree
    )
    return planned.smallest_share
