"""What a graph is worth, given data or a release: likelihoods less a penalty, in nats; all on released numbers is post-processing."""

from jaxcd.scores.base import FamilyTable, GraphScore, LocalScore
from jaxcd.scores.bdeu import BDeuScore
from jaxcd.scores.bic import BICScore
from jaxcd.scores.configurations import BIC, BDeu, ScoreConfig
from jaxcd.scores.gaussian import GaussianScore
from jaxcd.scores.gaussian_data import GaussianDataScore
from jaxcd.scores.measurement_error import MeasurementErrorScore
from jaxcd.scores.set_score import SetScore

__all__ = [
    "BIC",
    "BDeu",
    "BDeuScore",
    "BICScore",
    "FamilyTable",
    "GaussianDataScore",
    "GaussianScore",
    "GraphScore",
    "LocalScore",
    "MeasurementErrorScore",
    "ScoreConfig",
    "SetScore",
]
