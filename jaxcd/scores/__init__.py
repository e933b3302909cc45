"""What a graph is worth, given data or a release: likelihoods less a penalty, in nats; all on released numbers is post-processing."""

from jaxcd.scores.base import FamilyTable, GraphScore, LocalScore
from jaxcd.scores.bic import BICScore
from jaxcd.scores.gaussian import GaussianScore
from jaxcd.scores.measurement_error import MeasurementErrorScore
from jaxcd.scores.set_score import SetScore

__all__ = ["BICScore", "FamilyTable", "GaussianScore", "GraphScore", "LocalScore", "MeasurementErrorScore", "SetScore"]
