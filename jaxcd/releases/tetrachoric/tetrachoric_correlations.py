r"""A release of tetrachoric correlations of chosen pairs of numeric columns: for many columns.

Second moments of all pairs of p columns carry noise that grows with p.  Here only the sign of a
value counts, whether it is at or above a threshold (+1) or below (-1), and only pairs that are
worth it are measured.

1. Thresholds near the medians are bought (:mod:`jaxcd.releases.tetrachoric.bought_medians`), and
   the sums S_j of the signs of each column.
2. In rounds: the normal law that adds nothing to the correlations released so far
   (:mod:`jaxcd.releases.tetrachoric.covariance_selection`) says what sum Q_ij of products of two
   columns' signs it expects; the exponential mechanism draws pairs with a large |Q_ij - expected|;
   and their Q_ij are released.
3. A pair's correlation is the tetrachoric one of its released numbers
   (:mod:`jaxcd.releases.tetrachoric.quadrants`), and the law fills in all others.

The model is that the columns are increasing functions of jointly normal ones, whatever the
functions are.  Where they are not, a pair still needs a dependence of its signs to be seen.

*Sensitivity.*  Replacing a record changes every S_j and every Q_ij by at most 2: 2 sqrt(k) in L2
for k of them, and 2 for a score |Q_ij - expected|, whose second part is public.  Where rows have
weights, what a person adds lies in the convex hull of vectors of signs, of the same diameter.

*Why signs.*  Of all increasing odd functions of a standard normal with values in [-1, 1] the sign
has the largest covariance with its fellow per unit of what one record can change: 2 r / pi at a
small correlation r.  Against sampling it is worth 4 rows of 10 (4 / pi^2); where many pairs share a
budget, the noise for privacy is much larger.

Source:
    Blomqvist 1950 for the quadrant correlation; Dempster 1972; Durfee and Rogers 2019 for many
    choices at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, final

import jax
import numpy as np
from scipy import special

from jaxcd.checks import check_number, check_weights, check_whole, counted, hold_python_numbers
from jaxcd.data import Domain
from jaxcd.data.rows import Block
from jaxcd.errors import OptionError
from jaxcd.privacy import (
    VECTOR_GRID,
    Accountant,
    Budget,
    Ledger,
    NoPrivacy,
    Sensitive,
    gaussian,
    integer_sensitivity,
    noise_scale,
    planned_sigma,
    range_to_gdp_rho,
    select_top,
    split,
)
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim
from jaxcd.privacy.rounding import sqrt_up
from jaxcd.queries import Door
from jaxcd.releases.base import Parts, Release, Scores, Tests, facts_of_rows, finite_array
from jaxcd.releases.kind import ReleaseKind, check_complete_numeric, paid
from jaxcd.releases.moments.gaussian_score import GaussianScore
from jaxcd.releases.moments.linear_models import fit_linear_gaussian
from jaxcd.releases.plans import Plan
from jaxcd.releases.redrawing import redrawn
from jaxcd.releases.stated_noise import check_size
from jaxcd.releases.tetrachoric.bought_medians import STEP, bought_medians
from jaxcd.releases.tetrachoric.covariance_selection import complete, response
from jaxcd.releases.tetrachoric.partial_correlations import correlation_tests, rows_of_pairs
from jaxcd.releases.tetrachoric.quadrants import sign_product, slope, tetrachoric
from jaxcd.scores.base import LocalScore
from jaxcd.scores.configurations import BIC

__all__ = ["ReleasedTetrachoric", "Tetrachoric"]

# By how much a record changes a sum of signs, or of products of signs.
_CHANGE = 2.0
# So many pairs for each column, in so many rounds, and not more than leave the Gumbel noise of a
# choice at such a share of n, for then noise does the choosing.  With ``shares`` chosen on random
# linear Gaussian models of 20 to 1,000 columns with 3,000 to 20,000 rows, epsilon 1.
_PAIRS_A_COLUMN, _ROUNDS, _CHOOSING_NOISE = 3, 20, 0.03
# A column's mean sign is taken to be at most so far from 0.
_MOST_MEAN = 0.98
# Of a correlation: what tells so little is told to the law as this.
_MOST_VARIANCE = 1e4
# The price of a choice is rounded up: so much less is asked for that a sum of them fits.
_ROUNDED = 1 - 2.0**-40
# The share of the measured pairs that are less precise than the score takes all to be; chosen on
# the same models.
_LESS_PRECISE = 0.25
_MOST_TELLING = 50.0
# Warned of where the pairs are worth fewer rows than this, although without other columns they
# would be worth so many: on random linear Gaussian models of 3 to 50 columns skeletons were often
# empty below 5 rows, and from 20 on as good as with more.
_FEW, _FEW_WANTED = 10.0, 100.0


@final
@dataclass(frozen=True)
class Tetrachoric(ReleaseKind):
    """Noisy tetrachoric correlations of chosen pairs of numeric columns.

    For many columns: from about 100 on it finds more than :class:`jaxcd.SecondMoments`.  Columns
    that are linear functions of several others, as a total is of its parts, are to be left out of
    the domain beforehand: they hide most edges (``warnings`` of the release says so).

    Args:
        shares: positive weights in rho of the thresholds, the single columns, the choices, and the
            chosen pairs; where all pairs are measured that of the choices goes to them.
        selected: so many pairs are chosen; 0: all are measured.  None: three for each column, or as
            many as leave the noise of a choice below 3 % of n rows.

    Raises:
        OptionError: an option is out of its range.

    Guarantee:
        Relation: replace-one, of a row or of a person; n, the declared domain and the options are
        public.  Sensitivity: 2 sqrt(k) in L2 for k sums of signs or of products of signs; 2 for the
        score of a choice; sqrt(k) for a step to the medians of k columns.  Events: at most fourteen
        ``GaussianEvent`` for the medians, one for the single columns, and in at most twenty rounds
        one ``ExponentialMechanismEvent`` of the pairs chosen and one ``GaussianEvent``.  Prices and
        questions depend on released numbers and public facts only, so this is adaptive composition
        under the ledger's filter.  Proof: the docstring of
        :mod:`jaxcd.releases.tetrachoric.tetrachoric_correlations`, docs/PRIVACY.md AC,
        :func:`jaxcd.privacy.gaussian` and :func:`jaxcd.privacy.select_top`.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> x = np.random.default_rng(0).normal(size=20_000)
        >>> y = x + np.random.default_rng(1).normal(size=20_000)
        >>> domain = jaxcd.Domain({"x": jaxcd.Numeric(-10, 10), "y": jaxcd.Numeric(-10, 10)})
        >>> bought = jaxcd.release(
        ...     jaxcd.Dataset.from_array(np.column_stack([x, y]), domain=domain),
        ...     jaxcd.Tetrachoric(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(jaxcd.search(bought).graph)
        x --- y
    """

    claim = GuaranteeClaim(
        "thresholds, sums of signs and of products of signs of chosen pairs are (epsilon, "
        "delta)-DP of their budget; every search on them is post-processing",
        "jaxcd.releases.tetrachoric.tetrachoric_correlations, "
        "jaxcd.releases.tetrachoric.bought_medians",
        assumptions=PUBLIC,
    )

    shares: tuple[float, float, float, float] = (0.1, 0.1, 0.55, 0.25)
    selected: int | None = None
    word: ClassVar[str] = "tetrachoric"
    title: ClassVar[str] = (
        "tetrachoric correlations of chosen pairs, and the graph of the highest Gaussian score"
    )
    step: ClassVar[float] = STEP
    needs_delta: ClassVar[bool] = True
    takes_people: ClassVar[bool] = True

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        check_weights("shares", self.shares, cure="give four, such as (0.1, 0.1, 0.55, 0.25)")
        if len(self.shares) != 4:
            raise OptionError(
                f"shares = {self.shares!r} are not four weights; (0.1, 0.1, 0.55, 0.25) is usual"
            )
        if self.selected is not None:
            check_whole("selected", self.selected, 0, cure="give None, or 0 to measure all pairs")

    def check(self, domain: Domain, n_samples: int = 1) -> None:
        """Refuses a domain, which is public, that this release cannot cover.

        Raises:
            DomainError: a column is not numeric, or may have missing cells.
        """
        check_complete_numeric(domain, "signs")

    def n_selected(self, domain: Domain, n_samples: int, *, budget: Budget) -> int:
        """How many pairs are chosen; 0 where all are measured.  From public facts.

        Args:
            domain: of the columns.
            n_samples: n.
            budget: of the purchase.
        """
        n_pairs, wanted = math.comb(domain.n_columns, 2), self.selected
        if wanted is None:
            epsilon = 2 * _CHANGE / (_CHOOSING_NOISE * n_samples)
            choices = Ledger(budget).remaining_rho * self.shares[2] / sum(self.shares)
            wanted = _PAIRS_A_COLUMN * domain.n_columns
            wanted = max(1, int(min(wanted, choices / range_to_gdp_rho(epsilon))))
        return wanted if wanted < n_pairs else 0

    def plan(self, domain: Domain, n_samples: int, *, budget: Budget) -> Plan:
        """The noise on a small correlation of a chosen pair, times n."""
        self.check(domain, n_samples)
        self.check_delta(budget)
        ledger = Ledger(budget)
        chosen = self.n_selected(domain, n_samples, budget=budget)
        share = self.shares[3] + (0.0 if chosen else self.shares[2])
        rho = ledger.remaining_rho * share / sum(self.shares)
        n_pairs = max(1, chosen or math.comb(domain.n_columns, 2))
        noise = math.pi / 2 * _CHANGE * math.sqrt(n_pairs / (2 * rho))
        return Plan.of(noise, n_samples, number="correlation", unit=budget.unit)

    def buy(self, door: Door, accountant: Accountant) -> ReleasedTetrachoric:
        """Thresholds, single columns, and pairs in rounds."""
        return _bought(self, door, accountant)


@final
@dataclass(frozen=True, eq=False, repr=False)
class ReleasedTetrachoric(Release):
    """Noisy sums of signs of numeric columns and of products of two columns' signs; public.

    Args:
        domain: the declared columns, all numeric.
        n_samples: the number of rows n (public).
        thresholds: float64 (p,), in the columns' units: a value counts +1 at or above, else -1.
        scales: float64 (p,), positive: rough spreads, for drawing rows only.
        signs: float64 (p,), sums of the signs of each column.
        signs_sigma: standard deviation of their noise, at least 0.
        pairs: integers (m, 2), i < j, the pairs that were measured.
        products: float64 (m,), sums of products of their signs.
        sigma: standard deviation of the noise of these, at least 0.
        cost: as in :class:`Release`.
        spent: as ``cost``.
        charges: as ``cost``.
        bought: as in :class:`Release`.

    Raises:
        OptionError: the parts do not fit together.
    """

    domain: Domain
    n_samples: int
    thresholds: np.ndarray
    scales: np.ndarray
    signs: np.ndarray
    signs_sigma: float
    pairs: np.ndarray
    products: np.ndarray
    sigma: float
    cost: Any
    spent: Any
    charges: tuple[Mapping[str, object], ...] = ()
    bought: ReleaseKind | None = None

    kind: ClassVar[str] = "tetrachoric"

    def __post_init__(self) -> None:
        p = self.domain.n_columns
        pairs = np.array(self.pairs, dtype=np.int64).reshape(-1, 2)
        if pairs.size and not (
            pairs.min() >= 0 and pairs.max() < p and (pairs[:, 0] < pairs[:, 1]).all()
        ):
            raise OptionError(f"pairs must have rows i < j of columns from 0 to {p - 1}")
        pairs.setflags(write=False)
        object.__setattr__(self, "pairs", pairs)
        for name in ("thresholds", "scales", "signs"):
            object.__setattr__(self, name, finite_array(name, getattr(self, name), (p,)))
        products = finite_array("products", self.products, (len(pairs),))
        object.__setattr__(self, "products", products)
        for name in ("signs_sigma", "sigma"):
            check_number(name, getattr(self, name), 0, 1e100, cure="0 is no noise")

    @cached_property
    def _means(self) -> np.ndarray:
        """Of the signs, as the normal law has them."""
        found: np.ndarray = np.clip(self.signs / self.n_samples, -_MOST_MEAN, _MOST_MEAN)
        return found

    @cached_property
    def _cuts(self) -> np.ndarray:
        """The thresholds on the scale of standard normal columns."""
        found: np.ndarray = -special.ndtri((1 + self._means) / 2)
        return found

    def _beyond(self, pairs: np.ndarray) -> np.ndarray:
        """By how much the products of the mean signs of pairs, (k, 2), are larger than the law has
        them: 0 but for nearly constant columns, which would else seem to depend on each other.
        """
        means = np.clip(self.signs / self.n_samples, -1, 1)
        found: np.ndarray = means[pairs].prod(axis=1) - self._means[pairs].prod(axis=1)
        return found

    @cached_property
    def measured_correlations(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the measured pairs: tetrachoric correlations and their variances, from sampling and
        noise to first order; float64 (m,) each.
        """
        first, second = self._cuts[self.pairs].T
        products = self.products / self.n_samples - self._beyond(self.pairs)
        found = tetrachoric(products, first, second)
        return found, self._variances(found)

    def _variances(self, correlations: np.ndarray) -> np.ndarray:
        """Of the measured pairs, if their correlations are these; float64 (m,)."""
        n = self.n_samples
        first, second = self._cuts[self.pairs].T
        expected = sign_product(first, second, correlations)
        single = (1 - 2 * special.ndtr(first)) ** 2 + (1 - 2 * special.ndtr(second)) ** 2
        variance = (1 - expected**2) / n + (self.sigma**2 + single * self.signs_sigma**2) / n**2
        steepness = slope(first, second, correlations) ** 2
        found: np.ndarray = variance / np.maximum(steepness, variance / _MOST_VARIANCE)
        return found

    @cached_property
    def correlation(self) -> np.ndarray:
        """The correlations of the columns after they were made normal, (p, p), positive definite;
        those that were not measured follow from the others.
        """
        found, variances = self.measured_correlations
        return complete(len(self.names), self.pairs, found, variances)

    @cached_property
    def covariance(self) -> np.ndarray:
        """``correlation`` with the rough scales, (p, p)."""
        found: np.ndarray = np.outer(self.scales, self.scales) * self.correlation
        return found

    @property
    def deviations(self) -> np.ndarray:
        """The rough scales, (p,)."""
        return self.scales

    @property
    def mean(self) -> np.ndarray:
        """Rough means, (p,), at which rows with these scales fall on both sides of the thresholds
        as they should.
        """
        found: np.ndarray = self.thresholds - self.scales * self._cuts
        return found

    def expected_products(self, pairs: np.ndarray) -> np.ndarray:
        """What the normal law expects of the sums of products of pairs, integers (k, 2): float64
        (k,).
        """
        first, second = pairs.T
        strength = self.correlation[first, second]
        normal = sign_product(self._cuts[first], self._cuts[second], strength)
        found: np.ndarray = self.n_samples * (normal + self._beyond(pairs))
        return found

    @cached_property
    def tells(self) -> np.ndarray:
        """Which of the measured pairs tell something, bool (m,): those where a correlation of 0
        would have at most 50 times the variance that a quarter of them stays below.  A nearly
        constant column tells nothing of any other, and must not take from what others tell.
        """
        variances = self._variances(np.zeros(len(self.pairs)))
        few = float(np.quantile(variances, _LESS_PRECISE)) if len(variances) else 0.0
        told: np.ndarray = variances <= _MOST_TELLING * few
        return told

    @property
    def joinable(self) -> np.ndarray:
        """Which pairs were measured and tell something, bool (p, p): no other is joined by an
        edge.
        """
        p = len(self.names)
        found = np.zeros((p, p), dtype=bool)
        i, j = self.pairs[self.tells].T
        found[i, j] = found[j, i] = True
        return found

    @cached_property
    def response(self) -> np.ndarray:
        """How the inverse of the correlations moves with the measured ones, (p + m, m): see
        :func:`jaxcd.releases.tetrachoric.covariance_selection.response`.
        """
        return response(self.correlation, self.pairs, self.measured_correlations[1])

    @cached_property
    def effective_samples(self) -> float:
        """The number of normal rows without noise whose partial correlations given all other
        columns are as precise as those of three of four pairs that tell something, at most n
        (:func:`jaxcd.releases.tetrachoric.partial_correlations.rows_of_pairs`).
        """
        if not len(self.pairs):
            return 1.0
        precise = float(np.quantile(rows_of_pairs(self), _LESS_PRECISE))
        return min(precise, float(self.n_samples))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where partial correlations are worth next to no rows, although the correlations are."""
        if not len(self.pairs):
            return ()
        alone = 1 / self._variances(np.zeros(len(self.pairs)))[self.tells]
        wanted = min(float(np.quantile(alone, _LESS_PRECISE)), float(self.n_samples))
        if wanted < _FEW_WANTED or self.effective_samples >= _FEW:
            return ()
        return (
            f"given other columns, correlations are as precise as {self.effective_samples:,.0f} "
            f"rows, where by themselves they are as precise as {wanted:,.0f}: columns are nearly "
            "functions of others, as a total is of its parts, so that edges may be missing, also "
            "between other columns; leave a total or one of its parts out of the domain, or take "
            "SecondMoments",
        )

    def tests(self) -> Tests:
        return correlation_tests(self)

    def scores(self) -> Scores:
        """BIC of normal columns."""
        return {BIC: self._bic}

    def _bic(self, score: Any, max_parents: int | None) -> LocalScore:
        limit: dict[str, Any] = {} if max_parents is None else {"max_parents": max_parents}
        penalty = 2.0 * float(score.penalty_discount)  # as on second moments
        return GaussianScore(self, penalty=penalty, **limit)

    def default_score(self) -> GaussianScore:
        """BIC of normal columns of the effective number of rows, at twice the penalty."""
        return GaussianScore(self)

    def facts_of_pairs(self) -> np.ndarray:
        """Of the effective number of rows."""
        return facts_of_rows(self.effective_samples, len(self.names))

    def redraw(
        self, adjacency: np.ndarray, *, kind: ReleaseKind | None = None
    ) -> Callable[[jax.Array], Release]:
        """From the linear Gaussian model of the correlations, on rough scales."""
        fitted = fit_linear_gaussian(self, adjacency)
        return redrawn(self, fitted, kind or self.bought or Tetrachoric())

    def _precision(self) -> np.ndarray:
        # Medians take as many steps as they need, pairs have what is left, and choices leave some
        # of that unspent: what the first step costs, and how many pairs there are, does not depend
        # on the rows.
        first = float(str(self.charges[0]["rho"])) if self.charges else 0.0
        return np.array([first, len(self.pairs)])

    def __repr__(self) -> str:
        return (
            f"ReleasedTetrachoric({len(self.names)} columns, {counted(len(self.pairs), 'pair')}, "
            f"n_samples={self.n_samples}, as precise as {self.effective_samples:.0f} rows without "
            f"noise; {self.cost})"
        )

    def _least_variance(self, epsilon: float, rho: float) -> tuple[float, float] | None:
        least = min(self.sigma, self.signs_sigma) if len(self.pairs) else self.signs_sigma
        return least**2, _CHANGE**2 / (2 * rho) * (1 - 1e-4)

    def _parts(self) -> Parts:
        arrays = {
            name: getattr(self, name)
            for name in ("thresholds", "scales", "signs", "pairs", "products")
        }
        return {"signs_sigma": self.signs_sigma, "sigma": self.sigma}, arrays

    @classmethod
    def _from_parts(
        cls, common: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> ReleasedTetrachoric:
        parts: dict[str, Any] = {
            name: arrays[name] for name in ("thresholds", "scales", "signs", "pairs", "products")
        }
        if parts["pairs"].dtype.kind not in "iu":
            raise TypeError(f"pairs are {parts['pairs'].dtype}, not whole numbers")
        parts.update((name, float(header[name])) for name in ("signs_sigma", "sigma"))
        found, n = cls(**parts, **common), common["n_samples"]
        check_size("signs", found.signs, rows=n, deviation=found.signs_sigma)
        check_size("products", found.products, rows=n, deviation=found.sigma)
        return found


def _sign_sums(door: Door, thresholds: np.ndarray) -> Sensitive:
    """Sums over rows of the products of signs of all pairs of columns, and with a column of ones:
    int64 (p + 1, p + 1), in units of ``1 / door.units``.
    """
    names = door.domain.names

    def added(block: Block) -> np.ndarray:
        # whole numbers below 2^24 or 2^53, which floats add up exactly
        n_rows = len(block.cells[names[0]])
        small = block.weights is None and n_rows < 1 << 24
        signs = np.ones((len(names) + 1, n_rows), dtype=np.float32 if small else np.float64)
        for row, name, place in zip(signs, names, thresholds, strict=False):
            row[block.cells[name] < place] = -1
        weighted = signs if block.weights is None else signs * block.weights
        found: np.ndarray = np.rint(weighted @ signs.T).astype(np.int64)
        return found

    return door.sums(names, added)


def _sensitivity(n_values: int) -> float:
    """Of so many sums of signs, or of products of signs, together: in L2."""
    return sqrt_up(Fraction(int(_CHANGE**2) * n_values))


def _check_noise(
    prices: tuple[float, ...],
    door: Door,
    accountant: Accountant,
    *,
    n_pairs: int,
    sizes: list[int],
    pad: float,
) -> None:
    """Refuses a budget so small that the noise of a later charge cannot be drawn, before the first
    charge; from public facts.

    Args:
        prices: planned, of medians, single columns, choices and pairs.  Medians that cost less
            leave more, so nothing will cost less than this but by rounding.
        door: to the rows.
        accountant: of the run.
        n_pairs: how many pairs there are.
        sizes: how many pairs each round chooses; none: all are measured.
        pad: of a score.
    """
    _, of_singles, of_choices, of_pairs = (price * _ROUNDED for price in prices)
    asked = [(door.domain.n_columns, of_singles)]
    if sizes:
        asked += zip(sizes, split(of_pairs, [float(size) for size in sizes]), strict=True)
    elif n_pairs:
        asked.append((n_pairs, of_choices + of_pairs))
    for n_values, price in asked:
        planned_sigma(
            accountant.accounting,
            sensitivity=_sensitivity(n_values),
            rho=price,
            dimension=n_values,
            grid=1.0 / door.units,
            integral=not door.by_person,
        )
    if sizes:
        epsilon = accountant.ledger.selection_within(of_choices / sum(sizes)) * _ROUNDED
        noise_scale(2 * integer_sensitivity(_CHANGE, grid=VECTOR_GRID, pad=pad), epsilon)


def _bought(options: Tetrachoric, door: Door, accountant: Accountant) -> ReleasedTetrachoric:
    n, p, unit = door.n_samples, door.domain.n_columns, 1.0 / door.units
    ledger = accountant.ledger

    def prices(weights: tuple[float, ...]) -> tuple[float, ...]:
        """What is left to spend, by weight."""
        left = ledger.remaining_rho
        return (left,) * len(weights) if math.isinf(left) else split(left, weights)

    pairs = np.array(list(itertools.combinations(range(p), 2)), dtype=np.int64).reshape(-1, 2)
    budget = ledger.budget
    n_selected = (
        0 if isinstance(budget, NoPrivacy) else options.n_selected(door.domain, n, budget=budget)
    )
    parts = [len(part) for part in np.array_split(np.arange(n_selected), _ROUNDS)]
    sizes = [size for size in parts if size]
    pad = n * 2.0**-48  # of a score
    planned = prices(options.shares)
    if not math.isinf(planned[0]):
        _check_noise(planned, door, accountant, n_pairs=len(pairs), sizes=sizes, pad=pad)
    cuts = bought_medians(door, accountant, rho=planned[0])
    whole = _sign_sums(door, cuts.places).map(lambda s: s * unit if door.by_person else s)

    def noisy(values: Sensitive, n_values: int, price: float, label: str) -> tuple[Any, float]:
        sensitivity = _sensitivity(n_values)
        found = gaussian(
            accountant, values, sensitivity=sensitivity, rho=price, grid=unit, label=label
        )
        return found, 0.0 if math.isinf(price) else sensitivity / math.sqrt(2 * price)

    of_singles = prices(options.shares[1:])[0]
    signs, signs_sigma = noisy(whole[:p, p], p, of_singles, "signs of all columns")
    taken = np.zeros((0, 2), dtype=np.int64)
    products, sigma = np.zeros(0), 0.0

    def released() -> ReleasedTetrachoric:
        return ReleasedTetrachoric(
            door.domain,
            n,
            cuts.places,
            cuts.scales,
            signs,
            signs_sigma,
            taken,
            products,
            sigma,
            bought=options,
            **paid(accountant),
        )

    with accountant.keeping(released):
        if not n_selected:
            if len(pairs):
                values = whole[pairs[:, 0], pairs[:, 1]]
                price = prices((1.0,))[0]
                products, sigma = noisy(values, len(pairs), price, "signs of all pairs")
            taken = pairs
            return released()
        of_choices, of_pairs = prices(options.shares[2:])
        epsilon = ledger.selection_within(of_choices / n_selected) * _ROUNDED
        for place, (size, price) in enumerate(
            zip(sizes, split(of_pairs, [float(size) for size in sizes]), strict=True), start=1
        ):
            of_round = f"round {place} of {len(sizes)}"
            expected = released().expected_products(pairs)
            chosen = select_top(
                accountant,
                whole.map(lambda s: np.abs(s[pairs[:, 0], pairs[:, 1]] - expected)),  # noqa: B023
                size=size,
                sensitivity=_CHANGE,
                epsilon=epsilon,
                pad=pad,
                label=f"{of_round}: choice of a pair",
                grid=VECTOR_GRID,
            )
            new = pairs[chosen]
            values = whole[new[:, 0], new[:, 1]]
            found, sigma = noisy(values, size, price, f"{of_round}: signs of chosen pairs")
            pairs = np.delete(pairs, chosen, axis=0)
            taken = np.concatenate([taken, new])
            products = np.concatenate([products, found])
        return released()
