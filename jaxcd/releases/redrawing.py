r"""Fresh releases from models that were fitted to a release: the parametric bootstrap of what was
bought.

A model of the joint distribution is read off released numbers and a graph, so it is
post-processing; rows drawn from it are nobody's, and noise that is added to them protects nobody:
simulated noise is right here.  A fresh release is bought from the drawn rows through the same door
as the first, with the same budget and options, so that all that made the first uncertain (sampling,
noise, rounds that depend on one another) is drawn anew.

Source:
    Efron and Tibshirani 1993, chapter 6, for the parametric bootstrap; Friedman, Goldszmidt, Wyner
    1999 for graphs.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxcd.data import Dataset
from jaxcd.errors import OptionError
from jaxcd.privacy import (
    NO_PRIVACY,
    Budget,
    NoiseSource,
    SimulatedNoise,
    epsilon_to_rho,
    paying,
    rho_to_epsilon,
)
from jaxcd.releases.base import Release
from jaxcd.releases.kind import ReleaseKind

__all__ = ["FittedModel", "generator", "redrawn", "release_again"]


class FittedModel(abc.ABC):
    """A distribution on a domain that rows can be drawn from; public."""

    @abc.abstractmethod
    def sample(self, n_samples: int, *, key: jax.Array) -> Dataset:
        """Independent rows; equal keys give equal rows."""


def generator(key: jax.Array) -> np.random.Generator:
    """NumPy's generator from a key."""
    return np.random.default_rng(
        [int(word) for word in np.asarray(jax.random.key_data(key)).ravel()]
    )


def redrawn(
    release: Release, model: FittedModel, kind: ReleaseKind
) -> Callable[[jax.Array], Release]:
    """Fresh releases by keys: rows from the model, bought with the same options and budget."""

    def again(key: jax.Array) -> Release:
        data_key, noise_key = jax.random.split(key)
        data = model.sample(release.n_samples, key=data_key)
        return release_again(release, data, kind=kind, noise=SimulatedNoise(noise_key))

    return again


def release_again(
    release: Release, data: Dataset, *, kind: ReleaseKind, noise: NoiseSource
) -> Release:
    """Buys from other rows what ``release`` is, with its budget; of a release of several sites,
    whose shares of noise may be more than the price needs, with the budget that has that noise.

    Args:
        data: rows that may be known to everybody, such as :meth:`FittedModel.sample` gives.
        kind: the options it was bought with.

    Raises:
        OptionError: the fresh release is less or more precise than the first: ``kind`` is not what
            it was bought with.  Options that change no noise that can be compared (some of
            marginals) pass unnoticed.
    """
    cost = release.cost
    rows = cost.max_rows_per_person
    budget = (
        NO_PRIVACY
        if math.isinf(cost.epsilon)
        else Budget(
            cost.epsilon,
            cost.delta,
            cost.relation,
            max_rows_per_person=rows,
            accounting=cost.accounting,
        )
    )

    def fresh_at(budget: Any) -> Release:
        with paying(rehearsal=True):  # some kinds choose what to measure by how cells are read
            found: Release = kind.release(data.reading(release.missing), budget=budget, noise=noise)
        return found

    fresh = fresh_at(budget)
    if isinstance(budget, Budget) and kind == release.bought and kind.takes_sites:
        weaker = _with_the_noise_of(release, fresh, budget)
        if weaker is not None:
            fresh = fresh_at(weaker)
    if not _as_precise(fresh, release):
        raise OptionError(
            f"kind: {kind} is not what the release was bought with; give the options that were used"
        )
    return fresh


def _as_precise(fresh: Release, release: Release) -> bool:
    if type(fresh) is not type(release):
        return False
    ours, theirs = fresh._precision(), release._precision()
    return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-6)


def _with_the_noise_of(release: Release, fresh: Release, budget: Budget) -> Budget | None:
    """The budget that buys as much noise as a release of several sites has; None where it has no
    more than ``budget`` buys.
    """
    if _as_precise(fresh, release) or release._precision().size == 0:
        return None
    # of pure noise the inverse of epsilon, of Gaussian noise that of rho
    share = float(fresh._precision()[0] / release._precision()[0])
    if not 0 < share < 1:
        return None
    if release.bought is not None and release.bought.is_pure:
        epsilon = budget.epsilon * share
    else:
        rho = epsilon_to_rho(budget.epsilon, budget.delta) * share
        epsilon = rho_to_epsilon(rho, budget.delta)
    return dataclasses.replace(budget, epsilon=epsilon) if epsilon > 0 else None
