"""Bugs in releases: sensitivities, weights of people, and exact statistics that slip through."""

from __future__ import annotations

from jaxcd.audit.planting import EXACT, RANKS, Bug

__all__ = ["BUGS"]


BUGS: tuple[Bug, ...] = (
    Bug(
        "histogram",
        "releases.tables.histogram:Histogram.buy",
        "HISTOGRAM_SENSITIVITY * units",
        "HISTOGRAM_SENSITIVITY * units / 2",
        "replay: release, Histogram",
    ),
    Bug(
        "histogram-empty-cells",
        "releases.tables.histogram:Histogram.buy",
        "values=np.rint(noisy / units)",
        f"values=np.where({EXACT}(door.counts([tuple(range(len(shape)))]))[0].ravel() == 0, 0, "
        "noisy)",
        "replay: release, Histogram",
    ),
    Bug(
        "person-weights",
        "ops.people:person_weights",
        "place < rest[people]",
        "rest[people] > 0",
        "replay: release by person, Histogram",
    ),
    Bug(
        "person-rows-count-whole",
        "ops.people:weighted_bincount",
        "np.bincount(cells, weights=weights, minlength=n_cells)",
        "(np.bincount(cells, minlength=n_cells) * (1 << 20))",
        "replay: release by person, Marginals",
    ),
    Bug(
        "person-number-of-rows",
        "queries.door:public_count",
        "data.n_people if by_person else data.n_samples",
        "data.n_samples",
        "replay: release by person, Histogram",
    ),
    Bug(
        "person-moments",
        "ops.tilted_moments:gram_steps",
        "weights[start : start + _BLOCK]",
        "weights[start : start + _BLOCK] * 2",
        "replay: release by person, SecondMoments",
    ),
    Bug(
        "person-rank-maps",
        "privacy.rank_maps:leaf_counts",
        "weights=weights",
        "weights=None if weights is None else weights * 2",
        "replay: release by person, Features",
    ),
    Bug(
        "marginals-pairs",
        "releases.tables.marginal_purchase:Purchase.buy_pairs",
        "pairs_sensitivity(self.cardinalities, absent=absent)",
        "0.5 * pairs_sensitivity(self.cardinalities, absent=absent)",
        "replay: release, Marginals, Gaussian",
    ),
    Bug(
        "marginals-laplace-pairs",
        "releases.tables.marginal_screen:pairs_for_laplace",
        "sensitivity(best) * (1 + 2.0**-40)",
        "sensitivity(best) / 1.2",
        "replay: release, Marginals, Laplace",
    ),
    Bug(
        "marginals-families",
        "releases.tables.marginal_purchase:Purchase.buy_families",
        "interactions_sensitivity(self.cardinalities, weights)",
        "interactions_sensitivity(self.cardinalities, weights) / 1.4",
        "replay: release, Marginals, Gaussian, all rounds",
    ),
    Bug(
        "marginals-tables",
        "releases.tables.marginal_purchase:Purchase.buy_tables",
        "screen.COUNTED_CHANGE * len(tables)",
        "screen.COUNTED_CHANGE",
        "replay: release, Marginals, Laplace, all rounds",
    ),
    Bug(
        "log-linear-exact-pairs",
        "releases.tables.log_linear:LogLinear.buy",
        "joined = released().neighbors",
        f"joined = released().neighbors[: int({EXACT}(door.codes().map(lambda c: c.sum())) % 7)]",
        "replay: release, LogLinear, Laplace",
    ),
    Bug(
        "pair-choice",
        "releases.tables.pair_selection:PairChoice.take",
        "sensitivity=COUNTED_CHANGE",
        "sensitivity=COUNTED_CHANGE / 1.2",
        "replay: release, LogLinear, chosen pairs",
    ),
    Bug(
        "pair-choice-weighted",
        "releases.tables.pair_selection:PairChoice._distances",
        "np.abs(counts",
        "1.5 * np.abs(counts",
        "replay: release, LogLinear, chosen pairs",
    ),
    Bug(
        "pairs-chosen-laplace",
        "releases.tables.marginal_screen:sets_for_laplace",
        "(1 + 2.0**-40)",
        "0.9",
        "replay: release, LogLinear, chosen pairs, Laplace",
    ),
    Bug(
        "tilted",
        "ops.tilted_moments:gram_sensitivity",
        "(1 + 2.0**-40)",
        "0.9",
        "replay: release, SecondMoments, public units",
    ),
    Bug(
        "tilted-pad",
        "ops.tilted_moments:conversion_error",
        "2.0**-51",
        "2.0**-60",
        "replay: release, SecondMoments, public units",
    ),
    Bug(
        "tilted-centres",
        "releases.moments.second_moments:_bought",
        "location, factor, expected = np.zeros(p)",
        f"centres = {EXACT}(door.values(names)).mean(axis=0); location, factor, expected = "
        "np.zeros(p)",
        "replay: release, SecondMoments, bought units",
    ),
    Bug(
        "bought-units",
        "releases.moments.bought_units:bought_units",
        "Fraction(2 * len(edges))",
        "Fraction(len(edges))",
        "replay: release, SecondMoments, bought units",
    ),
    Bug(
        "bought-units-free",
        "releases.moments.bought_units:bought_units",
        "for column in noisy]",
        f"for column in {EXACT}(binned(door, edges)) * unit]",
        "replay: release, SecondMoments, bought units",
    ),
    Bug(
        "tetrachoric-signs",
        "releases.tetrachoric.tetrachoric_correlations:_sensitivity",
        "Fraction(int(_CHANGE**2) * n_values)",
        "Fraction(2 * n_values)",
        "replay: release, Tetrachoric",
    ),
    Bug(
        "tetrachoric-choice",
        "releases.tetrachoric.tetrachoric_correlations:_bought",
        "sensitivity=_CHANGE",
        "sensitivity=_CHANGE / 1.2",
        "replay: release, Tetrachoric",
    ),
    Bug(
        "tetrachoric-medians",
        "releases.tetrachoric.bought_medians:bought_medians",
        "sqrt_up(Fraction(len(left)))",
        "sqrt_up(Fraction(1, 2) * len(left))",
        "replay: release, Tetrachoric",
    ),
    Bug(
        "tetrachoric-exact",
        "releases.tetrachoric.tetrachoric_correlations:_bought",
        "new = pairs[chosen]",
        f"new = pairs[{EXACT}(whole)[pairs[:, 0], pairs[:, 1]].argsort()[:size]]",
        "replay: release, Tetrachoric",
    ),
    Bug(
        "features",
        "releases.features.feature_covariances:feature_sensitivity",
        "(1 + 2.0**-40)",
        "0.8",
        "replay: release, Features",
    ),
    Bug(
        "features-rank-maps",
        "releases.features.feature_covariances:_bought",
        "maps.rank(numeric.index(name), values)",
        f"{RANKS}(values)",
        "replay: release, Features",
    ),
    Bug(
        "discretised-exact",
        "releases.tables.discretised:_bought_bins",
        "quantiles(maps, place, column, shares)",
        f"np.quantile({EXACT}(door.values([name]))[:, 0], shares)",
        "replay: release, Discretised",
    ),
    Bug(
        "discretised-ranks",
        "data.column_types:Binned.bins_of",
        "(np.array(self.edges[1:-1]), values,",
        f"(np.arange(1, len(self.edges) - 1) / (len(self.edges) - 1), {RANKS}(values),",
        "replay: release, Discretised",
    ),
)
