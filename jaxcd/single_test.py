"""The one-call door to a single test of conditional independence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxcd.checks import check_listed, counted, shown_list
from jaxcd.citests import CITest, Query
from jaxcd.data import Dataset, Domain, Missing, Table
from jaxcd.data.sources import Tabular, as_data
from jaxcd.decisions import Threshold
from jaxcd.decisions.rounds import equal_pure_events
from jaxcd.discovery.constraint.search import check_arguments
from jaxcd.discovery.facts import facts_of_release, facts_of_run
from jaxcd.errors import OptionError
from jaxcd.frozen import FrozenDict
from jaxcd.privacy import (
    NO_PRIVACY,
    Budget,
    NoiseSource,
    NoPrivacy,
    PrivacyCost,
    PrivacyFilter,
    keeps_what_is_paid,
    laplace,
    open_account,
)
from jaxcd.privacy.accountant import Accountant
from jaxcd.privacy.certificate import Certified
from jaxcd.queries import Door, Session
from jaxcd.releases import Release

__all__ = ["CITestResult", "ci_test"]


@dataclass(frozen=True)
class CITestResult(Certified):
    """The answer of one conditional independence test.

    Under a budget only the noisy margin and what follows from it are released; a test that releases
    its answers itself gives a statistic and a p-value as well, both noisy and public.

    Args:
        statistic: the test's statistic; None under a budget, unless the test released it.
        pvalue: of the test; None likewise.
        log_pvalue: its natural logarithm, which does not underflow; None likewise.
        margin: the statistic minus its critical value; noisy under a budget.
        independent: whether the margin is at most zero.
        cost: the guarantee.
        spent: what the events charged add up to.
        info: what was public of the data, and the ledger's table.
    """

    statistic: float | None
    pvalue: float | None
    log_pvalue: float | None
    margin: float
    independent: bool
    cost: PrivacyCost
    spent: PrivacyCost
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "info", FrozenDict(self.info))


@keeps_what_is_paid
def ci_test(
    data: Dataset | Table | Release | Tabular | None,
    x: str,
    y: str,
    *,
    domain: Domain | str | Path | None = None,
    missing: Missing | str | None = None,
    given: Sequence[str] = (),
    test: CITest,
    budget: Budget | NoPrivacy | None = None,
    key: jax.Array | None = None,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
    alpha: float = 0.05,
) -> CITestResult:
    """One conditional independence test: are x and y independent given ``given``, or not.

    They are independent iff the margin (statistic minus critical value at level alpha), under a
    budget with Laplace noise, is at most zero.  A test that releases its answers itself
    (``buys_answers``: StratifiedTau) has the noise in its null instead, and so its level.

    Args:
        data: a Dataset, a data frame or path with ``domain``, a release, which is tested at no
            further cost, or None with an Oracle.
        x: a column.
        y: another column.
        domain: with a frame or a path, the declared type of every column (or the path of a domain
            file); None infers one, without privacy.
        missing: how missing cells are read, a :class:`jaxcd.data.Missing` or its name: "ignore"
            leaves them out, "level" makes them a level; None: as the data say, "ignore" as a rule.
        given: the columns to condition on, none of them x or y.
        test: a conditional independence test.
        budget: the total (epsilon, delta), or NO_PRIVACY; left out with a release.
        key: a typed key for tests that draw permutations.
        noise: None for secure noise from the operating system; ``SimulatedNoise(key)`` for
            experiments.
        ledger: a LedgerFile (or Ledger) that every event is charged to as well.
        alpha: level of the test, 0 < alpha < 1.

    Returns:
        The answer with its cost.  Without privacy, and of a test that releases its answers itself,
        it has statistic, p-value and margin; under a budget else the noisy margin only.

    Raises:
        OptionError: a name is unknown or repeated, or an argument is out of its range.
        SensitivityError: the test has no bounded sensitivity, and there is a budget.

    Guarantee:
        Relation: that of the budget; public: n, the domain, all arguments.  Events: what the test
        buys as its preparation, if anything, and a ``PureEvent`` of the largest epsilon that is
        left for the released margin, whose sensitivity the test states, or for what the test
        releases itself.  Proof: :func:`jaxcd.privacy.laplace`, and the test's.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(20_000, key=jax.random.key(0))
        >>> answer = jaxcd.ci_test(
        ...     data,
        ...     "bronc",
        ...     "dysp",
        ...     test=jaxcd.CovarianceNorm(),
        ...     budget=jaxcd.Budget(0.5),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> answer.independent, answer.pvalue, answer.spent.epsilon
        (False, None, 0.5)
    """
    decider = Threshold(alpha)  # checks alpha
    data = as_data(data, domain, private=isinstance(budget, Budget), missing=missing)
    if budget is None and isinstance(data, Release):
        budget = NO_PRIVACY
    check_arguments(test, budget, key, noise)
    assert budget is not None
    session = Session(Door(data, budget), test, alpha=decider.alpha, key=key)
    given = check_listed("given", given)
    chosen = (x, y, *given)
    for name in chosen:
        if name not in session.names:
            raise OptionError(
                f"{name!r} is not a column; the columns are {shown_list(session.names)}"
            )
    if len(set(chosen)) < len(chosen):
        raise OptionError(f"x, y and given must be different columns, not {chosen!r}")
    place = {name: i for i, name in enumerate(session.names)}
    query = Query.of(place[x], place[y], [place[name] for name in given])
    accountant = open_account(
        budget,
        session.noise(noise),
        ledger=ledger,
        parts=(test,),
        analysis="ci_test",
        n_samples=session.n_samples,
    )
    if isinstance(budget, Budget) and not test.buys_answers:
        session.sensitivity()  # refuses before anything is charged
    session.open(accountant)
    if not session.admissible(query):
        if isinstance(data, Release):
            raise OptionError(
                f"x, y, given: this release does not tell {chosen!r} together, because they were "
                "not measured or have too many cells; give fewer columns, or such as were measured "
                "together"
            )
        if not session.private and data is not None and any(data.leaves_out):
            raise OptionError(
                f"x, y, given: too few rows know {chosen!r} together for {test.name}; give fewer "
                "columns, or more rows"
            )
        if given:
            raise OptionError(
                f"given: {test.name} cannot condition on {given!r}: too many cells or columns for "
                f"{counted(session.n_samples, 'row')}; give fewer, or more rows"
            )
        are = "is" if session.n_samples == 1 else "are"
        raise OptionError(
            f"data: {counted(session.n_samples, 'row')} {are} too few for {test.name} of {x!r} and "
            f"{y!r}; give "
            "more rows"
        )
    if isinstance(budget, NoPrivacy):
        answer = session.evaluate([query])
        statistic, log_pvalue, margin = (float(part[0]) for part in answer)
        values = statistic, float(np.exp(log_pvalue)), log_pvalue, margin, margin <= 0
        if isinstance(data, Release):
            return CITestResult(*values, data.cost, data.spent, facts_of_release(data))
        return CITestResult(
            *values, accountant.guarantee, accountant.ledger.spent, _facts(accountant, session)
        )
    epsilon = equal_pure_events(accountant.ledger, 1)
    if test.buys_answers:
        bought = session.buy(query, accountant, epsilon=epsilon)
        statistic, log_pvalue, margin = (float(part[0]) for part in bought)
        return CITestResult(
            statistic,
            float(np.exp(log_pvalue)),
            log_pvalue,
            margin,
            margin <= 0,
            accountant.guarantee,
            accountant.ledger.spent,
            _facts(accountant, session),
        )
    bound = session.sensitivity()
    noisy = laplace(
        accountant,
        session.margins([query]),
        sensitivity=bound.value,
        pad=bound.pad,
        epsilon=epsilon,
        label="margin",
        relation=session.relation,
    )
    return CITestResult(
        None,
        None,
        None,
        float(noisy[0]),
        bool(noisy[0] <= 0),
        accountant.guarantee,
        accountant.ledger.spent,
        _facts(accountant, session),
    )


def _facts(accountant: Accountant, session: Session) -> Mapping[str, Any]:
    return facts_of_run(
        accountant,
        domain=session.domain,
        n_samples=session.n_samples,
        n_variables=session.n_variables,
        snapshot=session.snapshot,
    )
