"""Numbers in advice: one of something in the singular, large ones as people write them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import jaxcd
from jaxcd.errors import DomainError, JaxcdError
from tests.helpers import levelled, numbers

_SEVERAL = re.compile(
    r"(?<![\d,.])1 (rows|people|cells|columns|levels|pairs|sets|features|numbers|answers|records)\b"
    r"|\b1 \w+ have\b"
)
_BUDGETS = (jaxcd.Budget(1.0), jaxcd.Budget(1.0, 1e-6), jaxcd.NO_PRIVACY)
_KINDS = (jaxcd.Histogram(), jaxcd.Marginals(), jaxcd.SecondMoments(), jaxcd.Features())


def _said(answer: Callable[[], Any]) -> str:
    try:
        return str(answer())
    except JaxcdError as error:
        return str(error)


def _advice() -> Iterator[str]:
    domains = levelled(2), levelled(1, 1, 1), levelled(2, 2), numbers(1), numbers(2)
    for domain, n, budget in itertools.product(domains, (1, 2, 4), _BUDGETS):
        yield _said(lambda: jaxcd.recommend(domain, n, budget=budget))  # noqa: B023
        for kind in _KINDS:
            yield _said(lambda: jaxcd.plan_release(domain, n, kind=kind, budget=budget))  # noqa: B023


@pytest.mark.filterwarnings("ignore::jaxcd.errors.PrivacyWarning")
def test_advice_counts_one_in_the_singular() -> None:
    assert not [text for text in _advice() if _SEVERAL.search(text)]


def test_one_column_is_refused_in_the_singular() -> None:
    budget = jaxcd.Budget(1.0, 1e-6)
    domain = jaxcd.Domain({"age": jaxcd.Numeric(), "sex": jaxcd.Ordinal((0, 1))})
    with pytest.raises(DomainError, match="^data: the column 'age' is numeric, and a histogram"):
        jaxcd.plan_release(domain, 10, kind=jaxcd.Histogram(), budget=budget)
    with pytest.raises(DomainError, match="^data: the column 'sex' is not numeric; use Marginals"):
        jaxcd.plan_release(domain, 10, kind=jaxcd.SecondMoments(), budget=budget)
    wide = jaxcd.Domain({"job": jaxcd.Ordinal(tuple(range(5_000))), "sex": jaxcd.Ordinal((0, 1))})
    with pytest.raises(DomainError, match=r"^domain: 'job' \(5,000\) has too many levels"):
        jaxcd.plan_release(wide, 10, kind=jaxcd.Marginals(), budget=budget)


def test_large_numbers_have_no_exponents_and_small_ones_are_not_nothing() -> None:
    budget = jaxcd.Budget(0.001)
    words = str(jaxcd.recommend(levelled(2, 2), 1_000_000, budget=budget))
    assert "A cell has 250,000 rows on average and noise of 2,830," in words
    words = str(jaxcd.recommend(levelled(2, 2), 50, budget=budget))
    assert "rows times epsilon are 0.05, and below 5,000" in words and "epsilon = 100" in words
    words = str(jaxcd.recommend(levelled(200, 200, 200), 5, budget=budget))
    assert "here it hides all of it" in words and "so many levels" in words
    words = str(jaxcd.recommend(levelled(2, 2), 4, budget=budget))
    assert "an edge takes 1 number, too many for 4 rows" in words and "merge levels" not in words
