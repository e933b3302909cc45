r"""A release of marginal tables in three rounds: all pairs, then chosen triples, then the families
worth asking for.

What is released are interactions (:mod:`jaxcd.ops.interactions`), not tables: overlapping tables
share their numbers, so each is paid for once, and all tables built from them agree.  For all pairs
of 37 columns this has .66 of the L2 sensitivity of the tables, and a third of their noise on the
cell of an interaction.

1. R_j and R_ij of all columns and pairs.
2. The pairs that stay dependent and unmediated beyond noise are candidates
   (:mod:`jaxcd.releases.tables.marginal_screen`); the triples of a column with two of its
   candidates are measured.
3. Pairs that a common neighbour explains are dropped, and every column with up to ``max_parents``
   of its remaining candidates is measured, triples again included.

Each choice depends on released numbers only.  The rounds' prices are fixed in advance and add up to
the budget.

*Noise.*  With delta > 0 it is discrete Gaussian and follows the L2 sensitivity, as above.  With
delta = 0 it is discrete Laplace and follows the L1 sensitivity, in which many small interactions
cost more than one large table: a table of counts moves by 2 whatever its size, and tells the
interactions of all its subsets.  So rounds 2 and 3 measure one table for each column, itself with
its candidates in their order, as long as its average cell has two standard deviations of the noise;
round 1 takes from tables the pairs whose interactions would move by more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import jax
import numpy as np

from jaxcd.checks import is_whole
from jaxcd.citests import CITest, PreparedTest
from jaxcd.data import Domain
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import moments
from jaxcd.ops.interactions import (
    cell_variance,
    interaction_sensitivity_squared,
    subsets,
    table_of_interactions,
)
from jaxcd.privacy import Accountant, Budget, Ledger, PrivacyCost, split
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.queries import Door
from jaxcd.releases.base import Plan, Release, ReleaseKind, paid
from jaxcd.releases.redrawing import redrawn
from jaxcd.releases.tables import marginal_screen as screen
from jaxcd.releases.tables.fitted_tables import fit_tables
from jaxcd.releases.tables.marginal_purchase import MarginalsNoise, Purchase
from jaxcd.releases.tables.noisy_strata import marginal_strata
from jaxcd.releases.tables.noisy_table_tests import table_tests
from jaxcd.releases.tables.set_score import SetScore
from jaxcd.scores.base import LocalScore
from jaxcd.scores.configurations import BIC

__all__ = ["Marginals", "ReleasedMarginals"]

Columns = tuple[int, ...]

# The average cell of a table that is counted under Laplace noise has at least so many standard
# deviations of the noise.
_LEAST_COUNTED = 2.0


@final
@dataclass(frozen=True)
class Marginals(ReleaseKind):
    """Noisy marginal tables of the columns that depend on each other, bought in three rounds.

    For discrete data with many columns.  Round 1 measures all pairs, and rounds 2 and 3 larger
    tables of columns that what was released shows to be dependent.

    Args:
        shares: positive weights of the three rounds in rho, or with delta = 0 in epsilon.
        dependence_alpha: level of the test of dependence, between 0 and 1.
        mediation_alpha: a mediator explains a pair unless its p-value is below this, between 0 and
            1.
        max_candidates: most candidates of a column in a round, 1 to 8.
        max_parents: largest families of round 3 (under Gaussian noise), 1 to 5.
        max_cells: tables of three and more columns have at most this share of n cells, between 0
            and 1 (in larger ones sampling alone leaves nothing to see).
        least_cell: the average cell of tables of four and more columns is at least so many sigma of
            round 1, positive (under Gaussian noise; or noise would leave nothing to see, and cost
            the others their precision).
        inflation_cap: positive; see :class:`jaxcd.releases.tables.set_function.SetFunction`.

    Raises:
        OptionError: a constant is out of its range.

    Guarantee:
        Relation: replace-one; n, the declared levels and the options are public.  With delta > 0:
        L2 sensitivity, of round 1 :func:`jaxcd.ops.moments.contrast_sensitivity` with weight 1, of
        rounds 2 and 3 :func:`jaxcd.releases.tables.marginal_purchase.interactions_sensitivity`.
        Event: at most three ``ZCDPEvent``, whose rhos are fixed shares of the budget's.  With delta
        = 0: L1 sensitivity, of round 1
        :func:`jaxcd.releases.tables.marginal_screen.pairs_for_laplace`, of rounds 2 and 3 twice the
        number of tables; at most three ``PureEvent``, whose epsilons add up to the budget's.  A
        round without anything to ask is not charged.  Sets and weights depend on released numbers
        only, so this is adaptive composition under the ledger's filter.  Proof: the docstrings
        named, :func:`jaxcd.privacy.gaussian` and :func:`jaxcd.privacy.laplace`.

    Source:
        Efron and Stein 1981; Xiao, He, Zhang, Kifer 2023 for noise on interactions.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(20_000, key=jax.random.key(0))
        >>> bought = jaxcd.release(
        ...     data,
        ...     jaxcd.Marginals(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> len(bought.charges), bought.spent.epsilon <= bought.cost.epsilon
        (3, True)
    """

    claim = GuaranteeClaim(
        "three rounds of marginal tables are (epsilon, delta)-DP of their budget, pure where "
        "delta = 0; every search on them is post-processing",
        "jaxcd.releases.tables.marginals, jaxcd.releases.tables.marginal_purchase, "
        "jaxcd.ops.interactions, jaxcd.ops.moments",
    )

    shares: tuple[float, float, float] = (0.6, 0.1, 0.3)
    dependence_alpha: float = 0.01
    mediation_alpha: float = 0.2
    max_candidates: int = 6
    max_parents: int = 3
    max_cells: float = 0.1
    least_cell: float = 10.0
    inflation_cap: float = 10.0
    word: ClassVar[str] = "marginals"
    title: ClassVar[str] = "marginal tables, and the graph of the highest set score"

    def __post_init__(self) -> None:
        if len(self.shares) != 3 or not all(
            math.isfinite(share) and share > 0 for share in self.shares
        ):
            raise OptionError(
                f"shares = {self.shares!r} are not three positive weights; (0.6, 0.1, 0.3) is usual"
            )
        for argument in ("dependence_alpha", "mediation_alpha", "max_cells"):
            value = getattr(self, argument)
            if not 0 < value < 1:
                raise OptionError(
                    f"{argument} = {value!r} is not between 0 and 1; give a share such as 0.1"
                )
        for argument, most in (("max_candidates", 8), ("max_parents", 5)):
            count = getattr(self, argument)
            if not is_whole(count, 1, most):
                raise OptionError(
                    f"{argument} = {count!r} is not a whole number from 1 to {most}; give one"
                )
        for argument in ("least_cell", "inflation_cap"):
            value = getattr(self, argument)
            if not (math.isfinite(value) and value > 0):
                raise OptionError(f"{argument} = {value!r} is not a positive number; 10 is usual")

    def check(self, domain: Domain, n_samples: int = 1) -> None:
        """Raises DomainError where a column is numeric."""
        numeric = [name for name in domain.names if not domain[name].is_discrete]
        if numeric:
            raise DomainError(
                f"data: the columns {numeric} are numeric, and marginals count levels; declare "
                "them ordinal with levels chosen in advance, or leave them out with "
                "data.select(names)"
            )

    def plan(self, domain: Domain, n_samples: int, *, budget: Budget) -> Plan:
        """The noise on an interaction of the first round, when all pairs are bought."""
        self.check(domain, n_samples)
        ledger, share = Ledger(budget), self.shares[0] / sum(self.shares)
        cardinalities = tuple(cardinality or 1 for cardinality in domain.cardinalities)
        if ledger.remaining_rho > 0:
            noise = moments.contrast_sensitivity(cardinalities, 1.0) / math.sqrt(
                2 * share * ledger.remaining_rho
            )
        else:
            weights, _, sensitivity = screen.pairs_for_laplace(cardinalities)
            least = min(
                (weight for columns, weight in weights.items() if len(columns) == 2), default=1.0
            )
            noise = math.sqrt(2) * sensitivity / (share * ledger.remaining_epsilon * least)
        return Plan.of(noise, n_samples, number="number of a pair")

    def buy(self, door: Door, accountant: Accountant) -> ReleasedMarginals:
        """Three rounds, each planned on what the rounds before it released."""
        return _bought(self, door, accountant)


@final
@dataclass(frozen=True, eq=False)
class ReleasedMarginals(Release):
    """Noisy interactions of columns; public.

    Args:
        domain: the declared columns, all discrete.
        n_samples: n (public).
        interactions: for each measured set of columns (sorted positions) R_S, float64 (k_j - 1 for
            each), in records.
        variances: the variance of the independent noise on every entry of R_S; 0 without privacy.
        candidates: for each column its possible neighbours, sorted.
        cost: as in :class:`Release`.
        spent: as ``cost``.
        charges: as ``cost``.
        noise: the law of the noise.  Laplace noise on a table reaches its interactions as sums of
            independent draws, uncorrelated and of equal variance.
        bought: as in :class:`Release`.

    Raises:
        OptionError: the parts do not fit together.
    """

    domain: Domain
    n_samples: int
    interactions: Mapping[Columns, np.ndarray]
    variances: Mapping[Columns, float]
    candidates: tuple[Columns, ...]
    cost: PrivacyCost
    spent: PrivacyCost
    noise: MarginalsNoise = MarginalsNoise.GAUSSIAN
    charges: tuple[Mapping[str, object], ...] = ()
    bought: ReleaseKind | None = None

    kind: ClassVar[str] = "marginals"

    def __post_init__(self) -> None:
        if not self.domain.is_discrete or set(self.interactions) != set(self.variances):
            raise OptionError(
                "interactions and variances must have the same sets, of columns of a discrete "
                "domain"
            )
        if len(self.candidates) != len(self.cardinalities):
            raise OptionError(
                f"candidates must have one entry for each of the {len(self.cardinalities)} columns"
            )
        for columns, values in self.interactions.items():
            shape = tuple(self.cardinalities[j] - 1 for j in columns)
            if values.shape != shape or list(columns) != sorted(set(columns)):
                raise OptionError(
                    f"interactions: the set {columns} has the shape {values.shape}, not {shape}"
                )
            if not (math.isfinite(self.variances[columns]) and self.variances[columns] >= 0):
                raise OptionError(
                    f"variances: that of {columns} is {self.variances[columns]!r}; it must be "
                    "finite and at least 0"
                )

    @cached_property
    def cardinalities(self) -> Columns:
        """The number of levels of each column."""
        return tuple(cardinality or 1 for cardinality in self.domain.cardinalities)

    def is_measured(self, columns: Columns) -> bool:
        """Whether the table of these columns (sorted positions) can be built: all its interactions
        are known.
        """
        return all(subset in self.interactions for subset in subsets(columns))

    def table(self, columns: Columns) -> np.ndarray:
        """The table of counts of the columns (sorted positions), float64: unbiased, and possibly
        negative.

        Raises:
            OptionError: it was not measured.
        """
        if not self.is_measured(columns):
            names = [self.names[j] for j in columns]
            raise OptionError(
                f"columns: the table of {names} was not measured; only those of columns and their "
                "candidates were"
            )
        return table_of_interactions(
            columns, self.cardinalities, self.n_samples, self.interactions.__getitem__
        )

    def cell_variance(self, columns: Columns) -> float:
        """The variance of the noise on each cell of :meth:`table`."""
        return cell_variance(columns, self.cardinalities, self.variances)

    def tests(self) -> Mapping[type[CITest], Callable[[CITest], PreparedTest]]:
        return table_tests(
            self.n_samples,
            cardinalities=self.cardinalities,
            strata=lambda query: marginal_strata(self, query),
            measured=lambda query: self.is_measured(
                tuple(sorted((query.x, query.y, *query.given)))
            ),
        )

    def scores(self) -> Mapping[type, Callable[[Any, int | None], LocalScore]]:
        """BIC: the set score, which prices sampling and noise itself."""
        return {BIC: self._bic}

    def _bic(self, score: Any, max_parents: int | None) -> LocalScore:
        if score.penalty_discount != 1.0:
            raise OptionError(
                f"penalty_discount = {score.penalty_discount:g}: a release of marginals prices "
                "sampling and noise itself; use 1, or SetScore"
            )
        return SetScore(self) if max_parents is None else SetScore(self, max_parents=max_parents)

    def default_score(self) -> SetScore:
        """The set score."""
        return SetScore(self)

    def redraw(
        self, adjacency: np.ndarray, *, kind: ReleaseKind | None = None
    ) -> Callable[[jax.Array], Release]:
        """From the conditional tables of the measured families."""
        return redrawn(self, fit_tables(self, adjacency), kind or self.bought or Marginals())

    def _precision(self) -> np.ndarray:
        # Of Gaussian noise the singles' is the same whatever the rows are; later tables of Laplace
        # noise tell about them, too.
        columns = range(len(self.names)) if self.cost.delta > 0 else range(0)
        return np.array([self.variances[j,] for j in columns])

    def __repr__(self) -> str:
        return (
            f"ReleasedMarginals({len(self.names)} columns, {len(self.interactions)} sets, "
            f"n_samples={self.n_samples}; {self.cost})"
        )

    def _least_variance(self, epsilon: float, rho: float) -> tuple[float, float] | None:
        """Any measurement of R_S of squared sensitivity m costs at least m / (2 v) of rho, or the
        root of 2 m / v of epsilon; several add up.
        """
        squared = {
            s: interaction_sensitivity_squared(tuple(sorted(self.cardinalities[j] for j in s)))
            for s in self.variances
        }
        price = 1 / (2 * rho) if self.noise is MarginalsNoise.GAUSSIAN else 2 / epsilon**2
        found = [(self.variances[s], m * price) for s, m in squared.items() if m > 0]
        return min(found, key=lambda pair: pair[0] / pair[1], default=None)

    def _parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        sets = list(self.interactions)
        header = {
            "sets": [list(s) for s in sets],
            "candidates": [list(c) for c in self.candidates],
            "noise": self.noise.value,
        }
        values = np.concatenate([np.zeros(0), *(self.interactions[s].ravel() for s in sets)])
        return header, {
            "values": values,
            "variances": np.array([self.variances[s] for s in sets], dtype=np.float64),
        }

    @classmethod
    def _from_parts(
        cls, common: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> ReleasedMarginals:
        k = [cardinality or 1 for cardinality in common["domain"].cardinalities]
        sets = [tuple(int(j) for j in s) for s in header["sets"]]
        shapes = [tuple(k[j] - 1 for j in s) for s in sets]
        parts = np.split(
            arrays["values"].astype(np.float64),
            np.cumsum([math.prod(shape) for shape in shapes])[:-1],
        )
        return cls(
            interactions={
                s: part.reshape(shape) for s, part, shape in zip(sets, parts, shapes, strict=True)
            },
            variances=dict(zip(sets, arrays["variances"].astype(np.float64).tolist(), strict=True)),
            candidates=tuple(tuple(int(j) for j in c) for c in header["candidates"]),
            # files from before there was a choice
            noise=MarginalsNoise(header.get("noise", "discrete-gaussian")),
            **common,
        )


def _bought(options: Marginals, door: Door, accountant: Accountant) -> ReleasedMarginals:
    law = MarginalsNoise.GAUSSIAN
    prices: tuple[float, ...] = (math.inf,) * 3
    budget = accountant.ledger.budget
    if isinstance(budget, Budget):
        if not budget.delta > 0:
            law = MarginalsNoise.LAPLACE
        total = (
            accountant.ledger.remaining_rho
            if budget.delta > 0
            else accountant.ledger.remaining_epsilon
        )
        prices = split(total, options.shares)
    shop = Purchase(door, accountant, law)
    d = len(shop.cardinalities)

    def so_far(candidates: tuple[Columns, ...]) -> ReleasedMarginals:
        interactions, variances = dict(shop.interactions), dict(shop.variances)
        return ReleasedMarginals(
            door.domain,
            shop.n_samples,
            interactions,
            variances,
            candidates,
            noise=law,
            bought=options,
            **paid(accountant),
        )

    def measure(
        pairs: list[tuple[int, int]], most_parents: int, price: float, label: str
    ) -> tuple[Columns, ...]:
        candidates = screen.candidates_of(pairs, d, most=options.max_candidates)
        most = options.max_cells * shop.n_samples
        if law is MarginalsNoise.LAPLACE:
            # of the noise on a cell of at most d tables
            scatter = math.sqrt(2) * screen.COUNTED_CHANGE * d / price
            most = min(most, shop.n_samples / (_LEAST_COUNTED * scatter))
            tables = screen.tables_of(
                pairs, shop.cardinalities, most=options.max_candidates, most_cells=most
            )
            shop.buy_tables(tables, price=price, label=label)
            return candidates
        large = most if sigma == 0 else min(most, shop.n_samples / (options.least_cell * sigma))
        limits = {size: most if size == 3 else large for size in range(3, most_parents + 2)}
        families = screen.families_of(
            candidates, shop.cardinalities, most_parents=most_parents, most_cells=limits
        )
        shop.buy_families(families, price=price, label=label)
        return candidates

    nobody: tuple[Columns, ...] = ((),) * d
    wide = nobody

    def unfinished() -> ReleasedMarginals:
        """What was bought before a run broke off: with round 1 it can be searched, by pairs."""
        pairs = screen.unmediated_pairs(so_far(nobody), options)
        return so_far(
            wide if any(wide) else screen.candidates_of(pairs, d, most=options.max_candidates)
        )

    with accountant.keeping(unfinished):
        sigma = shop.buy_pairs(price=prices[0], label="round 1: all pairs")  # 0 without privacy
        pairs = screen.unmediated_pairs(so_far(nobody), options)
        wide = measure(pairs, 2, prices[1], "round 2: triples")
        pairs = screen.unexplained_pairs(so_far(nobody), pairs, options)
        narrow = measure(pairs, options.max_parents, prices[2], "round 3: families")
        # What was dropped before round 3 was measured less precisely, but the search may still want
        # it.
        return so_far(
            tuple(
                tuple(sorted({*first, *second})) for first, second in zip(wide, narrow, strict=True)
            )
        )
