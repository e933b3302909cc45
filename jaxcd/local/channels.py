"""Channels P[y | x] as matrices: what denoising and channel-aware tests need to know about a
mechanism.

Both depend on the mechanism and on the declared domain only, never on data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jaxcd.checks import shown_count
from jaxcd.data import Domain
from jaxcd.errors import DomainError, OptionError
from jaxcd.local.arrays import Floats
from jaxcd.local.base import LocalMechanism
from jaxcd.local.randomising import check_mechanism

__all__ = ["MAX_CHANNEL_CELLS", "channels", "check_invertible", "joint_channel"]

_MOST_CONDITION = 1e14  # beyond, a float64 inverse is rounding

MAX_CHANNEL_CELLS = 4096
"""The largest joint domain whose channel is written out as a matrix (128 MiB)."""


def channels(mechanism: LocalMechanism, domain: Domain) -> tuple[Floats, ...]:
    """The channel of every column under a mechanism that randomises each by itself.

    Args:
        mechanism: one that is not combined.
        domain: declared, discrete.

    Returns:
        One read-only matrix a column, in the domain's order: k_i x k_i, entry [x, y] is P[y | x];
        rows sum to one.

    Raises:
        DomainError: the mechanism is combined (use :func:`joint_channel`), or a column is numeric.
        PrivacyError: the domain is not declared.
        OptionError: a parameter of the mechanism does not fit the domain.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("cancer").domain
        >>> channel = jaxcd.local.channels(jaxcd.local.KaryResponse(epsilon=5.0), domain)[0]
        >>> channel.round(3).tolist()
        [[0.731, 0.269], [0.269, 0.731]]
    """
    check_mechanism(mechanism)
    cardinalities = mechanism.check(domain)
    matrices = mechanism.attribute_channels(cardinalities)
    for matrix in matrices:
        matrix.setflags(write=False)
    return matrices


def joint_channel(mechanism: LocalMechanism, domain: Domain) -> Floats:
    """The channel of the whole record, for any mechanism, on a small domain.

    Args:
        mechanism: combined or not.
        domain: declared, discrete, at most :data:`MAX_CHANNEL_CELLS` cells.

    Returns:
        A read-only matrix, cells x cells, entry [x, y] is P[y | x]; cells in C order, the last
        column running fastest, as in ``np.ravel_multi_index`` and in a histogram with one axis a
        column.

    Raises:
        DomainError: the joint domain is too large, or a column is numeric.
        PrivacyError: the domain is not declared.
        OptionError: a parameter of the mechanism does not fit the domain.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("cancer").domain
        >>> jaxcd.local.joint_channel(jaxcd.local.CombinedKaryResponse(epsilon=2.0), domain).shape
        (32, 32)
    """
    check_mechanism(mechanism)
    cardinalities = mechanism.check(domain)
    n_cells = math.prod(cardinalities)
    if n_cells > MAX_CHANNEL_CELLS:
        raise DomainError(
            f"domain: {shown_count(n_cells)} cells are too many for a joint channel, at most "
            f"{MAX_CHANNEL_CELLS:,}; select fewer columns"
        )
    matrix = mechanism.cell_channel(cardinalities)
    matrix.setflags(write=False)
    return matrix


def check_invertible(matrices: Sequence[Floats]) -> None:
    """Refuses channels of which nothing is left to take off: whatever the records were, the reports
    have the same law, as far as float64 can tell.

    Raises:
        OptionError: there is one.
    """
    if not all(np.linalg.cond(matrix) < _MOST_CONDITION for matrix in matrices):
        raise OptionError(
            "mechanism: its reports say nothing of the true records that float64 could tell from "
            "rounding; randomise with a larger epsilon (or p_max)"
        )
