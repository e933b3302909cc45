"""One-shot releases: noisy statistics that are paid for once; every test on them is post-processing."""

from jaxcd.releases.base import Release
from jaxcd.releases.contrast_moments import ContrastMoments, release_contrast_moments
from jaxcd.releases.histogram import Histogram, ReleasedHistogram, release_histogram
from jaxcd.releases.marginals import Marginals, ReleasedMarginals, release_marginals
from jaxcd.releases.noisy_fisher_z import NoisyFisherZ
from jaxcd.releases.second_moments import ReleasedSecondMoments, SecondMoments, release_second_moments
from jaxcd.releases.set_function import SetFunction, SetTerms

__all__ = [
    "ContrastMoments",
    "Histogram",
    "Marginals",
    "NoisyFisherZ",
    "Release",
    "ReleasedHistogram",
    "ReleasedMarginals",
    "ReleasedSecondMoments",
    "SecondMoments",
    "SetFunction",
    "SetTerms",
    "release_contrast_moments",
    "release_histogram",
    "release_marginals",
    "release_second_moments",
]
