r"""A release of feature covariances: nonlinear dependence between columns of any kind, in one table
of numbers.

Each column becomes a vector phi_j of length one.  A numeric column goes through a private rank map
u in [0, 1] (:mod:`jaxcd.privacy.rank_maps`), bought once and public from then on, into r cosines

    phi(u) = c(u) / |c(u)|,   c_k(u) = k^{-decay} cos(pi k u),   k = 1 .. r;

a discrete column with k levels into its contrasts (:mod:`jaxcd.ops.moments`) divided by their
length sqrt(1 - 1 / k).  With f = (a, phi_1, ..., phi_p), a > 0 an anchor, the release is the sum
over rows of f f^T with noise.

*Sensitivity.*  The upper triangle with its diagonal divided by sqrt 2
(:func:`jaxcd.ops.tilted_moments.pack`) has, between rows f and f', the squared distance |f f^T - f'
f'^T|_F^2 / 2 = (|f|^4 + |f'|^4) / 2 - (f . f')^2 = (p + a^2)^2 - (f . f')^2, because all rows have
the same length.  So all means, all variances and all covariances together have the L2 sensitivity

    p + a^2,

whatever r is; tight where two rows can be orthogonal.  (Features of length at most one and the
constant 1, with the diagonal at full weight, have sqrt((p + 1)(p + 2)).)  Each feature is rounded
to a multiple of 2^-15, so that products are summed without error; a vector is then at most sqrt(r)
2^-16 longer, which is counted.

*Missing cells.*  A column whose domain says that cells may be missing has one feature more, the
first: 1 where the cell is missing, and then all others are 0.  So every row has the same length
still, and the bound is the same.  Sums with this feature count the rows in which two columns are
known, and give the means of a column in them, from which scores and tests take the covariances of
available cases (:attr:`ReleasedFeatures.counted`); or it is a level like any other.

*How many features.*  Two cosines tell a monotone relation from a bent one, more tell finer shapes;
the sensitivity is the same, but the noise is shared by the variances too, which fall with r.
Features of length one have variance 1 / r each on average, a symmetric matrix of D rows whose
entries have noise s / n has a spectrum of 2 sqrt(D) s / n to either side, and the quotient 2 r
sqrt(D) s / n says how much of a covariance matrix noise is.  The default is the largest r from 2 to
6 that keeps it at one half or less, else 2: a function of the domain, the number of rows and the
budget, which are public.  (Mixed models of 10 to 30 columns, 1,000 to 30,000 rows, epsilon .5 to 4:
this r had the best arc F1, or within .05 of it, in 20 of 21 settings.)

*What can be seen.*  Regressions on features are additive: E[phi_x | Z] is approximated by sum_j B_j
phi_j.  Where a child is a function of a sum of its parents that is far from linear, such as
sin(z_1 + z_2), what is left depends on the parents' interaction, and no number of rows helps: a
source of errors for conditional tests that privacy has nothing to do with.  Use
:class:`jaxcd.StratifiedRanks` there.

Source:
    PRIVACY.md K4, whose bound is lowered here; Rahimi and Recht 2007 for explicit features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, final

import jax
import numpy as np

from jaxcd.checks import check_number, check_whole, counted, hold_python_numbers
from jaxcd.data import Domain, Missing
from jaxcd.data.domain import observed_domain
from jaxcd.data.rows import Block
from jaxcd.errors import DataError, OptionError
from jaxcd.ops.moments import contrast_basis
from jaxcd.ops.people import RECORD
from jaxcd.ops.tilted_moments import ExactSum, conversion_error, pack, unpack
from jaxcd.privacy import Accountant, Budget, Ledger, PrivacyCost, gaussian, split
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.queries import Door
from jaxcd.releases.base import Parts, Release, Scores, Tests, facts_of_rows, finite_array
from jaxcd.releases.bought_ranks import bought_ranks, share_of_maps, spread
from jaxcd.releases.features.canonical_correlation import LEAST_EIGENVALUE, feature_tests
from jaxcd.releases.features.feature_models import fit_features
from jaxcd.releases.features.feature_score import FeatureScore
from jaxcd.releases.features.known_pairs import NOISY_SHARE, in_known_pairs
from jaxcd.releases.kind import ReleaseKind, paid
from jaxcd.releases.plans import Plan
from jaxcd.releases.release_file import first_edition_charges
from jaxcd.releases.stated_noise import check_size
from jaxcd.scores.base import LocalScore
from jaxcd.scores.configurations import BIC

__all__ = [
    "Features",
    "ReleasedFeatures",
    "cosine_features",
    "feature_moments",
    "feature_sensitivity",
]

_GRID = 2.0**-15
_MOST_CHOSEN = 6
_BLOCK = 1 << 12
# Of the rank maps: the range on asinh scale of columns without bounds, and the levels.
_LOG_RANGE, _LEVELS = 16.0, 12
_RANK_SHARES = (0.1, 0.3)  # least and most of the budget for them


def cosine_features(ranks: np.ndarray, *, n_features: int, decay: float) -> np.ndarray:
    """phi(u), float64 (n, r), rows of length one: k^{-decay} cos(pi k u), k = 1 .. r, over their
    length.

    Args:
        ranks: u in [0, 1], (n,).
        n_features: r, at least 2 (of two cosines one is never zero).
        decay: from 0; larger ones give more of the length to the smooth features.
    """
    k = np.arange(1, n_features + 1)
    waves = np.cos(math.pi * np.multiply.outer(ranks, k)) * k**-decay
    found: np.ndarray = waves / np.linalg.norm(waves, axis=1, keepdims=True)
    return found


def feature_sensitivity(sizes: tuple[int, ...], *, anchor: float) -> float:
    """L2 sensitivity (replace-one) of the packed moments, rounding counted: sum over columns of
    (1 + sqrt(r_j) 2^-16)^2, plus a^2.

    Args:
        sizes: r_j, the number of features of each column; 0 for a column with one level, which has
            none.
    """
    lengths = math.fsum((1 + math.sqrt(r) * _GRID / 2) ** 2 for r in sizes if r > 0)
    return (lengths + anchor**2) * (1 + 2.0**-40)


@final
@dataclass(frozen=True)
class Features(ReleaseKind):
    """Noisy covariances of features of every column, for additive models of columns of any kind.

    A numeric column gives cosines of its private ranks, a discrete one contrasts of its levels.  A
    column needs no bounds: ranks have none.  Without bounds numbers beyond 4.4
    million are clipped, and near 0 they are told apart by 0.008; with bounds, by a 4096th of their
    distance.  Where cells are missing, a pair of columns counts in the
    rows that know both.

    Args:
        n_features: cosines of a numeric column, 2 to 32; None chooses 2 to 6 by the public facts
            (:meth:`chosen`).
        decay: see :func:`cosine_features`, from 0 to 4.
        rank_share: the budget's share (in zCDP) that buys the rank maps, between 0 and 1; None
            chooses .1 to .3 by the public facts (:meth:`shares`).
        anchor: scale of the constant, in (0, 2]; the noise on means is that on covariances divided
            by it.

    Raises:
        OptionError: an option is out of its range.

    Guarantee:
        Relation: replace-one; n, the declared domain and the options are public, and the number of
        features follows from these and the budget.  Sensitivity: that of the rank maps of the
        numeric columns, and then, the maps being public, p + a^2 in L2
        (:func:`feature_sensitivity`).  Events: one ``GaussianEvent`` each; their sizes are fixed
        before the data is read.  Proof: the docstring of
        :mod:`jaxcd.releases.features.feature_covariances`, :mod:`jaxcd.privacy.rank_maps`,
        :func:`jaxcd.privacy.gaussian`.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> group = np.random.default_rng(0).integers(2, size=20_000)
        >>> value = group + np.random.default_rng(1).normal(size=20_000)
        >>> domain = jaxcd.Domain({"group": jaxcd.Categorical((0, 1)), "value": jaxcd.Numeric()})
        >>> bought = jaxcd.release(
        ...     jaxcd.Dataset.from_array(np.column_stack([group, value]), domain=domain),
        ...     jaxcd.Features(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(jaxcd.search(bought).graph)
        group --- value
    """

    claim = GuaranteeClaim(
        "means and covariances of bounded features of ranks are (epsilon, delta)-DP of their "
        "budget, delta > 0, rank maps included",
        "jaxcd.releases.features.feature_covariances, jaxcd.privacy.rank_maps",
    )

    n_features: int | None = None
    decay: float = 0.5
    rank_share: float | None = None
    anchor: float = 0.5
    word: ClassVar[str] = "features"
    title: ClassVar[str] = (
        "covariances of features, and the graph of the highest score of additive models"
    )
    step: ClassVar[float] = 2 * _LOG_RANGE / (1 << _LEVELS)
    needs_delta: ClassVar[bool] = True
    takes_people: ClassVar[bool] = True

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        if self.n_features is not None:
            check_whole("n_features", self.n_features, 2, 32, cure="None chooses one")
        if self.rank_share is not None:
            check_number("rank_share", self.rank_share, 0, 1, "()", cure="None chooses .1 to .3")
        for argument, high, ends, usual in (("decay", 4, "[]", 0.5), ("anchor", 2, "(]", 0.5)):
            value = getattr(self, argument)
            check_number(argument, value, 0, high, ends, cure=f"{usual:g} is usual")

    def shares(self, domain: Domain, n_samples: int, *, rho: float) -> tuple[float, float]:
        """The shares of rho that buy the rank maps and the covariances; no maps without numeric
        columns.  The first is as given, or :func:`jaxcd.releases.bought_ranks.share_of_maps`
        between .1 and .3.

        Args:
            domain: public.
            n_samples: as ``domain``.
            rho: what is to be spent, in zCDP.
        """
        least, most = _RANK_SHARES if self.rank_share is None else (self.rank_share,) * 2
        share = share_of_maps(domain, n_samples, rho=rho, n_levels=_LEVELS, least=least, most=most)
        return share, 1 - share

    def sizes(self, domain: Domain) -> tuple[int, ...]:
        """The number of features of each column: ``n_features`` (2 where it is left to be chosen),
        or the number of levels less one; and one more where cells may be missing.
        """
        return tuple(
            (self.n_features or 2) + (column.missing is not None)
            if column.cardinality is None
            else column.cardinality - 1  # a missing cell is one of them
            for column in domain.columns.values()
        )

    def noise(self, domain: Domain, *, rho: float) -> float:
        """The standard deviation of the noise on a sum of products of two features.  rho: what buys
        the covariances; 0 noise if infinite.
        """
        return feature_sensitivity(self.sizes(domain), anchor=self.anchor) / math.sqrt(2 * rho)

    def chosen(self, domain: Domain, n_samples: int, *, rho: float) -> Features:
        """These options with a number of features: the largest from 2 to 6 with 2 r sqrt(D) noise /
        n at most 1/2 (the module's docstring) and fewer features than rows, else 2; as they are
        where ``n_features`` is given.

        Args:
            domain: public.
            n_samples: as ``domain``.
            rho: what buys the covariances, in zCDP.
        """
        if self.n_features is not None:
            return self
        for r in range(_MOST_CHOSEN, 2, -1):
            options = replace(self, n_features=r)
            total = sum(options.sizes(domain))
            spectrum = 2 * r * math.sqrt(total) * options.noise(domain, rho=rho) / n_samples
            if spectrum <= NOISY_SHARE and n_samples > total + 1:
                return options
        return replace(self, n_features=2)

    def check(self, domain: Domain, n_samples: int) -> None:
        """Raises DataError where rows, whose number is public, are fewer than features and two."""
        total = sum(self.sizes(domain))
        if not n_samples > total + 1:
            raise DataError(
                f"data: {counted(n_samples, 'row')} for {counted(total, 'feature')}; give at least "
                f"{total + 2} rows, or fewer columns"
                f"{'' if self.n_features in (None, 2) else ', or a smaller n_features'}"
            )

    def plan(self, domain: Domain, n_samples: int, *, budget: Budget) -> Plan:
        """n times the noise on a correlation of two features."""
        self.check_delta(budget)
        rho = Ledger(budget).remaining_rho
        rho *= self.shares(domain, n_samples, rho=rho)[1]
        kind = self.chosen(domain, n_samples, rho=rho)
        sizes = [size for size in kind.sizes(_without_marks(domain)) if size > 0]
        # Features of length one: the variance of each is one over their number.
        noise = kind.noise(domain, rho=rho) * sum(sizes) / max(len(sizes), 1)
        return Plan.of(noise, n_samples, number="correlation of two features", unit=budget.unit)

    def buy(self, door: Door, accountant: Accountant) -> ReleasedFeatures:
        """Rank maps of the numeric columns, and then the moments of the features."""
        return _bought(self, door, accountant)


@final
@dataclass(frozen=True, eq=False)
class ReleasedFeatures(Release):
    """Noisy feature moments; public.

    Args:
        domain: the declared columns.
        n_samples: n (public).
        sizes: the number of features of each column.
        moments: float64 (1 + D, 1 + D), D the sum of the sizes: the sum over rows of f f^T, f =
            (anchor, features).
        sigma: standard deviation of its noise off the diagonal (sqrt 2 times that on it); 0 without
            privacy.
        anchor: a, positive.
        cost: as in :class:`Release`.
        spent: as ``cost``.
        charges: as ``cost``.
        bought: as in :class:`Release`.

    Raises:
        OptionError: the parts do not fit together.
    """

    domain: Domain
    n_samples: int
    sizes: tuple[int, ...]
    moments: np.ndarray = field(repr=False)
    sigma: float
    anchor: float
    cost: PrivacyCost
    spent: PrivacyCost
    charges: tuple[Mapping[str, object], ...] = ()
    bought: ReleaseKind | None = None

    kind: ClassVar[str] = "features"

    def __post_init__(self) -> None:
        if len(self.sizes) != self.domain.n_columns or not all(size >= 0 for size in self.sizes):
            raise OptionError(
                f"sizes must be {self.domain.n_columns} numbers from 0, one a column, got "
                f"{self.sizes!r}"
            )
        shape = (1 + sum(self.sizes),) * 2
        object.__setattr__(self, "moments", finite_array("moments", self.moments, shape))
        check_number("anchor", self.anchor, 0, ends="(]", cure="give a positive one")
        check_number("sigma", self.sigma, 0, cure="give 0 where there is no noise")

    @cached_property
    def blocks(self) -> tuple[np.ndarray, ...]:
        """For each column the places of its features in :attr:`covariance`, integers (r_j,)."""
        ends = np.cumsum((0, *self.sizes))
        return tuple(np.arange(first, end) for first, end in zip(ends, ends[1:], strict=False))

    @property
    def noise(self) -> float:
        """The standard deviation of the noise on a product's mean over the rows: an entry of
        :attr:`moments` over n, off the diagonal.
        """
        return self.sigma / self.n_samples

    @cached_property
    def floor(self) -> float:
        """The least eigenvalue that can be told from noise: noise sqrt(D) (half the largest of pure
        noise), and at least 1e-6.
        """
        return max(self.noise * math.sqrt(max(sum(self.sizes), 1)), LEAST_EIGENVALUE)

    @cached_property
    def means(self) -> np.ndarray:
        """The means of the features, (D,)."""
        return self.moments[0, 1:] / (self.anchor * self.n_samples)

    @cached_property
    def covariance(self) -> np.ndarray:
        """The covariance of the features, (D, D), symmetric; unbiased up to the noise in the means,
        possibly indefinite.
        """
        return self.moments[1:, 1:] / self.n_samples - np.outer(self.means, self.means)

    @cached_property
    def counted(self) -> ReleasedFeatures:
        """What scores and tests count in: this release, or, where missing cells are left out, its
        moments in the rows that know a pair (:mod:`jaxcd.releases.features.known_pairs`).
        """
        may_miss = any(column.missing is not None for column in self.domain.columns.values())
        return in_known_pairs(self) if self.missing is Missing.IGNORE and may_miss else self

    _depend_on_reading: ClassVar[tuple[str, ...]] = ("counted",)

    def tests(self) -> Tests:
        """Canonical correlations only."""
        return feature_tests(self.counted)

    def scores(self) -> Scores:
        """BIC of jointly normal features."""
        return {BIC: self._bic}

    def _bic(self, score: Any, max_parents: int | None) -> LocalScore:
        limit: dict[str, Any] = {} if max_parents is None else {"max_parents": max_parents}
        return FeatureScore(self, penalty=float(score.penalty_discount), **limit)

    def default_score(self) -> FeatureScore:
        """BIC of jointly normal features, of as many cosines as the data are worth, with a price on
        every edge.
        """
        return FeatureScore(self)

    def redraw(
        self, adjacency: np.ndarray, *, kind: ReleaseKind | None = None
    ) -> Callable[[jax.Array], Release]:
        """The moments themselves are drawn anew: covariances of features determine no distribution
        of rows.
        """
        model = fit_features(self.counted, adjacency)
        return lambda key: model.again(key=key)

    def facts_of_pairs(self) -> np.ndarray:
        """Of the effective number of rows; log(1 + L) of the L levels that are too rare to take
        part, at most 15; and how many of the two columns are discrete.

        On random truths edges of the same share of draws returned more often the more levels take
        no part, from which noise makes no edges, and the more columns are discrete.
        """
        score = self.default_score()
        pooled = min(sum(self.counted.sizes) - int(score.settings["n_features"]), 15)
        discrete = np.array([float(c.is_discrete) for c in self.domain.columns.values()])
        return facts_of_rows(
            score.effective_samples,
            len(self.names),
            math.log1p(pooled),
            np.add.outer(discrete, discrete),
        )

    def __repr__(self) -> str:
        return (
            f"ReleasedFeatures({self.domain.n_columns} columns, "
            f"{counted(sum(self.sizes), 'feature')}, "
            f"n_samples={self.n_samples}, "
            f"noise {self.noise:.3g}; {self.cost})"
        )

    def _least_variance(self, epsilon: float, rho: float) -> tuple[float, float] | None:
        return self.sigma**2, feature_sensitivity(self.sizes, anchor=self.anchor) ** 2 / (2 * rho)

    def _parts(self) -> Parts:
        return (
            {"sizes": list(self.sizes), "sigma": self.sigma, "anchor": self.anchor},
            {"moments": self.moments},
        )

    @classmethod
    def _from_parts(
        cls, common: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> ReleasedFeatures:
        found = cls(
            sizes=tuple(int(size) for size in header["sizes"]),
            moments=arrays["moments"],
            sigma=float(header["sigma"]),
            anchor=float(header["anchor"]),
            **first_edition_charges(header, common),
        )
        if not found.n_samples > sum(found.sizes) + 1:
            raise ValueError(f"n_samples is {found.n_samples}, for {sum(found.sizes)} features")
        rows = found.n_samples * feature_sensitivity(found.sizes, anchor=found.anchor)
        check_size("moments", found.moments, rows=rows, deviation=found.sigma)
        return found


def feature_moments(
    vectors: Sequence[np.ndarray], weights: np.ndarray | None = None, *, anchor: float
) -> np.ndarray:
    """The sum over rows of f f^T, float64 (1 + D, 1 + D), of features (rows, r_j) that are rounded
    to multiples of 2^-15 first; exact but for the conversion to double precision and the anchor's
    factor.

    Args:
        vectors: the features of each column.
        weights: of the rows, in units of 2^-20 (:mod:`jaxcd.ops.people`); None counts each once.
        anchor: a.
    """
    return _moments_of(feature_steps(vectors, weights), anchor=anchor, weighted=weights is not None)


def feature_steps(
    vectors: Sequence[np.ndarray],
    weights: np.ndarray | None = None,
    *,
    empty: Callable[[tuple[int, int]], ExactSum] = ExactSum,
) -> ExactSum:
    """The same sum in squared steps of 2^-15, times the units of the weights: whole numbers.

    Args:
        vectors: as for :func:`feature_moments`.
        weights: as ``vectors``.
        empty: the sum of no rows, of a shape.
    """
    n = len(vectors[0])
    size = 1 + sum(v.shape[1] for v in vectors)
    total = empty((size, size))
    for start in range(0, n, _BLOCK):
        block = np.column_stack(
            [np.ones((min(_BLOCK, n - start), 1)), *(v[start : start + _BLOCK] for v in vectors)]
        )
        steps = np.rint(block / _GRID)
        total.add_products(steps, None if weights is None else weights[start : start + _BLOCK])
    return total


def _moments_of(total: ExactSum, *, anchor: float, weighted: bool) -> np.ndarray:
    moments = total.value() * (_GRID**2 * RECORD if weighted else _GRID**2)
    moments[0] *= anchor
    moments[:, 0] *= anchor
    return moments


def _without_marks(domain: Domain) -> Domain:
    """The domain whose columns have no feature for missing cells."""
    return observed_domain(domain, [True] * domain.n_columns)


def _level_vectors(k: int) -> np.ndarray:
    """The features of each of k levels, float64 (k, k - 1)."""
    return contrast_basis(k) / math.sqrt(1 - 1 / k) if k > 1 else np.zeros((1, 0))


def _marked(vectors: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """With the feature of missing cells before them, (n, 1 + r), where all others are 0."""
    mark = missing[:, None]
    return np.hstack([mark, np.where(mark, 0.0, vectors)])


def _bought(options: Features, door: Door, accountant: Accountant) -> ReleasedFeatures:
    domain, n = door.domain, door.n_samples
    numeric = [name for name in domain.names if not domain[name].is_discrete]
    total = accountant.ledger.remaining_rho
    if math.isinf(total):
        map_rho = rho = math.inf
    else:
        map_rho, rho = (
            split(total, options.shares(domain, n, rho=total)) if numeric else (0.0, total)
        )
    options = options.chosen(domain, n, rho=rho)
    n_features = options.n_features or 2

    if numeric:
        maps = bought_ranks(
            door, accountant, numeric, rho=map_rho, log_range=_LOG_RANGE, n_levels=_LEVELS
        )
    sizes = options.sizes(domain)

    def vector(block: Block, name: str) -> np.ndarray:
        """The features of a column."""
        column = domain[name]
        may_miss = column.missing is not None
        if column.cardinality is not None:
            codes = block.cells[name]
            levels = _level_vectors(column.cardinality - may_miss)
            if not may_miss:
                found: np.ndarray = levels[codes]
                return found
            return _marked(levels[np.minimum(codes, len(levels) - 1)], codes == len(levels))
        values = spread(block, name, column, log_range=_LOG_RANGE)
        ranks = maps.rank(numeric.index(name), values)
        waves = cosine_features(ranks, n_features=n_features, decay=options.decay)
        return _marked(waves, block.is_missing(name)) if may_miss else waves

    sensitivity = feature_sensitivity(sizes, anchor=options.anchor)
    exact = door.sums(
        domain.names,
        lambda block: feature_steps(
            [vector(block, name) for name in domain.names], block.weights, empty=block.empty
        ),
    )
    noisy = gaussian(
        accountant,
        exact.map(
            lambda total: pack(_moments_of(total, anchor=options.anchor, weighted=door.by_person))
        ),
        sensitivity=sensitivity,
        rho=rho,
        pad=conversion_error(n, 1.0 + options.anchor**2),
        label="feature covariances",
    )
    return ReleasedFeatures(
        domain=domain,
        n_samples=n,
        sizes=sizes,
        moments=unpack(noisy, 1 + sum(sizes)),
        sigma=0.0 if math.isinf(rho) else sensitivity / math.sqrt(2 * rho),
        anchor=options.anchor,
        bought=options,
        **paid(accountant),
    )
