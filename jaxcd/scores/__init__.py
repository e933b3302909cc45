"""What a graph is worth, given data: likelihoods less a penalty, in nats.  The scores on released
numbers are beside the releases.
"""

from jaxcd.scores.base import FamilyTable, GraphScore, LocalScore
from jaxcd.scores.bdeu import BDeuScore
from jaxcd.scores.bic import BICScore
from jaxcd.scores.configurations import BIC, BDeu, ScoreConfig, ScoredSource
from jaxcd.scores.gaussian_data import GaussianDataScore

__all__ = [
    "BIC",
    "BDeu",
    "BDeuScore",
    "BICScore",
    "FamilyTable",
    "GaussianDataScore",
    "GraphScore",
    "LocalScore",
    "ScoreConfig",
    "ScoredSource",
]
