"""Conditional independence tests: one file a test, one interface (:class:`jaxcd.citests.base.CITest`)."""

from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query, Sensitivity, check_alpha
from jaxcd.citests.chi_square import ChiSquare, GTest
from jaxcd.citests.covariance_norm import CovarianceNorm, PooledCovariance
from jaxcd.citests.fisher_z import FisherZ
from jaxcd.citests.kendall import KendallTau
from jaxcd.citests.oracle import Oracle

__all__ = [
    "CITest",
    "ChiSquare",
    "CovarianceNorm",
    "Evaluation",
    "FisherZ",
    "GTest",
    "KendallTau",
    "Oracle",
    "PooledCovariance",
    "PreparedTest",
    "Query",
    "Sensitivity",
    "check_alpha",
]
