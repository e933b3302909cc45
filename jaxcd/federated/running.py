"""Several owners on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from jaxcd.data.rows import Rows
from jaxcd.errors import OptionError
from jaxcd.federated.coordinator import Coordinator
from jaxcd.federated.federation import Federation
from jaxcd.federated.lines import LocalLine
from jaxcd.federated.site import Site
from jaxcd.privacy import Budget, NoiseSource, PrivacyFilter, SimulatedNoise
from jaxcd.releases.kind import ReleaseKind

__all__ = ["federate", "site_noise"]


def site_noise(noise: NoiseSource | None, place: int) -> NoiseSource | None:
    """The noise of one site: simulated noise has another key at each, or shares would be equal.

    Args:
        noise: of the run.
        place: of the site, from 0.

    Returns:
        A source for this site.
    """
    if isinstance(noise, SimulatedNoise):
        return SimulatedNoise(jax.random.fold_in(noise.key, place))
    return noise


def federate(
    sites: Mapping[str, Rows],
    kind: ReleaseKind,
    *,
    budget: Budget,
    dropouts: int = 0,
    colluding: int = 0,
    noise: NoiseSource | None = None,
    ledgers: Mapping[str, PrivacyFilter] | None = None,
) -> Any:
    """Buys one release of the rows of several owners, none of whom shows a row to anybody.

    Each site adds its share of the noise to its own counts, masks hide the parts, and only sums are
    seen: y = sum over sites of (N_i + Z_i).  This function runs sites and coordinator in one
    process, through the messages of :mod:`jaxcd.federated.messages`; ``jaxcd federate`` gives each
    site a process of its own.

    Args:
        sites: the rows of each owner (a Dataset or a Table), of one declared domain.
        kind: ``Histogram()``; with delta > 0 also ``Marginals()`` and ``LogLinear()``.
        budget: the price for any one row, at whichever site; all of it is spent.
        dropouts: so many sites may fail to answer, from 0.
        colluding: so many sites may tell the coordinator all that they know, from 0.
        noise: None for secure noise; ``SimulatedNoise(key)`` for experiments.
        ledgers: for each site (or some) a LedgerFile of its own.

    Returns:
        The release; whatever is computed from it is free, as of :func:`jaxcd.release`.

    Raises:
        OptionError: an argument is not of its kind; no site is sure to be there and silent.
        DomainError: the kind does not take the columns.
        PrivacyError: the domain is not declared, or too few sites answered.

    Guarantee:
        Relation: one row of one site replaced; the sites' numbers of rows and the domain are
        public. Adversary: sees sums over at least K - d sites, and all that t sites know.
        Sensitivity and events: as of the release, with the noise of K - t - d sites. Proof:
        docs/PRIVACY.md Y.

    Source:
        Kairouz, Liu, Steinke 2021; Goryczka and Xiong 2015; Bonawitz et al. 2017.

    Example:
        >>> import jax, jaxcd
        >>> network = jaxcd.networks.load("cancer")
        >>> hospitals = {
        ...     name: network.sample(2_000, key=jax.random.key(place))
        ...     for place, name in enumerate(("north", "south", "east"))
        ... }
        >>> bought = jaxcd.federate(
        ...     hospitals,
        ...     jaxcd.Histogram(),
        ...     budget=jaxcd.Budget(1.0),
        ...     dropouts=1,
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(9)),
        ... )
        >>> bought.n_samples, bought.cost.epsilon, round(bought.scale, 3)
        (6000, 1.0, 2.441)
    """
    if not isinstance(sites, Mapping) or not all(isinstance(d, Rows) for d in sites.values()):
        raise OptionError(
            'sites: give a dictionary of data sets by name, such as {"north": a, "south": b}'
        )
    federation = Federation(tuple(sites), budget, dropouts=dropouts, colluding=colluding)
    unknown = set(ledgers or {}) - set(sites)
    if unknown:
        raise OptionError(f"ledgers: {sorted(unknown)} are no sites; they are {list(sites)}")
    lines = {
        name: LocalLine(
            Site(
                name,
                data,
                federation,
                ledger=(ledgers or {}).get(name),
                noise=site_noise(noise, place),
            ).answer
        )
        for place, (name, data) in enumerate(sites.items())
    }
    domain = next(iter(sites.values())).domain
    return Coordinator(federation, domain, lines).release(kind, noise=noise)
