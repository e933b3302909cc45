"""jaxcd: differentially private causal discovery, with its numerical core compiled by JAX.

The one public list.  The usual way in:

>>> import jax, jaxcd
>>> data = jaxcd.networks.load("cancer").sample(2_000, key=jax.random.key(0))
>>> run = jaxcd.pc(data, test=jaxcd.ChiSquare(), decider=jaxcd.Threshold(), budget=jaxcd.NO_PRIVACY, key=None)
>>> run.graph.names
('Pollution', 'Smoker', 'Cancer', 'Xray', 'Dyspnoea')
"""

from jaxcd import graphs, metrics, published
from jaxcd.citests import (
    HSIC,
    RCIT,
    BoughtBandwidths,
    BoundedRCIT,
    ChiSquare,
    CovarianceNorm,
    FisherZ,
    GTest,
    KendallTau,
    Null,
    Oracle,
    PooledCovariance,
    Spearman,
    StratifiedRanks,
)
from jaxcd.data import BayesianNetwork, Categorical, Dataset, Domain, Numeric, Ordinal, networks, read_csv, structural
from jaxcd.decisions import (
    ExponentialSelect,
    LevelwiseGaussian,
    Noise,
    NoisyRank,
    NoisyThreshold,
    Scheduled,
    SieveAndExamine,
    SparseVector,
    Threshold,
    TreeOptions,
)
from jaxcd.discovery import (
    ColliderRule,
    ConflictRule,
    DiscoveryResult,
    EdgeConfidence,
    dag_to_pag,
    decision_confidence,
    edge_confidence,
    fci,
    mag_to_pag,
    pc,
    tree_pc,
)
from jaxcd.doors import Algorithm, ci_test, discover, release, search
from jaxcd.errors import (
    BudgetExhausted,
    DataError,
    DomainError,
    FormatError,
    GraphError,
    JaxcdError,
    OptionError,
    PrivacyError,
    SensitivityError,
)
from jaxcd.graphs import Knowledge, MixedGraph
from jaxcd.guarantees import guarantees
from jaxcd.pairwise import Direction, PairResult, cds, igci, reci
from jaxcd.planning import Plan, ReleasePlan, plan, plan_release
from jaxcd.privacy import NO_PRIVACY, Budget, Ledger, PrivacyCost, Relation, SecureNoise, SimulatedNoise
from jaxcd.recommending import Method, Recommendation, recommend
from jaxcd.releases import Histogram, Marginals, NoisyFisherZ, Release, SecondMoments

__version__ = "0.1.0"

__all__ = [
    "HSIC",
    "NO_PRIVACY",
    "RCIT",
    "Algorithm",
    "BayesianNetwork",
    "BoughtBandwidths",
    "BoundedRCIT",
    "Budget",
    "BudgetExhausted",
    "Categorical",
    "ChiSquare",
    "ColliderRule",
    "ConflictRule",
    "CovarianceNorm",
    "DataError",
    "Dataset",
    "Direction",
    "DiscoveryResult",
    "Domain",
    "DomainError",
    "EdgeConfidence",
    "ExponentialSelect",
    "FisherZ",
    "FormatError",
    "GTest",
    "GraphError",
    "Histogram",
    "JaxcdError",
    "KendallTau",
    "Knowledge",
    "Ledger",
    "LevelwiseGaussian",
    "Marginals",
    "Method",
    "MixedGraph",
    "Noise",
    "NoisyFisherZ",
    "NoisyRank",
    "NoisyThreshold",
    "Null",
    "Numeric",
    "OptionError",
    "Oracle",
    "Ordinal",
    "PairResult",
    "Plan",
    "PooledCovariance",
    "PrivacyCost",
    "PrivacyError",
    "Recommendation",
    "Relation",
    "Release",
    "ReleasePlan",
    "Scheduled",
    "SecondMoments",
    "SecureNoise",
    "SensitivityError",
    "SieveAndExamine",
    "SimulatedNoise",
    "SparseVector",
    "Spearman",
    "StratifiedRanks",
    "Threshold",
    "TreeOptions",
    "cds",
    "ci_test",
    "dag_to_pag",
    "decision_confidence",
    "discover",
    "edge_confidence",
    "fci",
    "graphs",
    "guarantees",
    "igci",
    "mag_to_pag",
    "metrics",
    "networks",
    "pc",
    "plan",
    "plan_release",
    "published",
    "read_csv",
    "reci",
    "recommend",
    "release",
    "search",
    "structural",
    "tree_pc",
]
