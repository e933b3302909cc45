r"""A release of marginal tables in three rounds: pairs, then chosen triples, then families worth
asking for.

What is released are interactions (:mod:`jaxcd.ops.interactions`), not tables: overlapping tables
share their numbers, so each is paid for once, and all tables built from them agree.  For all pairs
of 37 columns this has .66 of the L2 sensitivity of the tables, and a third of their noise on the
cell of an interaction.

1. R_j and R_ij of all columns and pairs.  Where there are very many pairs, noise on all of them
   would hide most: then R_j of all columns, and in rounds R_ij of the pairs that the exponential
   mechanism chooses (:mod:`jaxcd.releases.tables.pair_selection`) as those that are worst explained
   by what was released (:mod:`jaxcd.releases.tables.pair_models`).
2. The pairs that stay dependent and unmediated beyond noise are candidates
   (:mod:`jaxcd.releases.tables.marginal_screen`); the triples of a column with two of its
   candidates are measured.
3. Pairs that a common neighbour explains are dropped, and every column with up to ``max_parents``
   of its remaining candidates is measured, triples again included.

Each choice depends on released numbers only.  How much is measured follows the noise: where that of
round 1 is small beside the scatter of n rows, sqrt(n), it is more candidates and larger families,
and only a smaller p-value speaks against a mediator.  The rounds' prices are fixed in advance and
add up to the budget.

*Missing cells.*  The choices read them as the search will, which is public: left out (the default),
or as a level.  In the rows where a column is missing it explains nothing, so that a release bought
for one reading has chosen too much, or too little, for the other.  How large a table may be goes by
the cells that are read, and by the rows that round 1 says know all its columns.

*Interventions.*  Where the domain names the columns that were set at some levels of a column, a set
with such a target is measured together with that column, which is no candidate of its own: the
score of a target counts the rows where it was not set.  The rule is public.

*Noise.*  With delta > 0 it is discrete Gaussian and follows the L2 sensitivity, as above.  With
delta = 0 it is discrete Laplace and follows the L1 sensitivity, in which many small interactions
cost more than one large table: a table of counts moves by 2 whatever its size, and tells the
interactions of all its subsets.  So rounds 2 and 3 measure one table for each column, itself with
its candidates in their order, as long as its average cell has two standard deviations of the noise;
round 1 takes from tables the pairs whose interactions would move by more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

from jaxcd.checks import check_number, hold_python_numbers, is_whole
from jaxcd.data import Domain
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge
from jaxcd.privacy import Accountant, Budget, Ledger, range_to_gdp_rho
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.queries import Door
from jaxcd.releases.kind import ReleaseKind, paid
from jaxcd.releases.tables import marginal_screen as screen
from jaxcd.releases.tables.available_interactions import levels_by_known_rows
from jaxcd.releases.tables.interactions_kind import InteractionsKind, KnownPairs
from jaxcd.releases.tables.intervened_sets import settings_of, with_settings
from jaxcd.releases.tables.marginal_purchase import MarginalsNoise, Purchase
from jaxcd.releases.tables.pair_models import expected_of_released
from jaxcd.releases.tables.pair_selection import buy_chosen
from jaxcd.releases.tables.pair_tables import PairTables
from jaxcd.releases.tables.released_interactions import ReleasedInteractions

__all__ = ["Marginals", "ReleasedMarginals"]

Columns = tuple[int, ...]

# The average cell of a table that is counted under Laplace noise has at least so many standard
# deviations of the noise.
_LEAST_COUNTED = 2.0
# Noise of round 1 over sqrt(n) below which more is measured.  Chosen on Sachs, Child, Alarm, water,
# andes and pigs with 100,000 rows.
_QUIET = 0.3
# The level of the test of dependence, and how many pairs it may join by noise alone: each false
# candidate takes the place of a true one in the tables, costs the others precision, and can stay in
# the graph.  With 10 Alarm's arc F1 is .022 (standard error .007) lower than with .3, .014 (.007)
# lower than with 1, with 100,000 rows at epsilon 1; on andes, pigs and munin1 it is the same.
_MOST_ALPHA, _FALSE_PAIRS = 0.01, 0.5
# The least level at which a mediator explains a pair, and the same times n, for few rows say little
# against a mediator.  Without noise: on munin1 with 100,000 rows .02 more arc F1 than with .01, on
# six networks of up to 37 columns the same; with 1,000 rows Alarm .79 at .001 and .85 at .1, Asia
# .82 and .87, 20 random networks of 5 to 10 columns .875 and .879 (``ges`` .87 and .89 on the last
# two).
_LEAST_MEDIATION, _MEDIATION_ROWS = 0.001, 100
_MOST_PARENTS = 5
# Pairs are chosen where there are more columns than these, unless round 1 were quiet (above): so
# many for each column, and not more than leave the Gumbel noise of a choice at such a share of n,
# for then noise does the choosing.  With their shares (the columns, the choices, the pairs, rounds
# 2 and 3) chosen on andes with 100,000 rows and a random network of 1,000 columns with 20,000.
_MANY_COLUMNS, _PAIRS_A_COLUMN, _ROUNDS, _CHOOSING_NOISE = 60, 3, 10, 0.02
_CHOSEN_SHARES = (0.07, 0.35, 0.28, 0.05, 0.25)


@final
@dataclass(frozen=True)
class Marginals(InteractionsKind):
    """Noisy marginal tables of the columns that depend on each other, bought in three rounds.

    For discrete data with many columns.  Round 1 measures all pairs, or where there are very many
    all columns and the pairs that the best model of what was released so far explains worst; rounds
    2 and 3 measure larger tables of columns that what was released shows to be dependent.

    Args:
        shares: positive weights of the three rounds in rho, or with delta = 0 in epsilon; where all
            pairs are measured.
        dependence_alpha: level of the test of dependence, between 0 and 1; None for 0.01, or for
            more than 50 pairs the level at which noise alone makes half of one dependent.
        mediation_alpha: a mediator explains a pair unless its p-value is below this, between 0 and
            1; None for s, at least 0.001 and 100 / n, and at most 0.2, with s the standard
            deviation of the noise of round 1 on a pair's interaction over sqrt(n).
        max_candidates: most candidates of a column in a round, 1 to 8; None for 8 where s < 0.3,
            and else 6.
        max_parents: largest families of round 3 (under Gaussian noise), 1 to 5; None for 5 where s
            < 0.3, and else 3.
        max_cells: tables of three and more columns have at most this share of n cells, between 0
            and 1 (in larger ones sampling alone leaves nothing to see).
        least_cell: the average cell of tables of four and more columns is at least so many sigma of
            round 1, positive (under Gaussian noise).  Less lets larger tables in, which orient
            colliders of several parents and cost the others precision: with 4 arc F1 is .02 higher
            on Alarm (100,000 rows, epsilon .5 and 1) and .01 lower on water and Child, with 3 up to
            .04 lower (Child, 10,000 rows, epsilon 4).
        knowledge: what is known before; public.  A pair that is forbidden both ways is no
            candidate, and round 1 does not measure it under Gaussian noise, which leaves less noise
            on the others (it is measured later, as part of the table of a common child); a pair
            with a required edge is a candidate whatever was measured.  Search such a release with
            the same knowledge.
        selected: so many pairs are chosen by the exponential mechanism, in ten rounds, and
            measured; 0: all pairs are measured.  None: 0, or where there are more than 60 columns
            and s on all pairs were at least 0.3, three for each column, as long as the noise of a
            choice is below 2 % of n rows.  Several sites always measure all pairs.

    Raises:
        OptionError: a constant is out of its range.

    Guarantee:
        Relation: replace-one; n, the declared levels and the options (the knowledge among them) are
        public.  With delta > 0: L2 sensitivity, of round 1
        :func:`jaxcd.releases.tables.marginal_purchase.pairs_sensitivity`, of rounds 2 and 3
        :func:`jaxcd.releases.tables.marginal_purchase.interactions_sensitivity`.  Event: at most
        three ``GaussianEvent``, whose rhos are fixed shares of the budget's.  Where pairs are
        chosen: at most thirteen such events, each of the L2 sensitivity of
        ``interactions_sensitivity``, and at most ten ``ExponentialMechanismEvent`` of the pairs
        chosen, of scores of sensitivity 2
        (:class:`jaxcd.releases.tables.pair_selection.PairChoice`).  With delta = 0: L1
        sensitivity, of round 1 :func:`jaxcd.releases.tables.marginal_screen.pairs_for_laplace`, of
        rounds 2 and 3 twice the number of tables; at most three ``PureEvent``, and where pairs are
        chosen at most thirteen, each of round 1 of the L1 sensitivity of
        :func:`jaxcd.releases.tables.marginal_screen.sets_for_laplace`, with the same choices; the
        epsilons of all add up to the budget's.  A round without anything to ask is not charged.
        Sets and weights
        depend on released numbers and the domain only, so this is adaptive composition under the
        ledger's filter.  Proof: the docstrings named, :func:`jaxcd.privacy.gaussian` and
        :func:`jaxcd.privacy.laplace`; for interventions docs/PRIVACY.md V, for chosen pairs AB.

    Source:
        Efron and Stein 1981; Xiao, He, Zhang, Kifer 2023 for noise on interactions; McKenna,
        Mullins, Sheldon, Miklau 2022 for choosing what a model explains worst; Durfee, Rogers 2019
        for many choices at once.

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
        "jaxcd.releases.tables.pair_selection, "
        "jaxcd.ops.interactions, jaxcd.ops.moments",
    )

    shares: tuple[float, float, float] = (0.6, 0.1, 0.3)
    dependence_alpha: float | None = None
    mediation_alpha: float | None = None
    max_candidates: int | None = None
    max_parents: int | None = None
    max_cells: float = 0.1
    least_cell: float = 6.0
    knowledge: Knowledge | None = None
    selected: int | None = None
    word: ClassVar[str] = "marginals"
    takes_people: ClassVar[bool] = True
    takes_sites: ClassVar[bool] = True
    title: ClassVar[str] = "marginal tables, and the graph of the highest set score"

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        self.check_shares((0.6, 0.1, 0.3))
        self.check_knowledge()
        for argument in ("dependence_alpha", "mediation_alpha", "max_cells"):
            value = getattr(self, argument)
            if value is not None:
                check_number(argument, value, 0, 1, "()", cure="give a share such as 0.1")
        for argument, most in (("max_candidates", 8), ("max_parents", 5)):
            count = getattr(self, argument)
            if count is not None and not is_whole(count, 1, most):
                raise OptionError(
                    f"{argument} = {count!r} is not a whole number from 1 to {most}; give one"
                )
        check_number("least_cell", self.least_cell, 0, ends="(]", cure="6 is usual")
        self.check_selected()

    def usual_number(self, domain: Domain, n_samples: int, n_pairs: int, *, budget: Budget) -> int:
        """Three for each column, or as many as the noise of a choice allows, where there are many
        columns and noise on all pairs is not quiet.
        """
        d = domain.n_columns
        everything = self.plan_of_all(domain, n_samples, budget=budget)
        if d <= _MANY_COLUMNS or everything.noise < _QUIET * math.sqrt(n_samples):
            return 0
        ledger = Ledger(budget)
        epsilon = 2 * screen.COUNTED_CHANGE / (_CHOOSING_NOISE * n_samples)
        room = ledger.remaining_epsilon / epsilon
        if budget.delta > 0:
            room = ledger.remaining_rho / range_to_gdp_rho(epsilon)
        return max(1, min(_PAIRS_A_COLUMN * d, int(_CHOSEN_SHARES[1] * room)))

    def known_pairs(self, domain: Domain) -> KnownPairs:
        """With what says where a column was set and that column: without their table no score of
        the rows in which it was not set can be told.
        """
        known = super().known_pairs(domain)
        told = ((c, v) for v, columns in settings_of(domain).items() for c in columns)
        pairs = sorted({(min(pair), max(pair)) for pair in told} - set(known.kept))
        return KnownPairs(known.absent - set(pairs), (*known.kept, *pairs))

    def chosen_shares(self, domain: Domain, n_samples: int, *, budget: Budget) -> tuple[float, ...]:
        """The same for every domain and budget."""
        return _CHOSEN_SHARES

    def buy(self, door: Door, accountant: Accountant) -> ReleasedMarginals:
        """Three rounds, each planned on what the rounds before it released."""
        return _bought(self, door, accountant)


@final
@dataclass(frozen=True, eq=False, repr=False)
class ReleasedMarginals(ReleasedInteractions):
    """Noisy interactions of columns, bought by :class:`Marginals`; public.

    The tables of sets that were measured with all their subsets can be built.

    Args:
        domain: as in :class:`jaxcd.releases.tables.released_interactions.ReleasedInteractions`.
        n_samples: as ``domain``.
        interactions: as ``domain``.
        variances: as ``domain``.
        candidates: as ``domain``.
        cost: as ``domain``.
        spent: as ``domain``.
        noise: as ``domain``.
        charges: as ``domain``.
        bought: as ``domain``.
    """

    kind: ClassVar[str] = "marginals"

    @property
    def score_options(self) -> dict[str, Any]:
        """As many parents as were measured."""
        return {"max_parents": _MOST_PARENTS}

    @classmethod
    def default_kind(cls) -> ReleaseKind:
        """The usual options."""
        return Marginals()


@dataclass(frozen=True)
class _Settled:
    """The options of :class:`Marginals` that follow the noise and the number of columns."""

    dependence_alpha: float
    mediation_alpha: float
    max_candidates: int
    max_parents: int

    @staticmethod
    def of(options: Marginals, noise: float, n_columns: int, n_samples: int) -> _Settled:
        """noise: the standard deviation of round 1 over sqrt(n)."""
        quiet = noise < _QUIET
        mediation = max(noise, _LEAST_MEDIATION, _MEDIATION_ROWS / n_samples)
        n_pairs = max(1, math.comb(n_columns, 2))
        return _Settled(
            options.dependence_alpha or min(_MOST_ALPHA, _FALSE_PAIRS / n_pairs),
            options.mediation_alpha or min(mediation, 0.2),
            options.max_candidates or (8 if quiet else 6),
            options.max_parents or (_MOST_PARENTS if quiet else 3),
        )


def screened(release: ReleasedMarginals) -> tuple[Columns, ...]:
    """The candidates of a release that has all pairs: its own where noise is quiet, else for each
    column its partners of round 2 with the usual options.
    """
    d = len(release.names)
    variance = max((v for s, v in release.variances.items() if len(s) == 2), default=0.0)
    noise = math.sqrt(variance / release.n_samples)
    if noise < _QUIET:
        return release.candidates
    settled = _Settled.of(Marginals(), noise, d, release.n_samples)
    pairs = screen.unmediated_pairs(
        release.counted,
        dependence_alpha=settled.dependence_alpha,
        mediation_alpha=settled.mediation_alpha,
    )
    return screen.candidates_of(pairs, d, most=d)


def _bought(options: Marginals, door: Door, accountant: Accountant) -> ReleasedMarginals:
    shop, prices = Purchase.open(door, accountant, shares=options.shares)
    law = shop.law
    d = len(shop.cardinalities)
    set_by = settings_of(door.domain)
    setting = frozenset(c for columns in set_by.values() for c in columns)

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

    nobody: tuple[Columns, ...] = ((),) * d

    def counted() -> ReleasedInteractions:
        return so_far(nobody).reading(door.missing).counted  # type: ignore[no-any-return]

    def measure(
        pairs: list[tuple[int, int]], most_parents: int, price: float, label: str
    ) -> tuple[Columns, ...]:
        of_variables = [pair for pair in pairs if setting.isdisjoint(pair)]
        levels = levels_by_known_rows(so_far(nobody).reading(door.missing))
        candidates = screen.candidates_of(of_variables, d, most=settled.max_candidates)
        most = options.max_cells * shop.n_samples
        if law is MarginalsNoise.LAPLACE:
            # of the noise on a cell of at most d tables
            scatter = math.sqrt(2) * screen.COUNTED_CHANGE * d / price
            most = min(most, shop.n_samples / (_LEAST_COUNTED * scatter))
            tables = screen.tables_of(
                of_variables, levels, most=settled.max_candidates, most_cells=most, set_by=set_by
            )
            shop.buy_tables(tables, price=price, label=label)
            return candidates
        large = most if sigma == 0 else min(most, shop.n_samples / (options.least_cell * sigma))
        limits = {size: most if size == 3 else large for size in range(3, most_parents + 2)}
        families = screen.families_of(
            candidates, levels, most_parents=most_parents, most_cells=limits
        )
        families = with_settings(families, levels, set_by, most_cells=limits)
        shop.buy_families(families, price=price, label=label)
        return candidates

    settled = _Settled.of(options, math.inf, d, shop.n_samples)  # until round 1 has told its noise
    known = KnownPairs.of(options.knowledge, door.domain.names)
    wide = nobody

    def unmediated() -> list[tuple[int, int]]:
        found = screen.unmediated_pairs(
            counted(),
            dependence_alpha=settled.dependence_alpha,
            mediation_alpha=settled.mediation_alpha,
        )
        return known.first(found)

    def unfinished() -> ReleasedMarginals:
        """What was bought before a run broke off: with round 1 it can be searched, by pairs."""
        return so_far(
            wide
            if any(wide)
            else screen.candidates_of(unmediated(), d, most=settled.max_candidates)
        )

    n_selected = options.n_chosen(door, accountant.ledger.budget)
    with accountant.keeping(unfinished):
        if n_selected:
            later = buy_chosen(
                shop,
                door,
                accountant,
                options.known_pairs(door.domain),
                lambda bought, left: expected_of_released(PairTables(shop), bought, left),
                n_selected=n_selected,
                n_rounds=_ROUNDS,
                shares=_CHOSEN_SHARES,
            )
            prices = (0.0, *later)
        else:
            shop.buy_pairs(price=prices[0], label="round 1: all pairs", absent=known.absent)
        sigma = shop.pair_noise  # 0 without privacy
        noise = sigma / math.sqrt(shop.n_samples)
        settled = _Settled.of(options, noise, d, shop.n_samples)
        pairs = unmediated()
        wide = measure(pairs, 2, prices[1], "round 2: triples")
        pairs = known.first(screen.unexplained_pairs(counted(), pairs))
        narrow = measure(pairs, settled.max_parents, prices[2], "round 3: families")
        # What was dropped before round 3 was measured less precisely, but the search may still want
        # it.
        return so_far(
            tuple(
                tuple(sorted({*first, *second})) for first, second in zip(wide, narrow, strict=True)
            )
        )
