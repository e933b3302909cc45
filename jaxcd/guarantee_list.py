"""Every mechanism of jaxcd: what it claims, whether that is proved, and what must be public."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Guarantee", "guarantees"]

_PUBLIC = (
    "replace-one neighbours; the number of rows, the declared domain and all options are public"
)


@dataclass(frozen=True)
class Guarantee:
    """A claim.  ``mechanism``: the public name.  ``proven``: whether it stands on a proof.
    ``proof``: where that is, or why there is none."""

    mechanism: str
    claim: str
    proven: bool
    assumptions: str
    proof: str


_GUARANTEES = (
    Guarantee(
        "Ledger",
        "everything drawn under one budget is (epsilon, delta)-DP together, for adaptively chosen "
        "events",
        True,
        "each event bounds its mechanism; the data is reached through charged mechanisms only",
        "jaxcd.privacy.ledger",
    ),
    Guarantee(
        "CovarianceNorm",
        "margin sensitivity 3 records, at every alpha",
        True,
        _PUBLIC,
        "jaxcd.citests.covariance_norm",
    ),
    Guarantee(
        "PooledCovariance",
        "margin sensitivity 4.172 records, at every alpha",
        True,
        _PUBLIC,
        "jaxcd.citests.covariance_norm",
    ),
    Guarantee(
        "KendallTau",
        "margin sensitivity 2 + z/45 records (2.044 at alpha 0.05)",
        True,
        _PUBLIC,
        "jaxcd.citests.kendall",
    ),
    Guarantee(
        "Spearman",
        "margin sensitivity 2 + z/45 records (2.044 at alpha 0.05)",
        True,
        _PUBLIC,
        "jaxcd.citests.spearman",
    ),
    Guarantee(
        "StratifiedRanks",
        "rank maps released under zCDP; then margin sensitivity 4 + (3 + 2.829 c) / 200 records "
        "(4.056 at alpha 0.05)",
        True,
        _PUBLIC,
        "jaxcd.citests.stratified_ranks, jaxcd.privacy.rank_maps",
    ),
    Guarantee(
        "BoundedRCIT",
        "margin sensitivity 1 in its own unit: 6.45 records for empty Z, 4 + sqrt 6 + 4 e / sigma "
        "otherwise",
        True,
        _PUBLIC + "; bounds, bandwidths and permutations are public",
        "jaxcd.citests.bounded_rcit",
    ),
    Guarantee(
        "BoughtBandwidths",
        "bandwidths of BoundedRCIT released by the exponential mechanism, utility sensitivity 2 "
        "records",
        True,
        _PUBLIC + "; bounds and grid are public",
        "jaxcd.citests.bought_bandwidths",
    ),
    Guarantee(
        "HSIC",
        "no sensitivity stated: refused by every mechanism",
        False,
        "-",
        "its units are read off the data",
    ),
    Guarantee(
        "RCIT",
        "no sensitivity stated: refused by every mechanism",
        False,
        "-",
        "penalty and units are read off the data",
    ),
    Guarantee(
        "ChiSquare",
        "no bounded sensitivity: refused by every mechanism",
        False,
        "-",
        "one record in an empty row",
    ),
    Guarantee(
        "GTest",
        "no bounded sensitivity: refused by every mechanism",
        False,
        "-",
        "its range grows with log n",
    ),
    Guarantee(
        "FisherZ",
        "no bounded sensitivity: refused by every mechanism",
        False,
        "-",
        "columns are unbounded",
    ),
    Guarantee(
        "Oracle",
        "reads no data; refused by every mechanism",
        False,
        "-",
        "there is nothing to protect",
    ),
    Guarantee(
        "Threshold", "none: compares without noise; refused under a budget", False, "-", "no noise"
    ),
    Guarantee(
        "NoisyThreshold",
        "the run is (epsilon, delta)-DP of its budget",
        True,
        _PUBLIC,
        "jaxcd.privacy.mechanisms",
    ),
    Guarantee(
        "NoisyRank",
        "the run is (epsilon, delta)-DP of its budget; answers are released, noisy p-values are "
        "not (they would cost more)",
        True,
        _PUBLIC + "; permutations are public and drawn without the data",
        "jaxcd.decisions.noisy_rank",
    ),
    Guarantee(
        "SparseVector",
        "the run is (epsilon, delta)-DP of its budget",
        True,
        _PUBLIC,
        "jaxcd.privacy.above_threshold",
    ),
    Guarantee(
        "SieveAndExamine",
        "the run is (epsilon, delta)-DP of its budget",
        True,
        _PUBLIC + "; the subsample is secret",
        "jaxcd.privacy.above_threshold, jaxcd.privacy.conversion",
    ),
    Guarantee(
        "ExponentialSelect",
        "the run is (epsilon, delta)-DP of its budget; one event pays for an answer and its "
        "separating set",
        True,
        _PUBLIC,
        "jaxcd.decisions.exponential_select, jaxcd.privacy.mechanisms",
    ),
    Guarantee(
        "Scheduled",
        "the run is (epsilon, delta)-DP of its budget, and each level is within its share of what "
        "was left of it",
        True,
        _PUBLIC + "; those of the decider it holds",
        "jaxcd.decisions.scheduled, jaxcd.privacy.ledger",
    ),
    Guarantee(
        "LevelwiseGaussian",
        "the run is (epsilon, delta)-DP of its budget, delta > 0",
        True,
        _PUBLIC,
        "jaxcd.decisions.levelwise_gaussian, jaxcd.ops.moments",
    ),
    Guarantee(
        "fci",
        "the run, both passes of its skeleton together, is (epsilon, delta)-DP of its budget, "
        "whichever decider above it has",
        True,
        _PUBLIC + "; background knowledge is public",
        "jaxcd.discovery.fci, jaxcd.privacy.ledger",
    ),
    Guarantee(
        "tree_pc",
        "the run is (epsilon, delta)-DP of its budget, delta > 0",
        True,
        _PUBLIC,
        "jaxcd.decisions.measurements, jaxcd.ops.moments",
    ),
    Guarantee(
        "release_histogram",
        "the joint histogram is epsilon-DP with the whole epsilon of its budget; every search on "
        "it is post-processing",
        True,
        _PUBLIC,
        "jaxcd.releases.tables.histogram",
    ),
    Guarantee(
        "release_marginals",
        "three rounds of marginal tables are (epsilon, delta)-DP of their budget, pure where "
        "delta = 0; every search on them is post-processing",
        True,
        _PUBLIC,
        "jaxcd.releases.tables.marginals, jaxcd.releases.tables.marginal_purchase, "
        "jaxcd.ops.interactions, jaxcd.ops.moments",
    ),
    Guarantee(
        "release_second_moments",
        "tilted second moments of numeric columns are (epsilon, delta)-DP of their budget; every "
        "search on them is post-processing",
        True,
        _PUBLIC + "; centres and scales are public, or bought with a share of the budget",
        "jaxcd.releases.moments.second_moments, jaxcd.ops.tilted_moments",
    ),
    Guarantee(
        "release_features",
        "means and covariances of bounded features of ranks are (epsilon, delta)-DP of their "
        "budget, delta > 0, rank maps included",
        True,
        _PUBLIC,
        "jaxcd.releases.features.feature_covariances, jaxcd.privacy.rank_maps",
    ),
    Guarantee(
        "edge_confidence, decision_confidence",
        "post-processing: read released numbers only",
        True,
        "those of the release or run",
        "jaxcd.discovery.confidence",
    ),
    Guarantee(
        "reci",
        "the noisy difference of two least total losses over a finite class of functions is "
        "epsilon-DP; direction and confidence follow",
        True,
        _PUBLIC + "; bounds are public",
        "jaxcd.pairwise.reci",
    ),
    Guarantee(
        "anm",
        "direction or scores are (epsilon, delta)-DP of their budget, for all records or, where "
        "asked, those of one half of the split",
        True,
        _PUBLIC + "; bounds and the split are public; with Protect.TEST or Protect.TRAIN the other "
        "half is not protected",
        "jaxcd.pairwise.anm_release, jaxcd.pairwise.anm_scores, jaxcd.pairwise.anm_columns",
    ),
    Guarantee(
        "propose_test_release, stable_release",
        "(3 epsilon, delta) and (epsilon, delta), charged to an account of epsilon and one of "
        "delta",
        True,
        _PUBLIC,
        "jaxcd.privacy.propose_test_release",
    ),
    Guarantee(
        "igci, cds",
        "no bounded sensitivity: refused under a budget",
        False,
        "-",
        "slopes, spacings and bins are read off the data",
    ),
    Guarantee(
        "local.KaryResponse, local.CombinedKaryResponse",
        "epsilon-local differential privacy of a whole record",
        True,
        "levels are public",
        "jaxcd.local.kary_response",
    ),
    Guarantee(
        "local.BoundedGeometric, local.ClippedGeometric, local.CombinedGeometric",
        "the epsilon_ldp and the d-privacy that guarantee(domain) reports, which are none of the "
        "published epsilon_x",
        True,
        "levels are public and ordered",
        "jaxcd.local.bounded_geometric, jaxcd.local.clipped_geometric, "
        "jaxcd.local.combined_geometric",
    ),
    Guarantee(
        "SimulatedNoise",
        "none: whoever knows the key can take the noise off",
        False,
        "-",
        "for experiments, not for release",
    ),
    Guarantee(
        "published.priv_pc",
        "the paper's (epsilon, delta), computed after the run",
        False,
        "-",
        "its statistic has sensitivity near 1/2, is undefined on constant columns, and the total "
        "depends on the data",
    ),
    Guarantee(
        "published.em_pc",
        "the paper's (epsilon, delta), computed after the run",
        False,
        "-",
        "its separating sets are exact maxima published without noise, its utility's sensitivity "
        "is not one, the total depends on "
        "the data; see jaxcd.published.em_pc",
    ),
    Guarantee(
        "published.pcd",
        "the paper's running epsilon",
        False,
        "-",
        "it keeps edges without noise on one of two neighbouring data sets, so no epsilon holds; "
        "see jaxcd.published.pcd",
    ),
    Guarantee(
        "published.svt_pc",
        "the paper's (epsilon, delta), computed after the run",
        False,
        "-",
        "as published.priv_pc; moreover the threshold is refreshed with Gaussian instead of "
        "Laplace noise",
    ),
)


def guarantees() -> tuple[Guarantee, ...]:
    """Every mechanism and test: what it claims, whether that is proved, and where the proof is.

    Returns:
        The claims, with their assumptions.  ``jaxcd guarantees`` prints them.

    Example:
        >>> import jaxcd
        >>> next(claim.claim for claim in jaxcd.guarantees() if claim.mechanism == "CovarianceNorm")
        'margin sensitivity 3 records, at every alpha'
    """
    return _GUARANTEES
