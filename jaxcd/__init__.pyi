"""The public list: what ``jaxcd.NAME`` is, and where ``__init__.py`` finds it when it is asked
for.
"""

from jaxcd import advice as advice
from jaxcd import audit as audit
from jaxcd import citests as citests
from jaxcd import data as data
from jaxcd import decisions as decisions
from jaxcd import discovery as discovery
from jaxcd import effects as effects
from jaxcd import errors as errors
from jaxcd import federated as federated
from jaxcd import graphs as graphs
from jaxcd import local as local
from jaxcd import metrics as metrics
from jaxcd import pairwise as pairwise
from jaxcd import privacy as privacy
from jaxcd import published as published
from jaxcd import releases as releases
from jaxcd import scores as scores
from jaxcd.advice.planning import plan, plan_release
from jaxcd.advice.recommending import recommend
from jaxcd.api import Algorithm, discover, release, search
from jaxcd.citests import (
    GCM,
    HSIC,
    KCI,
    RCIT,
    BoundedRCIT,
    ChiSquare,
    CovarianceNorm,
    FisherZ,
    GTest,
    KendallTau,
    Oracle,
    PooledCovariance,
    Spearman,
    StratifiedRanks,
    StratifiedTau,
)
from jaxcd.data import (
    Binned,
    Categorical,
    Dataset,
    Domain,
    Numeric,
    Ordinal,
    Table,
    networks,
    read_csv,
)
from jaxcd.decisions import (
    ExponentialSelect,
    LevelwiseGaussian,
    NoisyRank,
    NoisyThreshold,
    Scheduled,
    SieveAndExamine,
    SparseVector,
    Threshold,
)
from jaxcd.discovery import (
    DiscoveryResult,
    edge_confidence,
    exact_search,
    fci,
    ges,
    gfci,
    mmhc,
    pc,
    tree_pc,
)
from jaxcd.discovery.score.scored import order_mcmc
from jaxcd.effects import effect, falsify
from jaxcd.federated import federate
from jaxcd.graphs import Knowledge, MixedGraph
from jaxcd.guarantee_list import guarantees
from jaxcd.pairwise import anm, cds, igci, reci
from jaxcd.privacy import NO_PRIVACY, Budget, LedgerFile, SimulatedNoise, receipt_of
from jaxcd.privacy.verifying import verify
from jaxcd.releases import (
    CanonicalCorrelation,
    Discretised,
    Features,
    Histogram,
    LogLinear,
    Marginals,
    Release,
    SecondMoments,
    Tetrachoric,
)
from jaxcd.scores import BIC, BDeu
from jaxcd.single_test import ci_test

__version__: str

__all__ = [
    "Algorithm",
    "BDeu",
    "BIC",
    "Binned",
    "BoundedRCIT",
    "Budget",
    "CanonicalCorrelation",
    "Categorical",
    "ChiSquare",
    "CovarianceNorm",
    "Dataset",
    "DiscoveryResult",
    "Discretised",
    "Domain",
    "ExponentialSelect",
    "Features",
    "FisherZ",
    "GCM",
    "GTest",
    "HSIC",
    "KCI",
    "Histogram",
    "KendallTau",
    "Knowledge",
    "LedgerFile",
    "LevelwiseGaussian",
    "LogLinear",
    "Marginals",
    "MixedGraph",
    "NO_PRIVACY",
    "NoisyRank",
    "NoisyThreshold",
    "Numeric",
    "Oracle",
    "Ordinal",
    "PooledCovariance",
    "RCIT",
    "Release",
    "Scheduled",
    "SecondMoments",
    "SieveAndExamine",
    "SimulatedNoise",
    "SparseVector",
    "Spearman",
    "StratifiedRanks",
    "StratifiedTau",
    "Table",
    "Tetrachoric",
    "Threshold",
    "anm",
    "cds",
    "ci_test",
    "discover",
    "edge_confidence",
    "effect",
    "exact_search",
    "falsify",
    "fci",
    "federate",
    "ges",
    "gfci",
    "guarantees",
    "igci",
    "mmhc",
    "networks",
    "order_mcmc",
    "pc",
    "plan",
    "plan_release",
    "read_csv",
    "receipt_of",
    "reci",
    "recommend",
    "release",
    "search",
    "tree_pc",
    "verify",
]
