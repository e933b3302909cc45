"""Cause or effect: which of two variables causes the other."""

from jaxcd.pairwise.abstaining import or_neither
from jaxcd.pairwise.accuracy import PairAccuracy, pair_accuracy, pair_accuracy_of
from jaxcd.pairwise.anm import anm, anm_batch
from jaxcd.pairwise.anm_scores import (
    AnmScore,
    HSICScore,
    IQRMechanism,
    KendallScore,
    LogIQRScore,
    Protect,
    ScoreRelease,
    SpearmanScore,
)
from jaxcd.pairwise.cds import cds
from jaxcd.pairwise.igci import Estimator, Reference, igci
from jaxcd.pairwise.pairs import (
    CausePair,
    PairCollection,
    Simulation,
    TuebingenVersion,
    challenge,
    over_pairs,
    simulated,
    tuebingen,
)
from jaxcd.pairwise.reci import BoundedPolynomial, reci
from jaxcd.pairwise.regressors import (
    Logistic,
    Monomial,
    NeuralNetwork,
    Polynomial,
    Regressor,
    SupportVector,
)
from jaxcd.pairwise.result import Direction, PairResult

__all__ = [
    "AnmScore",
    "BoundedPolynomial",
    "CausePair",
    "Direction",
    "Estimator",
    "HSICScore",
    "IQRMechanism",
    "KendallScore",
    "LogIQRScore",
    "Logistic",
    "Monomial",
    "NeuralNetwork",
    "PairAccuracy",
    "PairCollection",
    "PairResult",
    "Polynomial",
    "Protect",
    "Reference",
    "Regressor",
    "ScoreRelease",
    "Simulation",
    "SpearmanScore",
    "SupportVector",
    "TuebingenVersion",
    "anm",
    "anm_batch",
    "cds",
    "challenge",
    "igci",
    "or_neither",
    "over_pairs",
    "pair_accuracy",
    "pair_accuracy_of",
    "reci",
    "simulated",
    "tuebingen",
]
