"""Conditional independence tests: one file a test, one interface
(:class:`jaxcd.citests.base.CITest`).
"""

from jaxcd.citests.base import CITest, Evaluation, PreparedTest, Query, Sensitivity, check_alpha
from jaxcd.citests.bought_bandwidths import BoughtBandwidths
from jaxcd.citests.bounded_rcit import BoundedRCIT, Null
from jaxcd.citests.chi_square import ChiSquare, GTest
from jaxcd.citests.covariance_norm import CovarianceNorm, PooledCovariance
from jaxcd.citests.fisher_z import FisherZ
from jaxcd.citests.gcm import GCM
from jaxcd.citests.kci import KCI
from jaxcd.citests.kendall import KendallTau
from jaxcd.citests.oracle import Oracle
from jaxcd.citests.permutation import PermutationTest, PreparedPermutationTest, critical_rank
from jaxcd.citests.rcit import HSIC, RCIT
from jaxcd.citests.spearman import Spearman
from jaxcd.citests.stratified_ranks import StratifiedRanks
from jaxcd.citests.stratified_tau import StratifiedTau

__all__ = [
    "GCM",
    "HSIC",
    "KCI",
    "RCIT",
    "BoughtBandwidths",
    "BoundedRCIT",
    "CITest",
    "ChiSquare",
    "CovarianceNorm",
    "Evaluation",
    "FisherZ",
    "GTest",
    "KendallTau",
    "Null",
    "Oracle",
    "PermutationTest",
    "PooledCovariance",
    "PreparedPermutationTest",
    "PreparedTest",
    "Query",
    "Sensitivity",
    "Spearman",
    "StratifiedRanks",
    "StratifiedTau",
    "check_alpha",
    "critical_rank",
]
