"""The one-call doors: a whole discovery with everything chosen from public facts, and a single test."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from jaxcd.citests import CITest, CovarianceNorm, FisherZ, GTest, KendallTau, Query, StratifiedRanks
from jaxcd.data import Categorical, Dataset, Domain, Ordinal
from jaxcd.decisions import Decider, LevelwiseGaussian, SparseVector, Threshold, TreeOptions
from jaxcd.decisions.rounds import equal_pure_events
from jaxcd.discovery import (
    DiscoveryResult,
    LevelRecord,
    fci,
    pc,
    search_histogram,
    search_marginals,
    search_second_moments,
    tree_pc,
)
from jaxcd.errors import DomainError, OptionError
from jaxcd.graphs import Knowledge
from jaxcd.privacy import Accountant, Budget, Ledger, NoiseSource, NoPrivacy, PrivacyCost, laplace
from jaxcd.queries import Session
from jaxcd.releases import (
    Histogram,
    Marginals,
    Release,
    ReleasedHistogram,
    ReleasedMarginals,
    ReleasedSecondMoments,
    SecondMoments,
)

__all__ = ["Algorithm", "CITestResult", "Choice", "choose", "ci_test", "discover", "release", "search"]


class Algorithm(enum.Enum):
    """A search by conditional independences.

    PC: :func:`jaxcd.pc`, a CPDAG; no latent variables.  TREE: :func:`jaxcd.tree_pc`, PC guided by a tree, in four batches.
    FCI: :func:`jaxcd.fci`, a PAG; latent and selection variables are allowed.
    """

    PC = "pc"
    TREE = "tree"
    FCI = "fci"


@dataclass(frozen=True)
class Choice:
    """A search, a test and a mechanism, and why: chosen from the domain and the budget, never from the rows.

    decider: with ``Algorithm.TREE``, which has its own mechanism, that one's options.
    """

    test: CITest
    decider: Decider | TreeOptions
    reasons: tuple[str, ...]
    algorithm: Algorithm = Algorithm.PC


def choose(
    domain: Domain,
    *,
    budget: Budget | NoPrivacy,
    test: CITest | None = None,
    decider: Decider | TreeOptions | None = None,
    algorithm: Algorithm = Algorithm.PC,
) -> Choice:
    """The test and the mechanism of a search for a domain and a budget; what is given stays.

    Rules: numeric columns get StratifiedRanks under a budget and Fisher's z without one; columns that are all ordered with three or
    more levels get Kendall's tau; other discrete columns get the covariance norm, or without privacy the G test.  A budget with
    delta > 0 gets LevelwiseGaussian, with delta = 0 SparseVector, no privacy Threshold.  ``Algorithm.TREE`` has its own mechanism, and
    takes the tests of private runs with and without a budget.

    Raises DomainError for numeric beside nominal columns, and for numeric columns under a budget without delta; OptionError for a
    decider with ``Algorithm.TREE``, or its options with another.
    """
    _check_algorithm(algorithm, decider)
    reasons = []
    private = isinstance(budget, Budget)
    tree = algorithm is Algorithm.TREE
    delta = budget.delta if isinstance(budget, Budget) else 0.0
    if test is not None:
        reasons.append(f"test: {test.name}, as asked")
    elif not domain.is_discrete:
        nominal = [name for name, column in domain.columns.items() if isinstance(column, Categorical)]
        if nominal:
            raise DomainError(
                f"column {nominal[0]!r} is categorical while others are numeric, and no test here takes both; declare the numeric "
                "ones ordinal with bins, or select columns of one kind"
            )
        if private and not delta > 0:
            name = next(name for name in domain.names if not domain[name].is_discrete)
            raise DomainError(
                f"column {name!r} is numeric, and the private test for numeric columns needs a budget with delta > 0; give one "
                "such as 1e-6, or declare the column ordinal with public bins"
            )
        test = StratifiedRanks() if private or tree else FisherZ()
        reasons.append(f"test: {test.name}, because there are numeric columns")
    elif all(isinstance(column, Ordinal) and column.cardinality > 2 for column in domain.columns.values()):
        test = KendallTau()
        reasons.append("test: KendallTau, because all columns are ordered with three or more levels")
    elif private or tree:
        test = CovarianceNorm()
        reasons.append("test: CovarianceNorm, because there are nominal or binary columns and a bounded sensitivity is needed")
    else:
        test = GTest()
        reasons.append("test: GTest, because there are nominal or binary columns and no privacy is asked for")
    if tree:
        decider = decider or TreeOptions()
        reasons.append("mechanism: TreeGuided, which is part of the tree-guided search")
    elif isinstance(decider, Decider):
        reasons.append(f"mechanism: {decider.name}, as asked")
    elif not private:
        decider = Threshold()
        reasons.append("mechanism: Threshold, because no privacy is asked for")
    elif delta > 0 and test.view_cardinalities(domain) is not None:
        decider = LevelwiseGaussian()
        reasons.append("mechanism: LevelwiseGaussian, because the budget has a delta and the test sees the columns as codes")
    else:
        decider = SparseVector()
        reasons.append("mechanism: SparseVector, because the budget has no delta" if delta == 0 else
                       f"mechanism: SparseVector, because {test.name} does not see the columns as codes")  # fmt: skip
    return Choice(test, decider, tuple(reasons), algorithm)


def _check_algorithm(algorithm: Algorithm, decider: Decider | TreeOptions | None) -> None:
    if not isinstance(algorithm, Algorithm):
        raise OptionError(f"algorithm = {algorithm!r} is not an algorithm; use Algorithm.PC, Algorithm.TREE or Algorithm.FCI")
    if algorithm is Algorithm.TREE and isinstance(decider, Decider):
        raise OptionError(f"decider: Algorithm.TREE has its own mechanism, and no use for {decider.name}; drop it, or give TreeOptions")
    if algorithm is not Algorithm.TREE and isinstance(decider, TreeOptions):
        raise OptionError(f"decider: TreeOptions are for Algorithm.TREE, not for {algorithm.value}; give a decider, or None")


def discover(
    data: Dataset,
    *,
    budget: Budget | NoPrivacy,
    key: jax.Array | None,
    noise: NoiseSource | None = None,
    test: CITest | None = None,
    decider: Decider | TreeOptions | None = None,
    algorithm: Algorithm = Algorithm.PC,
    max_level: int | None = None,
    knowledge: Knowledge | None = None,
    progress: bool | Callable[[LevelRecord], None] = False,
) -> DiscoveryResult:
    """Discovers a causal graph with test and mechanism chosen from public facts; ``info["reasons"]`` says why.

    Arguments as for :func:`jaxcd.pc`; ``test`` and ``decider`` override the choice of :func:`choose`.  algorithm: the search; with
    ``Algorithm.FCI`` the graph is a PAG.  ``Algorithm.TREE`` takes no max_level and no knowledge, and has no levels to report.

    Guarantee
    ---------
    That of :func:`jaxcd.pc`, :func:`jaxcd.tree_pc` or :func:`jaxcd.fci`: the choice reads the domain and the budget only.

    Raises what the chosen search raises, and OptionError for an option that it does not have.
    """
    if not isinstance(data, Dataset):
        raise OptionError(f"data: a {type(data).__name__} is not a Dataset; make one with read_csv, from_frame or from_array")
    choice = choose(data.domain, budget=budget, test=test, decider=decider, algorithm=algorithm)
    if isinstance(choice.decider, TreeOptions):
        for argument, value in (("max_level", max_level), ("knowledge", knowledge)):
            if value is not None:
                raise OptionError(f"{argument}: Algorithm.TREE has no such option; drop it, or use Algorithm.PC")
        run = tree_pc(data, test=choice.test, budget=budget, key=key, noise=noise, options=choice.decider)
    else:
        search = fci if algorithm is Algorithm.FCI else pc
        run = search(
            data, test=choice.test, decider=choice.decider, budget=budget, key=key, noise=noise,
            max_level=max_level, knowledge=knowledge, progress=progress,
        )  # fmt: skip
    info = {**run.info, "reasons": choice.reasons}
    return DiscoveryResult(run.graph, run.separating_sets, run.cost, run.spent, run.exhausted, info)


@dataclass(frozen=True)
class CITestResult:
    """One answer.  Without privacy: statistic, pvalue (and its logarithm) and margin.  Under a budget only the noisy margin and
    what follows from it are released: statistic, pvalue and log_pvalue are None."""

    statistic: float | None
    pvalue: float | None
    log_pvalue: float | None
    margin: float
    independent: bool
    cost: PrivacyCost


def ci_test(
    data: Dataset | None,
    x: str,
    y: str,
    *,
    given: Sequence[str] = (),
    test: CITest,
    budget: Budget | NoPrivacy,
    key: jax.Array | None,
    noise: NoiseSource | None = None,
    alpha: float = 0.05,
) -> CITestResult:
    """One conditional independence test: is x independent of y given ``given``?

    x, y, given: different names.  Independent iff the margin (statistic minus critical value at level alpha), under a budget
    with Laplace noise, is at most zero.

    Guarantee
    ---------
    Relation: that of the budget; public: n, the domain, all arguments.  Events: what the test buys as its preparation, if anything,
    and a ``PureEvent`` of the largest epsilon that is left for the released margin, whose sensitivity the test states.  Proof: :func:`jaxcd.privacy.laplace`.

    Raises OptionError for an unknown or repeated name, SensitivityError for a test without bounded sensitivity under a budget.
    """
    decider = Threshold(alpha)  # checks alpha
    session = Session(data, test, alpha=decider.alpha, budget=budget, key=key)
    if isinstance(given, str):
        raise OptionError(f"given = {given!r} is one text; use a tuple of names such as ({given!r},)")
    chosen = (x, y, *given)
    for name in chosen:
        if name not in session.names:
            raise OptionError(f"{name!r} is not a column; the columns are {', '.join(session.names)}")
    if len(set(chosen)) < len(chosen):
        raise OptionError(f"x, y and given must be different columns, not {chosen!r}")
    place = {name: i for i, name in enumerate(session.names)}
    query = Query.of(place[x], place[y], [place[name] for name in given])
    accountant = Accountant(Ledger(budget), noise)
    if isinstance(budget, Budget):
        session.sensitivity()  # refuses before anything is charged
    session.open(accountant)
    if not session.admissible(query):
        raise OptionError(f"given: {test.name} cannot condition on {given!r}: too many cells or columns; give fewer")
    if isinstance(budget, NoPrivacy):
        answer = session.evaluate([query])
        statistic, log_pvalue, margin = (float(part[0]) for part in answer)
        return CITestResult(
            statistic, float(np.exp(log_pvalue)), log_pvalue, margin, margin <= 0, accountant.guarantee
        )  # fmt: skip
    bound = session.sensitivity()
    noisy = laplace(
        accountant, session.margins([query]).expose(), sensitivity=bound.value, pad=bound.pad, epsilon=equal_pure_events(accountant.ledger, 1),
        label="margin", relation=session.relation,
    )  # fmt: skip
    return CITestResult(None, None, None, float(noisy[0]), bool(noisy[0] <= 0), accountant.guarantee)


def release(
    data: Dataset,
    kind: Histogram | Marginals | SecondMoments,
    *,
    budget: Budget | NoPrivacy,
    noise: NoiseSource | None = None,
) -> Release:
    """Buys noisy statistics of the data once; whatever is computed from them later is free.

    data: with a declared domain.  kind: ``Histogram()`` of all columns together (discrete, up to 4,096 cells), ``Marginals()`` (discrete,
    many columns) or ``SecondMoments()`` (numeric).  budget: the total; all of it is spent.  noise: None for secure noise.
    Returns a release, which can be saved, published and loaded; :func:`search` finds graphs in it.

    Guarantee
    ---------
    Relation: replace-one; n and the domain are public.  The kind's docstring states its event, sensitivity and proof.
    Raises OptionError, DomainError or PrivacyError, before anything is charged, where arguments do not fit.
    """
    if not isinstance(kind, (Histogram, Marginals, SecondMoments)):
        raise OptionError(f"kind = {kind!r} is no kind of release; use jaxcd.Histogram(), Marginals() or SecondMoments()")
    return kind.release(data, budget=budget, noise=noise)


def search(bought: Release) -> DiscoveryResult:
    """The best graph of a release by the score that knows its noise; post-processing, with the release's guarantee.

    bought: what :func:`release` or ``Release.load`` returned.  Histograms are searched over equivalence classes from exact starts,
    marginals by orderings, second moments exactly up to 20 columns; the functions ``search_histogram``, ``search_marginals``
    and ``search_second_moments`` in :mod:`jaxcd.discovery` have options.

    Raises OptionError for anything else.
    """
    if isinstance(bought, ReleasedHistogram):
        return search_histogram(bought)
    if isinstance(bought, ReleasedMarginals):
        return search_marginals(bought)
    if isinstance(bought, ReleasedSecondMoments):
        return search_second_moments(bought)
    raise OptionError(f"bought: a {type(bought).__name__} cannot be searched; use what jaxcd.release returns")
