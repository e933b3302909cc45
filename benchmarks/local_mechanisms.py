"""What the benchmarks of local privacy share: mechanisms at an equal p_max or an equal epsilon, and
data with the noise taken off.

``p_max`` is the probability that a whole *record* is reported as it is, for every mechanism
(Binkyte et al. 2024: their smallest, .05, is below 1/10 on ten bins and so can be no column's).  It
says little about privacy: what a mechanism of that ``p_max`` guarantees, epsilon_LDP of the whole
record, stands beside it in every row, and the same mechanisms are compared at an equal one.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import jax
import numpy as np

import jaxcd
from benchmarks.experiment import Option, names, numbers
from jaxcd import local
from jaxcd.errors import OptionError
from jaxcd.local.channels import MAX_CHANNEL_CELLS
from jaxcd.local.ibu import denoised_joint, resample

# : Steps of expectation-maximisation: the last digits of a converged estimate are not worth their
# time, and stopping early keeps it smooth.
IBU_STEPS = 300
# : Joint tables above this many cells are not denoised here: a step would take seconds, and n rows
# say nothing about most cells.
IBU_CELLS = 200_000


class Level(enum.Enum):
    """What is equal among the mechanisms that are compared."""

    NONE = "no noise"
    P_MAX = "p_max"
    EPSILON = "epsilon_LDP"


@dataclass(frozen=True)
class Kind:
    """A mechanism to be compared.  distance: for those that need one."""

    label: str
    kind: type[local.LocalMechanism]
    distance: local.Distance | None = None

    def at(self, level: Level, value: float, domain: jaxcd.Domain) -> local.LocalMechanism:
        """The mechanism of a p_max or an epsilon.  Raises OptionError where there is none."""
        return _found(self, level, value, tuple(k or 0 for k in domain.cardinalities))[0]

    def guarantee(self, level: Level, value: float, domain: jaxcd.Domain) -> local.LocalGuarantee:
        """What that mechanism guarantees."""
        return _found(self, level, value, tuple(k or 0 for k in domain.cardinalities))[1]


@lru_cache(maxsize=4096)
def _found(
    kind: Kind, level: Level, value: float, cardinalities: tuple[int, ...]
) -> tuple[local.LocalMechanism, local.LocalGuarantee]:
    """Once for all domains of the same numbers of levels: with thousands of cells a combined
    mechanism takes seconds.
    """
    domain = jaxcd.Domain(
        {f"x{j}": jaxcd.Ordinal(tuple(range(k))) for j, k in enumerate(cardinalities)}
    )
    equal = {"p_max": value} if level is Level.P_MAX else {"epsilon_ldp": value}
    mechanism = local.calibrate(kind.kind, domain, distance=kind.distance, **equal)
    return mechanism, mechanism.guarantee(domain)


def _levels(domain: jaxcd.Domain) -> list[int]:
    return [k for k in domain.cardinalities if k is not None and k > 1]


KINDS = (
    Kind("k-RR", local.KaryResponse),
    Kind("k-RR, combined", local.CombinedKaryResponse),
    Kind("geometric", local.BoundedGeometric),
    Kind("geometric, combined", local.CombinedGeometric, local.Distance.EUCLIDEAN),
    Kind("clipped geometric", local.ClippedGeometric),
)


def kinds_of(labels: list[str] | None) -> tuple[Kind, ...]:
    """The mechanisms of these labels; all for None."""
    return KINDS if labels is None else tuple(kind for kind in KINDS if kind.label in labels)


def randomised(
    data: jaxcd.Dataset, mechanism: local.LocalMechanism, key: jax.Array
) -> jaxcd.Dataset:
    """What the people would have reported, with noise of a key."""
    return local.randomise(data, mechanism, noise=jaxcd.SimulatedNoise(key))


def denoised(data: jaxcd.Dataset, mechanism: local.LocalMechanism, key: jax.Array) -> jaxcd.Dataset:
    """As many records drawn from the estimate of the true joint distribution.

    Raises OptionError where the table or, for combined mechanisms, the joint channel would be too
    large.
    """
    n_cells = math.prod(_levels(data.domain))
    if not n_cells <= IBU_CELLS:
        raise OptionError(f"{n_cells:,} cells are more than {IBU_CELLS:,}")
    if mechanism.is_combined and not n_cells <= MAX_CHANNEL_CELLS:
        raise OptionError(
            f"{n_cells:,} cells are too many for a joint channel, at most {MAX_CHANNEL_CELLS:,}"
        )
    estimate = denoised_joint(data, mechanism, n_iterations=IBU_STEPS, tolerance=1e-7)
    return resample(estimate, domain=data.domain, n_samples=data.n_samples, key=key)


def as_numbers(data: jaxcd.Dataset) -> jaxcd.Dataset:
    """Level codes as numbers, for the methods of numeric columns."""
    bounds = {
        name: jaxcd.Numeric(0.0, float(max((k or 1) - 1, 1)))
        for name, k in zip(data.names, data.domain.cardinalities, strict=True)
    }
    return jaxcd.Dataset.from_array(
        np.asarray(data.codes, dtype=np.float64), domain=jaxcd.Domain(bounds)
    )


def levels_of(p_max: Sequence[float], epsilons: Sequence[float]) -> list[tuple[Level, float]]:
    """What is equal, and at which value."""
    return [(Level.P_MAX, p) for p in p_max] + [(Level.EPSILON, e) for e in epsilons]


def options(
    *, p_max: Sequence[Sequence[float]], epsilons: Sequence[Sequence[float]]
) -> tuple[Option, ...]:
    """The mechanisms and the levels at which they are compared: the usual ones, and the quick
    ones.
    """
    return (
        names("--mechanisms", "all by default", [kind.label for kind in KINDS]),
        numbers("--p-max", "probabilities that a record is reported as it is", *p_max),
        numbers("--epsilons", "epsilon_LDP of a whole record", *epsilons),
    )
