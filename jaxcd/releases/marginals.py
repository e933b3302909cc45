r"""A release of marginal tables in three rounds: all pairs, then chosen triples, then the families worth asking for.

What is released are interactions (:mod:`jaxcd.ops.interactions`), not tables: overlapping tables share their numbers, so each is
paid for once, and all tables built from them agree.  For all pairs of 37 columns this has .66 of the L2 sensitivity of the
tables, and a third of their noise on the cell of an interaction.

1. R_j and R_ij of all columns and pairs.
2. The pairs that stay dependent and unmediated beyond noise are candidates (:mod:`jaxcd.releases.marginal_screen`); the triples of
   a column with two of its candidates are measured.
3. Pairs that a common neighbour explains are dropped, and every column with up to ``max_parents`` of its remaining candidates is
   measured, triples again included.

Each choice depends on released numbers only.  The rounds' prices are fixed in advance and add up to the budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from jaxcd.citests import CovarianceNorm
from jaxcd.data import Dataset, Domain
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import moments
from jaxcd.ops.interactions import (
    cell_variance,
    interaction,
    interaction_sensitivity_squared,
    subsets,
    table_of_interactions,
)
from jaxcd.privacy import Accountant, Budget, Ledger, NoiseSource, NoPrivacy, PrivacyCost, gaussian, split
from jaxcd.queries import Session
from jaxcd.releases import marginal_screen as screen
from jaxcd.releases.base import Release, check_release_arguments

__all__ = ["Marginals", "ReleasedMarginals", "interactions_sensitivity", "release_marginals"]

Columns = tuple[int, ...]


@final
@dataclass(frozen=True)
class Marginals:
    """The public constants of a release of marginals, for :func:`jaxcd.release`.

    shares: weights of the three rounds in rho.  dependence_alpha: level of the test of dependence.  mediation_alpha: a mediator
    explains a pair unless its p-value is below this.  max_candidates: most candidates of a column in a round.  max_parents: largest
    families of round 3.  max_cells: tables of three and more columns have at most this share of n cells (in larger ones
    sampling alone leaves nothing to see).  least_cell: the average cell of tables of four and more columns is at least so many
    sigma of round 1 (or noise would leave nothing to see, and cost the others their precision).  inflation_cap: see :class:`jaxcd.releases.set_function.SetFunction`.

    Raises OptionError where a constant is out of its range.
    """

    shares: tuple[float, float, float] = (0.6, 0.1, 0.3)
    dependence_alpha: float = 0.01
    mediation_alpha: float = 0.2
    max_candidates: int = 6
    max_parents: int = 3
    max_cells: float = 0.1
    least_cell: float = 10.0
    inflation_cap: float = 10.0

    def __post_init__(self) -> None:
        if len(self.shares) != 3 or not all(math.isfinite(share) and share > 0 for share in self.shares):
            raise OptionError(f"shares = {self.shares!r} are not three positive weights; (0.6, 0.1, 0.3) is usual")
        for argument in ("dependence_alpha", "mediation_alpha", "max_cells"):
            value = getattr(self, argument)
            if not 0 < value < 1:
                raise OptionError(f"{argument} = {value!r} is not between 0 and 1; give a share such as 0.1")
        for argument, most in (("max_candidates", 8), ("max_parents", 5)):
            count = getattr(self, argument)
            if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
                raise OptionError(f"{argument} = {count!r} is not a whole number from 1 to {most}; give one")
        for argument in ("least_cell", "inflation_cap"):
            value = getattr(self, argument)
            if not (math.isfinite(value) and value > 0):
                raise OptionError(f"{argument} = {value!r} is not a positive number; 10 is usual")

    def release(self, data: Dataset, *, budget: Budget | NoPrivacy, noise: NoiseSource | None = None) -> ReleasedMarginals:
        """Buys the marginals: :func:`release_marginals`."""
        return release_marginals(data, budget=budget, noise=noise, options=self)


@final
@dataclass(frozen=True, eq=False)
class ReleasedMarginals(Release):
    """Noisy interactions of columns; public.

    domain: the declared columns, all discrete.  n_samples: n (public).
    interactions: for each measured set of columns (sorted positions) R_S, float64 (k_j - 1 for each), in records.
    variances: the variance of the independent noise on every entry of R_S; 0 without privacy.
    candidates: for each column its possible neighbours, sorted.  cost, spent: as in :class:`Release`.

    Raises OptionError where the parts do not fit together.
    """

    domain: Domain
    n_samples: int
    interactions: Mapping[Columns, np.ndarray]
    variances: Mapping[Columns, float]
    candidates: tuple[Columns, ...]
    cost: PrivacyCost
    spent: PrivacyCost

    kind: ClassVar[str] = "marginals"

    def __post_init__(self) -> None:
        if not self.domain.is_discrete or set(self.interactions) != set(self.variances):
            raise OptionError("interactions and variances must have the same sets, of columns of a discrete domain")
        if len(self.candidates) != len(self.cardinalities):
            raise OptionError(f"candidates must have one entry for each of the {len(self.cardinalities)} columns")
        for columns, values in self.interactions.items():
            shape = tuple(self.cardinalities[j] - 1 for j in columns)
            if values.shape != shape or list(columns) != sorted(set(columns)):
                raise OptionError(f"interactions: the set {columns} has the shape {values.shape}, not {shape}")
            if not (math.isfinite(self.variances[columns]) and self.variances[columns] >= 0):
                raise OptionError(f"variances: that of {columns} is {self.variances[columns]!r}; it must be finite and at least 0")

    @cached_property
    def cardinalities(self) -> Columns:
        """The number of levels of each column."""
        return tuple(cardinality or 1 for cardinality in self.domain.cardinalities)

    def is_measured(self, columns: Columns) -> bool:
        """Whether the table of these columns (sorted positions) can be built: all its interactions are known."""
        return all(subset in self.interactions for subset in subsets(columns))

    def table(self, columns: Columns) -> np.ndarray:
        """The table of counts of the columns (sorted positions), float64: unbiased, and possibly negative.

        Raises OptionError where it was not measured.
        """
        if not self.is_measured(columns):
            names = [self.names[j] for j in columns]
            raise OptionError(f"columns: the table of {names} was not measured; only those of columns and their candidates were")
        return table_of_interactions(columns, self.cardinalities, self.n_samples, self.interactions.__getitem__)

    def cell_variance(self, columns: Columns) -> float:
        """The variance of the noise on each cell of :meth:`table`."""
        return cell_variance(columns, self.cardinalities, self.variances)

    def __repr__(self) -> str:
        return f"ReleasedMarginals({len(self.names)} columns, {len(self.interactions)} sets, n_samples={self.n_samples}; {self.cost})"

    def _parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        sets = list(self.interactions)
        header = {"sets": [list(s) for s in sets], "candidates": [list(c) for c in self.candidates]}
        values = np.concatenate([np.zeros(0), *(self.interactions[s].ravel() for s in sets)])
        return header, {"values": values, "variances": np.array([self.variances[s] for s in sets], dtype=np.float64)}

    @classmethod
    def _from_parts(
        cls, common: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> ReleasedMarginals:
        k = [cardinality or 1 for cardinality in common["domain"].cardinalities]
        sets = [tuple(int(j) for j in s) for s in header["sets"]]
        shapes = [tuple(k[j] - 1 for j in s) for s in sets]
        parts = np.split(arrays["values"].astype(np.float64), np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        return cls(
            interactions={s: part.reshape(shape) for s, part, shape in zip(sets, parts, shapes, strict=True)},
            variances=dict(zip(sets, arrays["variances"].astype(np.float64).tolist(), strict=True)),
            candidates=tuple(tuple(int(j) for j in c) for c in header["candidates"]),
            **common,
        )


def interactions_sensitivity(cardinalities: Columns, weights: Mapping[Columns, float]) -> float:
    r"""An upper bound on the L2 sensitivity (replace-one) of the interactions R_S times ``weights[S]``, taken together.

    The squared change is a sum over sets, and each set's is at most its own largest:
    sqrt(sum w_S^2 max |R_S - R'_S|^2), see :func:`jaxcd.ops.interactions.interaction_sensitivity_squared`.
    """
    squared = (w**2 * interaction_sensitivity_squared(tuple(sorted(cardinalities[j] for j in s))) for s, w in weights.items())
    return math.sqrt(math.fsum(squared)) * (1 + 2.0**-40)


class _Purchase:
    """The data with its accountant: interactions go out with noise, nothing else does."""

    def __init__(self, session: Session, accountant: Accountant) -> None:
        self._codes = np.asarray(session.view().expose(), dtype=np.int64)
        self._accountant = accountant
        self.cardinalities = session.view_cardinalities
        self.n_samples = session.n_samples
        self.interactions: dict[Columns, np.ndarray] = {}
        self.variances: dict[Columns, float] = {}

    def _exact(self, columns: Columns) -> np.ndarray:
        shape = [self.cardinalities[j] for j in columns]
        cells = np.ravel_multi_index(tuple(self._codes[:, j] for j in columns), shape)
        return interaction(np.bincount(cells, minlength=math.prod(shape)).reshape(shape))

    def buy(self, weights: Mapping[Columns, float], *, sensitivity: float, rho: float, label: str) -> None:
        """Releases the interactions times their weights, and adds what was learnt to what is known."""
        sets = [s for s in weights if min(self.cardinalities[j] for j in s) > 1]
        for s in weights:
            if s not in sets:  # a column with one level: its interactions are empty
                self.interactions[s], self.variances[s] = np.zeros([self.cardinalities[j] - 1 for j in s]), 0.0
        if not sets:
            return
        exact = [self._exact(s) * weights[s] for s in sets]
        noisy = gaussian(
            self._accountant,
            np.concatenate([part.ravel() for part in exact]),
            sensitivity=sensitivity,
            rho=rho,
            # An entry is a sum of integers that add up to n, each with a product of numbers below 1 as its factor.
            pad=self.n_samples * 2.0**-48 * max(weights.values()) * max(map(len, sets)) * (max(self.cardinalities) + 8),
            label=label,
        )
        variance = 0.0 if math.isinf(rho) else sensitivity**2 / (2 * rho)
        for s, values in zip(sets, np.split(noisy, np.cumsum([part.size for part in exact])[:-1]), strict=True):
            self._learn(s, values.reshape([self.cardinalities[j] - 1 for j in s]) / weights[s], variance / weights[s] ** 2)

    def _learn(self, columns: Columns, values: np.ndarray, variance: float) -> None:
        """The inverse-variance mean of what was known and the new values."""
        before = self.variances.get(columns)
        if before is None:
            self.interactions[columns], self.variances[columns] = values, variance
        elif before > 0:
            share = before / (before + variance)
            self.interactions[columns] = share * values + (1 - share) * self.interactions[columns]
            self.variances[columns] = share * variance

    def buy_families(self, families: Sequence[Columns], *, rho: float, label: str) -> None:
        """Releases what the families' tables need, each interaction as precisely as it is worth."""
        known = {s: v for s, v in self.variances.items() if v > 0}
        precisions = screen.allocate(list(families), self.cardinalities, known, rho=rho)
        if not precisions:
            return
        largest = max(precisions.values())
        weights = {s: math.sqrt(x / largest) for s, x in precisions.items()}
        self.buy(weights, sensitivity=interactions_sensitivity(self.cardinalities, weights), rho=rho, label=label)


def release_marginals(
    data: Dataset, *, budget: Budget | NoPrivacy, noise: NoiseSource | None = None, options: Marginals | None = None
) -> ReleasedMarginals:
    r"""Releases marginal tables in three rounds (the module's docstring).

    Args:
        data: discrete columns with a declared domain.
        budget: its (epsilon, delta) with delta > 0 is the price, spent whole; or NO_PRIVACY.
        noise: None for secure noise from the operating system; ``SimulatedNoise(key)`` for experiments.
        options: public constants.

    Returns:
        The release; whatever is computed from it costs nothing more.

    Guarantee
    ---------
    Relation: replace-one; n, the declared levels and the options are public.  Sensitivity: L2, of round 1
    :func:`jaxcd.ops.moments.contrast_sensitivity` with weight 1, of rounds 2 and 3 :func:`interactions_sensitivity`.  Events: at
    most three ``ZCDPEvent``, whose rhos are fixed shares of the budget's; a round without anything to ask is not charged.  Sets
    and weights depend on released numbers only, so this is adaptive composition under the ledger's filter.
    Proof: the docstrings named, and :func:`jaxcd.privacy.gaussian`.

    Raises:
        OptionError: budget, noise or options are not of their kind, the budget has no delta, or the relation is add-remove.
        DomainError: a column is numeric.
        PrivacyError: the domain was inferred from the data.

    Source: Efron and Stein 1981; Xiao, He, Zhang, Kifer 2023 for noise on interactions.
    """
    check_release_arguments(data, budget, noise)
    options = Marginals() if options is None else options
    if not isinstance(options, Marginals):
        raise OptionError(f"options = {options!r} are not those of marginals; use Marginals(...)")
    numeric = [name for name in data.domain.names if not data.domain[name].is_discrete]
    if numeric:
        raise DomainError(
            f"data: the columns {numeric} are numeric, and marginals count levels; declare them ordinal with levels chosen in "
            "advance, or leave them out with data.select(names)"
        )
    session = Session(data, CovarianceNorm(), alpha=0.05, budget=budget)
    accountant = Accountant(Ledger(budget), noise)
    if not accountant.ledger.remaining_rho > 0:
        raise OptionError("budget: marginals add Gaussian noise and need delta > 0; give the budget a delta such as 1e-6")
    prices: tuple[float, ...] = (math.inf,) * 3
    if isinstance(budget, Budget):
        prices = split(accountant.ledger.remaining_rho, options.shares)
    shop = _Purchase(session, accountant)
    d = len(shop.cardinalities)

    def so_far(candidates: tuple[Columns, ...]) -> ReleasedMarginals:
        interactions, variances = dict(shop.interactions), dict(shop.variances)
        cost, spent = accountant.guarantee, accountant.ledger.spent
        return ReleasedMarginals(data.domain, shop.n_samples, interactions, variances, candidates, cost, spent)

    def measure(pairs: list[tuple[int, int]], most_parents: int, price: float, label: str) -> tuple[Columns, ...]:
        candidates = screen.candidates_of(pairs, d, most=options.max_candidates)
        most = options.max_cells * shop.n_samples
        large = most if sigma == 0 else min(most, shop.n_samples / (options.least_cell * sigma))
        limits = {size: most if size == 3 else large for size in range(3, most_parents + 2)}
        families = screen.families_of(candidates, shop.cardinalities, most_parents=most_parents, most_cells=limits)
        shop.buy_families(families, rho=price, label=label)
        return candidates

    nobody: tuple[Columns, ...] = ((),) * d
    sensitivity = moments.contrast_sensitivity(shop.cardinalities, 1.0)
    sigma = sensitivity / math.sqrt(2 * prices[0])  # 0 without privacy
    shop.buy(_singles_and_pairs(d), sensitivity=sensitivity, rho=prices[0], label="round 1: all pairs")
    pairs = screen.unmediated_pairs(so_far(nobody), options)
    wide = measure(pairs, 2, prices[1], "round 2: triples")
    pairs = screen.unexplained_pairs(so_far(nobody), pairs, options)
    narrow = measure(pairs, options.max_parents, prices[2], "round 3: families")
    # What was dropped before round 3 was measured less precisely, but the search may still want it.
    return so_far(tuple(tuple(sorted({*first, *second})) for first, second in zip(wide, narrow, strict=True)))


def _singles_and_pairs(d: int) -> dict[Columns, float]:
    singles: dict[Columns, float] = {(j,): 1.0 for j in range(d)}
    return singles | {(i, j): 1.0 for i in range(d) for j in range(i + 1, d)}
