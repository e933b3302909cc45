"""One-shot releases: noisy statistics that are paid for once; every test on them is post-processing."""

from jaxcd.releases.base import Release
from jaxcd.releases.contrast_moments import ContrastMoments, release_contrast_moments
from jaxcd.releases.features import CanonicalCorrelation, Features, ReleasedFeatures, release_features
from jaxcd.releases.histogram import Histogram, ReleasedHistogram, release_histogram
from jaxcd.releases.marginals import Marginals, MarginalsNoise, ReleasedMarginals, release_marginals
from jaxcd.releases.noisy_fisher_z import NoisyFisherZ
from jaxcd.releases.second_moments import ReleasedSecondMoments, SecondMoments, release_second_moments
from jaxcd.releases.set_function import SetFunction, SetTerms

__all__ = [
    "CanonicalCorrelation",
    "ContrastMoments",
    "Features",
    "Histogram",
    "Marginals",
    "MarginalsNoise",
    "NoisyFisherZ",
    "Release",
    "ReleasedFeatures",
    "ReleasedHistogram",
    "ReleasedMarginals",
    "ReleasedSecondMoments",
    "SecondMoments",
    "SetFunction",
    "SetTerms",
    "release_contrast_moments",
    "release_features",
    "release_histogram",
    "release_marginals",
    "release_second_moments",
]
