"""Bugs in deciders and doors: what they release without paying, and what they say."""

from __future__ import annotations

from jaxcd.audit.planting import EXACT, Bug

__all__ = ["BUGS"]


BUGS: tuple[Bug, ...] = (
    Bug(
        "noisy-threshold-free",
        "decisions.noisy_threshold:_NoisyRun._ask",
        "bool(noisy[0] <= 0)",
        f"bool({EXACT}(margin)[0] <= 0)",
        "replay: pc, NoisyThreshold 4, CovarianceNorm",
    ),
    Bug(
        "noisy-rank",
        "decisions.noisy_rank:noisy_rank",
        "integer_sensitivity(sensitivity, grid=GRID, pad=2 * pad) + 1",
        "(integer_sensitivity(sensitivity, grid=GRID, pad=2 * pad) + 1) / 2",
        "replay: pc, NoisyRank, BoundedRCIT",
    ),
    Bug(
        "examine-on-subset",
        "decisions.sieve_and_examine:_SieveRun._examine",
        "bool(noisy[0] <= 0)",
        f"bool({EXACT}(self._session.margins(query))[0] <= 0)",
        "replay: pc, SieveAndExamine 2, KendallTau",
    ),
    Bug(
        "schedule-uncharged",
        "privacy.ledger:LedgerPart.charge",
        "self._whole.charge(event)",
        "0",
        "replay: pc, Scheduled(SparseVector) 8, CovarianceNorm",
    ),
    Bug(
        "select-free",
        "decisions.exponential_select:_SelectRun._select",
        "question.candidates[chosen] if",
        f"question.candidates[int(np.argmin({EXACT}(margins)))] if",
        "replay: pc, ExponentialSelect 6, KendallTau",
    ),
    Bug(
        "smallest-margins",
        "decisions.measurements:_measure",
        "math.sqrt(len(exact))",
        "1.0",
        "replay: pc, LevelwiseGaussian 7, Spearman",
    ),
    Bug(
        "separating-set-free",
        "decisions.levelwise_gaussian:_LevelwiseRun._select",
        "return question.candidates[chosen]",
        f"return question.candidates[int(np.argmin({EXACT}(margins)))]",
        "replay: pc, LevelwiseGaussian 7, Spearman",
    ),
    Bug(
        "contrast-moments",
        "ops.moments:contrast_sensitivity",
        "2 * mean_weight**2 * f",
        "mean_weight**2 * f",
        "replay: tree_pc, CovarianceNorm",
    ),
    Bug(
        "openings",
        "decisions.measurements:openings",
        "(first.min() - second.min()) / 2",
        "(first.min() - second.min())",
        "constants: openings",
    ),
    Bug(
        "openings-projection",
        "decisions.measurements:openings",
        "bound.value / PROJECTION_SENSITIVITY",
        "bound.value / 2",
        "constants: openings",
    ),
    Bug(
        "ci-test-halved",
        "single_test:ci_test",
        "sensitivity=bound.value",
        "sensitivity=bound.value / 2",
        "replay: ci_test, PooledCovariance",
    ),
    Bug(
        "counts-of-work",
        "discovery.constraint.search:ConstraintSearch._result",
        "if not session.private:",
        "if True:",
        "replay: pc, SparseVector 0, CovarianceNorm",
    ),
)
