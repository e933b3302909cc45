"""Bugs where there is no search: cause or effect of two columns, and randomised response."""

from __future__ import annotations

from jaxcd.audit.planting import Bug

__all__ = ["BUGS"]

BUGS: tuple[Bug, ...] = (
    Bug(
        "anm-joint",
        "pairwise.anm_release:score_sensitivity",
        "record + lipschitz * plan.rms_shift",
        "record",
        "replay: anm, HSIC, both halves",
    ),
    Bug(
        "anm-split",
        "pairwise.anm_release:score_sensitivity",
        "lipschitz * plan.sup_shift",
        "lipschitz * plan.rms_shift",
        "replay: anm, HSIC, split, large penalty",
    ),
    Bug(
        "anm-record",
        "pairwise.anm_hsic:hsic_record_sensitivity",
        "math.sqrt(6)",
        "2.0",
        "constants: scores of pairs",
    ),
    Bug(
        "anm-difference",
        "pairwise.anm_release:private_result",
        "sensitivity=2 * sensitivity)\n",
        "sensitivity=sensitivity)\n",
        "replay: anm, HSIC, both halves",
    ),
    Bug(
        "anm-spearman",
        "citests.spearman:spearman_rho_sensitivity",
        "return 6 /",
        "return 3 /",
        "constants: scores of pairs",
    ),
    Bug(
        "anm-kendall",
        "pairwise.anm_scores:KendallScore.test_sensitivity",
        "4 / m",
        "2 / m",
        "constants: scores of pairs",
    ),
    Bug(
        "stable-distance",
        "pairwise.anm_release:stable_distance",
        "gap / (2 * shift)",
        "gap / shift",
        "constants: stable order",
    ),
    Bug(
        "flip-distance",
        "pairwise.anm_release:_flip",
        "sensitivity=2.0",
        "sensitivity=1.0",
        "constants: flip distance",
    ),
    Bug(
        "quartiles",
        "pairwise.anm_release:_quartiles",
        "sensitivity=1.0",
        "sensitivity=0.5",
        "replay: anm, IQR, quartiles",
    ),
    Bug(
        "reci",
        "pairwise.reci:_private",
        "accountant, difference, sensitivity=2.0 * method.ceiling",
        "accountant, difference, sensitivity=method.ceiling",
        "replay: reci",
    ),
    Bug(
        "kary",
        "local.kary_response:kept",
        "n_values / excess",
        "n_values / excess / 2",
        "constants: channels",
    ),
    Bug(
        "bounded-geometric",
        "local.bounded_geometric:column_losses",
        "float(exponents.max())",
        "float(exponents.min(axis=1).max() + exponents.mean())",
        "constants: channels",
    ),
    Bug(
        "clipped-geometric",
        "local.clipped_geometric:ClippedGeometric.guarantee",
        "sum(k - 1 for k in varying)",
        "sum(k - 2 for k in varying)",
        "constants: channels",
    ),
    Bug(
        "combined-geometric",
        "local.combined_geometric:combined_epsilon",
        "(rates * layout.eccentricities(classes)).max()",
        "rates.max()",
        "constants: channels",
    ),
)
