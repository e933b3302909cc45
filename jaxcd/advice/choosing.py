"""What a search is made of: an algorithm with a test and a mechanism, or a kind of release, for a
domain and a budget.

Rules that need no numbers stand here; :mod:`jaxcd.advice.recommending` weighs the ways against one
another.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from dataclasses import dataclass
from typing import Any

from jaxcd.citests import CITest, CovarianceNorm, FisherZ, GTest, KendallTau, StratifiedRanks
from jaxcd.citests.base import check_is_test
from jaxcd.data import Categorical, Domain, Numeric, Ordinal
from jaxcd.decisions import Decider, LevelwiseGaussian, SparseVector, Threshold, TreeOptions
from jaxcd.errors import DomainError, OptionError
from jaxcd.privacy import Budget, NoPrivacy
from jaxcd.releases import Features, Histogram, Marginals, ReleaseKind, SecondMoments

__all__ = [
    "MOST_KNOWN_CELLS",
    "Algorithm",
    "Choice",
    "choose",
    "kind_of_release",
    "n_cells",
    "n_known_cells",
    "nominal_beside_numeric",
]

# The exact score's starts are exact searches, which end at 22 columns; more than 12 have 4,096
# cells only with columns of one level.
_MOST_COLUMNS = 20

MOST_KNOWN_CELLS = 4096
"""Of a histogram that is chosen; those with codes of missing cells come on top."""


class Algorithm(enum.Enum):
    """A way to find a graph, for :func:`jaxcd.discover`.

    Attributes:
        AUTO: what :func:`jaxcd.recommend` says, or PC where an option is given that only PC has.
        PC: :func:`jaxcd.pc`, a CPDAG; no latent variables.
        TREE: :func:`jaxcd.tree_pc`, PC guided by a tree, in four batches.
        FCI: :func:`jaxcd.fci`, a PAG; latent and selection variables are allowed.  Of the rows; of
            a release where :func:`jaxcd.recommend` chose one.
        GFCI: :func:`jaxcd.release` and :func:`jaxcd.gfci` on it, a PAG; latent and selection
            variables are allowed.
        RELEASE: :func:`jaxcd.release` and :func:`jaxcd.search`, a CPDAG from statistics that are
            bought once.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))
        >>> run = jaxcd.discover(
        ...     data,
        ...     budget=jaxcd.Budget(1.0),
        ...     key=None,
        ...     algorithm=jaxcd.Algorithm.RELEASE,
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(run.graph)
        Smoker --- Cancer
        Cancer --- Xray
        Cancer --- Dyspnoea
    """

    AUTO = "auto"
    PC = "pc"
    TREE = "tree"
    FCI = "fci"
    GFCI = "gfci"
    RELEASE = "release"

    @property
    def finds_pag(self) -> bool:
        """Whether its graph is a PAG, in which columns may be hidden."""
        return self in (Algorithm.FCI, Algorithm.GFCI)

    @property
    def releases(self) -> bool:
        """Whether it buys a release and searches that."""
        return self in (Algorithm.RELEASE, Algorithm.GFCI)


@dataclass(frozen=True)
class Choice:
    """A way to find a graph, and why: chosen from public facts, never from the rows.

    Args:
        algorithm: any but AUTO.
        test: of a search by tests, else None.
        decider: of PC and FCI, else None.
        reasons: why, one sentence each.
        kind: of release, else None.
        tree: the options of ``Algorithm.TREE``, which has its own mechanism, else None.
        warnings: what :func:`jaxcd.recommend` warns of.
    """

    test: CITest | None
    decider: Decider | None
    reasons: tuple[str, ...]
    algorithm: Algorithm = Algorithm.PC
    kind: ReleaseKind | None = None
    tree: TreeOptions | None = None
    warnings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The method in a few words."""
        if self.kind is not None:
            if self.algorithm is Algorithm.FCI:  # which asks the release and has no use for a score
                bought, _, _ = self.kind.title.partition(", and ")
                return f"{bought}, and a PAG by its tests (FCI)"
            after = "; from there a PAG (GFCI)" if self.algorithm.finds_pag else ""
            return f"{self.kind.title}{after}"
        if self.tree is not None:
            return self.tree.title
        assert self.decider is not None
        return self.decider.title.replace("PC", self.algorithm.name)

    @property
    def mechanism(self) -> Decider | TreeOptions | None:
        """What answers the questions of a search by tests; None for a release."""
        return self.tree or self.decider

    @property
    def alpha(self) -> float | None:
        """The level of the tests; None for a release."""
        return None if self.mechanism is None else self.mechanism.alpha

    @property
    def needs_delta(self) -> bool:
        """Whether the search by tests adds Gaussian noise."""
        return self.tree is not None or (self.decider is not None and self.decider.needs_delta)

    def at_level(self, alpha: float) -> Choice:
        """The same search by tests of another level."""
        changed: dict[str, Any] = {
            name: dataclasses.replace(part, alpha=alpha)
            for name, part in (("decider", self.decider), ("tree", self.tree))
            if dataclasses.is_dataclass(part)
        }
        return dataclasses.replace(self, **changed)


def n_cells(domain: Domain) -> int:
    """The number of joint cells of the discrete columns."""
    return math.prod(cardinality or 1 for cardinality in domain.cardinalities)


def n_known_cells(domain: Domain) -> int:
    """The number of those in which nothing is missing."""
    return math.prod(
        cardinality - (column.missing is not None)
        for column, cardinality in zip(domain.columns.values(), domain.cardinalities, strict=True)
        if cardinality
    )


def kind_of_release(domain: Domain) -> ReleaseKind:
    """The release that takes the columns, whatever the budget."""
    if not domain.is_discrete:
        return (
            SecondMoments()
            if all(isinstance(column, Numeric) for column in domain.columns.values())
            and not domain.has_missing
            else Features()
        )
    small = (
        n_known_cells(domain) <= MOST_KNOWN_CELLS
        and n_cells(domain) <= Histogram().max_cells
        and domain.n_columns <= _MOST_COLUMNS
    )
    return Histogram() if small else Marginals()


def nominal_beside_numeric(domain: Domain) -> str | None:
    """The first nominal column of a domain that has numeric ones, too; else None."""
    nominal = (name for name, column in domain.columns.items() if isinstance(column, Categorical))
    return None if domain.is_discrete else next(nominal, None)


def choose(
    domain: Domain,
    *,
    budget: Budget | NoPrivacy,
    test: CITest | None = None,
    decider: Decider | None = None,
    algorithm: Algorithm = Algorithm.PC,
    tree: TreeOptions | None = None,
) -> Choice:
    """The test and the mechanism of a search for a domain and a budget; what is given stays.

    Rules: numeric columns get StratifiedRanks under a budget and Fisher's z without one; columns
    that are all ordered with three or more levels get Kendall's tau; other discrete columns get the
    covariance norm, or without privacy the G test.  A budget with delta > 0 gets LevelwiseGaussian,
    with delta = 0 SparseVector, no privacy Threshold.  ``Algorithm.TREE`` has its own mechanism;
    it, and a given decider that pays, take the tests of private runs with and without a budget.

    Raises:
        DomainError: for numeric beside nominal columns, and for numeric columns under a budget
            without delta.
        OptionError: for a decider with ``Algorithm.TREE``, or ``tree`` with another.
    """
    _check_algorithm(algorithm, test, decider, tree)
    reasons = []
    private = isinstance(budget, Budget)
    guided = algorithm is Algorithm.TREE
    # A mechanism that pays asks for a bounded sensitivity, without a budget as well.
    bounded = private or guided or (decider is not None and decider.pays)
    delta = budget.delta if isinstance(budget, Budget) else 0.0
    if test is not None:
        reasons.append(f"test: {test.name}, as asked")
    elif not domain.is_discrete:
        nominal = nominal_beside_numeric(domain)
        if nominal is not None:
            raise DomainError(
                f"column {nominal!r} is categorical while others are numeric, and no test here "
                "takes both; use a release of Features "
                "(discover buys one where no test, decider or level is given; delta > "
                "0, replace-one neighbours), declare the numeric ones "
                "ordinal with bins, or select columns of one kind"
            )
        if private and not delta > 0:
            name = next(name for name in domain.names if not domain[name].is_discrete)
            raise DomainError(
                f"column {name!r} is numeric, and the private test for numeric columns needs a "
                "delta above 0; give the budget one such as 1e-6, or declare the column ordinal "
                "with public bins"
            )
        test = StratifiedRanks() if bounded else FisherZ()
        reasons.append(f"test: {test.name}, because there are numeric columns")
    elif all(
        isinstance(column, Ordinal) and column.cardinality > 2 for column in domain.columns.values()
    ):
        test = KendallTau()
        reasons.append(
            "test: KendallTau, because all columns are ordered with three or more levels"
        )
    elif bounded:
        test = CovarianceNorm()
        reasons.append(
            "test: CovarianceNorm, because there are nominal or binary columns and a bounded "
            "sensitivity is needed"
        )
    else:
        test = GTest()
        reasons.append(
            "test: GTest, because there are nominal or binary columns and no privacy is asked for"
        )
    if guided:
        tree = tree or TreeOptions()
        reasons.append("mechanism: TreeGuided, which is part of the tree-guided search")
    elif decider is not None:
        reasons.append(f"mechanism: {decider.name}, as asked")
    elif not private:
        decider = Threshold()
        reasons.append("mechanism: Threshold, because no privacy is asked for")
    elif delta > 0 and test.view_cardinalities(domain) is not None:
        decider = LevelwiseGaussian()
        reasons.append(
            "mechanism: LevelwiseGaussian, because the budget has a delta and the test sees the "
            "columns as codes"
        )
    else:
        decider = SparseVector()
        reasons.append(
            "mechanism: SparseVector, because the budget has no delta"
            if delta == 0
            else f"mechanism: SparseVector, because {test.name} does not see the columns as codes"
        )
    return Choice(test, decider, tuple(reasons), algorithm, tree=tree)


def _check_algorithm(
    algorithm: Algorithm, test: CITest | None, decider: Decider | None, tree: TreeOptions | None
) -> None:
    if not isinstance(algorithm, Algorithm) or algorithm is Algorithm.AUTO or algorithm.releases:
        raise OptionError(
            f"algorithm = {algorithm!r} is no search by tests; use Algorithm.PC, Algorithm.TREE "
            "or Algorithm.FCI"
        )
    if test is not None:
        check_is_test(test)
    if decider is not None and not isinstance(decider, Decider):
        raise OptionError(
            f"decider = {decider!r} is none; give one such as jaxcd.SparseVector(), or None"
        )
    if tree is not None and not isinstance(tree, TreeOptions):
        raise OptionError(f"tree = {tree!r} is no TreeOptions; give such options, or None")
    if algorithm is Algorithm.TREE and decider is not None:
        raise OptionError(
            f"decider: Algorithm.TREE has its own mechanism, and no use for {decider.name}; drop "
            "it, or give tree=TreeOptions(...)"
        )
    if algorithm is not Algorithm.TREE and tree is not None:
        raise OptionError(
            f"tree: these options are for Algorithm.TREE, not for {algorithm.value}; give a "
            "decider, or None"
        )
