"""Bugs in tests: constants, pads, and what feeds the statistic."""

from __future__ import annotations

from jaxcd.audit.planting import RANKS, Bug

__all__ = ["BUGS"]


BUGS: tuple[Bug, ...] = (
    Bug(
        "covariance-norm",
        "citests.covariance_norm:_CovarianceTest.margin_sensitivity",
        "self._between + 3 - _BETWEEN",
        "self._between",
        "replay: ci_test, CovarianceNorm",
    ),
    Bug(
        "pad-of-tables",
        "citests.covariance_norm:rounding_pad",
        "max(1e-7,",
        "max(1e-9,",
        "replay: ci_test, CovarianceNorm",
    ),
    Bug(
        "pooled-covariance",
        "citests.covariance_norm:_CovarianceTest.margin_sensitivity",
        "self._between + 3 - _BETWEEN",
        "3",
        "constants: margins on tables",
    ),
    Bug(
        "covariance-threshold",
        "citests.covariance_norm:_threshold_floor",
        "(2 * (3 - _BETWEEN))",
        "200",
        "constants: margins on tables",
    ),
    Bug(
        "kendall",
        "citests.ordered_columns:OrderedTest.margin_sensitivity",
        "_moves(alpha)",
        "_moves(0.5)",
        "replay: ci_test, KendallTau",
    ),
    Bug(
        "kendall-threshold",
        "citests.ordered_columns:_moves",
        "(alpha / 2) / 45",
        "(alpha / 2) / 90",
        "replay: ci_test, KendallTau",
    ),
    Bug(
        "spearman",
        "citests.ordered_columns:OrderedTest.margin_sensitivity",
        "_moves(alpha)",
        "_moves(0.5)",
        "replay: ci_test, Spearman",
    ),
    Bug(
        "stratified-ranks",
        "citests.stratified_ranks:StratifiedRanks.margin_sensitivity",
        "value = 4 +",
        "value = 2 +",
        "constants: stratified ranks",
    ),
    Bug(
        "rank-maps",
        "privacy.rank_maps:rank_map_sensitivity",
        "Fraction(2 * (n_levels + 1)",
        "Fraction((n_levels + 1)",
        "constants: rank maps",
    ),
    Bug(
        "rank-maps-free",
        "citests.stratified_ranks:StratifiedRanks.prepare_privately",
        "maps.rank(v, column)",
        f"{RANKS}(column)",
        "constants: rank maps",
    ),
    Bug(
        "stratified-tau-unit",
        "citests.stratified_tau:StratifiedTau.margin_sensitivity",
        "Sensitivity(1.0",
        "Sensitivity(0.5",
        "constants: stratified tau",
    ),
    Bug(
        "stratified-tau-score",
        "citests.stratified_tau:_Weights.score_moves",
        "3 * (self.fine + self.coarse)",
        "2 * (self.fine + self.coarse)",
        "constants: stratified tau",
    ),
    Bug(
        "stratified-tau-variance",
        "citests.stratified_tau:_PreparedTau.buy",
        "sensitivity = (1 + _SHARE) * weights.score_moves",
        "sensitivity = weights.score_moves",
        "replay: ci_test, StratifiedTau, 1",
    ),
    Bug(
        "priv-gcm-others",
        "published.priv_gcm:PrivGCM.product_sensitivity",
        "2 * (1 + w) ** 2 + 2 * residual_shift(self.penalty, math.inf)",
        "2 * (1 + w) ** 2",
        "replay: ci_test, PrivGCM",
    ),
    Bug(
        "priv-gcm-own",
        "published.priv_gcm:_PreparedGCM.buy",
        "conditional=bool(query.given)",
        "conditional=False",
        "replay: ci_test, PrivGCM",
    ),
    Bug(
        "bounded-rcit-unit",
        "citests.bounded_rcit:BoundedRCIT.margin_sensitivity",
        "Sensitivity(1.0",
        "Sensitivity(0.5",
        "replay: pc, NoisyRank, BoundedRCIT",
    ),
    Bug(
        "bounded-rcit-residual",
        "citests.bounded_rcit:BoundedRCIT.record_sensitivity",
        "math.sqrt(6) + 2 * kernels",
        "math.sqrt(6) + kernels",
        "constants: kernel formula",
    ),
    Bug(
        "bandwidths",
        "citests.bought_bandwidths:buy_scales",
        "sensitivity=SCALE_SENSITIVITY",
        "sensitivity=SCALE_SENSITIVITY / 2",
        "constants: bandwidths",
    ),
)
