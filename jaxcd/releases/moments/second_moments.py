r"""A release of means and covariances of numeric columns: every linear-Gaussian test and score
becomes post-processing.

Released, in a few rounds under zCDP: exponentially tilted second moments
(:mod:`jaxcd.ops.tilted_moments`) of y = L^{-1} (x - m), a row in units in which all directions are
alike.  The first round takes public centres and scales, or buys them; each round hands its estimate
of mean m and covariance L L^T to the next, which is thereby less noisy where the columns are nearly
collinear, and that is where partial correlations magnify noise.  The last round is the release.
Its noise is invariant under rotations of y and so nearly that of a sample: in all tests and scores
it only makes the sample smaller (:attr:`ReleasedSecondMoments.effective_samples`).

*Privacy.*  m, L and the rate of a round are functions of what earlier rounds released, so each
round is a fixed function of the rows with proved L2 sensitivity, and the zCDP prices add up under
adaptive composition.  No bound on the values is needed: far rows have no weight.

*Bias.*  For jointly normal rows the tilt is undone exactly.  Otherwise the covariance is that of a
downweighted sample.

Centres and scales that are bought are rough (:mod:`jaxcd.releases.moments.bought_units`); later
rounds correct them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, final

import jax
import numpy as np

from jaxcd.checks import (
    a_type,
    check_number,
    check_weights,
    counted,
    hold_python_numbers,
    is_number,
    shown_list,
)
from jaxcd.data import Domain
from jaxcd.data.rows import Block
from jaxcd.errors import DomainError, OptionError
from jaxcd.ops import tilted_moments as tilted
from jaxcd.privacy import Accountant, Budget, Ledger, PrivacyCost, gaussian, planned_sigma, split
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim
from jaxcd.queries import Door
from jaxcd.releases.base import Parts, Release, Scores, Tests, facts_of_rows, finite_array
from jaxcd.releases.kind import ReleaseKind, check_complete_numeric, paid
from jaxcd.releases.moments.bought_units import bought_units
from jaxcd.releases.moments.fisher_z import moment_tests
from jaxcd.releases.moments.gaussian_score import GaussianScore
from jaxcd.releases.moments.linear_models import fit_linear_gaussian
from jaxcd.releases.moments.regressions import Regressions
from jaxcd.releases.plans import Plan
from jaxcd.releases.redrawing import redrawn
from jaxcd.releases.release_file import first_edition_charges
from jaxcd.releases.stated_noise import check_size
from jaxcd.scores.base import LocalScore
from jaxcd.scores.configurations import BIC

__all__ = ["ReleasedSecondMoments", "SecondMoments"]

# The constant in front of every row: total weight and means are released at its scale.
# Bounds whose squares, and sums of them, are floats.
_FARTHEST = 1e150
_ANCHOR = 1.0
_REACH = 1e6
# Eigenvalues of correlations are at least about this: far above rounding, far below any that
# matters.
_JITTER = 1e-9
# Warned of from here on: with 500 to 50,000 rows of 3 to 30 normal columns that are not nearly
# functions of each other numbers were worth less only where the budget buys fewer than so many
# rows.
_LOST, _FEW_WANTED = 0.1, 300.0
# Of 2,000 rows of 6 and 5,000 of 30 independent columns at (1, 1e-6) normal ones hold .98 to 1.00
# of it, cubes of exponential ones .22 with 7 false edges, log-normal ones (sigma 2) .39 with 44.
_LEAST_WEIGHT = 0.5


_BOUGHT_UNITS = "centres and scales"  # the label of that event


@final
@dataclass(frozen=True)
class SecondMoments(ReleaseKind):
    """Noisy means and covariances of numeric columns, for linear models.

    Args:
        centres: for each column a public guess of its mean, in its units; a guess taken from the
            data voids the guarantee.  None, with ``scales`` None: bought with a share of the
            budget.
        scales: for each column a public guess of its standard deviation, positive, in its units.
        shares: the budget's (zCDP) shares of the rounds, positive; they are normalised.
        scale_share: the share that buys centres and scales where none are given, between 0 and 1.

    Raises:
        OptionError: an option is out of its range.

    Guarantee:
        Relation: replace-one; n, the declared domain and the options are public.  Sensitivity:
        exp(s c^2 - 1) / s in L2, s the round's rate, c = 1 (:mod:`jaxcd.ops.tilted_moments`).
        Events: one ``GaussianEvent`` a round, and one for the rank maps where centres and scales
        are bought; their number and sizes are fixed before the data is read.  Proof: there, the
        docstring of :mod:`jaxcd.releases.moments.second_moments`, :func:`jaxcd.privacy.gaussian`.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> x = np.random.default_rng(0).normal(size=20_000)
        >>> y = x + np.random.default_rng(1).normal(size=20_000)
        >>> domain = jaxcd.Domain({"x": jaxcd.Numeric(-10, 10), "y": jaxcd.Numeric(-10, 10)})
        >>> bought = jaxcd.release(
        ...     jaxcd.Dataset.from_array(np.column_stack([x, y]), domain=domain),
        ...     jaxcd.SecondMoments(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(jaxcd.search(bought).graph)
        x --- y
    """

    claim = GuaranteeClaim(
        "tilted second moments of numeric columns are (epsilon, delta)-DP of their budget; every "
        "search on them is post-processing",
        "jaxcd.releases.moments.second_moments, jaxcd.ops.tilted_moments",
        assumptions=PUBLIC
        + "; centres and scales are public, or bought with a share of the budget",
    )

    centres: Mapping[str, float] | None = None
    scales: Mapping[str, float] | None = None
    shares: tuple[float, ...] = (0.1, 0.2, 0.7)
    scale_share: float = 0.1
    word: ClassVar[str] = "second-moments"
    title: ClassVar[str] = "second moments, and the graph of the highest Gaussian score"
    needs_delta: ClassVar[bool] = True
    takes_people: ClassVar[bool] = True

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        if (self.centres is None) != (self.scales is None):
            missing = "centres" if self.centres is None else "scales"
            raise OptionError(
                f"{missing}: not given; give public centres and scales of all columns, or neither "
                "to buy them privately"
            )
        for argument, values in (("centres", self.centres), ("scales", self.scales)):
            if values is not None and not isinstance(values, Mapping):
                raise OptionError(
                    f"{argument}: {a_type(values)} is no mapping; give {{'age': 40.0, "
                    f"...}}, one number a column"
                )
            for name, value in (values or {}).items():
                if not is_number(value) or (argument == "scales" and not value > 0):
                    raise OptionError(
                        f"{argument}[{name!r}] = {value!r}: give a finite number, a positive one "
                        "for a scale"
                    )
        check_weights("shares", self.shares, cure="give one a round, such as (0.1, 0.2, 0.7)")
        check_number("scale_share", self.scale_share, 0, 1, "()", cure="0.1 is usual")

    def check(self, domain: Domain, n_samples: int = 1) -> None:
        """Refuses a domain, which is public, that this release cannot cover.

        Raises:
            DomainError: a column is not numeric, may have missing cells, or has bounds beyond
                1e150.
            OptionError: centres or scales are of other columns.
        """
        check_complete_numeric(domain, "second moments")
        wide = {name: domain[name].bounds for name in domain.names}
        far = [name for name, ends in wide.items() if ends and max(map(abs, ends)) > _FARTHEST]
        if far:
            raise DomainError(
                f"data: the bounds of {far} reach beyond {_FARTHEST:g}, where squares are larger "
                "than the largest float; narrow them, or declare none"
            )
        for argument, values in (("centres", self.centres), ("scales", self.scales)):
            if values is not None and set(values) != set(domain.names):
                missing = [name for name in domain.names if name not in values]
                unknown = [name for name in values if name not in domain]
                raise OptionError(
                    f"{argument}: missing: {shown_list(missing)}, unknown: "
                    f"{shown_list(unknown)}; give a number for each column, "
                    f"{shown_list(domain.names)}"
                )

    def plan(self, domain: Domain, n_samples: int, *, budget: Budget) -> Plan:
        """The noise on an entry of the last round if the earlier ones found the right units: n
        times that on a correlation.
        """
        self.check(domain, n_samples)
        self.check_delta(budget)
        ledger = Ledger(budget)
        bought = self.scale_share if self.centres is None or self.scales is None else 0.0
        rho = ledger.remaining_rho * (1 - bought) * self.shares[-1] / sum(self.shares)
        units = np.ones(domain.n_columns)
        rate = tilted.best_rate(units, n_samples=n_samples, anchor=_ANCHOR, rho=rho)
        variance = tilted.relative_variances(
            units, n_samples=n_samples, rate=rate, anchor=_ANCHOR, rho=rho
        )[1]
        noise = n_samples * math.sqrt(variance)
        return Plan.of(noise, n_samples, number="entry", unit=budget.unit)

    def buy(self, door: Door, accountant: Accountant) -> ReleasedSecondMoments:
        """Centres and scales where they are not public, and then the rounds."""
        return _bought(self, door, accountant)


@final
@dataclass(frozen=True, eq=False)
class ReleasedSecondMoments(Release):
    """Noisy tilted second moments of y = L^{-1} (x - m); public.

    Args:
        domain: the declared columns, all numeric.
        n_samples: the number of rows n (public).
        moments: float64 (p + 1, p + 1), the sum over rows of g g^T.
        sigma: standard deviation of its noise off the diagonal (sqrt 2 times that on it); 0 without
            privacy.
        rate: s, positive.
        location: m, (p,), in the columns' units.
        factor: L, (p, p), invertible, in the columns' units.
        cost: as in :class:`Release`.
        spent: as ``cost``.
        charges: as ``cost``.
        bought: as in :class:`Release`.

    Raises:
        OptionError: the parts do not fit together.
    """

    domain: Domain
    n_samples: int
    moments: np.ndarray = field(repr=False)
    sigma: float
    rate: float
    location: np.ndarray = field(repr=False)
    factor: np.ndarray = field(repr=False)
    cost: PrivacyCost
    spent: PrivacyCost
    charges: tuple[Mapping[str, object], ...] = ()
    bought: ReleaseKind | None = None

    kind: ClassVar[str] = "second-moments"

    def __post_init__(self) -> None:
        p = self.domain.n_columns
        for name, shape in (("moments", (p + 1, p + 1)), ("location", (p,)), ("factor", (p, p))):
            object.__setattr__(self, name, finite_array(name, getattr(self, name), shape))
        check_number("rate", self.rate, 0, ends="(]", cure="give a positive one")
        check_number("sigma", self.sigma, 0, cure="give 0 where there is no noise")

    @cached_property
    def untilted(self) -> tilted.Untilted:
        """Mean and covariance of y, with their errors."""
        return tilted.untilt(
            self.moments, n_samples=self.n_samples, rate=self.rate, anchor=_ANCHOR, sigma=self.sigma
        )

    @cached_property
    def mean(self) -> np.ndarray:
        """The estimated means, (p,), in the columns' units."""
        found: np.ndarray = self.location + self.factor @ self.untilted.mean
        return found

    @cached_property
    def axes(self) -> np.ndarray:
        """Directions B, (p, p), with covariance B diag(l) B^T, l = ``untilted.variances``."""
        found: np.ndarray = self.factor @ self.untilted.directions
        return found

    @cached_property
    def covariance(self) -> np.ndarray:
        """The estimated covariance, (p, p), positive definite, in the columns' units."""
        found: np.ndarray = (self.axes * self.untilted.variances) @ self.axes.T
        return found

    @cached_property
    def standardised_axes(self) -> np.ndarray:
        """Directions B, (p, p), with correlation B diag(l) B^T."""
        deviations = self.deviations[:, None]
        return self.axes / np.where(deviations > 0, deviations, 1.0)

    @cached_property
    def deviations(self) -> np.ndarray:
        """Standard deviations, (p,), in the columns' units, also where their squares underflow."""
        parts = self.axes * np.sqrt(self.untilted.variances)
        largest = np.abs(parts).max(axis=1)
        shares = parts / np.where(largest > 0, largest, 1.0)[:, None]
        found: np.ndarray = largest * np.sqrt(np.sum(shares**2, axis=1))
        return found

    @cached_property
    def correlation(self) -> np.ndarray:
        """The estimated correlations, (p, p), positive definite also where one column is a function
        of others.
        """
        matrix = (self.standardised_axes * self.untilted.variances) @ self.standardised_axes.T
        found: np.ndarray = ((matrix + matrix.T) / 2 + _JITTER * np.eye(len(matrix))) / (
            1 + _JITTER
        )
        return found

    @property
    def joinable(self) -> np.ndarray:
        """Which pairs were measured, bool (p, p): all."""
        return np.ones((len(self.names), len(self.names)), dtype=bool)

    @cached_property
    def effective_samples(self) -> float:
        """The number of rows without tilt or noise whose sample covariance is as precise, at most
        n.

        1 / (sampling + noise variance) of an entry of the covariance in units where the covariance
        is the identity.
        """
        return self._rows_worth(self.untilted.variances)

    def _rows_worth(self, variances: np.ndarray) -> float:
        """The number of rows that the numbers are worth if y has these variances."""
        free = (
            math.inf
            if self.sigma == 0
            else tilted.gram_sensitivity(
                rate=self.rate, anchor=_ANCHOR, n_columns=self.domain.n_columns
            )
            ** 2
            / (2 * self.sigma**2)
        )
        parts = tilted.relative_variances(
            variances, n_samples=self.n_samples, rate=self.rate, anchor=_ANCHOR, rho=free
        )
        return 1 / sum(parts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the numbers are worth far fewer rows than the budget buys in the right units, or
        hold far less weight than so many normal rows would have.
        """
        wanted = self._rows_worth(np.ones(self.domain.n_columns))
        if wanted < _FEW_WANTED:
            return ()
        variances = self.untilted.variances
        weight = math.exp(-0.5 * float(np.log1p(2 * self.rate * variances).sum()))
        share = float(self.moments[0, 0]) / (weight * self.n_samples * _ANCHOR**2)
        if share < _LEAST_WEIGHT:
            return (
                f"the second moments hold {max(share, 0.0):.0%} of the weight of normal rows: many "
                "rows are far outside the scales that were found, so that edges may be missing or "
                "false, and effects wrong; of columns without bounds whose numbers are not mostly "
                "between .1 and 4,400,000 in size declare bounds, or give SecondMoments public "
                "centres and scales; for far tails take Features",
            )
        if self.effective_samples >= _LOST * wanted:
            return ()
        return (
            "the second moments are as precise as "
            f"{counted(round(self.effective_samples), 'row')}, where this "
            f"budget mostly buys {wanted:,.0f}: they hardly see a column of two values of which "
            "one is rare, of few values, with far tails, or nearly a function of others; Features, "
            'or Marginals with "bins" in the domain, suit such columns',
        )

    def tests(self) -> Tests:
        return moment_tests(self)

    def scores(self) -> Scores:
        """BIC of normal columns."""
        return {BIC: self._bic}

    def _bic(self, score: Any, max_parents: int | None) -> LocalScore:
        # Noise leaves false edges at the BIC's own penalty, which counts sampling only: see
        # GaussianScore.
        penalty = 2.0 * float(score.penalty_discount)
        limit: dict[str, Any] = {} if max_parents is None else {"max_parents": max_parents}
        return GaussianScore(self, penalty=penalty, **limit)

    def default_score(self) -> GaussianScore:
        """BIC of normal columns of the effective number of rows, at twice the penalty."""
        return GaussianScore(self)

    def facts_of_pairs(self) -> np.ndarray:
        """Of the effective number of rows."""
        return facts_of_rows(self.effective_samples, len(self.names))

    def linear(self) -> Regressions:
        """Regressions of its moments."""
        return Regressions(self)

    def redraw(
        self, adjacency: np.ndarray, *, kind: ReleaseKind | None = None
    ) -> Callable[[jax.Array], Release]:
        """From the linear Gaussian model of the released moments."""
        return redrawn(
            self, fit_linear_gaussian(self, adjacency), kind or self.bought or self._recorded()
        )

    def _recorded(self) -> SecondMoments:
        """The options as far as the charges tell, for files of earlier editions.

        Raises:
            OptionError: centres and scales were public: those are not in the charges.
        """
        if not self.charges:
            return SecondMoments()
        units = [float(str(row["rho"])) for row in self.charges if row["label"] == _BOUGHT_UNITS]
        rounds = tuple(
            float(str(row["rho"])) for row in self.charges if row["label"] != _BOUGHT_UNITS
        )
        if not units or not rounds:
            raise OptionError(
                "kind: the release does not record its public centres and scales; give "
                "kind=SecondMoments(centres=..., scales=...)"
            )
        return SecondMoments(shares=rounds, scale_share=units[0] / (units[0] + sum(rounds)))

    def _precision(self) -> np.ndarray:
        # One entry a round; their number first, so that shapes agree.
        rhos = [float(str(row["rho"])) for row in self.charges]
        return np.array([len(rhos), math.fsum(rhos), *(rhos[:1])])

    def __repr__(self) -> str:
        return (
            f"ReleasedSecondMoments({self.domain.n_columns} columns, "
            f"n_samples={self.n_samples}, "
            "as precise as "
            f"{counted(round(self.effective_samples), 'row')} without noise; {self.cost})"
        )

    def _least_variance(self, epsilon: float, rho: float) -> tuple[float, float] | None:
        # Of the exact rows: releases of the first edition did not round theirs to a grid.
        exact = tilted.gram_sensitivity(rate=self.rate, anchor=_ANCHOR, n_columns=0)
        return self.sigma**2, exact**2 / (2 * rho) * (1 - 1e-4)

    def _parts(self) -> Parts:
        return (
            {"sigma": self.sigma, "rate": self.rate},
            {"moments": self.moments, "location": self.location, "factor": self.factor},
        )

    @classmethod
    def _from_parts(
        cls, common: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> ReleasedSecondMoments:
        parts: dict[str, Any] = {name: arrays[name] for name in ("moments", "location", "factor")}
        known = first_edition_charges(header, common)
        found = cls(sigma=float(header["sigma"]), rate=float(header["rate"]), **parts, **known)
        p = found.domain.n_columns
        row = tilted.gram_sensitivity(rate=found.rate, anchor=_ANCHOR, n_columns=p)
        check_size("moments", found.moments, rows=found.n_samples * row, deviation=found.sigma)
        return found


def _moments(
    door: Door,
    frame: Callable[[Block], np.ndarray],
    accountant: Accountant,
    *,
    p: int,
    rate: float,
    rho: float,
    label: str,
) -> tuple[np.ndarray, float]:
    """Noisy tilted moments of the rows y, (rows, p), that ``frame`` makes of each row, and the
    standard deviation of their noise.
    """
    sensitivity = tilted.gram_sensitivity(rate=rate, anchor=_ANCHOR, n_columns=p)
    exact = door.sums(
        door.domain.names,
        lambda block: tilted.gram_steps(
            frame(block), rate=rate, anchor=_ANCHOR, weights=block.weights, empty=block.empty
        ),
    )
    noisy = gaussian(
        accountant,
        exact.map(
            lambda whole: tilted.pack(
                tilted.gram_of_steps(whole, rate=rate, anchor=_ANCHOR, weighted=door.by_person)
            )
        ),
        sensitivity=sensitivity,
        rho=rho,
        # The rounding of y is the same in both data sets, for all rows but the replaced ones, and
        # the sum is exact; weights add up to n.
        pad=tilted.conversion_error(door.n_samples, sensitivity),
        label=label,
    )
    return tilted.unpack(noisy, p + 1), 0.0 if math.isinf(rho) else sensitivity / math.sqrt(2 * rho)


def _in_frame(units: np.ndarray, *, location: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """inverse (units - location), row by row: added up in the order of the columns, so that a row
    comes out the same wherever it stands, which a product of matrices does not promise."""
    centred = [np.ascontiguousarray(column) for column in (units - location).T]
    rows = np.zeros((len(inverse), len(units)))
    for row, factors in zip(rows, inverse, strict=True):
        for column, factor in zip(centred, factors, strict=True):
            row += column * factor
    return rows.T


def _check_rounds(rounds: tuple[float, ...], accountant: Accountant, *, n: int, p: int) -> None:
    """Refuses a budget so small that the noise of a round cannot be drawn, before the first charge;
    from public facts.  No frame makes variances larger than 1, so that later rounds tilt no less
    than they are taken to here, and their numbers are no larger.

    Args:
        rounds: the prices of the rounds.
        accountant: of the run.
        n: how many rows.
        p: how many columns.
    """
    for rho in rounds:
        rate = tilted.best_rate(np.ones(p), n_samples=n, anchor=_ANCHOR, rho=rho)
        sensitivity = tilted.gram_sensitivity(rate=rate, anchor=_ANCHOR, n_columns=p)
        planned_sigma(
            accountant.accounting,
            sensitivity=sensitivity,
            rho=rho,
            dimension=(p + 1) * (p + 2) // 2,
            pad=tilted.conversion_error(n, sensitivity),
        )


def _bought(options: SecondMoments, door: Door, accountant: Accountant) -> ReleasedSecondMoments:
    names = door.domain.names
    buys = options.centres is None or options.scales is None
    weights = list(options.shares)
    if buys:  # the scales' share of the whole, beside the rounds' shares of the rest
        weights.append(sum(weights) * options.scale_share / (1 - options.scale_share))
    total = accountant.ledger.remaining_rho
    prices = (math.inf,) * len(weights) if math.isinf(total) else split(total, weights)
    n, p = door.n_samples, len(names)
    rounds = prices[: len(options.shares)]
    _check_rounds(rounds, accountant, n=n, p=p)
    if options.centres is None or options.scales is None:
        centres, scales = bought_units(door, accountant, rho=prices[-1])
    else:
        centres = np.array([options.centres[name] for name in names], dtype=np.float64)
        scales = np.array([options.scales[name] for name in names], dtype=np.float64)

    def in_units(block: Block) -> np.ndarray:
        # A row beyond a million scales has no weight; here it cannot overflow either.  Still a
        # fixed function of each row.
        with np.errstate(over="ignore"):
            found: np.ndarray = np.clip((block.values(names) - centres) / scales, -_REACH, _REACH)
            return found

    def framed(location: np.ndarray, inverse: np.ndarray) -> Callable[[Block], np.ndarray]:
        return lambda block: _in_frame(in_units(block), location=location, inverse=inverse)

    location, factor, expected = np.zeros(p), np.eye(p), np.ones(p)
    for k, rho in enumerate(rounds, start=1):
        rate = tilted.best_rate(expected, n_samples=n, anchor=_ANCHOR, rho=rho)
        frame = in_units if k == 1 else framed(location, np.linalg.inv(factor))
        moments, sigma = _moments(
            door,
            frame,
            accountant,
            p=p,
            rate=rate,
            rho=rho,
            label=f"tilted second moments, round {k}",
        )
        if k == len(rounds):
            break
        # Units in which this estimate is the identity, but for directions that its noise hides:
        # they stay short.
        found = tilted.untilt(moments, n_samples=n, rate=rate, anchor=_ANCHOR, sigma=sigma)
        ridge = found.tau * math.sqrt(p)
        location = location + factor @ found.mean
        factor = factor @ found.directions * np.sqrt(found.variances + ridge)
        expected = found.variances / (found.variances + ridge)
    return ReleasedSecondMoments(
        domain=door.domain,
        n_samples=n,
        moments=moments,
        sigma=sigma,
        rate=rate,
        location=centres + scales * location,
        factor=scales[:, None] * factor,
        bought=options,
        **paid(accountant),
    )
