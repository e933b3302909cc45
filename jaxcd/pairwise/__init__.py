"""Cause or effect: which of two variables causes the other."""

from jaxcd.pairwise.accuracy import PairAccuracy, pair_accuracy, pair_accuracy_of
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
from jaxcd.pairwise.reci import BoundedPolynomial, Logistic, Monomial, Polynomial, Regressor, reci
from jaxcd.pairwise.result import Direction, PairResult

__all__ = [
    "BoundedPolynomial",
    "CausePair",
    "Direction",
    "Estimator",
    "Logistic",
    "Monomial",
    "PairAccuracy",
    "PairCollection",
    "PairResult",
    "Polynomial",
    "Reference",
    "Regressor",
    "Simulation",
    "TuebingenVersion",
    "cds",
    "challenge",
    "igci",
    "over_pairs",
    "pair_accuracy",
    "pair_accuracy_of",
    "reci",
    "simulated",
    "tuebingen",
]
