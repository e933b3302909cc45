"""Every mechanism of jaxcd: what it claims, whether that is proved, and what must be public."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Guarantee", "guarantees"]

_PUBLIC = "replace-one neighbours; the number of rows, the declared domain and all options are public"


@dataclass(frozen=True)
class Guarantee:
    """A claim.  ``mechanism``: the public name.  ``proven``: whether it stands on a proof.  ``proof``: where that is, or why there
    is none."""

    mechanism: str
    claim: str
    proven: bool
    assumptions: str
    proof: str


_GUARANTEES = (
    Guarantee(
        "Ledger",
        "everything drawn under one budget is (epsilon, delta)-DP together, for adaptively chosen events",
        True,
        "each event bounds its mechanism; the data is reached through charged mechanisms only",
        "jaxcd.privacy.ledger",
    ),
    Guarantee("CovarianceNorm", "margin sensitivity 3 records, at every alpha", True, _PUBLIC, "jaxcd.citests.covariance_norm"),
    Guarantee(
        "PooledCovariance", "margin sensitivity 4.172 records, at every alpha", True, _PUBLIC, "jaxcd.citests.covariance_norm"
    ),
    Guarantee("KendallTau", "margin sensitivity 2 + z/45 records (2.044 at alpha 0.05)", True, _PUBLIC, "jaxcd.citests.kendall"),
    Guarantee(
        "StratifiedRanks",
        "rank maps released under zCDP; then margin sensitivity 4 + (3 + 2.829 c) / 200 records (4.056 at alpha 0.05)",
        True,
        _PUBLIC,
        "jaxcd.citests.stratified_ranks, jaxcd.privacy.rank_maps",
    ),
    Guarantee(
        "BoundedRCIT",
        "margin sensitivity 1 in its own unit: 6.45 records for empty Z, 4 + sqrt 6 + 4 e / sigma otherwise",
        True,
        _PUBLIC + "; bounds, bandwidths and permutations are public",
        "jaxcd.citests.bounded_rcit",
    ),
    Guarantee("HSIC", "no sensitivity stated: refused by every mechanism", False, "-", "its units are read off the data"),
    Guarantee("RCIT", "no sensitivity stated: refused by every mechanism", False, "-", "penalty and units are read off the data"),
    Guarantee("ChiSquare", "no bounded sensitivity: refused by every mechanism", False, "-", "one record in an empty row"),
    Guarantee("GTest", "no bounded sensitivity: refused by every mechanism", False, "-", "its range grows with log n"),
    Guarantee("FisherZ", "no bounded sensitivity: refused by every mechanism", False, "-", "columns are unbounded"),
    Guarantee("Oracle", "reads no data; refused by every mechanism", False, "-", "there is nothing to protect"),
    Guarantee("Threshold", "none: compares without noise; refused under a budget", False, "-", "no noise"),
    Guarantee("NoisyThreshold", "the run is (epsilon, delta)-DP of its budget", True, _PUBLIC, "jaxcd.privacy.mechanisms"),
    Guarantee("SparseVector", "the run is (epsilon, delta)-DP of its budget", True, _PUBLIC, "jaxcd.privacy.above_threshold"),
    Guarantee(
        "SieveAndExamine",
        "the run is (epsilon, delta)-DP of its budget",
        True,
        _PUBLIC + "; the subsample is secret",
        "jaxcd.privacy.above_threshold, jaxcd.privacy.conversion",
    ),
    Guarantee(
        "LevelwiseGaussian",
        "the run is (epsilon, delta)-DP of its budget, delta > 0",
        True,
        _PUBLIC,
        "jaxcd.decisions.levelwise_gaussian, jaxcd.ops.moments",
    ),
    Guarantee(
        "tree_pc",
        "the run is (epsilon, delta)-DP of its budget, delta > 0",
        True,
        _PUBLIC,
        "jaxcd.decisions.measurements, jaxcd.ops.moments",
    ),
    Guarantee(
        "SimulatedNoise", "none: whoever knows the key can take the noise off", False, "-", "for experiments, not for release"
    ),
    Guarantee(
        "published.priv_pc",
        "the paper's (epsilon, delta), computed after the run",
        False,
        "-",
        "its statistic has sensitivity near 1/2, is undefined on constant columns, and the total depends on the data",
    ),
    Guarantee(
        "published.pcd",
        "the paper's running epsilon",
        False,
        "-",
        "it keeps edges without noise on one of two neighbouring data sets, so no epsilon holds; see jaxcd.published.pcd",
    ),
    Guarantee(
        "published.svt_pc",
        "the paper's (epsilon, delta), computed after the run",
        False,
        "-",
        "as published.priv_pc; moreover the threshold is refreshed with Gaussian instead of Laplace noise",
    ),
)


def guarantees() -> tuple[Guarantee, ...]:
    """Every mechanism and test: claim, whether it is proved, assumptions, and where the proof stands."""
    return _GUARANTEES
