r"""What a budget can see, before any data is read.

For a domain, a number of rows, a test, a decider and a budget the planner says how many answers the
budget buys, how large the noise of each is, and the smallest margin that will be found with high
probability, in the margin's own unit (records for the tests on tables) and as a share of the rows.
For a release it says how large the noise on a released number is.  Everything follows from public
facts.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from jaxcd.checks import a_type, check_whole, counted
from jaxcd.citests import CITest
from jaxcd.citests.base import check_is_test
from jaxcd.data import Domain, Numeric
from jaxcd.data.domain import as_domain
from jaxcd.decisions import Decider, TreeOptions
from jaxcd.decisions.base import check_is_decider
from jaxcd.errors import DomainError, OptionError, SensitivityError
from jaxcd.ops import tails
from jaxcd.privacy import Budget, Ledger
from jaxcd.releases import Plan, ReleaseKind
from jaxcd.releases.kind import check_is_kind
from jaxcd.releases.plans import USUAL_EFFECT

__all__ = ["Plan", "plan", "plan_release"]

_MISS = 0.05


def plan(
    domain: Domain | str | Path,
    n_samples: int,
    *,
    test: CITest,
    budget: Budget,
    decider: Decider | None = None,
    tree: TreeOptions | None = None,
) -> Plan:
    r"""What a private run would see: its noise, and the smallest effect that it can detect.

    For the deciders that pay by the answer the noise is that of one answer when the budget is
    divided among all of them.  For LevelwiseGaussian it is that of the first level after the
    release with all pairs still open, for the tree-guided search that of the questions whether to
    add an edge with all pairs open: the worst case.  The smallest margin that is seen with
    probability 0.95 is

        (kappa + 1.645) noise

    with kappa the decision threshold.  No data is read.

    Args:
        domain: the declared domain, or the path of its file.
        n_samples: the public number of rows, at least 1.
        test: as for :func:`jaxcd.pc`.
        budget: the total.
        decider: as for :func:`jaxcd.pc`.
        tree: in the place of a decider, the options of :func:`jaxcd.tree_pc`.

    Returns:
        The plan, with a sentence in ``words``.

    Raises:
        OptionError: an argument is not of its kind.
        DomainError: there is one column only.
        SensitivityError: the test has no bounded sensitivity.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("asia").domain
        >>> plan = jaxcd.plan(
        ...     domain,
        ...     100_000,
        ...     test=jaxcd.CovarianceNorm(),
        ...     decider=jaxcd.LevelwiseGaussian(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ... )
        >>> print(plan.n_answers, round(plan.noise), round(plan.smallest_margin), plan.sensible)
        84 119 421 True
    """
    domain = check_facts(domain, n_samples)
    _check_budget(budget)
    if (decider is None) == (tree is None):
        raise OptionError(
            "decider: give a decider, or the options of tree_pc as tree=; one of them"
        )
    check_is_test(test)
    if decider is not None:
        check_is_decider(decider)
    elif not isinstance(tree, TreeOptions):
        raise OptionError(f"tree = {tree!r} is no TreeOptions; give such options, or a decider")
    mechanism: Any = decider or tree
    bound = test.margin_sensitivity(
        alpha=mechanism.alpha, n_samples=n_samples, relation=budget.relation
    )
    if bound is None:
        raise SensitivityError(
            f"test: {test.name} has no bounded sensitivity, so no budget buys an answer; use "
            "CovarianceNorm"
        )
    ledger = Ledger(budget.settled(mechanism.accounting))
    n_answers, noise, kappa = mechanism.price(
        ledger, n_columns=domain.n_columns, sensitivity=bound.value + 2 * bound.pad
    )
    smallest = (kappa + tails.normal_quantile(_MISS)) * noise
    sensible = smallest <= USUAL_EFFECT * n_samples
    needed = math.ceil(smallest / USUAL_EFFECT)
    seen = (
        f"dependences of {_records(smallest)} (of {counted(n_samples, 'row')}) are seen with "
        "probability "
        "0.95. "
        if smallest < n_samples
        else f"nothing in {counted(n_samples, 'row')} stands out of it. "
    )
    words = f"{counted(n_answers, 'answer')} with noise of {_records(noise)} each; {seen}" + (
        "That is enough for effects of 1%."
        if sensible
        else f"Effects of 1% need about {counted(needed, 'row')}."
    )
    return Plan(noise, smallest, n_samples, words, n_answers)


def _records(count: float) -> str:
    return f"{count:,.0f}" if count >= 10 else f"{count:.2g}"


def plan_release(
    domain: Domain | str | Path, n_samples: int, *, kind: ReleaseKind, budget: Budget
) -> Plan:
    r"""How large the noise of a release would be.

    The noise is, for a histogram, that of a cell, sqrt(2) 2 k / epsilon with k the budget's
    ``max_rows_per_person``; for marginals, that of an interaction of the first round, when all
    pairs are bought; for second moments, that of an entry of the last round if the earlier ones
    found the right units, n times the noise on a correlation; for features, n times that on a
    correlation of two features.  No data is read.

    Args:
        domain: the declared domain, or the path of its file.
        n_samples: the public number of rows, at least 1.
        kind: as for :func:`jaxcd.release`.
        budget: the total.

    Returns:
        The plan, with a sentence in ``words``.

    Raises:
        OptionError: an argument is not of its kind or the budget has no delta for Gaussian noise.
        DomainError: there is one column only, or the release does not take the columns.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("asia").domain
        >>> plan = jaxcd.plan_release(
        ...     domain, 100_000, kind=jaxcd.Histogram(), budget=jaxcd.Budget(1.0)
        ... )
        >>> print(plan.words)
        Each cell has noise of 2.83 records; what is below 0.01% of the 100,000 rows is noise.
    """
    domain = check_facts(domain, n_samples)
    _check_budget(budget)
    check_is_kind(kind)
    return kind.plan(domain, n_samples, budget=budget)


def check_facts(domain: Domain | str | Path, n_samples: int) -> Domain:
    """Returns the domain, or that of the file; raises OptionError unless these are a domain and a
    number of rows, DomainError for fewer columns than data have.
    """
    domain = as_domain(domain)
    if not isinstance(domain, Domain):
        raise OptionError(
            f"domain: {a_type(domain)} is not a Domain; declare one, or read it with Domain.read"
        )
    if domain.n_columns < 2:
        raise DomainError(
            f"domain: its one column, {domain.names[0]!r}, cannot be joined to any other; declare "
            "another column"
        )
    check_whole("n_samples", n_samples, 1, cure="give the number of rows")
    return domain


def _check_budget(budget: Budget) -> None:
    if not isinstance(budget, Budget):
        raise OptionError(
            f"budget = {budget!r} is not a Budget; there is nothing to plan without one"
        )


def resolution_words(domain: Domain, step: float) -> tuple[str, ...]:
    """What a release by ranks or by medians does not tell apart in columns without bounds, in one
    sentence; none where there are no such columns.

    Args:
        domain: public.
        step: near 0, and elsewhere as a share of a number's size.
    """
    return _of_unbounded(
        domain,
        f"numbers there count as equal where they differ by less than {step:.2g} near 0, or "
        f"elsewhere by {step:.2%} of their size, and beyond 4.4 million. Declare bounds of columns "
        "whose numbers lie closer together, or farther out.",
    )


def scale_words(domain: Domain) -> tuple[str, ...]:
    """Which columns without bounds second moments hardly see, in one sentence; none where there are
    no such columns.
    """
    return _of_unbounded(
        domain,
        "second moments hardly see a column there whose standard deviation is below .001 near 0, "
        "or elsewhere below .1% of its numbers' size, or whose numbers lie beyond 4.4 million. "
        "Declare bounds of such columns.",
    )


def _of_unbounded(domain: Domain, words: str) -> tuple[str, ...]:
    unbounded = [
        repr(name)
        for name, column in domain.columns.items()
        if isinstance(column, Numeric) and column.lower is None
    ]
    if not unbounded:
        return ()
    more = f" and {len(unbounded) - 3} more" if len(unbounded) > 3 else ""
    return (f"No bounds are declared of {', '.join(unbounded[:3])}{more}: {words}",)
