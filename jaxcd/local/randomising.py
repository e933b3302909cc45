"""Applying a mechanism to data."""

from __future__ import annotations

from jaxcd.data import Dataset
from jaxcd.errors import OptionError
from jaxcd.local.base import LocalMechanism
from jaxcd.local.uniforms import Uniforms
from jaxcd.privacy import NoiseSource

__all__ = ["randomise"]


def randomise(data: Dataset, mechanism: LocalMechanism, *, noise: NoiseSource | None = None) -> Dataset:
    """Randomise each record by itself.

    Each row of the result depends on the same row of ``data`` only, and is drawn afresh: randomising the same people twice
    costs them twice the epsilon.

    **Guarantee.** ``mechanism.guarantee(data.domain)``, for each person, against everybody who does not draw the noise; none if
    ``noise`` is simulated, because who has the key takes it off. Public: the domain and the number of rows. Proof: as named
    there.

    Args:
        data: declared discrete columns.
        mechanism: how.
        noise: None for the operating system's entropy; ``SimulatedNoise(key)`` in experiments.

    Returns:
        A data set of the same domain and number of rows.

    Raises:
        DomainError: a column is numeric, or the domain is too large for the mechanism.
        PrivacyError: the domain is not declared.
        OptionError: a parameter does not fit the domain, or an argument is of the wrong kind.
    """
    check_mechanism(mechanism)
    cardinalities = mechanism.check(data.domain)
    codes = mechanism.randomised_codes(data.codes, cardinalities, Uniforms(noise))
    return Dataset.from_codes(codes, domain=data.domain)


def check_mechanism(mechanism: LocalMechanism) -> None:
    """Refuse what is no local mechanism, such as its class."""
    if not isinstance(mechanism, LocalMechanism):
        raise OptionError(f"mechanism must be a local mechanism, got {mechanism!r}: give one such as KaryResponse(epsilon=1.0)")
