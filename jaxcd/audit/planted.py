"""Planted bugs: wrong constants, free answers and leaks, each with the check that must find it.

A bug replaces words in the source of one function, and the function's code while it is planted: the
mistake that an editor's slip would be.  A bug that no check finds is a missing check.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

__all__ = ["BUGS", "Bug", "planted"]


@dataclass(frozen=True)
class Bug:
    """A mistake in one function.

    Args:
        name: short; what :mod:`jaxcd.privacy.registry` refers to.
        where: ``module:function`` or ``module:Class.method``, from ``jaxcd``.
        old: words of its source that stand there once, and what stands there instead.
        new: as ``old``.
        check: the name of the check that must find it (of ``jaxcd.audit.CHECKS``).
    """

    name: str
    where: str
    old: str
    new: str
    check: str


@contextlib.contextmanager
def planted(bug: Bug) -> Iterator[None]:
    """While entered, the function has the bug.

    Args:
        bug: of :data:`BUGS`.

    Returns:
        A context manager.
    """
    module_name, _, path = bug.where.partition(":")
    module = importlib.import_module(f"jaxcd.{module_name}")
    function = _function(module, path)
    source = textwrap.dedent(inspect.getsource(function))
    words = re.findall(r"\w+|[^\w\s]", bug.old)  # however the lines are broken
    changed, times = re.subn(r"\s*".join(map(re.escape, words)), lambda _: bug.new, source)
    if times != 1:
        raise ValueError(
            f"{bug.name}: {bug.old!r} stands {times} times in {bug.where}, and not once"
        )
    before = function.__code__
    _clear_caches(module)
    function.__code__ = _compiled(changed, function)
    try:
        yield
    finally:
        function.__code__ = before
        _clear_caches(module)


def _function(module: Any, path: str) -> FunctionType:
    part = module
    for name in path.split("."):
        part = inspect.getattr_static(part, name)
    if isinstance(part, property):
        part = part.fget
    part = inspect.unwrap(getattr(part, "__func__", part))
    if not isinstance(part, FunctionType):
        raise TypeError(f"{path} of {module.__name__} is no function")
    return part


def _compiled(source: str, function: FunctionType) -> CodeType:
    """The code of the function that the source defines, with the same names from outside."""
    tree = ast.parse(source)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    # super() needs its class: the function is compiled inside one that has these names
    if function.__code__.co_freevars:
        shell = ast.parse(f"def shell({', '.join(function.__code__.co_freevars)}):\n pass").body[0]
        assert isinstance(shell, ast.FunctionDef)
        shell.body = [definition]
        tree.body = [shell]
    head = ast.parse("from __future__ import annotations").body
    code = compile(
        ast.fix_missing_locations(ast.Module([*head, *tree.body], [])),
        inspect.getfile(function),
        "exec",
    )
    return _find(code, definition.name)


def _find(code: CodeType, name: str) -> CodeType:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if part.co_name == name:
                return part
            with contextlib.suppress(LookupError):
                return _find(part, name)
    raise LookupError(name)


def _clear_caches(module: Any) -> None:
    """Forget what functions of the package have kept."""
    for name in [name for name in sys.modules if name.startswith("jaxcd.")]:
        for value in list(vars(sys.modules[name]).values()):
            if callable(clear := getattr(value, "cache_clear", None)) and not isinstance(
                value, type
            ):
                clear()


_EXACT = "__import__('jaxcd.privacy.sensitive', fromlist=['exact_values']).exact_values"
_RANKS = "__import__('jaxcd.privacy.rank_maps', fromlist=['exact_rank']).exact_rank"
_PC = "replay: pc, {}"

BUGS: tuple[Bug, ...] = (
    # Tests: constants, pads, and what feeds the statistic.
    Bug(
        "covariance-norm",
        "citests.covariance_norm:_CovarianceTest.margin_sensitivity",
        "self._between + 3 - _BETWEEN",
        "self._between",
        "replay: ci_test, CovarianceNorm",
    ),
    Bug(
        "pad-of-tables",
        "citests.covariance_norm:rounding_pad",
        "max(1e-7,",
        "max(1e-9,",
        "replay: ci_test, CovarianceNorm",
    ),
    Bug(
        "pooled-covariance",
        "citests.covariance_norm:_CovarianceTest.margin_sensitivity",
        "self._between + 3 - _BETWEEN",
        "3",
        "constants: margins on tables",
    ),
    Bug(
        "covariance-threshold",
        "citests.covariance_norm:_threshold_floor",
        "(2 * (3 - _BETWEEN))",
        "200",
        "constants: margins on tables",
    ),
    Bug(
        "kendall",
        "citests.ordered_columns:OrderedTest.margin_sensitivity",
        "_moves(alpha)",
        "_moves(0.5)",
        "replay: ci_test, KendallTau",
    ),
    Bug(
        "kendall-threshold",
        "citests.ordered_columns:_moves",
        "(alpha / 2) / 45",
        "(alpha / 2) / 90",
        "replay: ci_test, KendallTau",
    ),
    Bug(
        "spearman",
        "citests.ordered_columns:OrderedTest.margin_sensitivity",
        "_moves(alpha)",
        "_moves(0.5)",
        "replay: ci_test, Spearman",
    ),
    Bug(
        "stratified-ranks",
        "citests.stratified_ranks:StratifiedRanks.margin_sensitivity",
        "value = 4 +",
        "value = 2 +",
        "constants: stratified ranks",
    ),
    Bug(
        "rank-maps",
        "privacy.rank_maps:rank_map_sensitivity",
        "Fraction(2 * (n_levels + 1)",
        "Fraction((n_levels + 1)",
        "constants: rank maps",
    ),
    Bug(
        "rank-maps-free",
        "citests.stratified_ranks:StratifiedRanks.prepare_privately",
        "maps.rank(v, column)",
        f"{_RANKS}(column)",
        "constants: rank maps",
    ),
    Bug(
        "stratified-tau-unit",
        "citests.stratified_tau:StratifiedTau.margin_sensitivity",
        "Sensitivity(1.0",
        "Sensitivity(0.5",
        "constants: stratified tau",
    ),
    Bug(
        "stratified-tau-score",
        "citests.stratified_tau:_Weights.score_moves",
        "3 * (self.fine + self.coarse)",
        "2 * (self.fine + self.coarse)",
        "constants: stratified tau",
    ),
    Bug(
        "stratified-tau-variance",
        "citests.stratified_tau:_PreparedTau.buy",
        "sensitivity = (1 + _SHARE) * weights.score_moves",
        "sensitivity = weights.score_moves",
        "replay: ci_test, StratifiedTau, 1",
    ),
    Bug(
        "priv-gcm-others",
        "published.priv_gcm:PrivGCM.product_sensitivity",
        "2 * (1 + w) ** 2 + 2 * residual_shift(self.penalty, math.inf)",
        "2 * (1 + w) ** 2",
        "replay: ci_test, PrivGCM",
    ),
    Bug(
        "priv-gcm-own",
        "published.priv_gcm:_PreparedGCM.buy",
        "conditional=bool(query.given)",
        "conditional=False",
        "replay: ci_test, PrivGCM",
    ),
    Bug(
        "bounded-rcit-unit",
        "citests.bounded_rcit:BoundedRCIT.margin_sensitivity",
        "Sensitivity(1.0",
        "Sensitivity(0.5",
        "replay: pc, NoisyRank, BoundedRCIT",
    ),
    Bug(
        "bounded-rcit-residual",
        "citests.bounded_rcit:BoundedRCIT.record_sensitivity",
        "math.sqrt(6) + 2 * kernels",
        "math.sqrt(6) + kernels",
        "constants: kernel formula",
    ),
    Bug(
        "bandwidths",
        "citests.bought_bandwidths:buy_scales",
        "sensitivity=SCALE_SENSITIVITY",
        "sensitivity=SCALE_SENSITIVITY / 2",
        "constants: bandwidths",
    ),
    # Mechanisms: scales that do not belong to the price.
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
        "privacy.mechanisms:select_max",
        "noise_scale(2 * bound, epsilon)",
        "noise_scale(bound, epsilon)",
        _PC.format("ExponentialSelect 6, KendallTau"),
    ),
    Bug(
        "rounding-uncounted",
        "privacy.mechanisms:integer_sensitivity",
        "bound + spread",
        "bound",
        _PC.format("LevelwiseGaussian 7, Spearman"),
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
        _PC.format("SparseVector 0, CovarianceNorm"),
    ),
    Bug(
        "sparse-vector-threshold",
        "privacy.above_threshold:AboveThreshold.__init__",
        "noise_scale(bound, first)",
        "noise_scale(bound / 2, first)",
        _PC.format("SparseVector 0, CovarianceNorm"),
    ),
    Bug(
        "sparse-vector-twice",
        "privacy.above_threshold:AboveThreshold.first_above",
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
        _PC.format("SieveAndExamine 3, Spearman"),
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
    # Deciders: what they release without paying.
    Bug(
        "noisy-threshold-free",
        "decisions.noisy_threshold:_NoisyRun._ask",
        "bool(noisy[0] <= 0)",
        f"bool({_EXACT}(margin)[0] <= 0)",
        _PC.format("NoisyThreshold 4, CovarianceNorm"),
    ),
    Bug(
        "noisy-rank",
        "decisions.noisy_rank:noisy_rank",
        "integer_sensitivity(sensitivity, grid=GRID, pad=2 * pad) + 1",
        "(integer_sensitivity(sensitivity, grid=GRID, pad=2 * pad) + 1) / 2",
        "replay: pc, NoisyRank, BoundedRCIT",
    ),
    Bug(
        "examine-on-subset",
        "decisions.sieve_and_examine:_SieveRun._examine",
        "bool(noisy[0] <= 0)",
        f"bool({_EXACT}(self._session.margins(query))[0] <= 0)",
        _PC.format("SieveAndExamine 2, KendallTau"),
    ),
    Bug(
        "schedule-uncharged",
        "privacy.ledger:LedgerPart.charge",
        "self._whole.charge(event)",
        "0",
        _PC.format("Scheduled(SparseVector) 8, CovarianceNorm"),
    ),
    Bug(
        "select-free",
        "decisions.exponential_select:_SelectRun._select",
        "question.candidates[chosen] if",
        f"question.candidates[int(np.argmin({_EXACT}(margins)))] if",
        _PC.format("ExponentialSelect 6, KendallTau"),
    ),
    Bug(
        "smallest-margins",
        "decisions.measurements:_measure",
        "math.sqrt(len(exact))",
        "1.0",
        _PC.format("LevelwiseGaussian 7, Spearman"),
    ),
    Bug(
        "separating-set-free",
        "decisions.levelwise_gaussian:_LevelwiseRun._select",
        "return question.candidates[chosen]",
        f"return question.candidates[int(np.argmin({_EXACT}(margins)))]",
        _PC.format("LevelwiseGaussian 7, Spearman"),
    ),
    Bug(
        "contrast-moments",
        "ops.moments:contrast_sensitivity",
        "2 * mean_weight**2 * f",
        "mean_weight**2 * f",
        "replay: tree_pc, CovarianceNorm",
    ),
    Bug(
        "openings",
        "decisions.measurements:openings",
        "(first.min() - second.min()) / 2",
        "(first.min() - second.min())",
        "constants: openings",
    ),
    Bug(
        "openings-projection",
        "decisions.measurements:openings",
        "bound.value / PROJECTION_SENSITIVITY",
        "bound.value / 2",
        "constants: openings",
    ),
    # Doors and what they say.
    Bug(
        "ci-test-halved",
        "api:ci_test",
        "sensitivity=bound.value",
        "sensitivity=bound.value / 2",
        "replay: ci_test, PooledCovariance",
    ),
    Bug(
        "counts-of-work",
        "discovery.constraint.search:ConstraintSearch._result",
        "if not session.private:",
        "if True:",
        _PC.format("SparseVector 0, CovarianceNorm"),
    ),
    # Releases.
    Bug(
        "histogram",
        "releases.tables.histogram:Histogram.buy",
        "HISTOGRAM_SENSITIVITY * units",
        "HISTOGRAM_SENSITIVITY * units / 2",
        "replay: release, Histogram",
    ),
    Bug(
        "histogram-empty-cells",
        "releases.tables.histogram:Histogram.buy",
        "values=np.rint(noisy / units)",
        f"values=np.where({_EXACT}(door.counts([tuple(range(len(shape)))]))[0].ravel() == 0, 0, "
        "noisy)",
        "replay: release, Histogram",
    ),
    Bug(
        "person-weights",
        "ops.people:person_weights",
        "place < rest[people]",
        "rest[people] > 0",
        "replay: release by person, Histogram",
    ),
    Bug(
        "person-rows-count-whole",
        "ops.people:weighted_bincount",
        "np.bincount(cells, weights=weights, minlength=n_cells)",
        "(np.bincount(cells, minlength=n_cells) * (1 << 20))",
        "replay: release by person, Marginals",
    ),
    Bug(
        "person-number-of-rows",
        "queries.door:public_count",
        "data.n_people if by_person else data.n_samples",
        "data.n_samples",
        "replay: release by person, Histogram",
    ),
    Bug(
        "person-moments",
        "ops.tilted_moments:gram_steps",
        "weights[start : start + _BLOCK]",
        "weights[start : start + _BLOCK] * 2",
        "replay: release by person, SecondMoments",
    ),
    Bug(
        "person-rank-maps",
        "privacy.rank_maps:leaf_counts",
        "weights=weights",
        "weights=None if weights is None else weights * 2",
        "replay: release by person, Features",
    ),
    Bug(
        "marginals-pairs",
        "releases.tables.marginal_purchase:Purchase.buy_pairs",
        "pairs_sensitivity(self.cardinalities, absent=absent)",
        "0.5 * pairs_sensitivity(self.cardinalities, absent=absent)",
        "replay: release, Marginals, Gaussian",
    ),
    Bug(
        "marginals-laplace-pairs",
        "releases.tables.marginal_screen:pairs_for_laplace",
        "sensitivity(best) * (1 + 2.0**-40)",
        "sensitivity(best) / 1.2",
        "replay: release, Marginals, Laplace",
    ),
    Bug(
        "marginals-families",
        "releases.tables.marginal_purchase:Purchase.buy_families",
        "interactions_sensitivity(self.cardinalities, weights)",
        "interactions_sensitivity(self.cardinalities, weights) / 1.4",
        "replay: release, Marginals, Gaussian, all rounds",
    ),
    Bug(
        "marginals-tables",
        "releases.tables.marginal_purchase:Purchase.buy_tables",
        "screen.COUNTED_CHANGE * len(tables)",
        "screen.COUNTED_CHANGE",
        "replay: release, Marginals, Laplace, all rounds",
    ),
    Bug(
        "log-linear-exact-pairs",
        "releases.tables.log_linear:LogLinear.buy",
        "joined = released().neighbors",
        f"joined = released().neighbors[: int({_EXACT}(door.codes().map(lambda c: c.sum())) % 7)]",
        "replay: release, LogLinear, Laplace",
    ),
    Bug(
        "tilted",
        "ops.tilted_moments:gram_sensitivity",
        "(1 + 2.0**-40)",
        "0.9",
        "replay: release, SecondMoments, public units",
    ),
    Bug(
        "tilted-pad",
        "ops.tilted_moments:conversion_error",
        "2.0**-51",
        "2.0**-60",
        "replay: release, SecondMoments, public units",
    ),
    Bug(
        "tilted-centres",
        "releases.moments.second_moments:_bought",
        "n, p = door.n_samples, len(names)",
        f"n, p = door.n_samples, len(names); centres = {_EXACT}(door.values(names)).mean(axis=0)",
        "replay: release, SecondMoments, bought units",
    ),
    Bug(
        "bought-units",
        "releases.moments.bought_units:bought_units",
        "Fraction(2 * len(edges))",
        "Fraction(len(edges))",
        "replay: release, SecondMoments, bought units",
    ),
    Bug(
        "bought-units-free",
        "releases.moments.bought_units:bought_units",
        "for column in noisy]",
        f"for column in {_EXACT}(door.sums(domain.names, counted)) * unit]",
        "replay: release, SecondMoments, bought units",
    ),
    Bug(
        "features",
        "releases.features.feature_covariances:feature_sensitivity",
        "(1 + 2.0**-40)",
        "0.8",
        "replay: release, Features",
    ),
    Bug(
        "features-rank-maps",
        "releases.features.feature_covariances:_bought",
        "maps.rank(numeric.index(name), spread(block, name))",
        f"{_RANKS}(spread(block, name))",
        "replay: release, Features",
    ),
    # Cause or effect.
    Bug(
        "anm-joint",
        "pairwise.anm_release:score_sensitivity",
        "record + lipschitz * plan.rms_shift",
        "record",
        "replay: anm, HSIC, both halves",
    ),
    Bug(
        "anm-split",
        "pairwise.anm_release:score_sensitivity",
        "lipschitz * plan.sup_shift",
        "lipschitz * plan.rms_shift",
        "replay: anm, HSIC, split, large penalty",
    ),
    Bug(
        "anm-record",
        "pairwise.anm_hsic:hsic_record_sensitivity",
        "math.sqrt(6)",
        "2.0",
        "constants: scores of pairs",
    ),
    Bug(
        "anm-difference",
        "pairwise.anm_release:private_result",
        "sensitivity=2 * sensitivity)\n",
        "sensitivity=sensitivity)\n",
        "replay: anm, HSIC, both halves",
    ),
    Bug(
        "anm-spearman",
        "citests.spearman:spearman_rho_sensitivity",
        "return 6 /",
        "return 3 /",
        "constants: scores of pairs",
    ),
    Bug(
        "anm-kendall",
        "pairwise.anm_scores:KendallScore.test_sensitivity",
        "4 / m",
        "2 / m",
        "constants: scores of pairs",
    ),
    Bug(
        "stable-distance",
        "pairwise.anm_release:stable_distance",
        "gap / (2 * shift)",
        "gap / shift",
        "constants: stable order",
    ),
    Bug(
        "flip-distance",
        "pairwise.anm_release:_flip",
        "sensitivity=2.0",
        "sensitivity=1.0",
        "constants: flip distance",
    ),
    Bug(
        "quartiles",
        "pairwise.anm_release:_quartiles",
        "sensitivity=1.0",
        "sensitivity=0.5",
        "replay: anm, IQR, quartiles",
    ),
    Bug(
        "reci",
        "pairwise.reci:_private",
        "accountant, difference, sensitivity=2.0 * method.ceiling",
        "accountant, difference, sensitivity=method.ceiling",
        "replay: reci",
    ),
    # Local privacy.
    Bug(
        "kary",
        "local.kary_response:kept",
        "n_values / excess",
        "n_values / excess / 2",
        "constants: channels",
    ),
    Bug(
        "bounded-geometric",
        "local.bounded_geometric:column_losses",
        "float(exponents.max())",
        "float(exponents.min(axis=1).max() + exponents.mean())",
        "constants: channels",
    ),
    Bug(
        "clipped-geometric",
        "local.clipped_geometric:ClippedGeometric.guarantee",
        "sum(k - 1 for k in varying)",
        "sum(k - 2 for k in varying)",
        "constants: channels",
    ),
    Bug(
        "combined-geometric",
        "local.combined_geometric:combined_epsilon",
        "(rates * layout.eccentricities(classes)).max()",
        "rates.max()",
        "constants: channels",
    ),
    # Bookkeeping.
    Bug(
        "ledger-lock",
        "privacy.ledger:Ledger.charge",
        "with self._lock:",
        "if True:",
        "composition: charges of threads",
    ),
    Bug(
        "ledger-forgets",
        "privacy.ledger:Ledger.charge",
        "self._sums = sums\n",
        "pass\n",
        "composition: pure events add up",
    ),
    Bug(
        "conversion",
        "privacy.conversion:_rho_to_epsilon",
        "math.log(delta)",
        "math.log(delta) / 2",
        "composition: conversion of zCDP",
    ),
    Bug(
        "gaussian-conversion",
        "privacy.gdp:_log_delta",
        "epsilon / mu, mu / 2",
        "epsilon / mu, mu / 4",
        "composition: conversion of Gaussian privacy",
    ),
    Bug(
        "gaussian-groups",
        "privacy.groups:group_cost",
        "cost.rho) * k**2",
        "cost.rho) * k",
        "composition: conversion of Gaussian privacy",
    ),
    Bug(
        "gaussian-union",
        "privacy.ledger:rho_of",
        "event.gdp_rho if accounting is Accounting.GAUSSIAN else event.rho",
        "min(event.gdp_rho, event.rho)",
        "composition: Gaussian accounting adds up",
    ),
    Bug(
        "gaussian-pure",
        "privacy.gdp:_pure_to_gdp_rho",
        "4 * Fraction(x) ** 2",
        "2 * Fraction(x) ** 2",
        "composition: Gaussian accounting adds up",
    ),
    Bug(
        "gaussian-range",
        "privacy.gdp:range_to_gdp_rho",
        "Fraction(epsilon) / 2",
        "Fraction(epsilon) / 3",
        "composition: Gaussian accounting adds up",
    ),
    Bug(
        "gaussian-discrete",
        "privacy.mechanisms:gaussian",
        "sampler.rounded_gaussian if rounded else sampler.discrete_gaussian",
        "sampler.discrete_gaussian",
        "composition: Gaussian accounting draws rounded noise",
    ),
    Bug(
        "rounded-unweighted",
        "privacy.rounded_gaussian:rounded_gaussian",
        "[chosen][:missing]",
        "[:missing]",
        "laws: rounded Gaussian",
    ),
    Bug(
        "rounded-half",
        "privacy.rounded_gaussian:_accepted",
        "2.0 * sigma * sigma",
        "4.0 * sigma * sigma",
        "laws: rounded Gaussian",
    ),
    Bug(
        "exponential-price",
        "privacy.conversion:exponential_to_rho",
        "_square_over(epsilon, 8)",
        "_square_over(epsilon, 16)",
        _PC.format("LevelwiseGaussian 7, Spearman"),
    ),
    Bug(
        "group-delta",
        "privacy.groups:group_cost",
        "cost.rho) * k**2",
        "cost.rho) * k",
        "groups: k rows of one person",
    ),
    Bug(
        "ledger-file-alone",
        "privacy.ledger:Ledger.charge",
        "if self._under is not None:",
        "if False:",
        "ledger file: runs add up",
    ),
    Bug(
        "ledger-file-unchecked",
        "privacy.ledger_file:LedgerFile._take",
        "digest != _digest(self._digest, content) or",
        "",
        "ledger file: an edited file is refused",
    ),
    Bug(
        "claims-unchecked",
        "privacy.registry:entry_of",
        "entry if entry is not None and getattr(module, kind.__qualname__, None) is kind else None",
        "entry or REGISTRY[0]",
        "proved: only for registered classes",
    ),
    Bug(
        "certificate-price",
        "privacy.verifying:_event_check",
        "_close(again, said) or (more and again <= said)",
        "again <= 1e9",
        "certificate: a false claim fails",
    ),
    Bug(
        "forged-release",
        "releases.base:Release._check_cost",
        "if least is not None and",
        "if False and",
        "release file: less noise than was charged for is refused",
    ),
    # Several sites: shares of the noise, and masks.
    Bug(
        "share-of-all-sites",
        "federated.site:Site._with_share",
        "self._federation.n_shares",
        "len(self._federation.sites)",
        "several sites: aggregated view",
    ),
    Bug(
        "share-colluding",
        "federated.federation:Federation.n_shares",
        "- self.dropouts - self.colluding",
        "- self.dropouts",
        "several sites: aggregated view",
    ),
    Bug(
        "share-too-small",
        "privacy.shares:NoiseShare.draw",
        "discrete_gaussian(self.scale, size, index=index)",
        "discrete_gaussian(0.9 * self.scale, size, index=index)",
        "several sites: aggregated view",
    ),
    Bug(
        "polya-parts",
        "privacy.shares:NoiseShare.draw",
        "noise.polya(self.scale, self.n_shares,",
        "noise.polya(self.scale, self.n_shares + 1,",
        "several sites: aggregated view",
    ),
    Bug(
        "polya-biased",
        "privacy.polya:_accepted",
        "np.uint64((j - 1) * parts + 1)",
        "np.uint64((j - 1) * parts + 2)",
        "several sites: law of the shares",
    ),
    Bug(
        "masks-do-not-cancel",
        "federated.masks:Masks.hide",
        "total + mask if self._name < other else total - mask",
        "total + mask",
        "several sites: masks cancel",
    ),
    Bug(
        "masks-of-all-rounds",
        "federated.masks:Masks.pair_key",
        "self._pairs[other] + words",
        "self._pairs[other]",
        "several sites: masks hide",
    ),
    Bug(
        "masks-half",
        "federated.masks:stream",
        "& _mask(bits)",
        "& _mask(bits // 2)",
        "several sites: masks hide",
    ),
)
