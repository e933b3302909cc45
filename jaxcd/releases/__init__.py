"""One-shot releases: noisy statistics that are paid for once; every test on them is post-processing."""

from jaxcd.releases.base import Release
from jaxcd.releases.canonical_correlation import CanonicalCorrelation
from jaxcd.releases.contrast_moments import ContrastMoments, release_contrast_moments
from jaxcd.releases.features import Features, ReleasedFeatures, release_features
from jaxcd.releases.histogram import Histogram, ReleasedHistogram, release_histogram
from jaxcd.releases.marginal_purchase import MarginalsNoise
from jaxcd.releases.marginals import Marginals, ReleasedMarginals, release_marginals
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
