"""Deciders: how an answer is given, and what it costs."""

from jaxcd.decisions.base import Decider, DecisionRun, Frontier, Question
from jaxcd.decisions.exponential_select import ExponentialSelect
from jaxcd.decisions.levelwise_gaussian import LevelwiseGaussian
from jaxcd.decisions.noisy_rank import NoisyRank
from jaxcd.decisions.noisy_threshold import Noise, NoisyThreshold
from jaxcd.decisions.scheduled import Scheduled
from jaxcd.decisions.sieve_and_examine import SieveAndExamine
from jaxcd.decisions.sparse_vector import SparseVector
from jaxcd.decisions.threshold import Threshold
from jaxcd.decisions.tree_guided import TreeGuided, TreeOptions

__all__ = [
    "Decider",
    "DecisionRun",
    "ExponentialSelect",
    "Frontier",
    "LevelwiseGaussian",
    "Noise",
    "NoisyRank",
    "NoisyThreshold",
    "Question",
    "Scheduled",
    "SieveAndExamine",
    "SparseVector",
    "Threshold",
    "TreeGuided",
    "TreeOptions",
]
