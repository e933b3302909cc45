"""One of something is said in the singular."""

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
