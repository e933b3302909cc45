r"""A release of columns of any kind in tables: numeric columns are cut at quantiles first.

Tables of few columns are the release that bears the most columns, since their noise goes to the
pairs that matter (:mod:`jaxcd.releases.tables.marginals`).  A numeric column goes into them as the
bins between its quantiles, which a share of the budget buys as rank maps
(:mod:`jaxcd.privacy.rank_maps`).  Bins of equal numbers of rows lose the least of a dependence for
their number, and need no guess of where the numbers lie.

*Privacy.*  The bins are a function of the released maps, so they are public.  Then each row is
mapped to its bins by a public function of that row alone, so that neighbouring tables of numbers
become neighbouring tables of levels, for a row and for a person; and the tables are bought with
what is left, as from any discrete columns.  The prices add up under adaptive composition
(docs/PRIVACY.md AD).

*How many bins.*  More bins tell finer shapes apart, and leave less of a common cause within a bin,
where it would join its effects; but noise is shared by more cells.  The default is the largest of
6, 4, 3 and 2 whose tables the budget can see (:meth:`Discretised.chosen`).

*What is lost.*  Conditioning on a bin is not conditioning on the number: two effects of one strong
numeric cause stay a little dependent within its bins, and with many rows that is seen as an edge.
Where few columns or many rows leave features (:class:`jaxcd.Features`) enough to see, they find
more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, final

import numpy as np

from jaxcd.checks import check_number, check_whole, hold_python_numbers
from jaxcd.data import Domain, Numeric
from jaxcd.data.column_types import Binned
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge
from jaxcd.privacy import Accountant, Budget, Ledger, split
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim
from jaxcd.queries import Door
from jaxcd.releases.base import Release
from jaxcd.releases.bought_ranks import bought_ranks, quantiles, share_of_maps
from jaxcd.releases.kind import ReleaseKind, check_is_kind, kind_from_json, paid
from jaxcd.releases.plans import Plan
from jaxcd.releases.tables.marginals import Marginals

__all__ = ["Discretised"]

# Of the rank maps: bins are cut to a 2048th of the range; of columns without bounds the range
# reaches to 4.4 million on either side, and near 0 a leaf is .016 wide.
_LOG_RANGE, _LEVELS = 16.0, 11
_SHARES = (0.05, 0.15)  # least and most of the budget for them
# The numbers of bins that are compared, and the share of the rows that noise may hide in tables of
# so many.  Chosen on random mixed models of 10 to 150 columns with 2,000 to 50,000 rows; others are
# in benchmarks.mixed.
_BINS = ((6, 0.004), (4, 0.02), (3, 0.05))
_FEWEST = 2


@final
@dataclass(frozen=True)
class Discretised(ReleaseKind):
    """Numeric columns cut at private quantiles, and then a release of tables.

    For many columns of mixed kinds, where noise on the covariances of all features hides most.  The
    release is one of the discrete columns: its domain has the bins that were bought.  Columns need
    no bounds: without them numbers beyond 4.4 million are in the outer bins, and near 0 numbers are
    told apart by .016; with bounds, by a 2048th of their distance.

    Args:
        of: what is bought of the discrete columns: :class:`jaxcd.Marginals` or
            :class:`jaxcd.LogLinear`.
        bins: of a numeric column, 2 to 32; None chooses 6, 4, 3 or 2 by the public facts
            (:meth:`chosen`).
        share: the budget's share (in zCDP) that buys the quantiles, between 0 and 1; None chooses
            .05 to .15 by the public facts (:meth:`share_of`).

    Raises:
        OptionError: an option is out of its range, or ``of`` takes no discrete columns or no delta.

    Guarantee:
        Relation: replace-one; n, the declared domain and the options are public.  Sensitivity: that
        of the rank maps of the numeric columns
        (:func:`jaxcd.privacy.rank_maps.release_counted_maps`); then, the bins being public, that of
        ``of``.  Events: one ``GaussianEvent`` of the share, and those of ``of`` within the rest.
        Proof: docs/PRIVACY.md AD, :mod:`jaxcd.privacy.rank_maps`, that of ``of``.

    Source:
        Dougherty, Kohavi, Sahami 1995 for bins of equal frequency.

    Example:
        >>> import jax, jaxcd, numpy as np
        >>> group = np.random.default_rng(0).integers(2, size=20_000)
        >>> value = group + np.random.default_rng(1).normal(size=20_000)
        >>> domain = jaxcd.Domain({"group": jaxcd.Categorical((0, 1)), "value": jaxcd.Numeric()})
        >>> bought = jaxcd.release(
        ...     jaxcd.Dataset.from_array(np.column_stack([group, value]), domain=domain),
        ...     jaxcd.Discretised(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(jaxcd.search(bought).graph)
        group --- value
        >>> bought.domain["value"].cardinality
        6
    """

    claim = GuaranteeClaim(
        "quantiles of numeric columns and tables of their bins are (epsilon, delta)-DP of their "
        "budget, delta > 0; every search on them is post-processing",
        "jaxcd.releases.tables.discretised, jaxcd.privacy.rank_maps",
        assumptions=PUBLIC,
    )

    of: ReleaseKind = field(default_factory=Marginals)
    bins: int | None = None
    share: float | None = None
    word: ClassVar[str] = "discretised"
    title: ClassVar[str] = (
        "tables of numeric columns cut at their quantiles, and the graph of the highest set score"
    )
    step: ClassVar[float] = 2 * _LOG_RANGE / (1 << _LEVELS)
    needs_delta: ClassVar[bool] = True
    bought_in_domain: ClassVar[str] = "the edges of the bins of columns that were declared numeric"
    takes_people: ClassVar[bool] = True

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        if isinstance(self.of, Mapping):  # of a file
            object.__setattr__(self, "of", kind_from_json(self.of))
        check_is_kind(self.of)
        if self.of.is_pure or self.of.needs_delta:
            raise OptionError(
                f"of = {self.of!r} does not buy tables of discrete columns with Gaussian noise; "
                "give jaxcd.Marginals() or jaxcd.LogLinear()"
            )
        if self.bins is not None:
            check_whole("bins", self.bins, 2, 32, cure="None chooses 2 to 6")
        if self.share is not None:
            check_number("share", self.share, 0, 1, "()", cure="None chooses .05 to .15")

    def knowing(self, knowledge: Knowledge | None) -> ReleaseKind:
        """With tables that need not measure what is known."""
        return replace(self, of=self.of.knowing(knowledge))

    @property
    def of_levels(self) -> ReleaseKind:
        """What is bought of the discrete columns."""
        return self.of.of_levels

    def share_of(self, domain: Domain, n_samples: int, *, rho: float) -> float:
        """The share of rho that buys the quantiles: as given, or
        :func:`jaxcd.releases.bought_ranks.share_of_maps` between .05 and .15.

        Args:
            domain: public.
            n_samples: as ``domain``.
            rho: what is to be spent, in zCDP.
        """
        if self.share is not None:
            return self.share
        least, most = _SHARES
        return share_of_maps(domain, n_samples, rho=rho, n_levels=_LEVELS, least=least, most=most)

    def chosen(self, domain: Domain, n_samples: int, *, budget: Budget) -> Discretised:
        """These options with a number of bins: 6 where noise hides at most .004 of the rows in
        tables of so many, else 4 where it hides at most .02, else 3 where it hides at most .05,
        else 2; as they are where ``bins`` is given.

        Args:
            domain: public.
            n_samples: as ``domain``.
            budget: as ``domain``.
        """
        if self.bins is not None:
            return self
        for bins, most in _BINS:
            found = replace(self, bins=bins)
            if found.plan(domain, n_samples, budget=budget).smallest_share <= most:
                return found
        return replace(self, bins=_FEWEST)

    def in_levels(self, domain: Domain) -> Domain:
        """A domain with as many levels as the bought one may have, from public facts."""
        k = self.bins or _FEWEST
        return domain.in_bins(
            {
                name: Binned(tuple(map(float, range(k + 1))), missing=column.missing)
                for name, column in domain.columns.items()
                if isinstance(column, Numeric)
            }
        )

    def check(self, domain: Domain, n_samples: int = 1) -> None:
        """Raises as ``of`` does for discrete columns."""
        self.of.check(self.in_levels(domain), n_samples)

    def plan(self, domain: Domain, n_samples: int, *, budget: Budget) -> Plan:
        """What ``of`` can see in tables of the bins, with its share of the budget."""
        self.check_delta(budget)
        if self.bins is None:
            return self.chosen(domain, n_samples, budget=budget).plan(
                domain, n_samples, budget=budget
            )
        planned = self.of.plan(self.in_levels(domain), n_samples, budget=budget)
        share = self.share_of(domain, n_samples, rho=Ledger(budget).remaining_rho)
        noise = planned.noise / math.sqrt(1 - share)
        return Plan.of(noise, n_samples, number="number of a table of bins", unit=budget.unit)

    def buy(self, door: Door, accountant: Accountant) -> Release:
        """Rank maps of the numeric columns, and then what ``of`` buys of the bins.

        Without numeric columns a given share of the maps stays unspent, so that rows drawn from a
        fitted model of bins are measured as the first ones were: the release notes the share.
        """
        total, budget = accountant.ledger.remaining_rho, accountant.ledger.budget
        options, rest, of_maps = self, accountant, math.inf
        if not math.isinf(total):
            options = self.chosen(door.domain, door.n_samples, budget=budget)
            if share := self.share_of(door.domain, door.n_samples, rho=total):
                options = replace(options, share=share)
                of_maps, left = split(total, (share, 1 - share))
                rest = accountant.stage(epsilon=0.0, rho=left)
        bins = _bought_bins(door, accountant, options.bins or _BINS[0][0], rho=of_maps)
        of_bins = self.of.buy(door.in_bins(bins), rest)
        bought = replace(self, share=options.share)
        found: Release = replace(of_bins, bought=bought, **paid(accountant))
        return found


def _steps(column: Numeric, cuts: list[float]) -> list[float]:
    """What is below a leaf of the maps at each cut, about: half of one, or a thousandth."""
    if column.lower is None or column.upper is None:
        return [1e-3 * max(abs(cut), 1.0) for cut in cuts]
    return [(column.upper - column.lower) / (1 << (_LEVELS + 1))] * len(cuts)


def _short(cut: float, step: float) -> float:
    """The cut with no more decimals than tell such a step, for people to read."""
    return round(cut, max(0, math.ceil(-math.log10(step)))) if step > 1e-300 else cut


def _bought_bins(
    door: Door, accountant: Accountant, n_bins: int, *, rho: float
) -> dict[str, Binned]:
    """Bins of the numeric columns, with about as many rows each; fewer where numbers repeat."""
    columns = {
        name: column for name, column in door.domain.columns.items() if isinstance(column, Numeric)
    }
    if not columns:
        return {}
    maps = bought_ranks(
        door, accountant, list(columns), rho=rho, log_range=_LOG_RANGE, n_levels=_LEVELS
    )
    reach = math.sinh(_LOG_RANGE)
    shares, found = np.arange(1, n_bins) / n_bins, {}
    for place, (name, column) in enumerate(columns.items()):
        low, high = column.bounds or (-reach, reach)
        cuts = quantiles(maps, place, column, shares).tolist()
        inner = sorted({cut for cut in map(_short, cuts, _steps(column, cuts)) if low < cut < high})
        found[name] = Binned((low, *inner, high), missing=column.missing)
    return found
