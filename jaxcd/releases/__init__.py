"""One-shot releases: noisy statistics that are paid for once; every test on them is
post-processing.
"""

from jaxcd.releases.base import Release
from jaxcd.releases.contrast_moments import ContrastMoments, release_contrast_moments
from jaxcd.releases.features.canonical_correlation import CanonicalCorrelation
from jaxcd.releases.features.feature_covariances import Features, ReleasedFeatures
from jaxcd.releases.features.feature_score import FeatureScore
from jaxcd.releases.kind import ReleaseKind, paid
from jaxcd.releases.moments.gaussian_score import GaussianScore
from jaxcd.releases.moments.second_moments import ReleasedSecondMoments, SecondMoments
from jaxcd.releases.plans import Plan
from jaxcd.releases.tables.discretised import Discretised
from jaxcd.releases.tables.histogram import Histogram, ReleasedHistogram
from jaxcd.releases.tables.log_linear import LogLinear, ReleasedLogLinear
from jaxcd.releases.tables.marginal_purchase import MarginalsNoise
from jaxcd.releases.tables.marginals import Marginals, ReleasedMarginals
from jaxcd.releases.tables.measurement_error import MeasurementErrorScore
from jaxcd.releases.tables.set_function import SetFunction, SetTerms
from jaxcd.releases.tables.set_score import SetScore
from jaxcd.releases.tetrachoric.tetrachoric_correlations import ReleasedTetrachoric, Tetrachoric

__all__ = [
    "CanonicalCorrelation",
    "ContrastMoments",
    "Discretised",
    "FeatureScore",
    "Features",
    "GaussianScore",
    "Histogram",
    "LogLinear",
    "Marginals",
    "MarginalsNoise",
    "MeasurementErrorScore",
    "Release",
    "ReleaseKind",
    "Plan",
    "ReleasedFeatures",
    "ReleasedHistogram",
    "ReleasedLogLinear",
    "ReleasedMarginals",
    "ReleasedSecondMoments",
    "ReleasedTetrachoric",
    "SecondMoments",
    "SetFunction",
    "SetScore",
    "SetTerms",
    "Tetrachoric",
    "paid",
    "release_contrast_moments",
]
