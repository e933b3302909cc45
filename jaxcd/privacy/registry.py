"""The closed list of classes whose claims are jaxcd's own, each with the tests that try to break
it.

A guarantee is called proved only where every class that touched sensitive values stands here:
exactly that class (a subclass may do anything), at the place where the package defines it.  Each
entry names the tests under ``tests/`` that attack its claim, and the planted bugs
(:mod:`jaxcd.audit.bugs`) that they must find; a test holds that both exist.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType

__all__ = ["REGISTRY", "Entry", "Role", "unregistered"]


class Role(enum.Enum):
    """What a registered class does."""

    TEST = "test"
    PREPARATION = "preparation of a test"
    DECIDER = "mechanism"
    RELEASE = "release"
    NOISE = "noise"
    PAIR = "cause or effect"
    LOCAL = "local privacy"


@dataclass(frozen=True)
class Entry:
    """A class whose claim is called proved.

    Args:
        where: it is, as ``module:name``.
        role: what it does.
        attacks: the tests that attack its claim.
        planted: the planted bugs that they must find.
    """

    where: str
    role: Role
    attacks: tuple[str, ...]
    planted: tuple[str, ...]

    @property
    def name(self) -> str:
        """The class's name."""
        return self.where.partition(":")[2]


REGISTRY: tuple[Entry, ...] = (
    Entry(
        "jaxcd.citests.covariance_norm:CovarianceNorm",
        Role.TEST,
        ("attacks/test_audit.py", "citests/test_margin_sensitivity.py"),
        ("covariance-norm", "covariance-threshold", "pad-of-tables"),
    ),
    Entry(
        "jaxcd.citests.covariance_norm:PooledCovariance",
        Role.TEST,
        ("attacks/test_audit.py", "citests/test_margin_sensitivity.py"),
        ("pooled-covariance",),
    ),
    Entry(
        "jaxcd.citests.kendall:KendallTau",
        Role.TEST,
        ("attacks/test_audit.py", "citests/test_margin_sensitivity.py"),
        ("kendall", "kendall-threshold"),
    ),
    Entry(
        "jaxcd.citests.spearman:Spearman",
        Role.TEST,
        ("attacks/test_audit.py", "citests/test_spearman.py"),
        ("spearman",),
    ),
    Entry(
        "jaxcd.citests.stratified_ranks:StratifiedRanks",
        Role.TEST,
        ("attacks/test_audit.py", "citests/test_stratified_ranks.py"),
        ("stratified-ranks", "rank-maps", "rank-maps-free"),
    ),
    Entry(
        "jaxcd.citests.stratified_tau:StratifiedTau",
        Role.TEST,
        ("attacks/test_audit.py", "citests/test_stratified_tau.py"),
        ("stratified-tau-unit", "stratified-tau-score", "stratified-tau-variance"),
    ),
    Entry(
        "jaxcd.published.priv_gcm:PrivGCM",
        Role.TEST,
        ("attacks/test_audit.py", "published/test_priv_gcm.py"),
        ("priv-gcm-others", "priv-gcm-own"),
    ),
    Entry(
        "jaxcd.citests.bounded_rcit:BoundedRCIT",
        Role.TEST,
        ("attacks/test_audit.py", "citests/test_kernel_tests.py"),
        ("bounded-rcit-unit", "bounded-rcit-residual"),
    ),
    Entry(
        "jaxcd.citests.bought_bandwidths:BoughtBandwidths",
        Role.PREPARATION,
        ("attacks/test_audit.py", "citests/test_bandwidths.py"),
        ("bandwidths",),
    ),
    Entry(
        "jaxcd.decisions.noisy_threshold:NoisyThreshold",
        Role.DECIDER,
        ("attacks/test_audit.py", "attacks/test_replayed_runs.py"),
        ("laplace-half", "noisy-threshold-free"),
    ),
    Entry(
        "jaxcd.decisions.noisy_rank:NoisyRank",
        Role.DECIDER,
        ("attacks/test_audit.py", "attacks/test_noisy_rank.py"),
        ("noisy-rank",),
    ),
    Entry(
        "jaxcd.decisions.sparse_vector:SparseVector",
        Role.DECIDER,
        ("attacks/test_audit.py", "attacks/test_replayed_runs.py"),
        ("sparse-vector-query", "sparse-vector-threshold", "sparse-vector-twice"),
    ),
    Entry(
        "jaxcd.decisions.sieve_and_examine:SieveAndExamine",
        Role.DECIDER,
        ("attacks/test_audit.py", "attacks/test_replayed_runs.py"),
        ("sieve-subset", "sieve-amplified", "examine-on-subset"),
    ),
    Entry(
        "jaxcd.decisions.exponential_select:ExponentialSelect",
        Role.DECIDER,
        ("attacks/test_audit.py", "decisions/test_exponential_select.py"),
        ("gumbel-half", "select-free"),
    ),
    Entry(
        "jaxcd.decisions.scheduled:Scheduled",
        Role.DECIDER,
        ("attacks/test_replayed_schedules.py", "decisions/test_scheduled.py"),
        ("schedule-uncharged",),
    ),
    Entry(
        "jaxcd.decisions.levelwise_gaussian:LevelwiseGaussian",
        Role.DECIDER,
        ("attacks/test_audit.py", "attacks/test_replayed_runs.py"),
        ("smallest-margins", "separating-set-free", "contrast-moments", "exponential-price"),
    ),
    Entry(
        "jaxcd.decisions.tree_guided:TreeOptions",
        Role.DECIDER,
        ("attacks/test_audit.py", "attacks/test_replayed_runs.py"),
        ("openings", "openings-projection"),
    ),
    Entry(
        "jaxcd.releases.tables.histogram:Histogram",
        Role.RELEASE,
        ("attacks/test_audit.py", "attacks/test_release_audits.py"),
        ("histogram", "histogram-empty-cells"),
    ),
    Entry(
        "jaxcd.releases.tables.marginals:Marginals",
        Role.RELEASE,
        ("attacks/test_audit.py", "attacks/test_release_audits.py"),
        ("marginals-pairs", "marginals-families", "marginals-tables", "marginals-laplace-pairs"),
    ),
    Entry(
        "jaxcd.releases.tables.log_linear:LogLinear",
        Role.RELEASE,
        ("attacks/test_audit.py", "attacks/test_release_audits.py"),
        (
            "marginals-pairs",
            "marginals-families",
            "marginals-tables",
            "log-linear-exact-pairs",
            "pair-choice",
            "pair-choice-weighted",
            "pairs-chosen-laplace",
        ),
    ),
    Entry(
        "jaxcd.releases.moments.second_moments:SecondMoments",
        Role.RELEASE,
        ("attacks/test_audit.py", "attacks/test_release_audits.py"),
        ("tilted", "tilted-pad", "tilted-centres", "bought-units", "bought-units-free"),
    ),
    Entry(
        "jaxcd.releases.tetrachoric.tetrachoric_correlations:Tetrachoric",
        Role.RELEASE,
        ("attacks/test_audit.py", "attacks/test_release_audits.py"),
        ("tetrachoric-signs", "tetrachoric-choice", "tetrachoric-medians", "tetrachoric-exact"),
    ),
    Entry(
        "jaxcd.releases.features.feature_covariances:Features",
        Role.RELEASE,
        ("attacks/test_audit.py", "attacks/test_features.py"),
        ("features", "features-rank-maps"),
    ),
    Entry(
        "jaxcd.releases.tables.discretised:Discretised",
        Role.RELEASE,
        ("attacks/test_audit.py", "releases/test_discretised.py"),
        ("discretised-exact", "discretised-ranks", "rank-maps"),
    ),
    Entry(
        "jaxcd.privacy.noise:SecureNoise",
        Role.NOISE,
        ("privacy/test_noise.py", "privacy/test_mechanisms.py", "privacy/test_rounded_gaussian.py"),
        (
            "noise-zero",
            "noise-reused",
            "subset-biased",
            "rounded-unweighted",
            "rounded-half",
            "polya-biased",
        ),
    ),
    Entry(
        "jaxcd.privacy.noise:_SecureSampler",
        Role.NOISE,
        ("privacy/test_noise.py", "privacy/test_mechanisms.py", "privacy/test_rounded_gaussian.py"),
        ("noise-zero",),
    ),
    Entry(
        "jaxcd.privacy.one_draw:OneDraw",
        Role.NOISE,
        ("attacks/test_audit.py", "privacy/test_one_draw.py", "data/test_shards.py"),
        ("own-noise", "own-subset"),
    ),
    Entry(
        "jaxcd.pairwise.anm_scores:HSICScore",
        Role.PAIR,
        ("attacks/test_anm_sensitivity.py", "attacks/test_audit.py"),
        ("anm-joint", "anm-split", "anm-record", "anm-difference"),
    ),
    Entry(
        "jaxcd.pairwise.anm_scores:SpearmanScore",
        Role.PAIR,
        ("attacks/test_anm_sensitivity.py", "attacks/test_audit.py"),
        ("anm-spearman", "stable-distance"),
    ),
    Entry(
        "jaxcd.pairwise.anm_scores:KendallScore",
        Role.PAIR,
        ("attacks/test_anm_sensitivity.py", "attacks/test_audit.py"),
        ("anm-kendall",),
    ),
    Entry(
        "jaxcd.pairwise.anm_scores:LogIQRScore",
        Role.PAIR,
        ("attacks/test_anm_sensitivity.py", "attacks/test_audit.py"),
        ("flip-distance", "stability-threshold", "stability-tail", "quartiles"),
    ),
    Entry(
        "jaxcd.pairwise.reci:BoundedPolynomial",
        Role.PAIR,
        ("attacks/test_reci_sensitivity.py", "attacks/test_audit.py"),
        ("reci",),
    ),
    Entry(
        "jaxcd.local.kary_response:KaryResponse",
        Role.LOCAL,
        ("local/test_guarantees.py",),
        ("kary",),
    ),
    Entry(
        "jaxcd.local.kary_response:CombinedKaryResponse",
        Role.LOCAL,
        ("local/test_guarantees.py",),
        ("kary",),
    ),
    Entry(
        "jaxcd.local.bounded_geometric:BoundedGeometric",
        Role.LOCAL,
        ("local/test_guarantees.py",),
        ("bounded-geometric",),
    ),
    Entry(
        "jaxcd.local.clipped_geometric:ClippedGeometric",
        Role.LOCAL,
        ("local/test_guarantees.py",),
        ("clipped-geometric",),
    ),
    Entry(
        "jaxcd.local.combined_geometric:CombinedGeometric",
        Role.LOCAL,
        ("local/test_guarantees.py",),
        ("combined-geometric",),
    ),
)

_BY_NAME = {entry.where: entry for entry in REGISTRY}
#: Classes of public facts, which claim nothing: a release may hold them, and they never see a row.
_PUBLIC = frozenset({"jaxcd.graphs.knowledge:Knowledge"})
#: Values that are no objects of a class with claims: options, and how processes tell each other
#: the noise (:class:`jaxcd.privacy.OneDraw`).
_PLAIN = (
    *(type, type(None), enum.Enum, int, float, str, bytes, tuple, list, Mapping),
    *(FunctionType, MethodType, BuiltinFunctionType),
)


def entry_of(part: object) -> Entry | None:
    """The entry of an object's class, or None where that is not exactly a class of the list."""
    return _BY_NAME.get(_place(part))


def _place(part: object) -> str:
    """Where the object's class is, as ``module:name``; empty where that is another class."""
    kind = type(part)
    module = sys.modules.get(kind.__module__)
    there = getattr(module, kind.__qualname__, None) is kind
    return f"{kind.__module__}:{kind.__qualname__}" if there else ""


def unregistered(*parts: object) -> tuple[str, ...]:
    """The names of the classes among these objects, and among the objects in their fields, that
    are not on the list, public facts left out; sorted.

    Args:
        *parts: objects such as tests, deciders and releases.

    Returns:
        The names; empty where all are on the list.
    """
    return tuple(
        sorted(
            {_name(part) for whole in parts for part in _objects(whole) if entry_of(part) is None}
        )
    )


def _objects(whole: object) -> Iterator[object]:
    """The object, and those in its fields that are more than plain values."""
    yield whole
    if dataclasses.is_dataclass(whole) and not isinstance(whole, type):
        # of a class that is not on the list nothing is called proved, whatever it holds
        known = entry_of(whole) is not None
        for field in dataclasses.fields(whole):
            value = getattr(whole, field.name, None)
            inner = (known or dataclasses.is_dataclass(value)) and not isinstance(value, _PLAIN)
            if inner and _place(value) not in _PUBLIC:
                yield from _objects(value)


def _name(part: object) -> str:
    kind = type(part)
    return (
        kind.__qualname__
        if kind.__module__.startswith("jaxcd.")
        else f"{kind.__module__}.{kind.__qualname__}"
    )
