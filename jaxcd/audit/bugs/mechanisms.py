"""Bugs in mechanisms and noise: scales that do not belong to the price."""

from __future__ import annotations

from jaxcd.audit.planting import Bug

__all__ = ["BUGS"]


BUGS: tuple[Bug, ...] = (
    Bug(
        "laplace-half",
        "privacy.mechanisms:laplace",
        "noise_scale(bound, epsilon)",
        "noise_scale(bound / 2, epsilon)",
        "replay: release, Histogram",
    ),
    Bug(
        "gaussian-half",
        "privacy.mechanisms:gaussian_sigma",
        "bound**2 / (2 * Fraction(rho))",
        "bound**2 / (4 * Fraction(rho))",
        "telling apart: Gaussian",
    ),
    Bug(
        "gumbel-half",
        "privacy.mechanisms:select_top",
        "noise_scale(2 * bound, epsilon)",
        "noise_scale(bound, epsilon)",
        "replay: pc, ExponentialSelect 6, KendallTau",
    ),
    Bug(
        "rounding-uncounted",
        "privacy.mechanisms:integer_sensitivity",
        "bound + spread",
        "bound",
        "replay: pc, LevelwiseGaussian 7, Spearman",
    ),
    Bug(
        "pad-uncounted",
        "privacy.mechanisms:integer_sensitivity",
        "exact + 2 * spread * error",
        "exact",
        "replay: ci_test, CovarianceNorm",
    ),
    Bug(
        "integers-halved",
        "privacy.mechanisms:integer_sensitivity",
        "bound = exact / step",
        "bound = exact / step / 2",
        "replay: release, Histogram",
    ),
    Bug(
        "charge-halved",
        "privacy.mechanisms:laplace",
        "PureEvent(epsilon, label",
        "PureEvent(epsilon / 2, label",
        "replay: release, Histogram",
    ),
    Bug(
        "sparse-vector-query",
        "privacy.above_threshold:AboveThreshold.__init__",
        "noise_scale(2 * bound, second)",
        "noise_scale(bound, second)",
        "replay: pc, SparseVector 0, CovarianceNorm",
    ),
    Bug(
        "sparse-vector-threshold",
        "privacy.above_threshold:AboveThreshold.__init__",
        "noise_scale(bound, first)",
        "noise_scale(bound / 2, first)",
        "replay: pc, SparseVector 0, CovarianceNorm",
    ),
    Bug(
        "sparse-vector-twice",
        "privacy.above_threshold:AboveThreshold._first_above",
        "self._spent = True",
        "self._spent = False",
        "sparse vector: one answer a charge",
    ),
    Bug(
        "sieve-amplified",
        "privacy.above_threshold:AboveThreshold.__init__",
        "amplified_epsilon(epsilon, rate)",
        "amplified_epsilon(epsilon, rate / 2)",
        "composition: amplification by subsets",
    ),
    Bug(
        "sieve-subset",
        "privacy.above_threshold:AboveThreshold.draw_subset",
        "subset(n, m, index",
        "subset(n, n, index",
        "replay: pc, SieveAndExamine 3, Spearman",
    ),
    Bug(
        "subset-biased",
        "privacy.noise:_SecureSampler.subset",
        "keys <= ordered[m - 1]",
        "np.arange(n) < m",
        "laws: subsets",
    ),
    Bug(
        "noise-zero",
        "privacy.noise:_SecureSampler.discrete_laplace",
        "_laplace_measurement(scale)([0] * size)",
        "[0] * size",
        "laws: secure noise",
    ),
    Bug(
        "noise-reused",
        "privacy.noise:_SecureSampler.discrete_laplace",
        "_saturate(_laplace_measurement(scale)([0] * size))",
        "np.rint(np.random.default_rng(index).laplace(scale=scale, size=size)).astype(np.int64)",
        "laws: noise is drawn anew",
    ),
    Bug(
        "own-noise",
        "privacy.one_draw:_OneSampler.discrete_gaussian",
        "self._tell(self._sampler.discrete_gaussian(sigma, size, index=index))",
        "self._sampler.discrete_gaussian(sigma, size, index=index)",
        "laws: one draw of several processes",
    ),
    Bug(
        "own-subset",
        "privacy.one_draw:_OneSampler.subset",
        "self._tell(chosen) > 0",
        "chosen > 0",
        "laws: one draw of several processes",
    ),
    Bug(
        "stability-threshold",
        "privacy.propose_test_release:propose_test_release",
        "1 + stability_threshold(epsilon, delta / 2)",
        "stability_threshold(epsilon, delta / 2)",
        "laws: failure probabilities",
    ),
    Bug(
        "stability-tail",
        "privacy.propose_test_release:stability_threshold",
        "max(1, math.ceil((-math.log(probability)",
        "max(1, math.ceil((-math.log(20 * probability)",
        "laws: failure probabilities",
    ),
)
