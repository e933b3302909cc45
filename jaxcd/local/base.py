r"""What local mechanisms have in common: distances, guarantees, and the interface.

A local mechanism turns one record x into a random record y of the same declared domain, before
anybody collects it. Its channel is P[y | x].

* epsilon-LDP: P[y | x] <= exp(epsilon) P[y | x'] for all records x, x' and all y.
* epsilon d-privacy for a distance d: P[y | x] <= exp(epsilon d(x, x')) P[y | x'] for all x, x', y.

Distances are between the level codes of a column (0, 1, 2, ... in the declared order), so every
domain has them; they mean something where the levels are ordered.

Rounding. Channels are computed and drawn in float64 in such a way that every single probability,
however small, has a *relative* error below 2^-32 (:mod:`jaxcd.local.uniforms`). A log ratio of two
of them is off by less than :data:`ROUNDING`, which the reported epsilons of the geometric
mechanisms include. For the same reason no probability is made smaller than exp(-:data:`DEEPEST`)
times p_max: raising small probabilities to one common floor can only shrink ratios, since max(a, f)
/ max(b, f) <= max(1, a / b).

Source:
    Duchi, Jordan, Wainwright 2013 (local privacy); Chatzikokolakis, Andres, Bordenabe, Palamidessi
    2013 (d-privacy).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np

from jaxcd.checks import a_type, is_number
from jaxcd.data import Domain
from jaxcd.errors import DomainError, OptionError, PrivacyError
from jaxcd.local.arrays import Codes, Floats
from jaxcd.local.uniforms import Table, Uniforms
from jaxcd.privacy import PrivacyCost, Relation

__all__ = [
    "DEEPEST",
    "MAX_CELLS",
    "MAX_LEVELS",
    "ROUNDING",
    "ColumnwiseMechanism",
    "CombinedMechanism",
    "Distance",
    "LocalGuarantee",
    "LocalMechanism",
    "checked_cardinalities",
]

ROUNDING = 2.0**-30
"""What float64 rounding may add to a privacy loss, in nats; included in what geometric mechanisms
report.
"""

DEEPEST = 650.0
"""No probability is made smaller than exp(-DEEPEST) of the largest; exp(-745) would be zero in
float64.  Where that raises one, what is reported holds, and is not the smallest.
"""

MAX_LEVELS = 1024
"""Geometric mechanisms take columns of at most this many levels: a channel is a matrix of levels x
levels.
"""

MAX_CELLS = 1e250
"""Combined mechanisms take joint domains of at most this many cells: with the floor of exp(-650) on
each of them, what the floor adds stays below 1e-30."""


class Distance(Enum):
    """A distance between two records, taken over the differences of their level codes."""

    MANHATTAN = "manhattan"
    """The sum of the differences."""

    EUCLIDEAN = "euclidean"
    """The root of the sum of squared differences."""

    CHEBYSHEV = "chebyshev"
    """The largest difference."""


@dataclass(frozen=True)
class LocalGuarantee:
    """What a mechanism guarantees to each person on a declared domain.

    Args:
        epsilon_ldp: the mechanism is epsilon_ldp-locally differentially private, in nats for the
            whole record.
        d_privacy: it is d_privacy-d-private for ``distance``, in nats per unit of distance.
        distance: the distance of ``d_privacy``.
        p_truth_smallest: the smallest probability, over all records, that the whole record is
            reported as it is.
        p_truth_largest: the largest one.
        epsilon_ldp_exact: whether ``epsilon_ldp`` is the smallest that holds (up to rounding) or an
            upper bound on it.
        d_privacy_exact: the same for ``d_privacy``.
        proved: whether both stand on a proof.
        proof: where it is.
    """

    epsilon_ldp: float
    d_privacy: float
    distance: Distance
    p_truth_smallest: float
    p_truth_largest: float
    epsilon_ldp_exact: bool
    d_privacy_exact: bool
    proved: bool
    proof: str

    @property
    def cost(self) -> PrivacyCost:
        """The same towards whoever holds the randomised data: epsilon_ldp under replace-one, for
        any number of records.
        """
        return PrivacyCost(self.epsilon_ldp, 0.0, Relation.REPLACE_ONE, self.proved, self.proof)


class LocalMechanism(ABC):
    """A way to randomise one record: frozen configuration, independent of the domain it is applied
    to.

    ``is_combined`` tells whether a record is randomised as a whole (one joint channel) or column by
    column ("C-wise": one channel a column, independent draws).
    """

    is_combined: ClassVar[bool]

    @abstractmethod
    def check(self, domain: Domain) -> tuple[int, ...]:
        """The number of levels of every column, if the mechanism can be applied to the domain.

        Raises:
            DomainError: a column is numeric, has too many levels, or the joint domain is too large.
            PrivacyError: the domain was inferred from data, which voids every guarantee.
            OptionError: a parameter does not fit the domain.
        """

    @abstractmethod
    def guarantee(self, domain: Domain) -> LocalGuarantee:
        """What holds on this domain; it depends on nothing but the declared levels.  Raises what
        :meth:`check` raises.
        """

    @abstractmethod
    def attribute_channels(self, cardinalities: Sequence[int]) -> tuple[Floats, ...]:
        """P[y | x] of each column, k x k, rows x; DomainError for combined mechanisms, which have
        none.
        """

    @abstractmethod
    def cell_channel(self, cardinalities: Sequence[int]) -> Floats:
        """P[y | x] over the cells of the joint domain in C order, rows x; for small domains
        only.
        """

    @abstractmethod
    def randomised_codes(
        self, codes: Codes, cardinalities: Sequence[int], uniforms: Uniforms
    ) -> Codes:
        """Draw one randomised record for each row of ``codes`` (n x d), independently; the same
        shape.
        """


class ColumnwiseMechanism(LocalMechanism):
    """A mechanism that randomises each column by itself ("C-wise"): its joint channel is the
    product of theirs.
    """

    is_combined: ClassVar[bool] = False

    def cell_channel(self, cardinalities: Sequence[int]) -> Floats:
        """See :meth:`LocalMechanism.cell_channel`."""
        return kronecker(self.attribute_channels(cardinalities))

    def randomised_codes(
        self, codes: Codes, cardinalities: Sequence[int], uniforms: Uniforms
    ) -> Codes:
        """One draw from each column's channel (see :meth:`LocalMechanism.randomised_codes`)."""
        result = np.empty_like(codes, order="F")
        for j, matrix in enumerate(self.attribute_channels(cardinalities)):
            result[:, j] = Table(matrix).draw(codes[:, j].astype(np.int64), uniforms)
        return result


class CombinedMechanism(LocalMechanism):
    """A mechanism that randomises whole records: no column has a channel of its own."""

    is_combined: ClassVar[bool] = True

    def attribute_channels(self, cardinalities: Sequence[int]) -> tuple[Floats, ...]:
        """Raise DomainError: there is none."""
        raise DomainError(
            f"{type(self).__name__} randomises whole records and has no channel for a single "
            "column; use joint_channel"
        )


@dataclass(frozen=True)
class EpsilonMechanism(LocalMechanism):
    """A mechanism whose one option is its epsilon, positive and finite."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))


def checked_cardinalities(
    domain: Domain, *, max_levels: int | None = None, combined: bool = False
) -> tuple[int, ...]:
    """The number of levels of every column of a domain that local mechanisms can be applied to.

    Raises:
        DomainError: it is no domain, a column is numeric or has more than ``max_levels`` levels,
            or, for combined mechanisms, the joint domain has more than :data:`MAX_CELLS` cells.
        PrivacyError: the domain was inferred from data.
    """
    check_domain(domain)
    if not domain.declared:
        raise PrivacyError(
            "domain: its levels were taken from the data, which voids local privacy; declare the "
            "levels (or bounds and bins) of every column"
        )
    cardinalities = []
    for name, column in domain.columns.items():
        if column.cardinality is None:
            raise DomainError(
                f"column {name!r} is numeric; declare bounds and cut it into bins with "
                "jaxcd.local.discretise_columns first"
            )
        if max_levels is not None and column.cardinality > max_levels:
            raise DomainError(
                f"column {name!r} has {column.cardinality} levels, more than {max_levels}; "
                "declare fewer, wider bins"
            )
        cardinalities.append(column.cardinality)
    if combined and sum(math.log10(k) for k in cardinalities) > math.log10(MAX_CELLS):
        raise DomainError(
            f"domain: {len(cardinalities)} columns have more than {MAX_CELLS:.0e} cells together; "
            "select fewer columns or randomise each by itself"
        )
    return tuple(cardinalities)


def check_domain(domain: object) -> None:
    """Raise DomainError for what is no domain."""
    if not isinstance(domain, Domain):
        raise DomainError(
            f"domain: {a_type(domain)} is not a Domain; make one with jaxcd.Domain(...) "
            "or jaxcd.Domain.read(path)"
        )


def check_epsilon(epsilon: float) -> float:
    """Return a positive finite epsilon as a float, else raise OptionError."""
    if not is_number(epsilon, 0, ends="(]"):
        raise OptionError(
            f"epsilon must be positive and finite, got {epsilon!r}: give a number such as 1.0"
        )
    return float(epsilon)


def check_probability(p_max: float) -> float:
    """Return a probability strictly between 0 and 1 as a float, else raise OptionError."""
    if not is_number(p_max, 0, 1, "()"):
        raise OptionError(
            f"p_max must be above 0 and below 1, got {p_max!r}: it is the probability of "
            "reporting the truth, such as 0.5"
        )
    return float(p_max)


def kronecker(matrices: Sequence[Floats]) -> Floats:
    """The joint channel of independent columns, cells in C order (the last column runs fastest)."""
    joint: Floats = np.ones((1, 1))
    for matrix in matrices:
        joint = np.asarray(np.kron(joint, matrix), dtype=np.float64)
    return joint
