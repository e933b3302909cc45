"""The one-call doors: a whole discovery with everything chosen from public facts, and a single
test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxcd.advice.choosing import Algorithm, Choice, choose, kind_of_release
from jaxcd.advice.recommending import recommend
from jaxcd.checks import is_whole
from jaxcd.citests import CITest, Query
from jaxcd.data import Dataset, Domain
from jaxcd.decisions import Decider, Threshold, TreeOptions
from jaxcd.decisions.rounds import equal_pure_events
from jaxcd.discovery import (
    DiscoveryResult,
    LevelRecord,
    decision_confidence,
    edge_confidence,
    fci,
    pc,
    search_release,
    tree_pc,
)
from jaxcd.discovery.constraint.search import check_arguments
from jaxcd.discovery.facts import facts_of_release, facts_of_run
from jaxcd.errors import OptionError
from jaxcd.frozen import FrozenDict
from jaxcd.graphs import Knowledge
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
from jaxcd.releases import Release, ReleaseKind

__all__ = [
    "Algorithm",
    "CITestResult",
    "Choice",
    "choose",
    "ci_test",
    "discover",
    "release",
    "resolve",
    "search",
]


def resolve(
    domain: Domain,
    n_samples: int,
    *,
    budget: Budget | NoPrivacy,
    algorithm: Algorithm = Algorithm.AUTO,
    test: CITest | None = None,
    decider: Decider | None = None,
    tree: TreeOptions | None = None,
    max_level: int | None = None,
    knowledge: Knowledge | None = None,
    linear: bool = False,
) -> Choice:
    """What :func:`discover` will run, from public facts; arguments as there.  Refuses options that
    the algorithm does not have.
    """
    given = {
        "test": test,
        "decider": decider,
        "tree": tree,
        "max_level": max_level,
        "knowledge": knowledge,
    }
    asked = [argument for argument, value in given.items() if value is not None]
    if algorithm is Algorithm.AUTO and tree is not None:
        algorithm = Algorithm.TREE
    if algorithm is Algorithm.AUTO and asked:
        choice = choose(domain, budget=budget, test=test, decider=decider)
        why = (
            f"chosen: PC, because {' and '.join(asked)} {'is' if len(asked) == 1 else 'are'} "
            "given, which a release has no use for"
        )
        return replace(choice, reasons=(why, *choice.reasons))
    if algorithm is Algorithm.AUTO:
        return recommend(domain, n_samples, budget=budget, linear=linear).choice
    if algorithm is Algorithm.RELEASE:
        if asked:
            raise OptionError(
                f"{asked[0]}: Algorithm.RELEASE has no such option; drop it, or use Algorithm.PC"
            )
        kind = kind_of_release(domain)
        return Choice(
            None,
            None,
            (f"release: {type(kind).__name__}, which takes these columns",),
            algorithm,
            kind,
        )
    choice = choose(
        domain, budget=budget, test=test, decider=decider, algorithm=algorithm, tree=tree
    )
    if algorithm is Algorithm.TREE:
        for argument in ("max_level", "knowledge"):
            if argument in asked:
                raise OptionError(
                    f"{argument}: Algorithm.TREE has no such option; drop it, or use Algorithm.PC"
                )
    return choice


@keeps_what_is_paid
def discover(
    data: Dataset,
    *,
    budget: Budget | NoPrivacy,
    key: jax.Array | None,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
    test: CITest | None = None,
    decider: Decider | None = None,
    tree: TreeOptions | None = None,
    algorithm: Algorithm = Algorithm.AUTO,
    linear: bool = False,
    max_level: int | None = None,
    knowledge: Knowledge | None = None,
    release_out: str | Path | None = None,
    n_confidence_draws: int = 0,
    progress: bool | Callable[[LevelRecord], None] = False,
) -> DiscoveryResult:
    """Discovers a causal graph by a method chosen from public facts; ``info["reasons"]`` says
    which, and why.

    Arguments as for :func:`jaxcd.pc`.  algorithm: ``Algorithm.AUTO`` follows
    :func:`jaxcd.recommend`, or takes PC where test, decider, max_level or knowledge is given;
    ``test`` and ``decider`` override the choice of :func:`choose`, ``tree`` the
    options of ``Algorithm.TREE``.  With ``Algorithm.FCI`` the
    graph is a PAG.  What is free is there: ``confidence`` of a search by tests that released its
    margins.  ``Algorithm.TREE`` takes no max_level and no knowledge, ``Algorithm.RELEASE`` none of
    these four; both have no levels to report.
    linear: as for :func:`jaxcd.recommend`.  ledger: a LedgerFile (or Ledger) that every event is
    charged to as well: one total for many runs. release_out: a file for what was bought, written
    before it is searched; ``Release.load`` reads it.  n_confidence_draws: draws of
    :func:`jaxcd.discovery.edge_confidence`, which says how sure the edges are; 0 for none.  Both
    only with a release.

    Guarantee
    ---------
    That of :func:`release`, :func:`jaxcd.pc`, :func:`jaxcd.tree_pc` or :func:`jaxcd.fci`: the
    choice reads the domain, the budget and the number of rows only.

    Raises what the chosen method raises, and OptionError for an option that it does not have,
    before anything is charged.  Whatever ends the call after the first charge, an interrupt
    included, carries what was bought: :func:`jaxcd.receipt_of`.
    """
    if isinstance(data, Release):
        raise OptionError(
            "data: a release has been paid for, and there is nothing to choose; use "
            "jaxcd.search(data), or jaxcd.pc(data, test=...)"
        )
    if not isinstance(data, Dataset):
        raise OptionError(
            f"data: a {type(data).__name__} is not a Dataset; make one with read_csv, from_frame "
            "or from_array"
        )
    choice = resolve(
        data.domain,
        data.n_samples,
        budget=budget,
        algorithm=algorithm,
        test=test,
        decider=decider,
        tree=tree,
        max_level=max_level,
        knowledge=knowledge,
        linear=linear,
    )
    _check_afterwards(choice, release_out, n_confidence_draws)
    if choice.kind is not None:
        bought = release(data, choice.kind, budget=budget, noise=noise, ledger=ledger)
        if release_out is not None:
            bought.save(release_out)
        run = search(bought)
        if n_confidence_draws > 0:
            run = run.with_confidence(edge_confidence(bought, run, n_draws=n_confidence_draws))
    elif choice.algorithm is Algorithm.TREE:
        assert choice.test is not None
        run = tree_pc(
            data,
            test=choice.test,
            budget=budget,
            key=key,
            noise=noise,
            ledger=ledger,
            options=choice.tree,
        )
    else:
        assert choice.test is not None and choice.decider is not None
        run = (fci if choice.algorithm is Algorithm.FCI else pc)(
            data,
            test=choice.test,
            decider=choice.decider,
            budget=budget,
            key=key,
            noise=noise,
            ledger=ledger,
            max_level=max_level,
            knowledge=knowledge,
            progress=progress,
        )
    if choice.kind is None and isinstance(budget, Budget) and "released_margins" in run.info:
        run = run.with_confidence(decision_confidence(run))
    return replace(run, info={**run.info, "reasons": choice.reasons})


def _check_afterwards(
    choice: Choice, release_out: str | Path | None, n_confidence_draws: int
) -> None:
    """Refuses, before anything is spent, what could not be done with the release once it is
    bought.
    """
    if not is_whole(n_confidence_draws, 0):
        raise OptionError(
            f"n_confidence_draws = {n_confidence_draws!r} is no number of draws; use a whole "
            "number from 0, such as 50"
        )
    for argument, is_given in (
        ("release_out", release_out is not None),
        ("n_confidence_draws", n_confidence_draws > 0),
    ):
        if is_given and choice.kind is None:
            raise OptionError(
                f"{argument}: {choice.algorithm.value} releases nothing; drop it, or use "
                "Algorithm.RELEASE"
            )
    if release_out is not None and (
        Path(release_out).is_dir() or not Path(release_out).absolute().parent.is_dir()
    ):
        raise OptionError(
            f"release_out = {str(release_out)!r} is no file in a folder that exists; give one "
            "such as 'release.npz'"
        )


@dataclass(frozen=True)
class CITestResult(Certified):
    """One answer.  Without privacy: statistic, pvalue (and its logarithm) and margin.  Under a
    budget only the noisy margin and what follows from it are released: statistic, pvalue and
    log_pvalue are None.

    cost: the guarantee.  spent: what the events charged add up to.  info: what was public of the
    data, and the ledger's table.
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
    data: Dataset | Release | None,
    x: str,
    y: str,
    *,
    given: Sequence[str] = (),
    test: CITest,
    budget: Budget | NoPrivacy | None = None,
    key: jax.Array | None = None,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
    alpha: float = 0.05,
) -> CITestResult:
    """One conditional independence test: is x independent of y given ``given``?

    data, budget, ledger: as for :func:`jaxcd.pc`; a release is tested at no further cost.  x, y,
    given: different names.  Independent iff the margin (statistic minus critical value at level
    alpha), under a budget with Laplace noise, is at most zero.

    Guarantee
    ---------
    Relation: that of the budget; public: n, the domain, all arguments.  Events: what the test buys
    as its preparation, if anything, and a ``PureEvent`` of the largest epsilon that is left for the
    released margin, whose sensitivity the test states.  Proof: :func:`jaxcd.privacy.laplace`.

    Raises OptionError for an unknown or repeated name, SensitivityError for a test without bounded
    sensitivity under a budget.
    """
    decider = Threshold(alpha)  # checks alpha
    if budget is None and isinstance(data, Release):
        budget = NO_PRIVACY
    check_arguments(test, budget, key, noise)
    assert budget is not None
    session = Session(Door(data, budget), test, alpha=decider.alpha, key=key)
    if isinstance(given, str):
        raise OptionError(
            f"given = {given!r} is one text; use a tuple of names such as ({given!r},)"
        )
    chosen = (x, y, *given)
    for name in chosen:
        if name not in session.names:
            raise OptionError(
                f"{name!r} is not a column; the columns are {', '.join(session.names)}"
            )
    if len(set(chosen)) < len(chosen):
        raise OptionError(f"x, y and given must be different columns, not {chosen!r}")
    place = {name: i for i, name in enumerate(session.names)}
    query = Query.of(place[x], place[y], [place[name] for name in given])
    accountant = open_account(
        budget, noise, ledger=ledger, parts=(test,), analysis="ci_test", n_samples=session.n_samples
    )
    if isinstance(budget, Budget):
        session.sensitivity()  # refuses before anything is charged
    session.open(accountant)
    if not session.admissible(query):
        raise OptionError(
            f"given: {test.name} cannot condition on {given!r}: too many cells or columns; give "
            "fewer"
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
    bound = session.sensitivity()
    noisy = laplace(
        accountant,
        session.margins([query]),
        sensitivity=bound.value,
        pad=bound.pad,
        epsilon=equal_pure_events(accountant.ledger, 1),
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
    )


@keeps_what_is_paid
def release(
    data: Dataset,
    kind: ReleaseKind,
    *,
    budget: Budget | NoPrivacy,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
) -> Release:
    """Buys noisy statistics of the data once; whatever is computed from them later is free.

    data: with a declared domain.  kind: ``Histogram()`` of all columns together (discrete, up to
    4,096 cells), ``Marginals()`` (discrete, many columns), ``SecondMoments()`` (numeric, linear) or
    ``Features()`` (numeric or mixed, additive models).  budget: the total; all of it is spent.
    noise: None for secure noise. ledger: a LedgerFile (or Ledger) that every event is charged to as
    well. Returns a release, which can be saved, published and loaded; :func:`search` finds graphs
    in it.

    Guarantee
    ---------
    Relation: replace-one; n and the domain are public.  The kind's docstring states its event,
    sensitivity and proof. Raises OptionError, DomainError or PrivacyError, before anything is
    charged, where arguments do not fit.
    """
    if not isinstance(kind, ReleaseKind):
        raise OptionError(
            f"kind = {kind!r} is no kind of release; use jaxcd.Histogram(), Marginals(), "
            "SecondMoments() or Features()"
        )
    return kind.release(data, budget=budget, noise=noise, ledger=ledger)


def search(bought: Release) -> DiscoveryResult:
    """The best graph of a release by the score that knows its noise; post-processing, with the
    release's guarantee.

    bought: what :func:`release` or ``Release.load`` returned.  Histograms are searched over
    equivalence classes from exact starts, marginals by orderings, second moments exactly up to 20
    columns; the functions ``search_histogram``, ``search_marginals``, ``search_second_moments`` and
    ``search_features`` in :mod:`jaxcd.discovery` have options.

    Raises OptionError for anything else.
    """
    if not isinstance(bought, Release):
        raise OptionError(
            f"bought: a {type(bought).__name__} cannot be searched; use what jaxcd.release returns"
        )
    return search_release(bought)
