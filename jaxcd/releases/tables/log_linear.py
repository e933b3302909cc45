r"""A release of noisy tables of pairs, and a log-linear model fitted to them: for few rows or a
small epsilon.

1. R_j and R_ij of all columns and pairs are released (:mod:`jaxcd.ops.interactions`).  Where there
   are many pairs and noise on all of them would hide much, only R_j of all columns and R_ij of
   chosen pairs are: in rounds, a model of what was measured is fitted, the exponential mechanism
   chooses pairs that it explains worst (:mod:`jaxcd.releases.tables.pair_selection`), and these are
   measured.
2. A model of the pairs that are not explained by others
   (:mod:`jaxcd.releases.tables.log_linear_choice`) is fitted
   (:mod:`jaxcd.releases.tables.log_linear_fit`); its pairs, and those that share a partner in it,
   are released again, more precisely, and where noise allows the triples of a column with two
   partners.  The model is fitted anew, with the triples that the pairs do not explain.  Where noise
   would hide very much there is no round 2, and all is spent on choosing pairs and on these.

Where the domain names the columns that were set at some levels of a column, a term with such a
target is measured together with that column.  The rule is public.

All tables of more columns are then the model's.  What is not in the model is explained by it: a
pair that no term joins directly is independent given what lies between, so noise cannot join it,
and a table of four columns carries the noise of its few terms and not that of its cells.  The price
is that interactions of more than three columns are never seen, and that columns that depend on many
others need cliques that are too large.  With many rows and a large epsilon
:class:`jaxcd.Marginals`, which measures larger tables, finds as much sooner.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any, ClassVar, final

import numpy as np

from jaxcd.checks import check_number, check_whole, hold_python_numbers
from jaxcd.data import Domain
from jaxcd.errors import OptionError
from jaxcd.graphs import Knowledge
from jaxcd.ops import contingency
from jaxcd.ops.available_cases import observed
from jaxcd.ops.interactions import cell_variance, subsets
from jaxcd.privacy import Accountant, Budget
from jaxcd.privacy.claims import GuaranteeClaim
from jaxcd.queries import Door
from jaxcd.releases.kind import ReleaseKind, paid
from jaxcd.releases.tables import log_linear_choice as choice
from jaxcd.releases.tables import log_linear_fit as fit
from jaxcd.releases.tables import marginal_screen as screen
from jaxcd.releases.tables.available_interactions import AvailableInteractions
from jaxcd.releases.tables.interactions_kind import InteractionsKind, KnownPairs
from jaxcd.releases.tables.intervened_sets import settings_of, with_settings
from jaxcd.releases.tables.marginal_purchase import MarginalsNoise, Purchase
from jaxcd.releases.tables.noisy_strata import NoisyStrata
from jaxcd.releases.tables.pair_models import Expected, by_levels, expected_of_released
from jaxcd.releases.tables.pair_selection import buy_chosen
from jaxcd.releases.tables.pair_tables import PairTables
from jaxcd.releases.tables.released_interactions import ReleasedInteractions

__all__ = ["LogLinear", "ReleasedLogLinear"]

Columns = tuple[int, ...]
Pair = tuple[int, int]

# Rows that stand for the model: at least ten times n, so that their own scatter is small beside
# that of n, and up to fifty times where that is quick.
_LEAST_ROWS, _QUICK_ROWS, _MOST_ROWS, _MOST_CODES = 50_000, 1_000_000, 4_000_000, 1 << 28
_LEAST_CELLS = 64  # of a table that is always small enough to be asked for
# The set score's price of noise, 3 log10 n - 11 between 1.5 and 4: chosen on the networks Sachs and
# Child with 1,000 to 100,000 rows.  What the model gets wrong grows with n, as every likelihood
# ratio does; with few rows the pairs that were chosen are the clearest ones anyway.
_LEAST_PRICE, _MOST_PRICE = 1.5, 4.0
# So many pairs are expected to join the model of independent columns; of the pairs of a model at
# most this share.  The level of each is at most this over n, within bounds: where there are many
# rows true pairs are clear, and what the model gets wrong in small ways is, too.
_FALSE_PAIRS, _FALSE_BY_ROWS = 0.5, 100.0
_LEAST_ALPHA, _MOST_ALPHA = 0.005, 0.1
# Pairs are chosen where there are more and fewer of them than these (a choice draws a number for
# every one), and noise on all would hide such a share of the rows, the second where delta = 0:
# epsilons add up, so that choices cost more beside tables.  So many are chosen for each column, in
# so many rounds: a pair that explains another should be in the model before the other is drawn.
# With their shares (the columns, the choices, the pairs, round 2) set by hand on Sachs, Alarm and
# Child with 10,000 rows.
_FEW_PAIRS, _MANY_PAIRS, _HIDDEN, _HIDDEN_PURE = 50, 5_000, 0.01, 0.05
_PAIRS_A_COLUMN, _ROUNDS = 1.2, 28
_CHOSEN_SHARES = (0.2, 0.2, 0.35, 0.25)
# Where noise on all pairs would hide such a share, the second where delta = 0, there is no round 2:
# what it measures drowns, and makes candidates of pairs that nothing speaks for.  Set by hand on
# Child, Alarm and Sachs with 1,000 rows: at epsilon 1 arc F1 goes from .42 to .61 on Child and from
# .16 to .22 on Alarm.
_DROWNED, _DROWNED_PURE, _ONE_ROUND_SHARES = 0.15, 0.5, (0.05, 0.45, 0.5)
# Where noise on the model's pairs hides the first share of the rows, and noise and sampling
# together the second, a search leaves directions open.  Set on Sachs, Child and random networks of
# 12 to 25 columns, 8 runs each: with 1,000 rows arc F1 is .05 higher on average at epsilon 1 to 4
# (-.02 to .15), with 3,000 or 10,000 and less noise than this up to .08 lower.
_OPEN_BY_NOISE, _OPEN_BY_ALL = 0.008, 0.0225
# Where all pairs have more cells, forests and mediators take the model's place while pairs are
# chosen: a fit in each round would take minutes, and they find .02 less on Child.
_MOST_FITTED = 50_000


@final
@dataclass(frozen=True)
class LogLinear(InteractionsKind):
    """Noisy tables of pairs of columns, bought in rounds, and a log-linear model of them.

    For discrete data where noise is large beside the counts: few rows, or a small epsilon.  Where
    it is so large that most directions of a found graph would be chance, a search returns a graph
    without unshielded colliders, whose edges tell no direction, with a warning; what is known
    before, and what interventions tell, keeps its direction.

    Args:
        shares: positive weights of the two rounds in rho, or with delta = 0 in epsilon; where all
            pairs are measured.
        alpha: a pair joins the model where its p-value under the model is below this, between 0
            and 1.  None: half the number of the model's pairs over that of the measured ones
            (Benjamini and Hochberg 1995), and at most 100 / n, kept within .005 and .1: half a
            false pair is expected among independent columns, and where much is found more is let
            in, of which the search takes its choice.
        max_clique_cells: pairs that would give the model a table of more cells are left out, from
            16, and pairs of twice as many cells of their own; time and memory grow with it.
        max_candidates: most possible neighbours of a column, 1 to 16.
        max_cells: tables of three and more columns have at most this share of n cells, between 0
            and 1.
        least_cell: triples are measured whose average cell is at least so many standard deviations
            of the noise of round 1, positive (under Gaussian noise).
        knowledge: what is known before; public.  A pair that is forbidden both ways joins the model
            only as two possible causes of a third column, and round 1 does not measure it under
            Gaussian noise, which leaves less noise on the others; a pair with a required edge joins
            it whatever was measured.  Search such a release with the same knowledge.
        selected: so many pairs are chosen by the exponential mechanism and measured; 0: all pairs
            are measured.  None: 6/5 for each column where there are more than 50 pairs, at most
            5,000, and the noise of measuring all of them hides 1 % of the rows (with delta = 0: 5
            %), else 0.  Several sites always measure all pairs.

    Raises:
        OptionError: a constant is out of its range.

    Guarantee:
        Relation: replace-one; n, the declared levels and the options (the knowledge among them) are
        public.  With delta > 0: L2 sensitivity, of round 1
        :func:`jaxcd.releases.tables.marginal_purchase.pairs_sensitivity`, of round 2
        :func:`jaxcd.releases.tables.marginal_purchase.interactions_sensitivity`.  Event: at most
        two ``GaussianEvent``, whose rhos are fixed shares of the budget's.  Where pairs are chosen:
        at most thirty such events, each of the L2 sensitivity of ``interactions_sensitivity``, and
        before each an ``ExponentialMechanismEvent`` of the pairs chosen, of scores of sensitivity 2
        (:class:`jaxcd.releases.tables.pair_selection.PairChoice`).  With delta = 0: L1
        sensitivity, of round 1 :func:`jaxcd.releases.tables.marginal_screen.pairs_for_laplace`, of
        round 2 twice the number of tables; at most two ``PureEvent``, and where pairs are chosen at
        most thirty, each before round 2 of the L1 sensitivity of
        :func:`jaxcd.releases.tables.marginal_screen.sets_for_laplace`, with the same choices, whose
        epsilons add up with theirs to the budget's.  What is measured next, what
        the scores compare with and the model depend on released numbers and the domain only, so
        this is adaptive composition under the ledger's filter.  Proof: the docstrings named,
        :func:`jaxcd.privacy.gaussian` and :func:`jaxcd.privacy.laplace`; for interventions
        docs/PRIVACY.md V, for chosen pairs AB.

    Source:
        McKenna, Sheldon, Miklau 2019 for models of noisy margins; McKenna, Mullins, Sheldon, Miklau
        2022 for choosing what a model explains worst; Benjamini, Hochberg 1995 for ``alpha=None``.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(5_000, key=jax.random.key(0))
        >>> bought = jaxcd.release(
        ...     data,
        ...     jaxcd.LogLinear(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> len(bought.charges), bought.spent.epsilon <= bought.cost.epsilon
        (2, True)
    """

    claim = GuaranteeClaim(
        "rounds of tables of pairs, and the choice of pairs, are (epsilon, delta)-DP of their "
        "budget, pure where delta = 0; the model fitted to them, and every search on it, is "
        "post-processing",
        "jaxcd.releases.tables.log_linear, jaxcd.releases.tables.marginal_purchase, "
        "jaxcd.releases.tables.pair_selection, "
        "jaxcd.ops.interactions, jaxcd.ops.moments",
    )

    shares: tuple[float, float] = (0.5, 0.5)
    alpha: float | None = None
    max_clique_cells: int = 4096
    max_candidates: int = 12
    max_cells: float = 0.1
    least_cell: float = 10.0
    knowledge: Knowledge | None = None
    selected: int | None = None
    word: ClassVar[str] = "log-linear"
    takes_people: ClassVar[bool] = True
    takes_sites: ClassVar[bool] = True
    title: ClassVar[str] = "tables of pairs, a log-linear model, and the graph of its highest score"

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        self.check_shares((0.5, 0.5))
        self.check_knowledge()
        check_number("max_cells", self.max_cells, 0, 1, "()", cure="give a share")
        if self.alpha is not None:
            check_number("alpha", self.alpha, 0, 1, "()", cure="give None, or a level such as .001")
        check_number("least_cell", self.least_cell, 0, ends="(]", cure="10 is usual")
        check_whole("max_clique_cells", self.max_clique_cells, 16, cure="4096 is usual")
        check_whole("max_candidates", self.max_candidates, 1, 16, cure="12 is usual")
        self.check_selected()

    def usual_number(self, domain: Domain, n_samples: int, n_pairs: int, *, budget: Budget) -> int:
        """6/5 for each column, where there are many pairs, not too many, and noise on all of them
        would hide much.
        """
        hidden = self.plan_of_all(domain, n_samples, budget=budget).smallest_share
        least = _HIDDEN if budget.delta > 0 else _HIDDEN_PURE
        if not _FEW_PAIRS < n_pairs <= _MANY_PAIRS or hidden < least:
            return 0
        return math.ceil(_PAIRS_A_COLUMN * domain.n_columns)

    def chosen_shares(self, domain: Domain, n_samples: int, *, budget: Budget) -> tuple[float, ...]:
        """Without a part for round 2 where noise on all pairs would hide very much; interventions
        need that round, for what is measured together with a target.
        """
        hidden = self.plan_of_all(domain, n_samples, budget=budget).smallest_share
        most = _DROWNED if budget.delta > 0 else _DROWNED_PURE
        drowned = hidden >= most and not settings_of(domain)
        return _ONE_ROUND_SHARES if drowned else _CHOSEN_SHARES

    def level(self, noisy: fit.NoisyInteractions) -> choice.Level:
        """The level at which a pair joins the model, by the number of the model's pairs.

        What was not measured is not tested either, so it does not count among the tests.
        """
        alpha = self.alpha
        if alpha is not None:
            return lambda n_found: alpha
        n_pairs = max(1, sum(len(columns) == 2 for columns in noisy.values))
        most = min(_MOST_ALPHA, max(_LEAST_ALPHA, _FALSE_BY_ROWS / noisy.n_samples))
        return lambda n_found: min(most, _FALSE_PAIRS * n_found / n_pairs)

    def modelled(
        self, noisy: fit.NoisyInteractions, known: KnownPairs
    ) -> tuple[tuple[Columns, ...], tuple[Columns, ...]]:
        """The model's pairs and triples, and the candidates of each column."""
        d = len(noisy.cardinalities)
        level = self.level(noisy)
        selected, _ = choice.select_pairs(
            noisy,
            level=level,
            max_cells=self.max_clique_cells,
            absent={*known.absent, *_unmeasured(noisy)},
        )
        pairs = [
            pair
            for pair in known.first(selected)
            if pair in noisy.values
            and choice.fits(pair, noisy.cardinalities, self.max_clique_cells)
        ]
        colliders = choice.collider_pairs(
            pairs, noisy.cardinalities, max_cells=self.max_clique_cells
        )
        # of what is known not to be joined, what round 2 has measured
        terms: list[Columns] = [*pairs, *(s for s in colliders if s in noisy.values)]
        singles = ((j,) for j in range(d))
        terms += choice.unexplained_triples(noisy, [*singles, *terms], level=level)
        return tuple(terms), screen.candidates_of(pairs, d, most=self.max_candidates)

    def buy(self, door: Door, accountant: Accountant) -> ReleasedLogLinear:
        """Two rounds, the second planned on what the first released."""
        shop, prices = Purchase.open(door, accountant, shares=self.shares)
        known = KnownPairs.of(self.knowledge, door.domain.names)

        def released() -> ReleasedLogLinear:
            """What has been bought so far, with the model of it; with round 1 it is complete."""
            terms, candidates = self.modelled(_measured(shop), known)
            return ReleasedLogLinear(
                door.domain,
                shop.n_samples,
                dict(shop.interactions),
                dict(shop.variances),
                candidates,
                noise=shop.law,
                bought=self,
                terms=terms,
                most_cells=max(_LEAST_CELLS, int(self.max_cells * shop.n_samples)),
                **paid(accountant),
            )

        budget = accountant.ledger.budget
        n_selected = self.n_chosen(door, budget)
        with accountant.keeping(released):
            if n_selected:
                assert isinstance(budget, Budget)  # without privacy nothing is chosen
                levels = shop.cardinalities
                cells = sum(a * b for a, b in itertools.combinations(levels, 2))
                fitted = cells <= _MOST_FITTED
                prices = buy_chosen(
                    shop,
                    door,
                    accountant,
                    known,
                    self._fitted(shop)
                    if fitted
                    else lambda bought, left: expected_of_released(PairTables(shop), bought, left),
                    n_selected=n_selected,
                    n_rounds=_ROUNDS,
                    shares=self.chosen_shares(door.domain, shop.n_samples, budget=budget),
                    anew=fitted,
                )
                if not prices:
                    return released()
            else:
                shop.buy_pairs(price=prices[0], label="round 1: all pairs", absent=known.absent)
            joined = released().neighbors
            pairs = [*joined, *choice.collider_pairs(joined, shop.cardinalities)]
            label = "round 2: tables of the model"
            if shop.law is MarginalsNoise.LAPLACE:
                shop.buy_tables(pairs, price=prices[-1], label=label)
                return released()
            most = self.max_cells * shop.n_samples
            if shop.pair_noise > 0:
                most = min(most, shop.n_samples / (self.least_cell * shop.pair_noise))
            triples = [
                s
                for s in choice.neighbouring_triples(joined)
                if math.prod(shop.cardinalities[j] for j in s) <= most
            ]
            told = with_settings(
                [*pairs, *triples],
                shop.cardinalities,
                settings_of(door.domain),
                most_cells={3: self.max_cells * shop.n_samples},
            )
            shop.buy_families(told, price=prices[-1], label=label)
            return released()

    def _fitted(self, shop: Purchase) -> Callable[[list[Pair], list[Pair]], Iterator[Expected]]:
        """What the log-linear model of what was bought so far expects of pairs."""
        levels = shop.cardinalities
        joined: tuple[Pair, ...] = ()

        def models(bought: list[Pair], left: list[Pair]) -> Iterator[Expected]:
            nonlocal joined
            noisy = _measured(shop)
            if bought:
                joined, model = choice.select_pairs(
                    noisy,
                    level=self.level(noisy),
                    max_cells=self.max_clique_cells,
                    start=joined,
                    absent=_unmeasured(noisy),
                )
            else:
                model = fit.fit_model(noisy, [(j,) for j in range(len(levels))])
            expected = choice.ExpectedTables(model, shop.n_samples)
            for kind, some in by_levels(left, levels).items():
                yield some, np.stack([expected.table(pair).reshape(kind) for pair in some])

        return models


def _measured(shop: Purchase) -> fit.NoisyInteractions:
    """What has been bought so far."""
    return fit.NoisyInteractions(
        shop.cardinalities, shop.n_samples, dict(shop.interactions), dict(shop.variances)
    )


def _unmeasured(noisy: fit.NoisyInteractions) -> set[Pair]:
    """The pairs that were not measured."""
    pairs = itertools.combinations(range(len(noisy.cardinalities)), 2)
    return {pair for pair in pairs if pair not in noisy.values}


@final
@dataclass(frozen=True, eq=False, repr=False)
class ReleasedLogLinear(ReleasedInteractions):
    """Noisy interactions of all pairs, and the model of some of them, bought by
    :class:`LogLinear`; public.

    Args:
        domain: as in :class:`jaxcd.releases.tables.released_interactions.ReleasedInteractions`.
        n_samples: as ``domain``.
        interactions: as ``domain``.
        variances: as ``domain``.
        candidates: as ``domain``.
        cost: as ``domain``.
        spent: as ``domain``.
        charges: as ``domain``.
        noise: as ``domain``.
        bought: as ``domain``.
        terms: the model's pairs and triples.
        most_cells: larger tables of three and more columns are not asked for.
    """

    terms: tuple[Columns, ...] = ()
    most_cells: int = _LEAST_CELLS
    _built: dict[Columns, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    kind: ClassVar[str] = "log-linear"
    # A model's tables have no cells that noise emptied.
    noise_gain: ClassVar[float] = 1.0
    # A model holds small cells back.  Without a limit colliders cost too much: on Child (10,000
    # rows, epsilon .5) arc F1 is .10 lower.
    most_inflation: ClassVar[float] = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = [s for s in self.terms if s not in self.interactions]
        if unknown:
            raise OptionError(f"terms: {unknown} were not measured; give measured sets of columns")

    @classmethod
    def default_kind(cls) -> ReleaseKind:
        """The usual options."""
        return LogLinear()

    def of_available(self, part: AvailableInteractions) -> ReleasedLogLinear:
        """The release of rows without missing cells, with the model that these call for."""
        bought = self.bought and self.bought.of_levels
        options = bought if isinstance(bought, LogLinear) else LogLinear()
        cardinalities = tuple(cardinality or 1 for cardinality in part.domain.cardinalities)
        noisy = fit.NoisyInteractions(
            cardinalities, part.n_samples, part.interactions, part.variances
        )
        known = KnownPairs.of(options.knowledge, part.domain.names)
        terms, candidates = options.modelled(noisy, known)
        found: ReleasedLogLinear = dataclasses.replace(
            self,
            domain=part.domain,
            n_samples=part.n_samples,
            interactions=part.interactions,
            variances=part.variances,
            candidates=candidates,
            terms=terms,
        ).priced(part.price)
        return found

    @property
    def neighbors(self) -> tuple[Pair, ...]:
        """The pairs of columns that are candidates of each other."""
        return tuple(
            (i, j) for i, partners in enumerate(self.candidates) for j in partners if i < j
        )

    @property
    def opens_directions(self) -> bool:
        """Whether noise hides so much of the model's pairs, beside few rows, that chance decides
        most colliders: they are told by small differences between what pairs share.
        """
        if self.counted is not self:  # rows without missing cells, of which there are fewer
            return self.counted.opens_directions
        pairs = [self.variances[s] for s in self.terms if len(s) == 2]
        hidden = math.sqrt(fmean(pairs)) / self.n_samples if pairs else 0.0
        in_all = math.hypot(hidden, 1 / math.sqrt(self.n_samples))
        return hidden >= _OPEN_BY_NOISE and in_all >= _OPEN_BY_ALL

    @property
    def agreed(self) -> ReleasedLogLinear:
        """This release: the tables of a model agree and have no negative cells."""
        return self

    @cached_property
    def model(self) -> fit.LogLinearModel:
        """The fitted model."""
        noisy = fit.NoisyInteractions(
            self.cardinalities, self.n_samples, self.interactions, self.variances
        )
        return fit.fit_model(noisy, [*((j,) for j in range(len(self.names))), *self.terms])

    @cached_property
    def _rows(self) -> tuple[contingency.LevelMasks, int]:
        """Rows drawn from the model, and their number."""
        room = max(1, _MOST_CODES // max(1, len(self.names)))
        n = self.n_samples
        wanted = max(_LEAST_ROWS, min(50 * n, _QUICK_ROWS), 10 * n)
        n_rows = min(wanted, _MOST_ROWS, room)
        return contingency.pack_levels(self.model.sample(n_rows), self.cardinalities), n_rows

    def is_measured(self, columns: Columns) -> bool:
        """Whether the model is asked for this table: not where it would have too many cells."""
        cells = math.prod(self.cardinalities[j] for j in columns)
        return len(columns) < 3 or cells <= self.most_cells

    @property
    def measured_sets(self) -> None:
        """The model is asked for any small table."""
        return None

    def prepare(self, sets: Collection[Columns]) -> None:
        """Counts the tables of many sets together."""
        masks, n_rows = self._rows
        alike: defaultdict[Columns, list[Columns]] = defaultdict(list)
        for columns in sets:
            if columns and columns not in self._built and self.is_measured(columns):
                alike[tuple(self.cardinalities[j] for j in columns)].append(columns)
        for members in alike.values():
            counts = np.asarray(contingency.count_sets(masks, np.array(members)), dtype=np.float64)
            self._built.update(zip(members, counts * (self.n_samples / n_rows), strict=True))

    def table(self, columns: Columns) -> np.ndarray:
        """The model's table of the columns (sorted positions), in records, float64: the counts of
        many rows drawn from it, scaled to n.

        Raises:
            OptionError: it would have too many cells.
        """
        if not self.is_measured(columns):
            names = [self.names[j] for j in columns]
            raise OptionError(
                f"columns: the table of {names} has more than {self.most_cells} cells, too many "
                "for the rows there are; ask for fewer columns"
            )
        self.prepare([columns])
        return self._built[columns]

    @cached_property
    def _inside(self) -> frozenset[Columns]:
        return frozenset([*((j,) for j in range(len(self.names))), *self.terms])

    def cell_variance(self, columns: Columns, *, summed: Mapping[int, int] | None = None) -> float:
        """The variance that the noise of the model's terms within the columns gives to each cell of
        a table that is made of them, or of its sums over so many levels of some of the columns.
        """
        variances = {s: self.variances[s] if s in self._inside else 0.0 for s in subsets(columns)}
        return cell_variance(columns, self.cardinalities, variances, summed=summed)

    def strata(self, query: Any) -> NoisyStrata:
        """The model's tables of a query, by what is given, without the cells that are left out."""
        kept = (*query.given, query.x, query.y)
        columns = tuple(sorted(kept))
        whole = self.table(columns).transpose(np.argsort(np.argsort(kept)))
        table = observed(whole, [self.leaves_out[j] for j in kept])
        return NoisyStrata(
            table.reshape(-1, *table.shape[-2:]), np.array(self.cell_variance(columns))
        )

    @property
    def score_options(self) -> dict[str, Any]:
        """The price of noise grows with the number of rows."""
        price = min(max(3 * math.log10(self.n_samples) - 11, _LEAST_PRICE), _MOST_PRICE)
        return {"noise_price": price}

    def _parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = super()._parts()
        own = {"terms": [list(s) for s in self.terms], "most_cells": self.most_cells}
        return {**header, **own}, arrays

    @classmethod
    def _own_parts(cls, header: Any) -> dict[str, Any]:
        return {
            "terms": tuple(tuple(int(j) for j in s) for s in header["terms"]),
            "most_cells": int(header["most_cells"]),
        }
